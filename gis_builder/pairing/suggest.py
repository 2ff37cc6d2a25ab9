"""Older issues that an issue may repeat, found by `aoe search`.

`aoe search` runs in a separate process, because this package never imports `aoe_train`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from msgspec.json import Decoder

from gis_builder.pairing.text import has_word, render, template_lines
from gis_builder.store import IssueRef, Store
from gis_builder.store.decoding import Malformed, Node, Number, RepoName, decode
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import (
    BadReply,
    ConfigError,
    DataError,
    PairkitError,
    RemoteError,
)
from pairkit.base.printable import one_line

_MAX_TITLE = 100  # characters in the table


@dataclass(frozen=True)
class Suggestion:
    """An older issue that may describe the same problem."""

    number: int
    key: str  # of a ticket, such as ABC-12; otherwise `#number`
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
            score; a score is None if the index doesn't have it.
    """

    issue: str
    suggestions: tuple[Suggestion, ...]

    def to_dict(self) -> dict[str, Any]:
        """The object that `gis suggest --json` prints."""
        return asdict(self)

    def notes(self) -> list[str]:
        """A line if there are no suggestions."""
        if self.suggestions:
            return []
        return [f"{self.issue}: the index has no older issue of its tracker"]

    def table(self) -> ResultTable:
        """The suggestions."""
        table = ResultTable("issue", "cosine", "words", "title", left=("title",))
        for item in self.suggestions:
            cosine = None if item.cosine is None else f"{item.cosine:.2f}"
            words = None if item.words is None else f"{item.words:.2f}"
            table.add_row(item.key, cosine, words, one_line(item.title, _MAX_TITLE))
        return table


class _IssueRow(Node):
    number: Number
    repo: RepoName


class _Hit(Node):
    row: _IssueRow
    text: str
    cosine: float | None = None
    words: float | None = None


class _Hits(Node):
    hits: list[_Hit]


_HITS = Decoder(_Hits)


def suggest_for(
    store: Store,
    ref: IssueRef,
    index: Path,
    top: int,
) -> Suggested:
    """Issues that were opened before an issue of the crawl and that it may repeat."""
    ref = IssueRef(store.full_name(ref.repo), ref.number)
    thread = store.thread(ref)
    if thread is None or thread.issue.is_pull or thread.issue.ref != ref:
        raise DataError(
            f"{ref}: no such issue (new, deleted or a pull request); import or crawl it first",
            path=store.path,
        )
    issue = thread.issue
    text = render(issue, template=template_lines(store.issues(ref.repo))).text
    if not has_word(text):
        raise DataError(f"{ref}: its text has no words to search for")
    site = store.site
    # The projects of imported tickets are one tracker.
    where = [] if ref.repo in store.tickets() else ["--where", f"repo={ref.repo}"]
    suggestions = []
    for hit in _search(index, text, where, issue.created_at, top):
        older = IssueRef(hit.row.repo, hit.row.number)
        title, _, _ = hit.text.partition("\n\n")
        suggestion = Suggestion(
            number=older.number,
            key=older.key(site),
            title=title,
            url=older.page(site),
            cosine=hit.cosine,
            words=hit.words,
        )
        suggestions.append(suggestion)
    return Suggested(str(ref), tuple(suggestions))


def _search(
    index: Path,
    text: str,
    where: Sequence[str],
    before: str,
    top: int,
) -> list[_Hit]:
    # With -P, files of the current folder can't replace libraries. An absolute path can't be taken for a flag.
    command = [sys.executable, "-P", "-m", "aoe_train", "search", str(index.resolve())]
    command += ["-", "--json", "--top", str(top), *where]
    command += ["--before", f"created_at={before}"]
    # The other process doesn't get the tokens for GitHub.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GITHUB_", "GH_"))
    }
    process = subprocess.run(  # noqa: S603 - our own command; the text comes by standard input
        command,
        input=text.encode("utf-8", "replace"),
        capture_output=True,
        env=environment,
        check=False,
    )
    if process.returncode:
        raise _error_of(process.returncode, process.stderr.decode("utf-8", "replace"))
    try:
        return decode(process.stdout, _HITS).hits
    except Malformed as error:
        raise BadReply(
            f"{index}: the search results are not issues ({error}); index the table of `gis render`, with "
            "its columns repo, number, text and created_at"
        ) from None


def _error_of(code: int, stderr: str) -> PairkitError:
    """The error of `aoe search`, with the same exit code."""
    errors = [line for line in stderr.splitlines() if line.startswith("error: ")]
    last = errors[-1].removeprefix("error: ") if errors else ""
    message = f"aoe search: {one_line(last or stderr[-300:] or f'exit code {code}')}"
    for kind in (ConfigError, RemoteError):
        if code == kind.exit_code:
            return kind(message)
    return DataError(message)
