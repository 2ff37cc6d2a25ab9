"""A recipe from its file to its table. Kill it and run it again: finished runs are not repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train.preparation import Say
from aoe_train.reproduce.execute import Bench, Record
from aoe_train.reproduce.material import absent, prepare
from aoe_train.reproduce.plan import Places, Run, plan
from aoe_train.reproduce.scoring import read_scorings
from aoe_train.reproduce.table import markdown, summary
from pairkit.errors import ConfigError, DataError
from pairkit.files import write_json, write_text
from pairkit.folders import held_folder
from pairkit.terminal import progress

if TYPE_CHECKING:
    from aoe_train.reproduce.recipe import Recipe, Scale

TABLE, FIGURES = "table.md", "figures.json"


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

    @property
    def places(self) -> Places:
        """Where things lie."""
        return Places(self.data_dir, self.out / "data")


def planned(recipe: Recipe, wanted: Wanted) -> tuple[list[Run], dict[str, str]]:
    """See `aoe_train.reproduce.plan.plan`."""
    return plan(
        recipe,
        wanted.scale,
        wanted.places,
        seeds=wanted.seeds,
        only=wanted.only,
        assignments=wanted.assignments,
    )


def reproduce(recipe: Recipe, wanted: Wanted, *, say: Say, quiet: bool = False) -> dict[str, Any]:
    """Do the runs that have no record yet, and write the table of all of them.

    Returns:
        What figures.json holds: recipe, scale, backbone, rows, runs.

    Raises:
        ConfigError: Unusable settings, a recipe without such a scale, or another process at work there.
        DataError: Data that is not there or not as expected.
        RemoteError: A hub could not be asked.
    """
    runs, skipped = planned(recipe, wanted)
    at = recipe.at(wanted.scale)
    places = wanted.places
    if missing := absent(at.source, places):
        raise DataError("no such file; give the folder that holds it as --data-dir", path=missing[0])
    for row, reason in skipped.items():
        say(f"left out {row}: {reason}")
    if not runs:
        raise ConfigError("every row is left out at this scale; choose another --scale")
    with held_folder(wanted.out, "another run works in it; wait for it or choose another --out"):
        prepare(at.source, places, say)
        bench = Bench(
            wanted.out,
            at.source,
            places,
            read_scorings(at.evaluate, places, say),
            keep=wanted.keep,
            say=say,
        )
        records = _do(bench, runs, say, quiet=quiet)
        return _write(recipe, wanted, at.backbone, records)


def _do(bench: Bench, runs: Sequence[Run], say: Say, *, quiet: bool) -> list[Record]:
    records = []
    with progress(quiet=quiet) as bar:
        task = bar.add_task("runs", total=len(runs), note="")
        for run in runs:
            bar.update(task, note=f"{run.row}, seed {run.seed}")
            record = bench.record(run)
            if record is None:
                record = bench.do(run)
                say(_told(record))
            records.append(record)
            bar.advance(task)
    return records


def _told(record: Record) -> str:
    figures = ", ".join(f"{name} {100 * value:.2f}" for name, value in list(record.scores.items())[-3:])
    dev = "" if record.dev is None else f", dev {100 * record.dev:.2f}"
    return f"{record.row}, seed {record.seed}: {figures}{dev} ({record.wall_s:.0f} s)"


def _write(recipe: Recipe, wanted: Wanted, backbone: str, records: Sequence[Record]) -> dict[str, Any]:
    rows = summary(recipe, records)
    found = {
        "recipe": recipe.title,
        "paper": recipe.paper,
        "scale": wanted.scale,
        "backbone": backbone,
        "rows": rows,
        "runs": [{"row": record.row, "seed": record.seed, "key": record.key} for record in records],
        "wall_s": round(sum(record.wall_s for record in records), 1),
    }
    write_json(wanted.out / FIGURES, found)
    write_text(wanted.out / TABLE, markdown(recipe, rows, wanted.scale, backbone))
    return found
