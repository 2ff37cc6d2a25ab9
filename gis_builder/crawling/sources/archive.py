"""Candidates from GH Archive: which issues were spoken of as duplicates in some hours of all GitHub.

The archive's events are snapshots: later edits, reopenings and marks are not in them. So it proposes numbers,
and a crawl of those threads decides. Hours are JSON lines, gzipped, `YYYY-MM-DD-H.json.gz`; holes, broken
lines and broken files occur. Events before 2015 have no texts, so they can propose nothing; they are counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gis_builder.store.decoding import Number, convert
from pairkit.app.errors import ConfigError, DataError
from pairkit.system.lines import read_lines

# Almost all lines are about something else: these tell without parsing them.
_KIND = re.compile(rb'"type"\s*:\s*"(?:Issues|IssueComment)Event"')
_REPO = re.compile(rb'"repo"\s*:\s*\{[^{}]*?"name"\s*:\s*"([^"\\]+)"')

Judge = Callable[[str], bool]


@dataclass(slots=True)
class ArchiveScan:
    """What some hours of the archive propose, and what could not be read."""

    numbers: dict[str, set[int]]  # by repository, in the spelling it was asked for
    files: int = 0
    events: int = 0  # of issues and comments, in the repositories asked for
    textless: int = 0  # of them, those of the schema before 2015
    broken_lines: Counter[str] = field(default_factory=Counter)  # by file
    broken_files: dict[str, str] = field(default_factory=dict)  # why the rest of a file was lost

    @property
    def warnings(self) -> list[str]:
        """What a person should know about how complete the scan is."""
        words = [f"{name}: {count} broken lines were left out" for name, count in self.broken_lines.items()]
        words += [f"{name}: its end can't be read ({why})" for name, why in self.broken_files.items()]
        if self.textless:
            words.append(f"{self.textless} events are older than 2015 and hold no text to judge by")
        return words


def archive_files(paths: Iterable[Path]) -> list[Path]:
    """The hours that are named, and those in the folders that are named, each once, by name."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            hours = sorted(path.glob("*.json.gz"))
            if not hours:
                raise ConfigError(f"{path}: holds no hour of GH Archive; expected YYYY-MM-DD-H.json.gz")
            found.update(dict.fromkeys(hours))
        elif path.is_file():
            found[path] = None
        else:
            raise ConfigError(f"{path}: no such file or folder; expected hours of GH Archive")
    return sorted(found)


def read_candidates(files: Iterable[Path], repos: Collection[str], might_matter: Judge) -> ArchiveScan:
    """Find issues of some repositories whose closing or comments speak of duplicates."""
    scan = ArchiveScan({repo: set() for repo in repos})
    spelling = {repo.lower(): repo for repo in repos}
    for path in files:
        scan.files += 1
        for line in _lines(path, scan):
            if _KIND.search(line) is None or not _is_about(line, spelling):
                continue
            try:
                event = json.loads(line)
                repo = spelling.get(_repo_of(event).lower())
                if repo is not None:
                    scan.events += 1
                    _take(event, scan, scan.numbers[repo], might_matter)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                scan.broken_lines[path.name] += 1
    return scan


def _lines(path: Path, scan: ArchiveScan) -> Iterator[bytes]:
    """The lines that look whole; counts the others, and notes where a file breaks off."""
    try:
        with path.open("rb"):
            pass  # that it opens at all
    except OSError as error:
        raise DataError(f"can't be read ({error.strerror or error})", path=path) from error
    try:
        for _, line in read_lines(path):
            if line.startswith(b"{") and line.rstrip().endswith(b"}"):
                yield line
            elif line.strip():
                scan.broken_lines[path.name] += 1
    except DataError as error:
        scan.broken_files[path.name] = str(error).removeprefix(f"{path}:{error.row}: ")


def _is_about(line: bytes, spelling: Mapping[str, str]) -> bool:
    """Whether a line may be about a repository of ours; a "no" is certain."""
    found = _REPO.search(line)
    return found is None or found[1].decode("utf-8", "replace").lower() in spelling


def _repo_of(event: Mapping[str, Any]) -> str:
    if "repo" in event:
        return str(event["repo"]["name"])
    old = event["repository"]  # before 2015
    return f"{old['owner']}/{old['name']}"


def _take(event: Mapping[str, Any], scan: ArchiveScan, numbers: set[int], might_matter: Judge) -> None:
    payload = event["payload"]
    issue = payload.get("issue")
    if not isinstance(issue, dict):
        scan.textless += 1
    elif not issue.get("pull_request") and any(might_matter(text) for text in _texts(event["type"], payload)):
        numbers.add(convert(issue["number"], Number))


def _texts(kind: str, payload: Mapping[str, Any]) -> Iterator[str]:
    """What an event says: a comment's words; of a closing the title, labels and reason.

    Not the body: templates of reports ask to look for duplicates first.
    """
    issue = payload["issue"]
    if kind == "IssueCommentEvent":
        yield payload["comment"]["body"] or ""
    elif payload["action"] == "closed":
        yield issue["title"] or ""
        yield from (label["name"] for label in issue.get("labels") or ())
        yield issue.get("state_reason") or ""
