"""A tracker in order of time, what each issue would have found then, and whether that was right.

Right is an older issue that the verdicts tie to this one, directly or through others. Of most duplicates
nobody ever said so, and these count as wrong: what is measured is the least that holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gis_builder._detect import clusters
from gis_builder._records import Relation, Verdict
from gis_builder._store import Store, full_names
from gis_builder._suggest.calibration import Evidence
from pairkit.errors import DataError
from pairkit.parquet import read_parquet
from pairkit.printable import one_line

_TYPES = {
    "id_1": pl.String,
    "id_2": pl.String,
    "rank": pl.Int64,
    "cosine": pl.Float64,
    "words": pl.Float64,
}
_HITS = tuple(_TYPES)
_MADE = (
    "have `aoe search` look for every text of what `gis render` wrote, among the rows before it (in Python"
    " aoe_train.search_every)"
)


@dataclass(frozen=True, eq=False)
class Asked:
    """What one issue would have found.

    Attributes:
        issue: `owner/name#number`.
        found: The older issues, best first.
        evidence: (hit, evidence), the cosine, the words or both.
        right: Whether each says the same, (hit,).
    """

    issue: str
    found: Sequence[str]
    evidence: NDArray[np.float64]
    right: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Replay:
    """A tracker's past.

    Attributes:
        asked: All issues in order of time; those without a hit, too.
        times: When each was opened.
        repeats: Whether an older issue is known that says the same, of each.
        evidence: What hits have.
        depth: The most hits of an issue.
        elsewhere: Hits of another repository, which are left out.
    """

    asked: Sequence[Asked]
    times: Sequence[str]
    repeats: Sequence[bool]
    evidence: tuple[Evidence, ...]
    depth: int
    elsewhere: int

    def first_right(self) -> NDArray[np.float64]:
        """The rank of the first right hit of each issue, from 1; infinite where there is none."""
        ranks = (np.flatnonzero(one.right) for one in self.asked)
        return np.array([places[0] + 1 if len(places) else np.inf for places in ranks])


def read_replay(
    hits: Path, store: Store, duplicates: Sequence[Verdict], relations: Collection[Relation]
) -> Replay:
    """Put hits, times and verdicts together.

    Raises:
        DataError: The file holds no such hits, of another crawl, or some are younger than what found them.
    """
    table = _read(hits)
    opened = {
        str(issue.ref): issue.created_at
        for repo in full_names(store.repos())
        for issue in store.issues(repo)
        if not issue.is_pull
    }
    group = {
        str(member): cluster.id
        for cluster in clusters(verdict for verdict in duplicates if verdict.relation in relations)
        for member in cluster.members
    }
    _check(table, opened, hits)
    own = table["id_1"].str.split("#").list.first() == table["id_2"].str.split("#").list.first()
    kept = table.filter(own)
    evidence: tuple[Evidence, ...] = tuple(
        name for name in ("cosine", "words") if kept.height and not kept[name].null_count()
    )
    if not evidence:
        raise DataError(f"no hit of one repository, or none with cosine or words; {_MADE}", path=hits)
    of_issue = {str(name): part for (name,), part in kept.sort("rank").group_by("id_1", maintain_order=True)}
    order = sorted(opened, key=lambda issue: (opened[issue], issue))
    asked = [_asked(issue, of_issue.get(issue), evidence, group) for issue in order]
    return Replay(
        asked=asked,
        times=[opened[issue] for issue in order],
        repeats=_repeats(order, opened, group),
        evidence=evidence,
        depth=max(len(one.found) for one in asked),
        elsewhere=table.height - kept.height,
    )


def _read(path: Path) -> pl.DataFrame:
    try:
        table = read_parquet(path, list(_HITS)).cast(_TYPES)  # type: ignore[arg-type]  # names to types
    except FileNotFoundError as error:
        raise DataError(f"no such file; {_MADE}", path=path) from error
    except (DataError, pl.exceptions.PolarsError) as error:
        raise DataError(f"holds no hits with the columns {', '.join(_HITS)}; {_MADE}", path=path) from error
    numbers = table.select(pl.col("cosine", "words").is_finite().fill_null(value=True).all())
    if table["rank"].null_count() or not all(numbers.row(0)):
        raise DataError(f"holds a rank, cosine or share of words that is no number; {_MADE}", path=path)
    return table


def _check(table: pl.DataFrame, opened: Mapping[str, str], path: Path) -> None:
    for row, (one, other) in enumerate(table.select("id_1", "id_2").iter_rows(), 1):
        if unknown := [name for name in (one, other) if name not in opened]:
            words = f"{one_line(str(unknown[0]))} is not in the crawl; give the one that was rendered"
            raise DataError(words, path=path, row=row)
        if opened[one] <= opened[other]:
            words = f"{other} is not older than {one}, which found it; {_MADE}"
            raise DataError(words, path=path, row=row)


def _asked(
    issue: str, hits: pl.DataFrame | None, evidence: Sequence[Evidence], group: Mapping[str, str]
) -> Asked:
    if hits is None:
        return Asked(issue, (), np.empty((0, len(evidence))), np.empty(0, bool))
    found, own = hits["id_2"].to_list(), group.get(issue, issue)
    right = np.array([group.get(other) == own for other in found])
    return Asked(issue, found, hits.select(evidence).to_numpy().astype(np.float64), right)


def _repeats(order: Sequence[str], opened: Mapping[str, str], group: Mapping[str, str]) -> list[bool]:
    """Of each issue whether one of its cluster was opened before it; not at the same moment."""
    first: dict[str, str] = {}
    for issue in order:
        if issue in group:
            first.setdefault(group[issue], opened[issue])
    return [issue in group and first[group[issue]] < opened[issue] for issue in order]
