"""Older issues that an issue may repeat, found by `aoe search`; and R@k of such lists on a tracker's past.

`aoe search` is a process of its own: this package never imports `aoe_train`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec.json import Decoder

from gis_builder.pairing.positives import find_clusters
from gis_builder.pairing.text import render
from gis_builder.store import Store, full_names
from gis_builder.store.decoding import Malformed, Node, Number, RepoName, decode
from gis_builder.store.records import Issue, IssueRef, Relation, Verdict
from pairkit.app.errors import BadReply, ConfigError, DataError, PairkitError, RemoteError
from pairkit.app.printable import one_line
from pairkit.app.result_table import ResultTable
from pairkit.dataset.parquet import read_parquet
from pairkit.reviews.agreement import Figure, weighted_share

DEPTHS = (1, 5, 20)
_SHOWN = 100  # characters of a title in the table
_NEEDED = "index what `gis render` writes, with its columns repo, number, text and created_at"
_HIT_TYPES = {"id_1": pl.String, "id_2": pl.String, "rank": pl.Int64}
_MADE = (
    "have `aoe search` look for every text that `gis render` wrote among the older ones (in Python"
    ' aoe_train.search_every(index, before="created_at"))'
)


@dataclass(frozen=True)
class Suggestion:
    """An older issue that may be about the same problem."""

    number: int
    title: str
    url: str
    cosine: float | None
    words: float | None


@dataclass(frozen=True, repr=False)
class Suggested:
    """What an issue may repeat.

    Attributes:
        issue: `owner/name#number`, or the repository alone for a new text.
        suggestions: The most similar first. `cosine` compares embeddings, `words` is the share of BM25's
            score; the one that the index does not have is None.
    """

    issue: str
    suggestions: tuple[Suggestion, ...]

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `gis suggest --json`."""
        return asdict(self)

    def notes(self) -> list[str]:
        """A line if there is nothing to list."""
        none = f"{self.issue}: the index has no older issue of its repository"
        return [] if self.suggestions else [none]

    def table(self) -> ResultTable:
        """The suggestions."""
        table = ResultTable("issue", "cosine", "words", "title", left=("title",))
        for one in self.suggestions:
            scores = (None if score is None else f"{score:.2f}" for score in (one.cosine, one.words))
            table.add_row(f"#{one.number}", *scores, one_line(one.title, _SHOWN))
        return table

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True, repr=False)
class Backtested:
    """How often a search would have found what an issue repeats.

    Attributes:
        issues: Issues that were judged.
        repeats: Those of them that repeat an older one, by the verdicts.
        recall: By depth k, the share of these with a right issue among the first k hits (R@k), with its
            95 % interval (Wilson).
        elsewhere: Hits in other repositories, which were left out.
    """

    issues: int
    repeats: int
    recall: dict[int, Figure]
    elsewhere: int

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `gis backtest --json`."""
        recall = {str(depth): figure._asdict() for depth, figure in self.recall.items()}
        return {**asdict(self), "recall": recall}

    def table(self) -> ResultTable:
        """R@k."""
        table = ResultTable("hits", "found", "95 % interval")
        for depth, figure in self.recall.items():
            interval = figure.interval and f"{figure.interval[0]:.1%} to {figure.interval[1]:.1%}"
            table.add_row(f"R@{depth}", None if figure.value is None else f"{figure.value:.1%}", interval)
        return table

    def notes(self) -> list[str]:
        """What the figures count; a line each."""
        left_out = [f"{self.elsewhere:,} hits in other repositories were left out"] if self.elsewhere else []
        return [
            f"{self.repeats:,} of {self.issues:,} issues repeat an older one",
            "duplicates that no one marked count as wrong, so the true shares are higher",
            *left_out,
        ]

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


class _IssueRow(Node, frozen=True):
    number: Number
    repo: RepoName


class _Hit(Node, frozen=True):
    row: _IssueRow
    text: str
    cosine: float | None = None
    words: float | None = None


class _Hits(Node, frozen=True):
    hits: list[_Hit]


_HITS = Decoder(_Hits)


def suggest_for(store: Store, ref: IssueRef, index: Path, top: int) -> Suggested:
    """What an issue of a crawl may repeat, among those opened before it."""
    issue = next((one for one in store.issues(ref.repo) if one.ref == ref), None)
    if issue is None or issue.is_pull:
        raise DataError(
            f"{ref}: no such issue in the crawl (new, deleted or a pull request); update the"
            " crawl, or give its title and body",
            path=store.path,
        )
    return _suggested(issue, str(ref), issue.created_at, index, top, store.site)


def suggest_new(repo: str, title: str, body: str, index: Path, top: int, site: str) -> Suggested:
    """What a new text may repeat."""
    issue = Issue(repo, 1, title, body, "open", None, None, "NONE", "", "", None, None)
    return _suggested(issue, repo, None, index, top, site)


def _suggested(issue: Issue, name: str, before: str | None, index: Path, top: int, site: str) -> Suggested:
    text = render(issue).text
    if not text.strip():
        raise DataError(f"{name}: no text is left to search for; it needs a title or a body")
    suggestions = tuple(
        Suggestion(
            hit.row.number,
            hit.text.partition("\n\n")[0],
            IssueRef(hit.row.repo, hit.row.number).page(site),
            hit.cosine,
            hit.words,
        )
        for hit in _search(index, text, issue.repo, before, top)
    )
    return Suggested(name, suggestions)


def _search(index: Path, text: str, repo: str, before: str | None, top: int) -> list[_Hit]:
    # -P: no file of the folder that the user works in is imported as a library. The index is resolved, so
    # that no name is read as a flag.
    command = [sys.executable, "-P", "-m", "aoe_train", "search", str(index.resolve()), "-", "--json"]
    command += ["--top", str(top), "--where", f"repo={repo}"]
    if before is not None:
        command += ["--before", f"created_at={before}"]
    done = subprocess.run(  # noqa: S603 - our own command; the text comes by standard input
        command,
        input=text.encode("utf-8", "replace"),
        capture_output=True,
        env={name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "GH_"))},
        check=False,
    )
    if done.returncode:
        raise _error_of(done.returncode, done.stderr.decode("utf-8", "replace"))
    try:
        return decode(done.stdout, _HITS).hits
    except Malformed as error:
        raise BadReply(f"{index}: the hits are not issues ({error}); {_NEEDED}") from None


def _error_of(code: int, stderr: str) -> PairkitError:
    """The error that `aoe search` ended with, with the same exit code."""
    line = next((line for line in reversed(stderr.splitlines()) if line.startswith("error: ")), "")
    words = one_line(line.removeprefix("error: ") or stderr[-300:] or f"it ended with {code}")
    kinds: dict[int, type[PairkitError]] = {2: ConfigError, 4: RemoteError}
    return kinds.get(code, DataError)(f"aoe search: {words}")


def backtest(
    hits: Path,
    store: Store,
    duplicates: Collection[Verdict],
    relations: Collection[Relation],
    since: str | None,
) -> Backtested:
    """Judge hits by the verdicts: right is an older issue of the same cluster."""
    table = _read(hits)
    opened = {
        str(issue.ref): issue.created_at
        for repo in full_names(store.repos())
        for issue in store.issues(repo)
        if not issue.is_pull
    }
    _check(table, opened, hits)
    group = {
        str(member): cluster.id
        for cluster in find_clusters(verdict for verdict in duplicates if verdict.relation in relations)
        for member in cluster.members
    }
    own = table["id_1"].str.split("#").list.first() == table["id_2"].str.split("#").list.first()
    kept = table.filter(own).sort("rank")
    if not kept.height:
        raise DataError(f"no hit in the repository of its issue; {_MADE}", path=hits)
    first = _first_right(kept, group)
    judged = sorted(issue for issue in opened if since is None or opened[issue] >= since)
    if not judged:
        raise DataError(f"since {since}: no issue of the crawl was opened from then on")
    oldest: dict[str, str] = {}
    for issue, name in group.items():
        if issue in opened:
            oldest[name] = min(opened[issue], oldest.get(name, opened[issue]))
    repeats = [issue for issue in judged if issue in group and oldest[group[issue]] < opened[issue]]
    ranks = np.array([first.get(issue, np.inf) for issue in repeats])
    deepest = max(kept["id_1"].value_counts()["count"])
    return Backtested(
        issues=len(judged),
        repeats=len(repeats),
        recall={depth: weighted_share((ranks <= depth).tolist()) for depth in DEPTHS if depth <= deepest},
        elsewhere=table.height - kept.height,
    )


def _first_right(hits: pl.DataFrame, group: Mapping[str, str]) -> dict[str, int]:
    """The rank of each issue's first right hit, from 1."""
    found: dict[str, int] = {}
    seen: dict[str, int] = {}
    for issue, other in hits.select("id_1", "id_2").iter_rows():
        seen[issue] = seen.get(issue, 0) + 1
        if issue not in found and issue in group and group[issue] == group.get(other):
            found[issue] = seen[issue]
    return found


def _read(path: Path) -> pl.DataFrame:
    if not path.exists():
        raise DataError(f"no such file; {_MADE}", path=path)
    try:
        table = read_parquet(path, list(_HIT_TYPES)).cast(_HIT_TYPES)  # type: ignore[arg-type]  # names to types
    except (DataError, pl.exceptions.PolarsError) as error:
        raise DataError(f"no hits with the columns {', '.join(_HIT_TYPES)}; {_MADE}", path=path) from error
    if table["rank"].null_count():
        raise DataError(f"a rank is missing; {_MADE}", path=path)
    return table


def _check(table: pl.DataFrame, opened: Mapping[str, str], path: Path) -> None:
    for row, (one, other) in enumerate(table.select("id_1", "id_2").iter_rows(), 1):
        if unknown := [name for name in (one, other) if name not in opened]:
            words = f"{one_line(str(unknown[0]))} is not in the crawl; give the crawl that was rendered"
            raise DataError(words, path=path, row=row)
        if opened[one] <= opened[other]:
            raise DataError(f"{other} is not older than {one}; {_MADE}", path=path, row=row)
