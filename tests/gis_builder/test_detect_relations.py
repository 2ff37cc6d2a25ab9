"""The relation of two issues, by the closing words."""

from __future__ import annotations

import pytest

from gis_builder.detection.decision import relation_of
from gis_builder.detection.reading import read
from gis_builder.store.records import IssueRef

ISSUE = IssueRef("o/n", 99)


@pytest.mark.parametrize(
    ("words", "relation"),
    [
        ("Closing as a duplicate of #12.", "duplicate"),
        ("Dup of #12, which is in favour of the future.", "duplicate"),
        ("This is the same issue as #12, closing.", "same"),
        ("Whoops, this is #12.", "same"),
        ("This has already been reported as #12.", "reported"),
        ("There is already a bug on this: #12.", "reported"),
        ("This is a known issue, see #12.", "reported"),
        ("Closing in favour of #12.", "superseded"),
        ("I think #12 subsumes this.", "superseded"),
        ("Moving this over to #12.", "superseded"),
        ("This is tracked in #12.", "tracked"),
        ("I think #12 covers this.", "tracked"),
        ("This is part of #12.", "part-of"),
        ("Closing as a subissue of #12.", "part-of"),
        ("This is merely a special case of #12.", "part-of"),
    ],
)
def test_relation(words: str, relation: str) -> None:
    (claim, *_) = read(words, ISSUE).claims
    assert relation_of(claim) == relation
