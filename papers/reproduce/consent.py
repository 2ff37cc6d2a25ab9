"""What an untrusted recipe would do beyond training on --data-dir; the user confirms it first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line
from papers.reproduce.recipe import NO_DEV
from papers.suites.mteb import MTEB

if TYPE_CHECKING:
    from papers.reproduce.recipe import Recipe, Scale, Tree

_DATA = "{data}/"
_WORK = "{work}/"
_PACKAGED = ("minilm", "smollm2")
# Settings that name a model or data.
_SOURCE_KEYS = ("model", "scores", "generator", "data", "dev_data")


def list_actions(recipe: Recipe, scale: Scale) -> list[str]:
    """One line per action that needs consent; empty if all models and data are in --data-dir."""
    commands = recipe.at(scale).source.prepare
    return [
        *(f"runs    {' '.join(command)}" for command in commands),
        *dict.fromkeys(f"loads   {name}" for name in _outside_sources(recipe, scale)),
        *dict.fromkeys(f"reports {service}" for service in _reports(recipe, scale)),
    ]


def _outside_sources(recipe: Recipe, scale: Scale) -> Iterator[str]:
    """Models and data that are not in --data-dir."""
    at = recipe.at(scale)
    sources = [at.backbone, *at.source.train, at.source.dev]
    sources += [column.data for column in at.evaluate]
    # MTEB downloads the data of its tasks.
    sources += [MTEB for column in at.evaluate if column.suite == MTEB]
    for row in recipe.runs:
        row_at = row.at(scale)
        sources += [row.backbone, row_at.backbone, *row_at.data]
        sources += [*row.options.values(), *row_at.options.values()]
        sources += [texts.of for texts in (row.texts, row.whiten, row.flow) if texts]
    for layer in _layers(recipe, scale):
        sources += _sources_in(layer)
    for source in sources:
        if source is None or source == NO_DEV or source in _PACKAGED:
            continue
        if ".." in re.split(r"[/\\]", source) or "://" in source:
            raise ConfigError(
                f"the recipe names {source}; expected a path below {_DATA} or {_WORK}, or a Hub id"
            )
        if not source.startswith((_DATA, _WORK)):
            yield source


def _layers(recipe: Recipe, scale: Scale) -> list[Tree]:
    """All settings sections of the recipe."""
    layers = [recipe.settings, recipe.at(scale).settings]
    for row in recipe.runs:
        layers += [row.settings, row.at(scale).settings]
    return layers


def _sources_in(settings: Tree) -> Iterator[str]:
    """Models and data in the settings: guides, teachers, generators."""
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _sources_in(value)
        elif key in _SOURCE_KEYS and isinstance(value, str):
            yield value


def _reports(recipe: Recipe, scale: Scale) -> Iterator[str]:
    """Experiment trackers that a run would report to."""
    for layer in _layers(recipe, scale):
        log = layer.get("log")
        if isinstance(log, dict) and log.get("report_to"):
            yield one_line(f"to {log['report_to']}")
