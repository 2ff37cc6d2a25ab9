import io

import polars as pl
import pytest
from rich.console import Console

import pairkit
from pairkit import ConfigError, PairDataset

EVIDENCE = {"kind": "closer_comment", "url": "https://github.com/a/b/issues/1", "who": "eve"}
ROWS = pl.DataFrame(
    {
        "text1": ["Crash on startup with the parser", "Dark mode", "x " * 900],
        "text2": ["The parser fails at startup", "Slow scrolling", "y"],
        "label": [1, 0, 0],
        "repo": ["a/b", "a/b", "a/b"],
        "number1": [1, 3, 5],
        "number2": [2, 4, 6],
        "evidence": [EVIDENCE | {"when": "2020-01-01T00:00:00Z"}, None, None],
        "negative_kind": [None, "hard", "random"],
    }
)
DATASET = PairDataset({"test": ROWS}, "somewhere")


def drawn(place: int, label: int | None = None) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system="standard")
    console.print(pairkit.show(DATASET, row=place, label=label))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_shared_words_and_evidence() -> None:
    picture = drawn(0)
    assert "\x1b[1;33mparser\x1b[0m" in picture
    assert "\x1b[1;33mwith\x1b[0m" not in picture
    assert "a/b#1" in picture
    assert "closer_comment by eve on 2020-01-01" in picture


@pytest.mark.parametrize(
    ("text", "shared"),
    [("无法保存文件", "保存"), ("파일을 저장할 수 없습니다", "저장할"), ("Größe ändern", "Größe")],
)
def test_shared_words_in_other_scripts(text: str, shared: str) -> None:
    rows = pl.DataFrame({"text1": [text], "text2": [f"x {shared} y"], "label": [1]})
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system="standard")
    console.print(pairkit.show(rows))
    assert console.file.getvalue().count(f"33m{shared}\x1b[0m") == 2  # type: ignore[attr-defined]


def test_row_number_with_label() -> None:
    assert "drawn as a hard negative" in drawn(0, label=0)
    assert "drawn as a random negative" in drawn(1, label=0)


def test_missing_split_or_row() -> None:
    with pytest.raises(ConfigError, match="somewhere has test"):
        pairkit.show(DATASET, split="train")
    with pytest.raises(ConfigError, match="has 1 such rows, counted from 0"):
        pairkit.show(DATASET, row=1, label=1)


def test_svg() -> None:
    picture = pairkit.show(DATASET, row=2).to_svg()
    assert picture.startswith("<svg")
    assert "…" in picture


def test_texts_are_not_markup() -> None:
    evidence = {"kind": "note", "url": "http://x/[/y]", "who": "dup[bot]", "when": "2020-01-01"}
    row = {"text1": "[/b] \x1b[31m", "text2": "[red]", "label": 1}
    row |= {"repo": "[/a]/b", "number1": 1, "number2": 2}
    dataset = PairDataset({"[/s]": pl.DataFrame([row | {"evidence": evidence}])}, "x")
    console = Console(file=io.StringIO(), width=100)
    console.print(pairkit.show(dataset))
    picture = console.file.getvalue()
    for words in ("[/s], row 0", "[/a]/b#1", "[/b] \ufffd[31m", "[red]", "dup[bot]", "http://x/[/y]"):
        assert words in picture


def test_repr() -> None:
    pair = pairkit.show(DATASET)
    assert "Crash on startup" in repr(pair)
    assert "\x1b" not in repr(pair)
    assert pair._repr_html_().startswith("<svg")
