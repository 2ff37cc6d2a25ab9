"""Run a recipe and write its table. Kill it and run it again: finished runs are not repeated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.base.errors import ConfigError, DataError, PairkitError
from pairkit.base.system.files import remove, write_json, write_text
from pairkit.base.system.folders import held_folder
from papers.reproduce.plan import Folders, Run, plan
from papers.reproduce.runner import Record, Runner
from papers.reproduce.scoring import Scoring
from papers.reproduce.table import markdown, summary
from papers.reproduce.training_data import missing_files, prepare

if TYPE_CHECKING:
    from papers.reproduce.recipe import Recipe, Scale

TABLE, FIGURES = "table.md", "figures.json"
_OUTPUTS = ("runs", "models", "data", TABLE, FIGURES)


@dataclass(frozen=True)
class Options:
    """Which runs of a recipe to do, and the folders."""

    scale: Scale
    data_dir: Path | None
    out: Path
    seeds: tuple[int, ...] = ()
    only: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    keep_models: bool = False
    fresh: bool = False

    @property
    def folders(self) -> Folders:
        """The folders that a recipe names."""
        return Folders(self.data_dir, self.out / "data")


def output_folder(recipe: str, scale: Scale, assignments: Sequence[str], out: Path) -> Path:
    """The folder of a recipe at a scale; other settings have a folder of their own."""
    name = f"{Path(recipe).stem}-{scale}"
    if assignments:
        name += f"-{sha256(repr(list(assignments)).encode()).hexdigest()[:8]}"
    return out / name


def plan_runs(recipe: Recipe, options: Options) -> tuple[list[Run], dict[str, str]]:
    """The runs, and the reasons why rows are skipped, such as an absent backbone."""
    runs, skipped = plan(
        recipe,
        options.scale,
        options.folders,
        seeds=options.seeds,
        only=options.only,
        assignments=options.assignments,
    )
    return _skip_absent_backbones(runs, skipped)


def reproduce(recipe: Recipe, options: Options, *, say: Callable[[str], None]) -> dict[str, Any]:
    """Do the runs that have no record yet, write the table of all records, and return figures.json.

    If a run fails, the remaining ones continue; the first error is raised at the end.
    """
    plan(recipe, options.scale, options.folders, only=options.only, assignments=options.assignments)
    at, folders = recipe.at(options.scale), options.folders
    if missing := missing_files(at.source, folders):
        raise DataError("no such file; --data-dir must be the folder that has it", path=missing[0])
    # Check all that can be checked before data is made, which may take hours or cost money.
    ready = [column for column in at.evaluate if "{work}" not in (column.data or "")]
    scoring = Scoring(ready, folders)
    with held_folder(options.out, "another run works in it; wait for it or choose another --out"):
        if options.fresh:
            for name in _OUTPUTS:
                remove(options.out / name)
        prepare(at.source, folders, say)
        runs, skipped = plan_runs(recipe, options)
        for row, reason in skipped.items():
            say(f"skipped {row}: {reason}")
        if not runs:
            raise ConfigError("every row is skipped at this scale; choose another --scale")
        if len(ready) < len(at.evaluate):
            scoring = Scoring(at.evaluate, folders)
        runner = Runner(options.out, at, folders, scoring, say, keep_models=options.keep_models)
        seeds = tuple(dict.fromkeys((*at.seeds, *options.seeds)))
        all_runs, _ = plan(recipe, options.scale, folders, seeds=seeds, assignments=options.assignments)
        all_runs, _ = _skip_absent_backbones(all_runs, {})
        failed: list[tuple[Run, PairkitError]] = []
        for number, run in enumerate(runs, start=1):
            if runner.record(run) is None:
                say(f"{number} of {len(runs)}: {run.row}, seed {run.seed}")
                try:
                    say(_summary_line(runner.do(run)))
                except PairkitError as error:
                    say(f"{run.row}, seed {run.seed}: failed: {error}")
                    failed.append((run, error))
                _write(recipe, options, skipped, runner, all_runs)
            if runner.record(run) is not None:  # a kill may have left the model of a finished run
                runner.remove_model(run)
        result = _write(recipe, options, skipped, runner, all_runs)
    if failed:
        run, first = failed[0]
        raise type(first)(f"{len(failed)} of {len(runs)} runs failed, first {run.row}: {first}") from first
    return result


def _skip_absent_backbones(runs: Sequence[Run], skipped: dict[str, str]) -> tuple[list[Run], dict[str, str]]:
    """Skip rows whose backbone is a path that does not exist; Hub ids are not checked."""
    paths = {run.row: Path(run.backbone) for run in runs if Path(run.backbone).is_absolute()}
    reasons = {row: f"no backbone at {path}" for row, path in paths.items() if not path.exists()}
    return [run for run in runs if run.row not in reasons], {**skipped, **reasons}


def _write(
    recipe: Recipe, options: Options, skipped: dict[str, str], runner: Runner, runs: Sequence[Run]
) -> dict[str, Any]:
    """Write the table of all runs that have a record."""
    records = [record for run in runs if (record := runner.record(run)) is not None]
    result = {
        "recipe": recipe.title,
        "paper": recipe.paper,
        "about": runner.at.about,
        "scale": options.scale,
        "backbone": runner.at.backbone,
        "changed": list(options.assignments),
        "left_out": skipped,
        "rows": summary(recipe, records, runner.scoring.titles),
        "runs": [{"row": record.row, "seed": record.seed, "key": record.key} for record in records],
        "wall_s": round(sum(record.wall_s for record in records), 1),
    }
    write_json(options.out / FIGURES, result)
    write_text(options.out / TABLE, markdown(recipe, result))
    return result


def _summary_line(record: Record) -> str:
    scores = ", ".join(f"{name} {100 * value:.2f}" for name, value in list(record.scores.items())[-3:])
    dev = "" if record.dev is None else f", dev {100 * record.dev:.2f}"
    return f"{record.row}, seed {record.seed}: {scores}{dev} ({record.wall_s:.0f} s)"
