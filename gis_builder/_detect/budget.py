"""How much of one thread is read. What lies beyond is nobody's talk, and no reason to hold a build.

The budget counts characters and claims, not seconds, so that the same thread gets the same verdict on every
machine.
"""

from __future__ import annotations

from collections.abc import Iterable

from gis_builder._detect.evidence import Statement
from gis_builder._detect.markers import MOST_CLAIMS
from gis_builder._records import Thread

# Ten times the longest thread of rust-lang/rust; GitHub takes 65,536 characters a comment and 2,500 comments.
MOST_CHARACTERS = 4_000_000


def passed_by_texts(thread: Thread) -> str | None:
    """The reason code if the thread's texts are longer together than is read."""
    issue = thread.issue
    length = len(issue.title) + len(issue.body) + sum(len(comment.body) for comment in thread.comments)
    return "too_much_text" if length > MOST_CHARACTERS else None


def passed_by_claims(statements: Iterable[Statement]) -> str | None:
    """The reason code if more is claimed than is weighed: claims, and the issues that they name."""
    weight = sum(1 + len(claim.targets) for statement in statements for claim in statement.reading.claims)
    return "too_many_claims" if weight > MOST_CLAIMS else None
