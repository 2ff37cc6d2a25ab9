"""A recipe from its file to its table. Kill it and run it again: finished runs are not repeated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.app.errors import ConfigError, DataError, PairkitError
from pairkit.system.files import remove, write_json, write_text
from pairkit.system.folders import held_folder
from papers.reproduce.bench import Bench, Record
from papers.reproduce.material import absent, prepare
from papers.reproduce.plan import Places, Run, plan
from papers.reproduce.scoring import Scoring
from papers.reproduce.table import markdown, summary

if TYPE_CHECKING:
    from papers.reproduce.recipe import Recipe, Scale

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

    @property
    def places(self) -> Places:
        """The folders that a recipe names."""
        return Places(self.data_dir, self.out / "data")


def folder_of(recipe: str, scale: Scale, assignments: Sequence[str], out: Path) -> Path:
    """The folder of a recipe at a scale; with other settings it is another table."""
    name = f"{Path(recipe).stem}-{scale}"
    return out / (
        f"{name}-{sha256(repr(list(assignments)).encode()).hexdigest()[:8]}" if assignments else name
    )


def planned(recipe: Recipe, wanted: Wanted) -> tuple[list[Run], dict[str, str]]:
    """The runs, and the rows left out with the reason; rows whose backbone is absent are, too."""
    runs, skipped = plan(
        recipe,
        wanted.scale,
        wanted.places,
        seeds=wanted.seeds,
        only=wanted.only,
        assignments=wanted.assignments,
    )
    return _with_backbones(runs, skipped)


def reproduce(recipe: Recipe, wanted: Wanted, *, say: Callable[[str], None]) -> dict[str, Any]:
    """Do the runs that have no record yet, and write the table of all that have one.

    A run that fails does not stop the others; the first one's error comes at the end. The result is what
    figures.json holds.
    """
    plan(recipe, wanted.scale, wanted.places, only=wanted.only, assignments=wanted.assignments)
    at, places = recipe.at(wanted.scale), wanted.places
    if missing := absent(at.source, places):
        raise DataError("no such file; give the folder that holds it as --data-dir", path=missing[0])
    # Whatever can be found wrong is found before data is made, which may take hours or cost money.
    ready = [column for column in at.evaluate if "{work}" not in (column.data or "")]
    scoring = Scoring(ready, places, at.precision)
    with held_folder(wanted.out, "another run works in it; wait for it or choose another --out"):
        if wanted.fresh:
            for name in _OURS:
                remove(wanted.out / name)
        prepare(at.source, places, say)
        runs, skipped = planned(recipe, wanted)
        for row, reason in skipped.items():
            say(f"left out {row}: {reason}")
        if not runs:
            raise ConfigError("every row is left out at this scale; choose another --scale")
        if len(ready) < len(at.evaluate):
            scoring = Scoring(at.evaluate, places, at.precision)
        bench = Bench(wanted.out, at, places, scoring, say, keep=wanted.keep)
        seeds = tuple(dict.fromkeys((*at.seeds, *wanted.seeds)))
        every, _ = plan(recipe, wanted.scale, places, seeds=seeds, assignments=wanted.assignments)
        every, _ = _with_backbones(every, {})
        failed: list[tuple[Run, PairkitError]] = []
        for done, run in enumerate(runs, start=1):
            if bench.record(run) is None:
                say(f"{done} of {len(runs)}: {run.row}, seed {run.seed}")
                try:
                    say(_shown(bench.do(run)))
                except PairkitError as error:
                    say(f"{run.row}, seed {run.seed}: failed: {error}")
                    failed.append((run, error))
                _write(recipe, wanted, skipped, bench, every)
            if bench.record(run) is not None:  # a kill may have left the model of a finished run
                bench.clear(run)
        found = _write(recipe, wanted, skipped, bench, every)
    if failed:
        run, first = failed[0]
        raise type(first)(f"{len(failed)} of {len(runs)} runs failed, first {run.row}: {first}") from first
    return found


def _with_backbones(runs: Sequence[Run], skipped: dict[str, str]) -> tuple[list[Run], dict[str, str]]:
    """Leave out rows whose backbone is a path that does not exist; of Hub ids nothing is known yet."""
    paths = {run.row: Path(run.backbone) for run in runs if Path(run.backbone).is_absolute()}
    lost = {row: path for row, path in paths.items() if not path.exists()}
    reasons = {row: f"no backbone at {path}" for row, path in lost.items()}
    return [run for run in runs if run.row not in lost], {**skipped, **reasons}


def _write(
    recipe: Recipe, wanted: Wanted, skipped: dict[str, str], bench: Bench, runs: Sequence[Run]
) -> dict[str, Any]:
    """The table of those of the runs that have a record."""
    records = [record for run in runs if (record := bench.record(run)) is not None]
    found = {
        "recipe": recipe.title,
        "paper": recipe.paper,
        "about": bench.at.about,
        "scale": wanted.scale,
        "backbone": bench.at.backbone,
        "changed": list(wanted.assignments),
        "left_out": skipped,
        "rows": summary(recipe, records, bench.scoring.titles),
        "runs": [{"row": record.row, "seed": record.seed, "key": record.key} for record in records],
        "wall_s": round(sum(record.wall_s for record in records), 1),
    }
    write_json(wanted.out / FIGURES, found)
    write_text(wanted.out / TABLE, markdown(recipe, found))
    return found


def _shown(record: Record) -> str:
    figures = ", ".join(f"{name} {100 * value:.2f}" for name, value in list(record.scores.items())[-3:])
    dev = "" if record.dev is None else f", dev {100 * record.dev:.2f}"
    return f"{record.row}, seed {record.seed}: {figures}{dev} ({record.wall_s:.0f} s)"
