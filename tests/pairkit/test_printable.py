from __future__ import annotations

import re
from typing import Literal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.base.printable import holds_no_text, inert, normalize, one_line, printable, without_apostrophes
from tests.support.linear import assert_linear, repeated


def test_printable() -> None:
    assert printable("a\x1b[2Jb\tc\nd\u202ee\x9b") == "a\ufffd[2Jb\tc\nd\ufffde\ufffd"


def test_one_line() -> None:
    assert one_line("no\r\nerror: done\x1b[0m\u2028x\u0085y  \tz") == "no error: done\ufffd[0m x y z"
    assert one_line("half \ud83d") == "half \ufffd"
    assert one_line("x" * 301) == "x" * 299 + "…"
    assert one_line("x" * 300) == "x" * 300
    assert one_line("x" * 301, None) == "x" * 301


def test_holds_no_text() -> None:
    assert not any(map(holds_no_text, ("", "a\tb\r\nc", "\u2028\u202e\U0001f469")))
    assert all(map(holds_no_text, ("\x00", "a\x0bb", "\x1b[31m", "\x7f", "\x9f", "half \ud83d")))


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_printed(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    line.encode()
    assert one_line(line) == line
    assert printable(printable(text)) == printable(text)


FORMS: tuple[Literal["NFC", "NFKC"], ...] = ("NFC", "NFKC")


@pytest.mark.parametrize("form", FORMS)
def test_normalize_limits_marks(form: Literal["NFC", "NFKC"]) -> None:
    assert normalize(form, "x" + "\u0316" * 30 + "y") == "x" + "\u0316" * 30 + "y"
    assert normalize(form, "x" + "\u0316" * 31 + "y") == "x" + "\u0316" * 30 + "y"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("unit", ["\u0316\u0301", "a\u0316\u0301", "\u0316", "…\u0301\u0316", "ﷺ\u0301"])
def test_normalize_takes_linear_time(form: Literal["NFC", "NFKC"], unit: str) -> None:
    assert_linear(lambda text: normalize(form, text), repeated(unit, "same "), 200_000)


_SIGNS = st.text(alphabet="'=+-@\t\r\n＝＋－＠ ab", max_size=6)


@given(st.lists(_SIGNS | st.text(max_size=5), min_size=1, max_size=8))
def test_inert_and_back(texts: list[str]) -> None:
    rows = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    sheet = inert(rows)
    assert not any(text[:1] in tuple("=+-@\t\r\n＝＋－＠") for text in sheet["text"].to_list() if text)
    assert [
        text[1:] if text != old else text for text, old in zip(sheet["text"], texts, strict=True)
    ] == texts
    # Exactly the texts that would be formulas without their first apostrophe.
    assert [re.sub(r"\A'(?='*[=+\-@\t\r\n＝＋－＠])", "", text) for text in sheet["text"]] == texts
    assert sheet.select(without_apostrophes(pl.col("text"))).equals(
        rows.select(without_apostrophes(pl.col("text")))
    )
