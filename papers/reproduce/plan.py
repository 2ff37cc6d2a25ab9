"""Which runs a recipe makes at a scale."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.app.errors import ConfigError
from papers.methods import method
from papers.reproduce.recipe import SMOKE_SETTINGS, Recipe, Row, Scale

if TYPE_CHECKING:
    from papers.reproduce.recipe import Texts, Tree, Whiten

_ROWS_OWN = ("seed", "preset")  # what tells rows and runs apart can't be set for all of them


@dataclass(frozen=True)
class Run:
    """One training with one seed, and its scoring."""

    row: str
    seed: int
    backbone: str
    train: bool
    settings: Tree
    texts: Texts | None = None
    method: str | None = None
    options: Mapping[str, str] | None = None
    whiten: Whiten | None = None
    flow: Texts | None = None

    def objective(self) -> Any:
        """The method's, new; None for that of the settings."""
        return None if self.method is None else method(self.method, **(self.options or {}))


@dataclass(frozen=True)
class Places:
    """The folders that recipes name in braces."""

    data: Path | None
    work: Path

    def fill(self, text: str) -> str:
        """`text` with {data} and {work} as absolute paths: a relative one could pass for a Hub id."""
        if "{data}" in text and self.data is None:
            raise ConfigError("this recipe needs --data-dir, the folder with the public data sets")
        data = str(self.data.absolute()) if self.data else ""
        return text.replace("{data}", data).replace("{work}", str(self.work.absolute()))


def plan(
    recipe: Recipe,
    scale: Scale,
    places: Places,
    *,
    seeds: Sequence[int] = (),
    only: Sequence[str] = (),
    assignments: Sequence[str] = (),
) -> tuple[list[Run], dict[str, str]]:
    """The runs seed by seed, so that every row soon has a figure, and the rows left out with the reason."""
    _check(recipe, seeds, only, assignments)
    at = recipe.at(scale)
    if scale == "smoke":
        assignments = (*SMOKE_SETTINGS, *assignments)
    wanted = [row for row in recipe.runs if not only or row.name in only]
    skipped = {row.name: reason for row in wanted if (reason := row.at(scale).skip)}
    above = [_assigned(words) for words in assignments]
    layers = recipe.settings, at.settings
    runs = [
        # Nothing is drawn if nothing learns: one run, whichever seeds are asked for.
        _run(row, scale, places, layers, seed if row.learns else at.seeds[0], above, at.backbone)
        for place, seed in enumerate(seeds or at.seeds)
        for row in wanted
        if row.name not in skipped and (row.learns or place == 0)
    ]
    return runs, skipped


def merged(*layers: Tree) -> Tree:
    """Later layers over earlier ones, section by section."""
    found: Tree = {}
    for layer in layers:
        for key, value in layer.items():
            own = found.get(key)
            found[key] = merged(own, value) if isinstance(own, dict) and isinstance(value, dict) else value
    return found


def _check(recipe: Recipe, seeds: Sequence[int], only: Sequence[str], assignments: Sequence[str]) -> None:
    names = [row.name for row in recipe.runs]
    for name in only:
        if name not in names:
            raise ConfigError(f"--only {name}: the recipe has the rows {', '.join(names)}")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"--seeds {','.join(map(str, seeds))}: a seed is given twice")
    for assignment in assignments:
        if assignment.partition("=")[0].strip() in _ROWS_OWN:
            raise ConfigError(
                f"--set {assignment}: rows and runs differ in it; give --seeds or --only instead"
            )


def _assigned(words: str) -> Tree:
    """`section.key=value` as a tree; a value that is no TOML is a string."""
    key, equals, value = words.partition("=")
    if not equals:
        raise ConfigError(f"--set {words}: expected key=value, such as optim.lr=2e-5")
    try:
        found: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        found = value.strip()
    for part in reversed(key.strip().split(".")):
        found = {part: found}
    return found  # type: ignore[no-any-return]


def _run(
    row: Row,
    scale: Scale,
    places: Places,
    layers: Sequence[Tree],
    seed: int,
    above: Sequence[Tree],
    backbone: str,
) -> Run:
    own = row.at(scale)
    options = {name: places.fill(value) for name, value in {**row.options, **own.options}.items()}
    try:
        kind: Any = None if row.method is None else method(row.method, **options)
    except (ConfigError, TypeError) as error:
        raise ConfigError(f"{row.name}: {error}") from error
    # What a table compares is not left to the data, but for methods that bring their own objective.
    below: Tree = {"preset": "angle-paper"}
    if hasattr(kind, "lr"):
        below = {"preset": "auto", "optim": {"lr": kind.lr}, "encoder": kind.encoder}
    settings = merged(below, *layers, row.settings, own.settings, {"seed": seed}, *above)
    return Run(
        row.name,
        seed,
        places.fill(own.backbone or row.backbone or backbone),
        row.train,
        settings,
        row.texts,
        row.method,
        options,
        row.whiten,
        row.flow,
    )
