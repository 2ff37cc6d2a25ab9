"""Older issues that an issue may repeat, found by `aoe search`.

`aoe search` runs as a separate process, because this package never imports `aoe_train`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from msgspec.json import Decoder

from gis_builder.pairing.text import has_word, render
from gis_builder.store import Store
from gis_builder.store.decoding import Malformed, Node, Number, RepoName, decode
from gis_builder.store.records import IssueRef
from pairkit.app.errors import BadReply, ConfigError, DataError, PairkitError, RemoteError
from pairkit.app.printable import one_line
from pairkit.app.result_table import Printed, ResultTable

_SHOWN = 100  # characters of a title in the table
_NEEDED = "index the table of `gis render`, with its columns repo, number, text and created_at"


@dataclass(frozen=True)
class Suggestion:
    """An older issue that may be about the same problem."""

    number: int
    title: str
    url: str
    cosine: float | None
    words: float | None


@dataclass(frozen=True, repr=False)
class Suggested(Printed):
    """Older issues that an issue may repeat.

    Attributes:
        issue: `owner/name#number`.
        suggestions: The most similar first. `cosine` compares embeddings, `words` is the relative BM25
            score; a score that the index does not have is None.
    """

    issue: str
    suggestions: tuple[Suggestion, ...]

    def to_dict(self) -> dict[str, Any]:
        """The object that `gis suggest --json` prints."""
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
    """Issues that an issue of a crawl may repeat, among those opened before it."""
    issue = next((one for one in store.issues(ref.repo) if one.ref == ref), None)
    if issue is None or issue.is_pull:
        raise DataError(
            f"{ref}: no such issue in the crawl (new, deleted or a pull request); update the crawl",
            path=store.path,
        )
    text = render(issue).text
    if not has_word(text):
        raise DataError(f"{ref}: its text has no words to search for")
    site = store.site
    suggestions = tuple(
        Suggestion(
            hit.row.number,
            hit.text.partition("\n\n")[0],
            IssueRef(hit.row.repo, hit.row.number).page(site),
            hit.cosine,
            hit.words,
        )
        for hit in _search(index, text, ref.repo, issue.created_at, top)
    )
    return Suggested(str(ref), suggestions)


def _search(index: Path, text: str, repo: str, before: str, top: int) -> list[_Hit]:
    # -P: no file of the current folder is imported as a library. The index path is made absolute, so that
    # it can't be parsed as a flag.
    command = [sys.executable, "-P", "-m", "aoe_train", "search", str(index.resolve()), "-", "--json"]
    command += ["--top", str(top), "--where", f"repo={repo}"]
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
        raise BadReply(f"{index}: the search results are not issues ({error}); {_NEEDED}") from None


def _error_of(code: int, stderr: str) -> PairkitError:
    """The error that `aoe search` ended with, with the same exit code."""
    line = next((line for line in reversed(stderr.splitlines()) if line.startswith("error: ")), "")
    words = one_line(line.removeprefix("error: ") or stderr[-300:] or f"it ended with {code}")
    kinds: dict[int, type[PairkitError]] = {2: ConfigError, 4: RemoteError}
    return kinds.get(code, DataError)(f"aoe search: {words}")
