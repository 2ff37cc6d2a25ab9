from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.extracting.documents import (
    Block,
    html_blocks,
    markdown_blocks,
    opening_text,
    plain_blocks,
    sentences,
)
from tests.pairkit.test_mine import HANDBOOK
from tests.support.linear import assert_linear, repeated

MARKDOWN = ("[a](b", "![", "*a_ ", "`", "> ", "<!", "[a]: b\n\n[a]\n", "|a")
HTML = ("<", "<!--", "<!", "<a ", "<a b='", "</", "<p>", "<script>", "<title>", "<nav>", "&")


@pytest.mark.parametrize(
    ("parse", "text", "size"),
    [
        *((markdown_blocks, (unit,), 16_000) for unit in MARKDOWN),
        *((html_blocks, (unit,), 200_000) for unit in (*HTML, "<a href=a>x", "<br>", "\n<p")),
        (markdown_blocks, (" ", "---\ntitle:", "\n---\n# A\n"), 400_000),
    ],
)
def test_hostile_documents_take_linear_time(parse: Any, text: tuple[str, ...], size: int) -> None:
    assert_linear(parse, repeated(*text), size)


@given(st.text(alphabet="<>/!-abph1 =\"'&;\n#*[]()`|?."))
def test_any_text(text: str) -> None:
    for _, blocks in (html_blocks(text), markdown_blocks(text)):
        assert all(block.text.strip() for block in blocks)
    assert all(block.text.strip() for block in plain_blocks(text))


def test_opening_text_and_sentences() -> None:
    assert sentences("It rains. Is it 3 m? It is, e.g. here. (Or not.)") == [
        *("It rains.", "Is it 3 m?", "It is, e.g. here.", "(Or not.)")
    ]
    assert opening_text("It rains. It pours. It stops.", 20) == "It rains. It pours."
    assert opening_text("It rains and pours", 10) == "It rains"
    assert opening_text("Donaudampfschiff", 5) == "Donau"


def test_places() -> None:
    _, blocks = markdown_blocks(HANDBOOK)
    lines = HANDBOOK.splitlines()
    assert [lines[int(block.place.split()[1]) - 1][:3] for block in blocks[:4]] == [
        "# P",
        "A p",
        "## ",
        "It ",
    ]
    _, blocks = html_blocks("<p>\n\none</p>\n<!--\n-->\n<script>\n</script><h2\n>two")
    assert blocks == [Block("paragraph", "one", "line 3"), Block("heading", "two", "line 8")]
    assert plain_blocks("\n\na\nb\n\nc") == [
        *(Block("paragraph", "a\nb", "line 3"), Block("paragraph", "c", "line 6"))
    ]
