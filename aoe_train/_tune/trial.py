"""One run of a search: what it was given, what held-out rows said, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field
from transformers import TrainerCallback

from aoe_train import _train as training
from aoe_train._conflicts import Say, silent
from aoe_train._settings import TrainSettings
from aoe_train._trainer.divergence import Diverged
from aoe_train._trainer.trainer import METRIC
from aoe_train._tune.space import Value, assignments
from aoe_train._workplace import work_beside
from pairkit.config import load_settings
from pairkit.errors import ConfigError, DataError
from pairkit.files import remove, write_json
from pairkit.folders import read_object
from pairkit.printable import one_line

if TYPE_CHECKING:
    from aoe_train._run_data import Sources
    from pairkit.progress import Listener


class Trial(BaseModel, extra="forbid", frozen=True):
    """A run that is over.

    Attributes:
        drawn: The settings that the search chose, by dotted key; none for the run without flags.
        seed: The run's.
        state: `pruned` was given up as it was behind the others, `failed` came to nothing.
        dev: The best figure on held-out rows up to its end.
        seen: All of them, by how far the run was, in hundredths.
        reason: Why it failed.
        seconds: Of training.
    """

    number: int = Field(ge=0)
    drawn: dict[str, Value]
    seed: int
    state: Literal["done", "pruned", "failed"]
    dev: float | None = None
    seen: dict[int, float] = Field(default_factory=dict)
    reason: str | None = None
    seconds: float = 0.0


class Pruned(Exception):  # noqa: N818 - what happened
    """The run was given up."""


class _Judge(TrainerCallback):
    """Hears what held-out rows say, a resumed run's past included, and ends a run that is given up."""

    def __init__(self, gives_up: Callable[[Mapping[int, float]], bool]) -> None:
        self.seen: dict[int, float] = {}
        self._gives_up = gives_up

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        self._hear(state)

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        self._hear(state)
        if self._gives_up(self.seen):
            raise Pruned

    def _hear(self, state: Any) -> None:
        for entry in state.log_history:
            if f"eval_{METRIC}" in entry:
                self.seen[round(100 * entry["step"] / state.max_steps)] = entry[f"eval_{METRIC}"]


def read_trials(folder: Path) -> list[Trial]:
    """Those that are over, in order."""
    paths = sorted(folder.glob("*.json"))
    try:
        return [Trial.model_validate(read_object(path)) for path in paths]
    except ValueError as error:
        raise DataError("a trial is no record of ours; begin anew with --fresh", path=folder) from error


def told(drawn: Mapping[str, Value]) -> str:
    """Settings in one line."""
    shown = ((key, f"{value:.3g}" if isinstance(value, float) else value) for key, value in drawn.items())
    return ", ".join(f"{key} {value}" for key, value in shown) or "without flags"


def settings_of(given: TrainSettings, drawn: Mapping[str, Value], seed: int) -> TrainSettings:
    """The settings of a run: what a person gave, with what the search chose over it."""
    flags = {**assignments(drawn), "seed": seed, "log.training_texts": False}
    return load_settings(TrainSettings, below=given.model_dump(exclude_unset=True), flags=flags)


def run_trial(
    number: int,
    drawn: Mapping[str, Value],
    seed: int,
    sources: Sources,
    given: TrainSettings,
    work: Path,
    *,
    gives_up: Callable[[Mapping[int, float]], bool] = lambda _: False,
    say: Say = silent,
    show: Listener,
) -> tuple[Trial, dict[str, Any] | None]:
    """Train once, or go on with it, and write down what came of it; the model does not stay.

    Returns:
        The trial; and the run's record where it came to its end.

    Raises:
        ConfigError: The first run, which is without what the search chose, failed; nothing can be written.
        RemoteError: The Hub could not be asked.
    """
    out = work / "runs" / f"{number:04}"
    judge, record = _Judge(gives_up), None
    known: dict[str, Any] = {"number": number, "drawn": dict(drawn), "seed": seed}
    try:
        record = training.train(
            replace(sources, out=out),
            settings_of(given, drawn, seed),
            say=say,
            progress=show,
            callbacks=[judge],
        )
        result = record["result"]
        trial = Trial(**known, state="done", dev=result["dev"], seen=judge.seen, seconds=result["seconds"])
    except Pruned:
        trial = Trial(**known, state="pruned", dev=max(judge.seen.values()), seen=judge.seen)
    except (ConfigError, DataError) as error:
        if not drawn or isinstance(error.__cause__, OSError):  # a full disk is no fault of these settings
            raise
        diverged = isinstance(error.__cause__, Diverged)
        reason = "training diverged" if diverged else one_line(str(error).partition(";")[0], 200)
        trial = Trial(**known, state="failed", seen=judge.seen, reason=reason)
    write_json(work / "trials" / f"{number:04}.json", trial.model_dump(mode="json"))
    for folder in (out, work_beside(out)):
        remove(folder)
    return trial, record
