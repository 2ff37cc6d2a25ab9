"""A search from beginning to end: the run without flags, then what Optuna asks for, then seeds."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from aoe_train._conflicts import Say
from aoe_train._origin import hash_examples, versions
from aoe_train._run_data import one_or_all, read_data
from aoe_train._tune.space import Dimension, default_space
from aoe_train._tune.study import Study, check_installed
from aoe_train._tune.trial import Trial, read_trials, run_trial, settings_of, told
from aoe_train._tune.write import OURS, write_search
from pairkit import __version__
from pairkit.differing import differing
from pairkit.errors import ConfigError
from pairkit.files import remove, write_json
from pairkit.folders import check_only, check_place, held_folder, read_own
from pairkit.in_memory import source_name
from pairkit.progress import Display, Listener, Progress
from pairkit.reader import split_names

if TYPE_CHECKING:
    from aoe_train._run_data import Sources
    from aoe_train._settings import TrainSettings

_FINALISTS = 3
_TEST = re.compile(r"(?:^|[-_. ])test(?:[-_. ]|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Search:
    """How long to search, and where.

    Attributes:
        trials: Runs with the seed of the settings; the first is the one without flags.
        hours: No further run begins after so many hours of training; None for no limit.
        space: What may differ; none for what suits the rows.
        seeds: How many seeds the best few are trained with, before one is chosen.
    """

    trials: int = 20
    hours: float | None = None
    space: Sequence[Dimension] = ()
    seeds: int = 3


def tune(
    sources: Sources,
    settings: TrainSettings,
    search: Search,
    *,
    fresh: bool = False,
    say: Say = print,
    progress: bool | Listener = True,
) -> dict[str, Any]:
    """Search, or go on with it.

    Returns:
        The search's record, as in run.json.

    Raises:
        ConfigError: No held-out rows, or those of a test split; Optuna is not installed; another search is
            in the way; what `train` says of the run without flags.
        DataError, RemoteError: See `train`.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("aoe tune runs in one process; start it without torchrun")
    check_installed()
    out = sources.out
    check_place(out, "a search", "search")
    check_only(out, OURS, "a search")
    work = out.with_name(out.name + ".work")
    with held_folder(work, "another search works in it; wait for it or choose another --out"):
        if fresh:
            for name in ("trials", "runs", "search.json"):
                remove(work / name)
        made_of = _made_of(sources, settings, search, say)
        _begin(work, made_of)
        with Display(progress) as show:
            record = _Tuning(sources, settings, search, work, say, show).record()
        record = {"made_by": f"aoe tune {__version__}", "made_of": made_of, **record, "versions": versions()}
        write_search(out, record)
    return record


class _Tuning:
    """A search under way; the attributes are what its steps share."""

    def __init__(
        self,
        sources: Sources,
        settings: TrainSettings,
        search: Search,
        work: Path,
        say: Say,
        show: Listener,
    ) -> None:
        self.sources, self.settings, self.search, self.work = sources, settings, search, work
        self.say, self.show = say, show
        self.trials = read_trials(work / "trials")

    def record(self) -> dict[str, Any]:
        """Run what is missing, and say what came of all."""
        first = self._first()
        space = self.search.space or default_space(first)
        while len(self._searched()) < self.search.trials and self._has_time():
            study = Study(space, self._searched(), self.settings.seed)
            self._run(study.next(), self.settings.seed, gives_up=study.gives_up)
        finalists = self._finalists()
        for drawn in finalists:
            for seed in range(self.settings.seed, self.settings.seed + self.search.seeds):
                if self._found(drawn, seed) is None:
                    self._run(drawn, seed)
        return self._summary(first, space, finalists)

    def _first(self) -> dict[str, Any]:
        """The record of the run without flags."""
        place = self.work / "first.json"
        if self.trials and (known := read_own(place)) is not None:
            return known
        self.trials = []
        record = self._run({}, self.settings.seed)
        kept = {name: (record or {})[name] for name in ("origin", "rows", "result")}
        write_json(place, kept)
        return kept

    def _run(self, drawn: Mapping[str, Any], seed: int, **more: Any) -> dict[str, Any] | None:
        number = len(self.trials)
        self.show(Progress("trials", number, None, self._note()))
        trial, record = run_trial(
            number, drawn, seed, self.sources, self.settings, self.work, show=self.show, **more
        )
        self.trials.append(trial)
        end = f"{trial.dev:.4f}" if trial.state == "done" else trial.reason or f"given up at {trial.dev:.4f}"
        self.say(f"trial {number}: {told(drawn)}, seed {seed}: {end}")
        return record

    def _note(self) -> str:
        best = max(
            (trial.dev for trial in self.trials if trial.state == "done" and trial.dev is not None),
            default=None,
        )
        return "" if best is None else f"best {best:.4f}"

    def _searched(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.seed == self.settings.seed]

    def _has_time(self) -> bool:
        hours = self.search.hours
        return hours is None or sum(trial.seconds for trial in self.trials) < 3600 * hours

    def _finalists(self) -> list[dict[str, Any]]:
        """What is trained with all seeds: the run without flags, and the best few others."""
        done = [trial for trial in self._searched() if trial.state == "done" and trial.drawn]
        best = sorted(done, key=lambda trial: (-(trial.dev or 0.0), trial.number))[:_FINALISTS]
        return [{}, *(dict(trial.drawn) for trial in best)]

    def _found(self, drawn: Mapping[str, Any], seed: int) -> Trial | None:
        return next((t for t in self.trials if t.drawn == drawn and t.seed == seed), None)

    def _summary(
        self, first: Mapping[str, Any], space: Sequence[Dimension], finalists: Sequence[dict[str, Any]]
    ) -> dict[str, Any]:
        seeds = range(self.settings.seed, self.settings.seed + self.search.seeds)
        table: list[dict[str, Any]] = []
        for drawn in finalists:
            runs = [trial for seed in seeds if (trial := self._found(drawn, seed)) is not None]
            figures = [trial.dev for trial in runs if trial.state == "done" and trial.dev is not None]
            if len(figures) == len(runs):
                spread = stdev(figures) if len(figures) > 1 else None
                table.append({"drawn": drawn, "dev": figures, "mean": mean(figures), "deviation": spread})
        best = max(table, key=lambda row: row["mean"])
        return {
            "metric": first["result"]["dev_metric"],
            "untrained": first["result"]["dev_before"],
            "space": {dimension.key: dimension.to_dict() for dimension in space},
            "finalists": table,
            "best": best,
            "settings": settings_of(self.settings, best["drawn"], self.settings.seed).model_dump(
                mode="json", exclude_unset=True, exclude={"seed", "log"}
            ),
            "states": dict(Counter(trial.state for trial in self.trials)),
            "reasons": dict(Counter(trial.reason for trial in self.trials if trial.reason)),
            "trials": [trial.model_dump(mode="json") for trial in self.trials],
        }


def _made_of(sources: Sources, settings: TrainSettings, search: Search, say: Say) -> dict[str, Any]:
    """What tells this search from another; how long it is may change from call to call."""
    for source in (sources.dev_data or {}).values():
        _refuse_test(source)
    data = read_data(sources, settings, say)
    if not data.dev:
        names = ", ".join(map(source_name, sources.data.values()))
        raise ConfigError(f"{names}: no held-out rows to search by; give --dev-data")
    return {
        "sources": sources.names(),
        "data": one_or_all({name: hash_examples(rows) for name, rows in data.train.items()}),
        "dev_data": one_or_all({name: hash_examples(rows) for name, rows in data.dev.items()}),
        "settings": settings.model_dump(mode="json", exclude_unset=True, exclude={"log", "card"}),
        "space": {dimension.key: dimension.to_dict() for dimension in search.space},
    }


def _refuse_test(source: Any) -> None:
    """Test rows are for the end: whoever searches by them knows nothing afterwards."""
    splits, name = split_names(source), source_name(source)
    if splits == ["test"] or (len(splits) == 1 and _TEST.search(Path(name).name)):
        raise ConfigError(
            f"--dev-data {name}: is a test split by its name; search by other rows, such as a part of the"
            " training rows, and keep these for the end"
        )


def _begin(work: Path, made_of: Mapping[str, Any]) -> None:
    begun = read_own(work / "search.json")
    if begun is not None and (differences := differing(begun, made_of)):
        raise ConfigError(
            f"{work}: begun by another search, which differs in {'; '.join(differences)}; give --fresh to"
            " begin anew, or another --out"
        )
    write_json(work / "search.json", made_of)
