"""The runs of a recipe at a scale, and the actions that an untrusted recipe needs consent for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line
from papers.methods import method
from papers.reproduce.recipe import (
    NO_DEV,
    SMOKE_SETTINGS,
    Recipe,
    Row,
    RowAtScale,
    Scale,
)
from papers.suites.mteb import MTEB

if TYPE_CHECKING:
    from papers.reproduce.recipe import AtScale, Precision, Source, Texts, Tree, Whiten

# Rows and runs differ in these, so --set refuses them.
_NOT_FOR_ALL = ("seed", "preset")
_BELOW = ("{data}/", "{work}/")
_PACKAGED = ("minilm", "smollm2")
# Settings that name a model or data.
_SOURCE_KEYS = ("model", "scores", "generator", "data", "dev_data")


@dataclass(frozen=True)
class Run:
    """One training with one seed, and its scoring."""

    row: str
    seed: int
    backbone: str
    train: bool
    settings: Tree
    source: Source
    precision: Precision
    texts: Texts | None = None
    method: str | None = None
    options: Mapping[str, str] | None = None
    whiten: Whiten | None = None
    flow: Texts | None = None

    def objective(self) -> Any:
        """A new objective of the method; None for the objective of the settings."""
        if self.method is None:
            return None
        return method(self.method, **(self.options or {}))


@dataclass(frozen=True)
class Folders:
    """The folders that recipes name in braces."""

    data: Path | None
    work: Path

    def fill(self, text: str) -> str:
        """Replace {data} and {work} by absolute paths; a relative path could be mistaken for a Hub id."""
        if "{data}" in text and self.data is None:
            raise ConfigError(
                "this recipe needs --data-dir, the folder with the public data sets"
            )
        data = str(self.data.absolute()) if self.data else ""
        return text.replace("{data}", data).replace("{work}", str(self.work.absolute()))


def plan(
    recipe: Recipe,
    scale: Scale,
    folders: Folders,
    *,
    seeds: Sequence[int] = (),
    only: Sequence[str] = (),
    assignments: Sequence[str] = (),
) -> tuple[list[Run], dict[str, str]]:
    """The runs, ordered by seed so that every row soon has a score, and the reasons for skipped rows."""
    _check(recipe, seeds, only, assignments)
    at = recipe.at(scale)
    if scale == "smoke":
        assignments = (*SMOKE_SETTINGS, *assignments)
    overrides = [_parse_assignment(text) for text in assignments]
    wanted = [row for row in recipe.runs if not only or row.name in only]
    reasons = {row.name: row.at(scale).skip for row in wanted}
    skipped = {name: reason for name, reason in reasons.items() if reason}
    runs = []
    for index, seed in enumerate(seeds or at.seeds):
        for row in wanted:
            if row.name in skipped:
                continue
            if row.learns:
                runs.append(_run(row, recipe, scale, folders, seed, overrides))
            elif index == 0:
                # A row without randomness has one run, for whichever seeds.
                runs.append(_run(row, recipe, scale, folders, at.seeds[0], overrides))
    return runs, skipped


def merged(*layers: Tree) -> Tree:
    """One tree; values of later layers replace those of earlier ones."""
    result: Tree = {}
    for layer in layers:
        for key, value in layer.items():
            old = result.get(key)
            if isinstance(old, dict) and isinstance(value, dict):
                value = merged(old, value)
            result[key] = value
    return result


def _check(
    recipe: Recipe,
    seeds: Sequence[int],
    only: Sequence[str],
    assignments: Sequence[str],
) -> None:
    names = [row.name for row in recipe.runs]
    for name in only:
        if name not in names:
            raise ConfigError(
                f"--only {name}: the recipe has the rows {', '.join(names)}"
            )
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"--seeds {','.join(map(str, seeds))}: a seed is given twice")
    for assignment in assignments:
        if assignment.partition("=")[0].strip() in _NOT_FOR_ALL:
            raise ConfigError(
                f"--set {assignment}: rows and runs differ in it; use --seeds or --only instead"
            )


def _parse_assignment(text: str) -> Tree:
    """`section.key=value` as a tree; a value that isn't TOML is a string."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--set {text}: expected key=value, such as optim.lr=2e-5")
    try:
        tree: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        tree = value.strip()
    for part in reversed(key.strip().split(".")):
        tree = {part: tree}
    return tree  # type: ignore[no-any-return]


def _run(
    row: Row,
    recipe: Recipe,
    scale: Scale,
    folders: Folders,
    seed: int,
    overrides: Sequence[Tree],
) -> Run:
    at = recipe.at(scale)
    row_at = row.at(scale)
    options = {**row.options, **row_at.options}
    options = {name: folders.fill(value) for name, value in options.items()}
    try:
        objective: Any = None if row.method is None else method(row.method, **options)
    except (ConfigError, TypeError) as error:
        raise ConfigError(f"{row.name}: {error}") from error
    # A fixed preset, because `auto` depends on the data; methods have their own objective.
    defaults: Tree = {"preset": "angle-paper"}
    if hasattr(objective, "lr"):
        defaults = {"preset": "auto", "optim": {"lr": objective.lr}}
    # How the scale's backbone makes vectors is not for other backbones, nor for methods with a pooling.
    own_backbone = row_at.backbone or row.backbone
    of_scale = {**at.settings, "encoder": {}} if own_backbone else at.settings
    settings = merged(
        defaults,
        recipe.settings,
        of_scale,
        {"encoder": getattr(objective, "encoder", {})},
        row.settings,
        row_at.settings,
        {"seed": seed if row.seed is None else row.seed},
        *overrides,
    )
    return Run(
        row=row.name,
        seed=seed,
        backbone=folders.fill(own_backbone or at.backbone),
        train=row.train,
        settings=settings,
        source=_source(at, row_at, folders),
        precision=row_at.precision or at.precision,
        texts=row.texts,
        method=row.method,
        options=options,
        whiten=row.whiten,
        flow=row.flow,
    )


def _source(at: AtScale, row: RowAtScale, folders: Folders) -> Source:
    """The training data of a row."""
    own = {"train": row.data, "labels": row.labels} if row.data else {}
    source = at.source.model_copy(update=own)
    return source.model_copy(update={"train": tuple(map(folders.fill, source.train))})


def list_actions(recipe: Recipe, scale: Scale) -> list[str]:
    """One line per action that needs consent; empty if all models and data are in --data-dir."""
    sources = _sources(recipe, scale)
    services = []
    for name, value in _settings(recipe, scale):
        if name in _SOURCE_KEYS:
            sources.append(one_line(str(value), None))
        elif name == "report_to" and value:
            services.append(one_line(f"to {value}"))
    commands = recipe.at(scale).source.prepare
    return [
        *(f"runs    {' '.join(command)}" for command in commands),
        *dict.fromkeys(f"loads   {name}" for name in filter(_is_outside, sources)),
        *dict.fromkeys(f"reports {service}" for service in services),
    ]


def _sources(recipe: Recipe, scale: Scale) -> list[str | None]:
    """Models and data that the recipe names, besides those in settings."""
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
    return sources


def _is_outside(source: str | None) -> bool:
    """Whether a model or data are not in --data-dir."""
    if source in (None, NO_DEV, *_PACKAGED):
        return False
    if ".." in re.split(r"[/\\]", source) or "://" in source:
        raise ConfigError(
            f"the recipe names {source}; expected a path below {' or '.join(_BELOW)}, or a Hub id"
        )
    return not source.startswith(_BELOW)


def _settings(recipe: Recipe, scale: Scale) -> Iterator[tuple[str, Any]]:
    """All settings of the recipe, each with the last part of its key."""
    layers = [recipe.settings, recipe.at(scale).settings]
    for row in recipe.runs:
        layers += [row.settings, row.at(scale).settings]
    while layers:
        for key, value in layers.pop().items():
            if isinstance(value, dict):
                layers.append(value)
            else:
                # A quoted key may have dots.
                yield key.rpartition(".")[2], value
