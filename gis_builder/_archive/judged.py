"""What tasks hand to one another beside tables of rows: records, packed."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from gis_builder._archive.objects import Location
from gis_builder._archive.tasks import damaged
from gis_builder._records import Cluster, DroppedPair, Issue, IssueRef, IssueText, Pair

_LEVEL = 1


class JudgedRepo(msgspec.Struct):
    """A repository that has positives, or issues and pairs that were left out."""

    repo_id: int
    name: str
    named_at: tuple[str, int]
    clusters: list[Cluster]
    texts: list[IssueText]
    positives: list[Pair]
    links: list[tuple[IssueRef, IssueRef]]  # of which one mentions the other
    rejected: list[tuple[IssueRef, str]]
    dropped: list[DroppedPair]
    removed: dict[str, int]
    verdicts: list[tuple[str, str, int]]  # outcome, reason, how many; of all its issues
    unknown: list[int]  # numbers that duplicates rest on and of which nothing is known


class Judged(msgspec.Struct):
    """A partition."""

    repos: list[JudgedRepo]
    verdicts: dict[str, dict[str, int]]
    counts: dict[str, int]  # of repositories, by what became of them


class ToppedRepo(msgspec.Struct):
    """What GitHub says of a repository's issues of which the hours have no event."""

    repo_id: int
    issues: list[Issue]
    pulls: list[int]
    missing: list[int]


class Topped(msgspec.Struct):
    """The same of a partition."""

    repos: list[ToppedRepo]


class Placed(msgspec.Struct):
    """Where the issues and positives of a partition went, and how many negatives each repository draws."""

    repos: list[int]  # whose names are theirs
    split_of: list[tuple[IssueRef, str]]
    group: list[tuple[IssueRef, IssueRef]]
    positives: dict[str, list[Pair]]
    wanted: dict[str, dict[str, int]]  # by split and repository


class Drawn(msgspec.Struct):
    """The negatives of a partition."""

    pairs: dict[str, list[Pair]]
    dropped: list[DroppedPair]
    missing: dict[str, int]
    with_single: int


class Ties(msgspec.Struct):
    """Texts that are near-identical."""

    first: bytes  # of each text in turn, the first of its group; 8 bytes each


_Kind = TypeVar("_Kind", Judged, Topped, Placed, Drawn, Ties)


def verdict_counts(by_outcome: Mapping[str, Mapping[str, int]]) -> Counter[tuple[str, str]]:
    """What `by_outcome` was made of, so that it can be added up."""
    return Counter(
        {(outcome, reason): n for outcome, reasons in by_outcome.items() for reason, n in reasons.items()}
    )


def by_outcome(verdicts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Counts by outcome and reason as `gis build` has them, in order."""
    found: dict[str, dict[str, int]] = {}
    for (outcome, reason), count in sorted(verdicts.items()):
        if count:
            found.setdefault(outcome, {})[reason] = count
    return found


def pack(value: Judged | Topped | Placed | Drawn | Ties) -> bytes:
    """What is written; equal values give equal bytes."""
    return zlib.compress(msgspec.msgpack.encode(value, order="deterministic"), _LEVEL)


def unpack(path: Location, kind: type[_Kind]) -> _Kind:
    """What `pack` made.

    Raises:
        DataError: The file is damaged.
    """
    try:
        return msgspec.msgpack.decode(zlib.decompress(path.read_bytes()), type=kind)
    except (zlib.error, msgspec.MsgspecError, OSError) as error:
        raise damaged(path, error) from error
