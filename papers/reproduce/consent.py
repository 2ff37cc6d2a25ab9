"""What a recipe of others would do beyond training on the data folder: shown, and confirmed first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line
from papers.reproduce.recipe import NO_DEV

if TYPE_CHECKING:
    from papers.reproduce.recipe import Recipe, Scale, Tree

_DATA, _WORK = "{data}/", "{work}/"
_PACKAGED = "minilm", "smollm2"
_NAMES_MODELS = (
    "model",
    "scores",
    "generator",
    "data",
    "dev_data",
)  # keys of settings that name what is read


def asks(recipe: Recipe, scale: Scale) -> list[str]:
    """What a person has to agree to, a line each; none if all data are below --data-dir."""
    lines = [f"runs    {' '.join(words)}" for words in recipe.at(scale).source.prepare]
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
            *row.options.values(),
            *row.at(scale).options.values(),
            *(texts.of for texts in (row.texts, row.whiten, row.flow) if texts),
        ]
    for layer in _layers(recipe, scale):
        words += _models_in(layer)
    for word in words:
        if word is None or word == NO_DEV or word in _PACKAGED:
            continue
        if ".." in re.split(r"[/\\]", word) or "://" in word:
            raise ConfigError(
                f"the recipe names {word}; expected a path below {_DATA} or {_WORK}, or a Hub id"
            )
        if not word.startswith((_DATA, _WORK)):
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
