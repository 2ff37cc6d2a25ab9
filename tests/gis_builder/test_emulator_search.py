from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder._emulator.errors import SearchRefusal
from gis_builder._emulator.load import load_trackers
from gis_builder._emulator.search import Search
from gis_builder._emulator.search_query import Term, count_key, parse_query
from gis_builder._emulator.text_index import phrase_test
from gis_builder._emulator.tracker import Catalogue


@pytest.fixture(scope="module")
def search(tiny_dump: Path) -> Search:
    return Search(Catalogue(load_trackers([tiny_dump])))


def numbers(search: Search, text: str) -> list[int]:
    return [hit.issue.number for hit in search.run(f"repo:acme/rocket {text}")]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [9, 6, 5, 4, 3, 2, 1]),
        ("is:issue", [9, 6, 5, 4, 2, 1]),
        ("is:pr", [3]),
        ("is:merged", [3]),
        ("is:issue is:open", [5, 1]),
        ("state:closed type:issue", [9, 6, 4, 2]),
        ("label:bug", [1]),
        ("label:duplicate", [2]),
        ('label:"BUG","duplicate"', [2, 1]),
        ("label:bug,duplicate", [2, 1]),
        ("is:issue no:label", [9, 6, 5, 4]),
        ("is:issue -label:bug -no:label", [2]),
        ("reason:duplicate", [6, 2]),
        ('reason:"not planned"', [9]),
        ("author:ann is:open", [5, 1]),
        ("is:issue -author:ann", [9, 6]),
        ("commenter:ann", [2]),
        ("comments:>1", [4, 2]),
        ("comments:120", [4]),
        ("comments:1..2", [6, 3, 2]),
        ("comments:<1 is:issue", [9, 5, 1]),
        ("created:2020-01-04", [4]),
        ("created:2020-01-02..2020-01-05", [5, 4, 3, 2]),
        ("created:*..2020-01-02", [2, 1]),
        ("created:2020-01-06..*", [9, 6]),
        ("created:>2020-01-06", [9]),
        ("created:>=2020-01-06", [9, 6]),
        ("created:<2020-01-02", [1]),
        ("created:<=2020-01-02", [2, 1]),
        ("created:>2020-01-06T12:00:00Z", [9]),
        ("created:<2020-01-02T12:00:00Z", [1]),
        ("created:2020-01-02T12:00:00Z..2020-01-02T14:00:00+02:00", [2]),
        ("closed:2020-01-25..2020-01-26", [9, 6]),
        ("updated:>=2020-01-25", [9, 6]),
        ("is:issue sort:created-asc", [1, 2, 4, 5, 6, 9]),
        ("is:issue sort:updated-desc", [9, 6, 5, 4, 2, 1]),
        ("sort:comments-desc is:closed is:issue", [4, 2, 6, 9]),
        ('"duplicate of" in:comments', [3, 2]),
        ("duplicate in:comments", [3, 2]),
        ('"DUPLICATE, of" is:issue', [2]),
        ("crash in:title", [1]),
        ("crash in:body", []),
        ("crash in:title,body", [1]),
        ("body 4 in:body", []),
        ("start NOT crash", []),
        ("issue -4 -1 in:title is:issue", [9, 6, 5]),
        ("acme/fuel", [6]),
    ],
)
def test_qualifiers_and_words(search: Search, query: str, found: list[int]) -> None:
    assert numbers(search, query) == found


def test_private_and_unknown_repositories_can_not_be_searched(search: Search) -> None:
    for name in ("acme/vault", "acme/nothing", "acme/missile"):  # a former name is not followed either
        with pytest.raises(SearchRefusal, match="cannot be searched"):
            search.run(f"repo:{name} is:issue")
    assert [hit.repository.name for hit in search.run("came from afar")] == ["acme/fuel"]
    assert {hit.repository.name for hit in search.run("user:acme")} == {"acme/rocket", "acme/fuel"}


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("x" * 257, "longer than 256 characters"),
        ("a AND b AND c AND d AND e AND f AND g", "More than five"),
        ("a OR b", "has no OR"),
        ("created:yesterday", "not a recognized date"),
        ("comments:many", "not a number of comments"),
        ("comments:>", "not a number of comments"),
    ],
)
def test_what_github_would_not_run(query: str, says: str) -> None:
    with pytest.raises(SearchRefusal, match=re.escape(says)):
        parse_query(query)


def test_qualifiers_do_not_count_as_text() -> None:
    parsed = parse_query(f"repo:acme/rocket is:issue created:2020-01-01..2020-02-01 {'x' * 256}")
    assert parsed.terms == (Term("x" * 256),)


def test_an_unknown_key_is_text() -> None:
    assert parse_query('error:E0308 -"not this" https://x.org').terms == (
        Term("error E0308"),
        Term("not this", negated=True),
        Term("https //x.org"),
    )


@given(
    first=st.dates(date(2019, 12, 1), date(2020, 3, 1)),
    days=st.integers(0, 60),
    cut=st.integers(0, 60),
)
def test_bisected_windows_lose_and_double_nothing(search: Search, first: date, days: int, cut: int) -> None:
    last = first + timedelta(days=days)
    middle = first + timedelta(days=min(cut, days))
    whole = numbers(search, f"created:{first}..{last}")
    older = numbers(search, f"created:{first}..{middle}")
    newer = numbers(search, f"created:{middle + timedelta(days=1)}..{last}")
    assert newer + older == whole


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_counts_compare_as_numbers(left: int, right: int) -> None:
    assert (count_key(left) < count_key(right)) == (left < right)


WORDS = st.lists(st.sampled_from(["dup", "duplicate", "of", "Duplicate", "é", "12"]), max_size=6)
GAPS = st.sampled_from([" ", ", ", "-", "\n", " #", " `"])


@given(WORDS, st.lists(GAPS, min_size=6, max_size=6), WORDS)
def test_a_phrase_is_consecutive_words(text: list[str], gaps: list[str], phrase: list[str]) -> None:
    shown = "".join(word + gap for word, gap in zip(text, gaps, strict=False))
    folded, wanted = [word.lower() for word in text], [word.lower() for word in phrase]
    expected = any(folded[at : at + len(wanted)] == wanted for at in range(len(folded) - len(wanted) + 1))
    assert phrase_test(" ".join(phrase))(shown) is (expected or not wanted)


@pytest.mark.parametrize(
    ("phrase", "text", "is_said"),
    [
        ("duplicate of", "Duplicate of #12", True),
        ("duplicate of", "duplicates of #12", False),
        ("dup", "a dupe", False),
        ("重复", "这是重复的问题", True),
        ("重复", "重 复", True),
        ("issue 重复", "此issue重复", True),
        ("#12", "see #12.", True),
        ("#1", "see #12.", False),
    ],
)
def test_what_counts_as_a_word(phrase: str, text: str, is_said: bool) -> None:
    assert phrase_test(phrase)(text) is is_said
