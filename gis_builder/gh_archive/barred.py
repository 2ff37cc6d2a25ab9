"""What stays out of a dataset: entries of a takedown list, and bots whose account looks like a person's.

Such a bot is recognised by its texts: nearly all are made from a template.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gis_builder.store.records import Issue, Thread
from pairkit.app.errors import DataError
from pairkit.system.lines import read_text_lines

_FORM = re.compile(r"@[^\s/#@]+|[A-Za-z0-9._-]+/(?:\*|[A-Za-z0-9._-]+(?:#[1-9][0-9]*)?)")
_SHARE = 0.9  # of an author's issues that templates make
_LEAST = 5  # issues that are alike; fewer are no template
_LINES, _CHARACTERS = 200, 10_000  # of a body that are compared
# What a template is filled with: addresses, quotations, numbers, hashes.
_FILLED = re.compile(r'https?://\S+|`[^`]*`|"[^"]*"|\b(?=[0-9a-f]*[0-9])[0-9a-f]{6,}\b|[0-9]+')


def read_exclusions(path: Path) -> tuple[str, ...]:
    """The entries of a file, in lower case and in order: one a line; ` # ` begins a comment."""
    entries: set[str] = set()
    for row, line in read_text_lines(path):
        entry = re.split(r"(?:^|\s)#(?:\s|$)", line.strip())[0].strip()
        if entry and not _FORM.fullmatch(entry):
            raise DataError("expected owner/name, owner/*, owner/name#12 or @login", path=path, row=row)
        entries.add(entry.lower().removesuffix("[bot]"))  # as authors are called here
    return tuple(sorted(entries - {""}))


class Exclusions:
    """What entries of a takedown list keep out; a name that a repository had before counts too."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._entries = frozenset(entries)

    def has_repo(self, *names: str) -> bool:
        """Whether a repository of these names is left out as a whole."""
        lower = [name.lower() for name in names]
        return any(name in self._entries or f"{name.partition('/')[0]}/*" in self._entries for name in lower)

    def has_issue(self, issue: Issue, former_names: Collection[str] = ()) -> bool:
        """Whether an issue is left out, by its number or its author."""
        if self._has_person(issue.author):
            return True
        names = (issue.repo, *former_names)
        return any(f"{name.lower()}#{issue.number}" in self._entries for name in names)

    def without_comments(self, thread: Thread) -> Thread:
        """The thread without the comments of people whose words stay out, so that none is evidence."""
        if not self._entries:
            return thread
        return replace(thread, comments=tuple(c for c in thread.comments if not self._has_person(c.author)))

    def _has_person(self, login: str | None) -> bool:
        return login is not None and f"@{login.lower()}" in self._entries


def template_authors(issues: Iterable[Issue], least: int) -> frozenset[str]:
    """Whose issues in one repository are nearly all alike.

    Two issues are alike whose titles are the same once numbers, hashes, addresses and quotations are masked,
    and half of the lines of whose bodies, so masked, stand in half of the others', too.
    """
    own: defaultdict[str, list[Issue]] = defaultdict(list)
    for issue in issues:
        if issue.author is not None:
            own[issue.author].append(issue)
    return frozenset(
        author
        for author, all_of_them in own.items()
        if least and len(all_of_them) >= least and _made(all_of_them) >= _SHARE * len(all_of_them)
    )


def _made(issues: Sequence[Issue]) -> int:
    """How many of an author's issues are made of a template."""
    by_title: defaultdict[str, list[Issue]] = defaultdict(list)
    for issue in issues:
        by_title[_masked(issue.title)].append(issue)
    return sum(_alike(group) for group in by_title.values() if len(group) >= _LEAST)


def _alike(issues: Sequence[Issue]) -> int:
    """How many of some issues have a body that is mostly in the others', too."""
    bodies = [_lines(issue.body) for issue in issues]
    known = Counter(line for lines in bodies for line in lines)
    common = {line for line, count in known.items() if 2 * count >= len(issues)}
    return sum(2 * len(lines & common) >= len(lines) for lines in bodies)


def _lines(body: str) -> set[str]:
    lines = body[:_CHARACTERS].splitlines()[:_LINES]
    return {masked for line in lines if (masked := _masked(line))}


def _masked(text: str) -> str:
    return _FILLED.sub("#", text.lower()).strip()
