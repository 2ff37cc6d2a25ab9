from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.store.decoding import MOST_NUMBER
from gis_builder.store.records import IssueRef
from gis_builder.store.ref_table import RefTable
from pairkit.app.errors import DataError

REFS = st.builds(
    IssueRef,
    st.sampled_from(["a/b", "A/b", "a/b-", "ä/ö", "z/z"]),  # in an order that is not that of small letters
    st.one_of(st.integers(1, 20), st.integers(1, MOST_NUMBER)),
)


@given(st.lists(REFS, max_size=40))
def test_references_are_found_again_in_their_order(refs: list[IssueRef]) -> None:
    table = RefTable(refs)
    expected = sorted(set(refs))
    assert [table[place] for place in range(len(table))] == expected
    assert list(table.at(np.arange(len(table)))) == expected
    assert table.places(refs).tolist() == [expected.index(ref) for ref in refs]
    assert table.numbers_at(np.arange(len(table))).tolist() == [ref.number for ref in expected]
    for repo in {"a/b", "z/z", "none/here"}:
        assert [table[place] for place in table.of_repo(repo)] == [r for r in expected if r.repo == repo]


@pytest.mark.parametrize("number", [-1, 1 << 24, 1 << 40, 1 << 70])
def test_a_number_that_would_be_taken_for_another_is_refused(number: int) -> None:
    with pytest.raises(DataError, match=f"b/b#{number}: an issue's number is at most"):
        RefTable([IssueRef("a/a", 1), IssueRef("b/b", number)])


def test_repositories_are_told_by_their_rank() -> None:
    table = RefTable([IssueRef("b/b", 1), IssueRef("a/a", 3), IssueRef("b/b", 2)])
    assert table.repos == ["a/a", "b/b"]
    assert table.repo_at(np.arange(3)).tolist() == [0, 1, 1]
