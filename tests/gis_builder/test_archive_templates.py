"""Bots behind a person's account, and people who must not be taken for one."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from gis_builder.gh_archive.barred import template_authors
from gis_builder.store.records import Issue


def issues(author: str | None, texts: Sequence[tuple[str, str]]) -> list[Issue]:
    return [
        Issue("acme/rocket", n, title, body, "open", None, author, "NONE", "", "", None, None)
        for n, (title, body) in enumerate(texts, 1)
    ]


def bots(author: str | None, texts: Sequence[tuple[str, str]], least: int = 10) -> set[str]:
    return set(template_authors(issues(author, texts), least))


BUILDS = [
    (f"Build {n} failed at {n:08x}ab", f"The build failed.\nSee https://ci.example.org/{n}\n`make` said: {n}")
    for n in range(12)
]


def test_who_writes_by_a_template_is_a_bot() -> None:
    assert bots("ci-person", BUILDS) == {"ci-person"}
    assert bots("feed", [(f"@feed: {n}", "") for n in range(10)]) == {"feed"}
    two = [*BUILDS, *[(f"Release {n}.0 is out", "Install it") for n in range(9)]]
    assert bots("ci-person", two) == {"ci-person"}
    assert bots("ci-person", [*BUILDS, ("I resign", "for good")]) == {"ci-person"}  # nearly all


def test_who_does_not_is_none() -> None:
    assert bots("ann", BUILDS[:9]) == set()  # too few
    assert bots("ann", BUILDS, least=0) == set()
    assert bots(None, BUILDS) == set()
    assert bots("ann", [*BUILDS, *((f"Crash in {word}", "it crashes") for word in ("a", "b"))]) == set()
    # Titles that say nothing, over what a person wrote; and over what a person wrote into a form.
    own = [f"{word} is wrong,\nas {word} does {word * 2}\nand not {word * 3}" for word in "abcdefghijkl"]
    assert bots("ann", [("Bug", body) for body in own]) == set()
    form = "### Steps\n{}\n### Expected\nno {}\n"
    filled = [("Bug", form.format(body, body)) for body in own]
    assert bots("ann", filled) == set()
    assert bots("ann", [(f"Support {word}", "please") for word in "abcdefghijkl"]) == set()


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=60)), max_size=30))
def test_the_order_of_issues_decides_nothing(texts: list[tuple[str, str]]) -> None:
    assert bots("ann", texts) == bots("ann", texts[::-1])
