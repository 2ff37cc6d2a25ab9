"""Cells that no spreadsheet runs: which get an apostrophe, and that it comes off again."""

from __future__ import annotations

import re

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pairkit.formulas import inert, without_apostrophes

_SIGNS = st.text(alphabet="'=+-@\t\r\n＝＋－＠ ab", max_size=6)


@given(st.lists(_SIGNS | st.text(max_size=5), min_size=1, max_size=8))
def test_what_was_made_inert_comes_back(texts: list[str]) -> None:
    rows = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    sheet = inert(rows)
    assert not any(text[:1] in tuple("=+-@\t\r\n＝＋－＠") for text in sheet["text"].to_list() if text)
    assert [
        text[1:] if text != old else text for text, old in zip(sheet["text"], texts, strict=True)
    ] == texts
    # Whoever sees the sheet alone can tell, too: exactly what would be run without its first apostrophe.
    assert [re.sub(r"\A'(?='*[=+\-@\t\r\n＝＋－＠])", "", text) for text in sheet["text"]] == texts
    assert sheet.select(without_apostrophes(pl.col("text"))).equals(
        rows.select(without_apostrophes(pl.col("text")))
    )


def test_only_what_would_be_run_is_touched() -> None:
    rows = pl.DataFrame({"text": ["=1+1", "'=1", "'tis", "1=1", "", None, "- a point"]})
    assert inert(rows)["text"].to_list() == ["'=1+1", "''=1", "'tis", "1=1", "", None, "'- a point"]
