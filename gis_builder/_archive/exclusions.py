"""A takedown list: whose words, and which repositories and issues, stay out of a dataset."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from gis_builder._records import Issue, Thread
from pairkit.errors import DataError
from pairkit.lines import read_text_lines

_FORM = re.compile(r"@[^\s/#@]+|[A-Za-z0-9._-]+/(?:\*|[A-Za-z0-9._-]+(?:#[1-9][0-9]*)?)")


def read_exclusions(path: Path) -> tuple[str, ...]:
    """The entries of a file, in lower case and in order: one a line; after `#` and a blank comes a comment.

    An entry is `owner/name`, `owner/*` (all repositories of an owner), `owner/name#12`, or `@login` (what a
    person wrote).

    Raises:
        DataError: The file can't be read, or a line is none of these.
    """
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
