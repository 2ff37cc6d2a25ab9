"""The reports of a tracker in order of time, and which of them say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from pairkit.app.errors import DataError
from pairkit.similarity.groups import Groups

NO_TEXT, ABSENT, SAME_MOMENT, ITSELF = (
    "name a report that has no text",
    "name a report that is not among the reports",
    "are of reports of the same moment, none of which is older",
    "name one report twice",
)


@dataclass(frozen=True, slots=True)
class TrackerReports:
    """All reports that have a text."""

    ids: Sequence[str]
    texts: Sequence[str]
    created: Sequence[datetime] | None
    empty: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DuplicateQuery:
    """A report whose like is looked for among the first `candidates` reports."""

    report: int
    candidates: int
    targets: tuple[int, ...]
    relatives: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DuplicateTracker:
    """Reports and what is to be found."""

    name: str
    reports: TrackerReports
    queries: Mapping[str, Sequence[DuplicateQuery]]
    dropped: Mapping[str, Counter[str]]


def in_order(
    ids: Sequence[str], texts: Sequence[str], created: Sequence[datetime] | None, where: str
) -> TrackerReports:
    """Reports put in order of time; ones of the same moment stay as they came."""
    repeated = [name for name, times in Counter(ids).items() if times > 1]
    if repeated:
        raise DataError(
            f"{len(repeated)} ids stand in several rows, first {repeated[0]}; expected a row a report",
            path=where,
        )
    kept = [place for place, text in enumerate(texts) if text.strip()]
    if not kept:
        raise DataError("no report has a text", path=where)
    if created is not None:
        kept.sort(key=lambda place: created[place])
    return TrackerReports(
        [ids[place] for place in kept],
        [texts[place] for place in kept],
        None if created is None else [created[place] for place in kept],
        frozenset(ids).difference(ids[place] for place in kept),
    )


def track(
    name: str, reports: TrackerReports, pairs: Mapping[str, Iterable[tuple[str, str]]]
) -> DuplicateTracker:
    """Find out what each split asks for.

    With times the younger report of a pair asks for the older one, whichever of them the tracker calls the
    duplicate: the other was not there yet. Without times the duplicate asks. A report with several pairs in a
    split asks once, for any of them.
    """
    places = {id_: place for place, id_ in enumerate(reports.ids)}
    dropped: dict[str, Counter[str]] = {}
    asked: dict[str, dict[int, set[int]]] = {}
    groups: Groups[int] = Groups()
    for split, of_split in pairs.items():
        dropped[split], asked[split] = Counter(), {}
        for one, other in dict.fromkeys(of_split):
            if reason := _why_not(reports, places, one, other):
                dropped[split][reason] += 1
                continue
            query, target = places[one], places[other]
            groups.join(query, target)
            if reports.created is not None:
                query, target = max(query, target), min(query, target)
                if reports.created[query] == reports.created[target]:
                    dropped[split][SAME_MOMENT] += 1
                    continue
            asked[split].setdefault(query, set()).add(target)
    members = {member: group for group in groups.all().values() for member in group}
    queries = {
        split: [
            _query(reports, report, targets, members[report]) for report, targets in sorted(of_split.items())
        ]
        for split, of_split in asked.items()
    }
    return DuplicateTracker(name, reports, queries, dropped)


def _why_not(reports: TrackerReports, places: Mapping[str, int], one: str, other: str) -> str:
    if one == other:
        return ITSELF
    if {one, other} & reports.empty:
        return NO_TEXT
    return "" if one in places and other in places else ABSENT


def _query(reports: TrackerReports, report: int, targets: set[int], members: Sequence[int]) -> DuplicateQuery:
    candidates = _older(reports, report)
    relatives = {member for member in members if member < candidates} - targets - {report}
    return DuplicateQuery(report, candidates, tuple(sorted(targets)), tuple(sorted(relatives)))


def _older(reports: TrackerReports, report: int) -> int:
    """How many reports were there when this one was written; all, where nobody knows."""
    if reports.created is None:
        return len(reports.ids)
    first = report
    while first and reports.created[first - 1] == reports.created[report]:
        first -= 1
    return first


def ages(reports: TrackerReports, queries: Sequence[DuplicateQuery]) -> np.ndarray | None:
    """Days from the youngest target of each query to the query, float64 (query,); None without times."""
    if reports.created is None:
        return None
    seconds = [
        (reports.created[query.report] - reports.created[query.targets[-1]]).total_seconds()
        for query in queries
    ]
    return np.array(seconds) / 86_400
