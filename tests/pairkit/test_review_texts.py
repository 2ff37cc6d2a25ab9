"""Texts for the page: nothing is lost, nothing can act, and the first difference is in view."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.app.printable import printable
from pairkit.reviews.texts import TextLine, lines_of, shown_pair
from tests.support.linear import assert_linear, repeated

NOBODYS: frozenset[str] = frozenset()
MARKDOWN = st.lists(
    st.sampled_from(
        ["```", "~~~", "# ", "> ", "- ", "1. ", "`", "**", "    ", "\t", "\n", "\n\n", "word", " ", "é<b>"]
    )
).map("".join)


@given(MARKDOWN | st.text(), MARKDOWN | st.text())
def test_both_texts_are_shown_whole(one: str, other: str) -> None:
    for text, side in zip((one, other), shown_pair(one, other, NOBODYS), strict=False):
        assert isinstance(side, tuple)
        lines: list[TextLine] = [*side.before, *side.shown, *side.after]
        assert "".join(line.text for line in lines) == printable(text.replace("\r\n", "\n"))


def kinds(text: str) -> list[str]:
    return [line.kind for line in lines_of(text)]


def test_kinds_of_lines() -> None:
    start = "Title\n\n# Head\n> quoted\n- item\n1. one\n```rust\n# no head\n```\n"
    text = f"{start}text\n\n    code\n\n    more\nend"
    assert kinds(text) == [
        *("title", "blank", "heading", "quote", "item", "item", "code", "code", "code", "text", "blank"),
        *("code", "code", "code", "text"),
    ]
    assert kinds("one line is no title") == ["text"]
    assert kinds("~~~\n```\n~~~~\nout") == [
        "code",
        "code",
        "code",
        "text",
    ]  # only its own kind closes a fence
    assert kinds("a\n```\nnever closed")[1:] == ["code", "code"]


def test_looks_of_pieces() -> None:
    (line,) = lines_of("a `b c` and **d**, not `e")
    assert line.pieces == [
        ("a ", ""),
        ("`", "syntax"),
        ("b c", "inline"),
        ("`", "syntax"),
        (" and ", ""),
        ("**", "syntax"),
        ("d", "strong"),
        ("**", "syntax"),
        (", not `e", ""),
    ]


def test_shared_and_differing_words() -> None:
    one, other, marks = shown_pair("the pump usually works", "the pump seldom works", frozenset({"the"}))
    pieces = dict(piece for line in one.shown for piece in line.pieces if piece[1])
    assert pieces == {"pump": "shared", "usually": "own", "works": "shared"}
    assert [text for line in other.shown for text, looks in line.pieces if looks == "own"] == ["seldom"]
    assert marks == "own"
    assert shown_pair("a crash at once", "an error much later than that", NOBODYS)[2] == "shared"


def test_a_long_text_is_folded_with_the_first_difference_in_view() -> None:
    template = "".join(f"Line {number} of the template.\n" for number in range(200))
    one, other, _ = shown_pair(
        f"{template}HERE it crashes\n{template}", f"{template}THERE it stops\n", NOBODYS
    )
    assert "HERE" in "".join(line.text for line in one.shown)
    assert "THERE" in "".join(line.text for line in other.shown)
    assert len(one.before) > 180
    assert len(one.after) > 100
    assert sum(len(line.text) for line in one.shown) < 2500


def test_what_one_text_adds_is_in_view() -> None:
    start = "Word after word. " * 300
    one, other, _ = shown_pair(start, f"{start}And an end.", NOBODYS)
    assert "And an end." in "".join(line.text for line in other.shown)
    assert one.before


def test_one_long_line_is_folded_too() -> None:
    text = "x" * 60_000
    one, *_ = shown_pair(text, "y", NOBODYS)
    assert sum(len(line.text) for line in one.shown) == 2000
    assert one.after


def test_beyond_what_a_page_takes_is_counted() -> None:
    one, *_ = shown_pair("x " * 150_000, "y", NOBODYS)
    assert one.left_out == 100_000


@pytest.mark.parametrize(
    "unit", ["`", "``a", "**", "**a", "> ", "```\n", "# ", "1. ", "    \n", "`a` ", "\n"]
)
def test_any_text_takes_time_in_proportion(unit: str) -> None:
    assert_linear(lambda text: shown_pair(text, text + "x", NOBODYS), repeated(unit), 20_000)
