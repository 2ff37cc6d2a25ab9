"""Which runs a recipe makes at a scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aoe_train._reproduce.recipe import SMOKE_SETTINGS, AtScale, Recipe, Row, Scale
from aoe_train._settings import PAPERS, TrainSettings, merged
from pairkit.config import load_settings
from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from aoe_train._reproduce.recipe import Texts, Tree, Whiten

_ROWS_OWN = ("seed", "preset")  # what tells rows and runs apart can't be set for all of them


@dataclass(frozen=True)
class Run:
    """One training with one seed, and its scoring.

    Attributes:
        row: The line of the table that it counts for.
        train: Whether anything is trained; else the backbone is scored, read as the settings say.
        texts: Single texts to train on instead of the recipe's rows.
        whiten: Texts by whose vectors the model's are whitened before it is scored.
        flow: Texts to whose vectors a flow is fitted before it is scored.
    """

    row: str
    seed: int
    backbone: str
    train: bool
    texts: Texts | None
    settings: TrainSettings
    whiten: Whiten | None = None
    flow: Texts | None = None


@dataclass(frozen=True)
class Places:
    """Where things lie; recipes name them in braces.

    Attributes:
        data: The folder with the public data sets.
        work: A folder for what the recipe makes on its way.
    """

    data: Path | None
    work: Path

    def fill(self, text: str) -> str:
        """`text` with {data} and {work} filled in, as absolute paths: a relative one could pass for a Hub id.

        Raises:
            ConfigError: It needs a data folder and none was given.
        """
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
    """The runs in the table's order, seed by seed: the first figures of every row come early.

    Args:
        recipe: The table.
        scale: At which scale.
        places: Where things lie.
        seeds: Instead of the recipe's.
        only: Rows to run; all by default.
        assignments: `section.key=value`, over everything that the recipe says.

    Returns:
        The runs, and the rows left out with the reason.

    Raises:
        ConfigError: An unknown row, a seed twice, or settings that `aoe train` would refuse.
    """
    _check(recipe, seeds, only, assignments)
    at = recipe.at(scale)
    if scale == "smoke":
        assignments = (*SMOKE_SETTINGS, *assignments)
    wanted = [row for row in recipe.runs if not only or row.name in only]
    skipped = {row.name: reason for row in wanted if (reason := row.at(scale).skip)}
    runs = [
        # Nothing is drawn where nothing learns: one run, whichever seeds are asked for.
        _run(recipe, row, scale, at, places, seed if row.learns else at.seeds[0], assignments)
        for place, seed in enumerate(seeds or at.seeds)
        for row in wanted
        if row.name not in skipped and (row.learns or place == 0)
    ]
    return runs, skipped


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


def _run(
    recipe: Recipe,
    row: Row,
    scale: Scale,
    at: AtScale,
    places: Places,
    seed: int,
    assignments: Sequence[str],
) -> Run:
    own = row.at(scale)
    tree: Tree = {"preset": f"angle{PAPERS}"}  # what a table compares is not left to the data
    for layer in (recipe.settings, at.settings, row.settings, own.settings, {"seed": seed}):
        tree = merged(tree, layer)
    try:
        settings = load_settings(TrainSettings, below=tree, assignments=assignments)
    except ConfigError as error:
        raise ConfigError(f"{row.name}: {error}") from error
    backbone = places.fill(own.backbone or row.backbone or at.backbone)
    return Run(row.name, seed, backbone, row.train, row.texts, settings, row.whiten, row.flow)
