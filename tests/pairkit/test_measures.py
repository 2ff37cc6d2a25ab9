from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pairkit.similarity.measures import (
    common_words,
    distinct_words,
    estimated_tokens,
    gap_auc,
    share_long,
    split_at_words,
)


def frame(*rows: tuple[int, int, int]) -> pl.DataFrame:
    """Rows of (day of the first, day of the second, label)."""
    times = [(f"2020-01-{one:02}T00:00:00Z", f"2020-01-{other:02}T00:00:00Z", y) for one, other, y in rows]
    return pl.DataFrame(times, schema=["created_at1", "created_at2", "label"], orient="row")


def test_gap_auc() -> None:
    """Gaps 1 and 5 of positives against 3 and 5 of negatives: 1 < 3, 1 < 5, 5 > 3, 5 = 5."""
    assert gap_auc(frame((1, 2, 1), (9, 4, 1), (1, 4, 0), (7, 2, 0))) == (1 + 1 + 0 + 0.5) / 4
    assert gap_auc(frame((1, 2, 1), (1, 9, 0))) == 1.0
    assert gap_auc(frame((1, 9, 1), (1, 2, 0))) == 0.0


def test_gap_auc_undefined() -> None:
    assert gap_auc(frame((1, 2, 1))) is None
    assert gap_auc(frame((1, 2, 0))) is None
    assert gap_auc(frame((1, 2, 1), (1, 9, 0)).drop("created_at1")) is None
    unknown = frame((1, 2, 1), (1, 9, 0), (1, 3, 0)).with_columns(
        created_at2=pl.Series(["2020-01-02T00:00:00Z", None, "some day"])
    )
    assert gap_auc(unknown) is None


def test_estimated_tokens() -> None:
    frame = pl.DataFrame({"t": ["", "a cat", "compilation", "x += 12345;"]})
    # Two special tokens; six letters, two digits or one sign each.
    assert frame.select(estimated_tokens(pl.col("t"))).to_series().to_list() == [2, 4, 4, 9]
    long, short = "a " * 511, "a " * 510
    rows = pl.DataFrame({"one": [long, short], "other": [long, long]})
    assert share_long(rows, "one", "other") == 0.75
    assert share_long(rows.clear(), "one") == 0.0


def test_common_words() -> None:
    texts = [f"the parser{n}" for n in range(400)] + ["rare word"] * 20 + ["often seen"] * 24
    assert common_words(texts) == {"the", "often", "seen"}  # more than a twentieth of 444 texts


def test_common_words_of_small_datasets() -> None:
    assert common_words(["startup crash"] * 10) == frozenset()
    assert common_words(["startup crash"] * 11) == {"startup", "crash"}


def test_split_at_words() -> None:
    assert split_at_words("Crash, crashes", {"crash"}) == [("Crash", True), (", crashes", False)]
    assert split_at_words("", {"crash"}) == []
    assert split_at_words("文件保存失败", {"文件", "件保", "失败"}) == [
        ("文件保", True),
        ("存", False),
        ("失败", True),
    ]


def test_distinct_words_of_scripts_without_blanks() -> None:
    assert distinct_words("We 保存文件 now") == {"now", "保存", "存文", "文件"}


@settings(max_examples=40)
@given(st.text(), st.sets(st.text(max_size=5), max_size=5))
def test_pieces_join_to_the_text(text: str, marked: set[str]) -> None:
    marked |= set(sorted(distinct_words(text))[:2])
    pieces = split_at_words(text, marked)
    assert "".join(piece for piece, _ in pieces) == text
    assert all(piece.lower() in marked for piece, is_marked in pieces if is_marked)
