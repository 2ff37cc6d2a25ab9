"""A recipe from a file may be a stranger's: what it may run at all, and what a person has to see first.

Commands of a recipe run with this person's keys and tokens. So a recipe may name few of them, with few
flags (see `command`): none that names a server, a key, a file of settings, or code. Even those, and whatever
it fetches or reads from elsewhere, are shown and confirmed before anything is done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aoe_train._backbones.packaged import PACKAGED
from aoe_train._reproduce.command import DATA, WORK, parse_command
from aoe_train._reproduce.recipe import NO_DEV
from pairkit.errors import ConfigError
from pairkit.printable import one_line

if TYPE_CHECKING:
    from aoe_train._reproduce.recipe import Recipe, Scale, Tree

_NAMES_MODELS = (
    "model",
    "scores",
    "generator",
    "data",
    "dev_data",
)  # keys of settings that name what is read


def asks(recipe: Recipe, scale: Scale) -> list[str]:
    """What a person has to agree to before a stranger's recipe runs at a scale, a line each.

    There is none where all lies below --data-dir and no command is run.

    Raises:
        ConfigError: A command that no recipe may run, or a path or address that none may name.
    """
    lines = [f"runs    {parse_command(words)}" for words in recipe.at(scale).source.prepare]
    lines += [f"loads   {word}" for word in _distinct(_named(recipe, scale))]
    return lines + [f"reports {word}" for word in _distinct(_reports(recipe, scale))]


def _named(recipe: Recipe, scale: Scale) -> Iterator[str]:
    """Models and data that are not below --data-dir."""
    at = recipe.at(scale)
    words = [at.backbone, at.source.train, at.source.dev, *(column.data for column in at.evaluate)]
    for row in recipe.runs:
        words += [
            row.backbone,
            row.at(scale).backbone,
            *(texts.of for texts in (row.texts, row.whiten, row.flow) if texts),
        ]
    for layer in _layers(recipe, scale):
        words += _models_in(layer)
    for word in words:
        if word is None or word == NO_DEV or word in PACKAGED:
            continue
        if ".." in re.split(r"[/\\]", word) or "://" in word:
            raise ConfigError(f"the recipe names {word}; expected a path below {DATA} or {WORK}, or a Hub id")
        if not word.startswith((DATA, WORK)):
            yield word


def _layers(recipe: Recipe, scale: Scale) -> list[Tree]:
    """All settings that the recipe gives."""
    layers = [recipe.settings, recipe.at(scale).settings]
    return layers + [own.settings for row in recipe.runs for own in (row, row.at(scale))]


def _models_in(settings: Tree) -> Iterator[str]:
    """Models and data that settings name, in whichever section: guides, teachers, generators."""
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _models_in(value)
        elif key in _NAMES_MODELS and isinstance(value, str):
            yield value


def _reports(recipe: Recipe, scale: Scale) -> Iterator[str]:
    """Services that a run would tell what it does."""
    for layer in _layers(recipe, scale):
        log = layer.get("log")
        if isinstance(log, dict) and log.get("report_to"):
            yield one_line(f"to {log['report_to']}")


def _distinct(words: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(words))
