"""Suggestions tried on a tracker's past: learnt on the earlier part, judged on the later one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gis_builder._suggest.calibration import RIVALS, Calibration, with_leads
from gis_builder._suggest.replay import Asked, Replay
from pairkit import logistic
from pairkit.agreement import Figure, weighted_share
from pairkit.errors import DataError
from pairkit.files import whole_folder, write_bytes, write_json
from pairkit.folders import check_only
from pairkit.parquet import write_parquet
from pairkit.result_table import ResultTable

DEPTHS = (1, 5, 20)
LEASTS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
CALIBRATION, FIGURES, SUGGESTIONS, PICTURE = (
    "calibration.json", "backtest.json", "suggestions.parquet", "precision.svg",
)  # fmt: skip
_FEWEST = 20  # right first hits to learn from
_WEEK_S = 7 * 24 * 3600.0


class AtLeast(NamedTuple):
    """What is suggested from a probability on, in the later part.

    Attributes:
        least: The probability.
        suggestions: How many issues would have been given a first suggestion.
        a_week: The same, a week.
        precision: Of these, the share that was right.
        found: Of the issues that repeat an older one, the share that was given a right one.
    """

    least: float
    suggestions: int
    a_week: float
    precision: Figure
    found: Figure


@dataclass(frozen=True, repr=False)
class Backtested:
    """How suggestions would have done.

    Attributes:
        out: Its folder: calibration.json, backtest.json, suggestions.parquet and, with matplotlib,
            precision.svg.
        issues: Issues of the tracker.
        repeats: How many of them repeat an older one, as the verdicts say.
        recall: By depth, the share of those of which a right one is among so many hits.
        later_issues: Issues of the later part, by which all that follows is judged.
        later_repeats: How many of them repeat an older one.
        later_recall: Recall there.
        weeks: How long the later part is.
        at_least: What is suggested from several probabilities on.
        brier: The mean square of the difference between told probability and truth, of first hits.
        reliability: Told and seen, by tenths of probability, of first hits.
        calibration: What was learnt.
        elsewhere: Hits of other repositories, which were left out.
    """

    out: Path
    issues: int
    repeats: int
    recall: dict[int, Figure]
    later_issues: int
    later_repeats: int
    later_recall: dict[int, Figure]
    weeks: float
    at_least: tuple[AtLeast, ...]
    brier: float
    reliability: tuple[logistic.Tenth, ...]
    calibration: Calibration
    elsewhere: int

    def to_dict(self) -> dict[str, Any]:
        """As in backtest.json."""
        return {
            **{name: getattr(self, name) for name in ("issues", "repeats", "later_issues", "later_repeats")},
            "recall": _recalls(self.recall),
            "later_recall": _recalls(self.later_recall),
            "weeks": self.weeks,
            "at_least": [
                {**one._asdict(), "precision": one.precision._asdict(), "found": one.found._asdict()}
                for one in self.at_least
            ],
            "brier": self.brier,
            "reliability": [tenth._asdict() for tenth in self.reliability],
            "evidence": list(self.calibration.evidence),
            "elsewhere": self.elsewhere,
        }

    @cached_property
    def suggestions(self) -> pl.DataFrame:
        """The first hit of each issue of the later part, the most probable first."""
        return pl.read_parquet(self.out / SUGGESTIONS)

    def table(self) -> ResultTable:
        """What is suggested in the later part, from several probabilities on."""
        table = ResultTable(
            "at least", "suggestions", "a week", "right", "95 % interval", "of all repeats found"
        )
        for one in self.at_least:
            interval = one.precision.interval
            table.add_row(
                f"{one.least:.2f}",
                one.suggestions,
                f"{one.a_week:.2f}",
                _share(one.precision),
                None if interval is None else f"{interval[0]:.1%} to {interval[1]:.1%}",
                _share(one.found),
            )
        return table

    def notes(self) -> list[str]:
        """Recall, and what to bear in mind; a line each."""
        found = ", ".join(f"R@{depth} {_share(one)}" for depth, one in self.later_recall.items())
        return [
            f"{self.repeats:,} of {self.issues:,} issues repeat an older one; of the later part"
            f" {self.later_repeats:,} of {self.later_issues:,}, in {self.weeks:.0f} weeks",
            f"there, {found}",
            "duplicates that nobody marked count as wrong, so the true shares are higher",
            *([f"{self.elsewhere:,} hits of other repositories were left out"] if self.elsewhere else []),
        ]

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def check_out(out: Path) -> None:
    """Refuse to replace what is no backtest.

    Raises:
        ConfigError: It isn't one.
    """
    check_only(out, (CALIBRATION, FIGURES, SUGGESTIONS, PICTURE), "a backtest")


def backtest(replay: Replay, out: Path, *, learn: float) -> Backtested:
    """Learn on the earlier part, judge the later one, and write both.

    Args:
        replay: The tracker's past.
        out: A folder; a backtest that it holds is replaced.
        learn: The share of issues that make the earlier part.

    Raises:
        ConfigError: It can't be written.
        DataError: Too few first hits of the earlier part are right, or wrong, to learn from; or no issue is
            left for the later one.
    """
    check_out(out)
    cut = round(learn * len(replay.asked))
    if cut == len(replay.asked):
        raise DataError(f"learn {learn}: of {cut:,} issues none is left to judge by; learn on fewer")
    calibration = _learnt(replay, cut)
    ranks, repeats = replay.first_right(), np.array(replay.repeats)
    later = slice(cut, None)
    asked = replay.asked[later]
    told = np.array([_told(one, calibration) for one in asked])
    right = np.array([bool(len(one.right) and one.right[0]) for one in asked])
    first = np.array([len(one.found) > 0 for one in asked])
    weeks = _weeks(replay.times[later])
    brier, tenths = logistic.reliability(told[first], right[first].astype(np.float64))
    found = Backtested(
        out=out,
        issues=len(replay.asked),
        repeats=int(repeats.sum()),
        recall=_recall(ranks[repeats], replay.depth),
        later_issues=len(asked),
        later_repeats=int(repeats[later].sum()),
        later_recall=_recall(ranks[later][repeats[later]], replay.depth),
        weeks=weeks,
        at_least=tuple(_at_least(least, told, right, repeats[later], weeks) for least in LEASTS),
        brier=brier,
        reliability=tuple(tenths),
        calibration=calibration,
        elsewhere=replay.elsewhere,
    )
    with whole_folder(out) as folder:
        calibration.write(folder / CALIBRATION)
        write_json(folder / FIGURES, found.to_dict())
        write_parquet(folder / SUGGESTIONS, _suggestions(asked, told, right))
        if find_spec("matplotlib") is not None:
            from gis_builder._suggest.figure import precision_picture

            write_bytes(folder / PICTURE, precision_picture(told[first], right[first], weeks))
    return found


def _learnt(replay: Replay, cut: int) -> Calibration:
    """Weights for hits in the first place, and for those behind it."""
    earlier = [one for one in replay.asked[:cut] if len(one.found)]
    numbers = [with_leads(one.evidence[:RIVALS]) for one in earlier]
    right = [one.right[:RIVALS].astype(np.float64) for one in earlier]
    firsts = np.array([part[0] for part in right])
    if not _FEWEST <= firsts.sum() < len(firsts):
        raise DataError(
            f"{int(firsts.sum())} of {len(firsts)} first hits of the earlier part are right; expected at"
            f" least {_FEWEST}, and some that are wrong: use a tracker with more duplicates, or learn on more"
        )
    first = logistic.fit(np.array([part[0] for part in numbers]), firsts)
    behind, true = (
        np.concatenate([part[1:] for part in numbers]),
        np.concatenate([part[1:] for part in right]),
    )
    further = logistic.fit(behind, true) if true.any() and not true.all() else first
    return Calibration(
        evidence=list(replay.evidence),
        first=first.tolist(),
        further=further.tolist(),
        repositories=sorted({one.issue.partition("#")[0] for one in earlier}),
        until=replay.times[cut - 1],
        issues=len(earlier),
        right=int(firsts.sum()),
    )


def _told(one: Asked, calibration: Calibration) -> float:
    """How probable its first hit is; 0 where there is none."""
    return calibration.probabilities(one.evidence[:RIVALS].tolist())[0] if len(one.found) else 0.0


def _recall(ranks: NDArray[np.float64], depth: int) -> dict[int, Figure]:
    return {k: weighted_share((ranks <= k).tolist()) for k in DEPTHS if k <= depth}


def _at_least(
    least: float,
    told: NDArray[np.float64],
    right: NDArray[np.bool_],
    repeats: NDArray[np.bool_],
    weeks: float,
) -> AtLeast:
    said = told >= least
    return AtLeast(
        least=least,
        suggestions=int(said.sum()),
        a_week=float(said.sum() / weeks),
        precision=weighted_share(right[said].tolist()),
        found=weighted_share((said & right)[repeats].tolist()),
    )


def _weeks(times: Sequence[str]) -> float:
    first, last = (datetime.fromisoformat(times[place]) for place in (0, -1))
    return max((last - first).total_seconds(), 1.0) / _WEEK_S


def _suggestions(asked: Sequence[Asked], told: NDArray[np.float64], right: NDArray[np.bool_]) -> pl.DataFrame:
    rows = [
        (one.issue, one.found[0], float(likely), bool(true))
        for one, likely, true in zip(asked, told, right, strict=True)
        if len(one.found)
    ]
    schema = {"issue": pl.String, "suggested": pl.String, "probability": pl.Float64, "right": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row").sort(
        "probability", "issue", descending=[True, False]
    )


def _recalls(recall: dict[int, Figure]) -> dict[str, Any]:
    return {str(depth): figure._asdict() for depth, figure in recall.items()}


def _share(figure: Figure) -> str | None:
    return None if figure.value is None else f"{figure.value:.1%}"
