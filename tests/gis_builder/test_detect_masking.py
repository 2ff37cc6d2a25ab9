from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.detection.page import mask


@pytest.mark.parametrize(
    "hidden",
    [
        "> dup of #1",
        "  > dup of #1",
        "```\ndup of #1\n```",
        "~~~ text\ndup of #1\n~~~",
        "```\ndup of #1 with no end",
        "`dup of #1`",
        "``dup ` of #1``",
        "<!-- dup of #1 -->",
        "<pre>dup of #1</pre>",
        "- [x] dup of #1",
        "* [ ] dup of #1",
        "~~dup of #1~~",
        "    dup of #1",
        "\tdup of #1",
    ],
)
def test_what_the_writer_does_not_say_is_blank(hidden: str) -> None:
    masked = mask(f"Before.\n\n{hidden}")
    assert "dup" not in masked
    assert "Before." in masked


@pytest.mark.parametrize(
    "text",
    [
        "dup of #1",
        "a > b, dup of #1",
        "- one\n\n    dup of #1",
        "1. one\n\n    dup of #1",
        "text goes on\n    dup of #1",
        "a ~ b dup of #1 ~ c",
        "it's `code` but dup of #1 and `more`",
        "`let x = [];` is enough, dup of #1",
    ],
)
def test_what_the_writer_says_stays(text: str) -> None:
    assert "dup of #1" in mask(text)


@given(st.text(alphabet="ab #1`~>-[]x<!\n\r\t *", max_size=80))
def test_positions_and_lines_keep_their_places(text: str) -> None:
    masked = mask(text)
    assert len(masked) == len(text)
    assert [i for i, c in enumerate(masked) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]
    assert all(m in (c, " ") for m, c in zip(masked, text, strict=True))


@given(st.text(alphabet="a `~>-[]x<!\n", max_size=80))
def test_masking_twice_hides_no_reference_that_once_left(text: str) -> None:
    masked = mask(f"{text}\n\nplain #1")
    assert mask(masked).count("#1") == masked.count("#1")


def test_long_lists_and_logs_take_no_time() -> None:
    assert len(mask("- item\n  more\n" * 5_000 + "\n\n" + "    log\n" * 5_000)) > 100_000
