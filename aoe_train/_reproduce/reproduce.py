"""A recipe from its file to its table. Kill it and run it again: finished runs are not repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train._conflicts import Say
from aoe_train._reproduce.execute import Bench, Record
from aoe_train._reproduce.material import absent, prepare
from aoe_train._reproduce.plan import Places, Run, plan
from aoe_train._reproduce.scoring import read_scorings
from aoe_train._reproduce.table import markdown, summary
from pairkit.errors import ConfigError, DataError, PairkitError
from pairkit.files import remove, write_json, write_text
from pairkit.folders import held_folder
from pairkit.progress import Display, Listener, Progress

if TYPE_CHECKING:
    from aoe_train._reproduce.recipe import AtScale, Recipe, Scale

TABLE, FIGURES = "table.md", "figures.json"
_OURS = ("runs", "models", "data", TABLE, FIGURES)


@dataclass(frozen=True)
class Wanted:
    """What of a recipe to run, and where."""

    scale: Scale
    data_dir: Path | None
    out: Path
    seeds: tuple[int, ...] = ()
    only: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    keep: bool = False
    fresh: bool = False

    def __post_init__(self) -> None:
        """Take paths and strings alike."""
        object.__setattr__(self, "out", Path(self.out))
        object.__setattr__(self, "data_dir", None if self.data_dir is None else Path(self.data_dir))

    @property
    def places(self) -> Places:
        """Where things lie."""
        return Places(self.data_dir, self.out / "data")


def planned(recipe: Recipe, wanted: Wanted) -> tuple[list[Run], dict[str, str]]:
    """See `aoe_train._reproduce.plan.plan`."""
    return plan(
        recipe,
        wanted.scale,
        wanted.places,
        seeds=wanted.seeds,
        only=wanted.only,
        assignments=wanted.assignments,
    )


def reproduce(
    recipe: Recipe, wanted: Wanted, *, say: Say, progress: bool | Listener = True
) -> dict[str, Any]:
    """Do the runs that have no record yet, and write the table of all that have one.

    A run that fails is told and does not stop the others; the first one's error comes at the end.

    Returns:
        What figures.json holds: recipe, scale, backbone, rows, runs.

    Raises:
        ConfigError: Unusable settings, a recipe without such a scale, or another process at work there.
        DataError: Data that is not there or not as expected.
        RemoteError: The Hub could not be asked.
    """
    runs, skipped = planned(recipe, wanted)
    at, places = recipe.at(wanted.scale), wanted.places
    if missing := absent(at.source, places):
        raise DataError("no such file; give the folder that holds it as --data-dir", path=missing[0])
    # Whatever can be found wrong is found before data is made, which may take hours or cost money.
    ready = [column for column in at.evaluate if "{work}" not in (column.data or "")]
    scorings = read_scorings(ready, places)
    with held_folder(wanted.out, "another run works in it; wait for it or choose another --out"):
        if wanted.fresh:
            _clear(wanted.out)
        prepare(at.source, places, say)
        runs, skipped = _with_backbones(runs, skipped)
        for row, reason in skipped.items():
            say(f"left out {row}: {reason}")
        if not runs:
            raise ConfigError("every row is left out at this scale; choose another --scale")
        if len(ready) < len(at.evaluate):
            scorings = read_scorings(at.evaluate, places)
        with Display(progress) as show:
            bench = Bench(wanted.out, at, places, scorings, keep=wanted.keep, say=say, show=show)
            return _Table(recipe, wanted, at, skipped, bench).fill(runs, say, show)


def _clear(out: Path) -> None:
    for name in _OURS:
        remove(out / name)


def _with_backbones(runs: Sequence[Run], skipped: dict[str, str]) -> tuple[list[Run], dict[str, str]]:
    """Leave out rows whose backbone is a path where nothing is; of Hub ids nothing is known yet."""
    paths = {run.row: Path(run.backbone) for run in runs if Path(run.backbone).is_absolute()}
    lost = {row: path for row, path in paths.items() if not path.exists()}
    reasons = {row: f"no backbone at {path}" for row, path in lost.items()}
    return [run for run in runs if run.row not in lost], {**skipped, **reasons}


@dataclass(frozen=True)
class _Table:
    """The table in the making."""

    recipe: Recipe
    wanted: Wanted
    at: AtScale
    skipped: dict[str, str]
    bench: Bench

    def fill(self, runs: Sequence[Run], say: Say, show: Listener) -> dict[str, Any]:
        every = self._runs()
        failed: list[tuple[Run, PairkitError]] = []
        for done, run in enumerate(runs):
            show(Progress("runs", done, len(runs), f"{run.row}, seed {run.seed}"))
            if self.bench.record(run) is None:
                try:
                    say(_told(self.bench.do(run)))
                except PairkitError as error:
                    say(f"{run.row}, seed {run.seed}: failed: {error}")
                    failed.append((run, error))
                self.write(every)
            if self.bench.record(run) is not None:  # a kill may have left the model of a finished run
                self.bench.clear(run)
        show(Progress("runs", len(runs), len(runs), ended=True))
        found = self.write(every)
        if failed:
            run, first = failed[0]
            raise type(first)(
                f"{len(failed)} of {len(runs)} runs failed, first {run.row}: {first}"
            ) from first
        return found

    def _runs(self) -> list[Run]:
        """All that fit the recipe, whichever rows and seeds were asked for."""
        wanted = self.wanted
        seeds = tuple(dict.fromkeys((*self.at.seeds, *wanted.seeds)))
        every, _ = plan(self.recipe, wanted.scale, wanted.places, seeds=seeds, assignments=wanted.assignments)
        return _with_backbones(every, {})[0]

    def write(self, runs: Sequence[Run]) -> dict[str, Any]:
        """The table of those of the runs that have a record."""
        wanted = self.wanted
        records = [record for run in runs if (record := self.bench.record(run)) is not None]
        found = {
            "recipe": self.recipe.title,
            "paper": self.recipe.paper,
            "about": self.at.about,
            "scale": wanted.scale,
            "backbone": self.at.backbone,
            "changed": list(wanted.assignments),
            "left_out": self.skipped,
            "rows": summary(self.recipe, records, self.bench.titles),
            "runs": [{"row": record.row, "seed": record.seed, "key": record.key} for record in records],
            "wall_s": round(sum(record.wall_s for record in records), 1),
        }
        write_json(wanted.out / FIGURES, found)
        write_text(wanted.out / TABLE, markdown(self.recipe, found))
        return found


def _told(record: Record) -> str:
    figures = ", ".join(f"{name} {100 * value:.2f}" for name, value in list(record.scores.items())[-3:])
    dev = "" if record.dev is None else f", dev {100 * record.dev:.2f}"
    return f"{record.row}, seed {record.seed}: {figures}{dev} ({record.wall_s:.0f} s)"
