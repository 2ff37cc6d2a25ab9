"""Bots whose account looks like a person's, told by their texts: nearly all are made of a template."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from gis_builder._records import Issue

_SHARE = 0.9  # of an author's issues that templates make
_LEAST = 5  # issues that are alike; fewer are no template
_LINES, _CHARACTERS = 200, 10_000  # of a body that are compared
# What a template is filled with: addresses, quotations, numbers, hashes.
_FILLED = re.compile(r'https?://\S+|`[^`]*`|"[^"]*"|\b(?=[0-9a-f]*[0-9])[0-9a-f]{6,}\b|[0-9]+')


def template_authors(issues: Iterable[Issue], least: int) -> frozenset[str]:
    """Whose issues in one repository are nearly all alike.

    Two issues are alike whose titles are the same once numbers, hashes, addresses and quotations are masked,
    and half of the lines of whose bodies, so masked, stand in half of the others', too.

    Args:
        issues: All of the repository.
        least: Issues that such an author has at least; 0 for nobody.
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
