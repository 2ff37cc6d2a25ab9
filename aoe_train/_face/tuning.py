"""The search for settings, as `aoe tune` does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from aoe_train._face.training import TrainOptions, settings_of, sources_of

if TYPE_CHECKING:
    from pairkit.in_memory import Source
    from pairkit.progress import Listener
    from pairkit.result_table import ResultTable


@dataclass(frozen=True, repr=False)
class Tuned:
    """A finished search.

    Attributes:
        out: Its folder: best.toml, run.json and, where matplotlib is installed, a picture of the trials.
        record: What run.json holds.
    """

    out: Path
    record: Mapping[str, Any]

    @property
    def best(self) -> dict[str, Any]:
        """The settings that the search chose, by dotted key; none where no flags are best."""
        return dict(self.record["best"]["drawn"])

    @property
    def dev(self) -> float:
        """The best settings' figure on held-out rows, the mean over seeds."""
        return float(self.record["best"]["mean"])

    @property
    def config(self) -> Path:
        """The file for `config=` of `train`, and `aoe train --config`."""
        return self.out / "best.toml"

    @property
    def trials(self) -> list[dict[str, Any]]:
        """Each run: `drawn`, `seed`, `state` (done, pruned, failed), `dev`, `seen`, `reason`, `seconds`."""
        return list(self.record["trials"])

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe tune --json`."""
        names = ("metric", "untrained", "finalists", "best", "states", "reasons")
        return {"out": str(self.out), **{name: self.record[name] for name in names}}

    def table(self) -> ResultTable:
        """Before training, without flags, and the best few settings, with mean and deviation over seeds."""
        from aoe_train._tune.trial import told
        from pairkit.result_table import ResultTable

        table = ResultTable("settings", self.record["metric"], "deviation", "seeds")
        table.add_row("before training", f"{self.record['untrained']:.4f}", None, None)
        for row in sorted(self.record["finalists"], key=lambda row: row["mean"]):
            deviation = None if row["deviation"] is None else f"{row['deviation']:.4f}"
            table.add_row(told(row["drawn"]), f"{row['mean']:.4f}", deviation, len(row["dev"]))
        states = self.record["states"]
        parts = [f"{count} {state}" for state, count in states.items()]
        parts += [f"{count} x {reason}" for reason, count in self.record["reasons"].items()]
        table.caption = f"runs: {', '.join(parts)}; held-out rows chose, so that a test set will say less"
        return table

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def tune(
    data: Source,
    *,
    backbone: str | Path = "minilm",
    out: str | Path,
    trials: int = 20,
    hours: float | None = None,
    search: str | Sequence[str] = (),
    space: str | Path | None = None,
    repeats: int = 3,
    fresh: bool = False,
    progress: bool | Listener = True,
    **options: Unpack[TrainOptions],
) -> Tuned:
    """Search for settings on held-out rows, with Optuna; the same call continues a search that was stopped.

    The first run is the one without flags. Runs that are behind the others at an evaluation are given up. The
    best three settings and the run without flags are then trained with further seeds, and what is best in the
    mean is chosen.

    Args:
        data: See `train`.
        backbone: See `train`.
        out: The search's folder; no model is kept.
        trials: Runs before seeds are repeated. More of them continue an earlier search.
        hours: No further run begins after so many hours of training.
        search: What may differ, such as "optim.lr=1e-5..1e-3:log" or "objective.tau=0.02,0.05"; by default
            what suits the rows and the backbone.
        space: The same in a TOML file.
        repeats: Seeds that the best few are trained with.
        fresh: Begin anew.
        progress: See `train`.
        **options: See `train`; `dev_data` or a validation split is needed. What is given stays as it is.

    Raises:
        ConfigError: No held-out rows, or those of a test split; a range that is none; Optuna is not
            installed; another search is in the way; what `train` says of the run without flags.
        DataError, RemoteError: See `train`.
    """
    from typing import Annotated

    from pydantic import Field

    from aoe_train._face.notes import notes
    from pairkit.config import argument
    from pairkit.errors import ConfigError

    if unknown := options.keys() - TrainOptions.__annotations__.keys():
        raise TypeError(f"tune() got an unexpected keyword argument {min(unknown)!r}")
    if options.get("objective") is not None:
        raise ConfigError("objective: a loss of your own can't be searched over; leave it out")
    if options.get("judged") is not None:
        raise ConfigError("judged: a search goes by dev data; give it to train, with what the search found")
    if search and space is not None:
        raise ConfigError("--search and --space: give one of them")
    count = argument("trials", trials, Annotated[int, Field(ge=1)])
    often = argument("repeats", repeats, Annotated[int, Field(ge=1)])
    longest = argument("hours", hours, Annotated[float, Field(ge=0, strict=True)] | None)
    settings = settings_of(options)
    sources = sources_of(data, backbone, out, options, settings)
    from aoe_train import _tune
    from aoe_train._tune.space import parse, read_space

    written = [search] if isinstance(search, str) else list(search)
    found = parse(written) if space is None else read_space(Path(space))
    record = _tune.tune(
        sources,
        settings,
        _tune.Search(count, longest, found, often),
        fresh=fresh,
        say=notes(progress),
        progress=progress,
    )
    return Tuned(sources.out, record)
