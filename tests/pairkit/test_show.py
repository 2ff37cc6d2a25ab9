import csv
import io
import json
from datetime import timedelta

import polars as pl
from rich.console import Console

import pairkit
from pairkit import PairDataset
from tests.support.shorthand import config_error, data_error, pair, parametrize, values

EVIDENCE = {
    "kind": "closer_comment",
    "url": "https://github.com/a/b/issues/1",
    "who": "eve",
}
ROWS = pl.DataFrame(
    pair(
        ["Crash on startup with the parser", "Dark mode", "x " * 900],
        ["The parser fails at startup", "Slow scrolling", "y"],
        [1, 0, 0],
        repo=["a/b", "a/b", "a/b"],
        number1=[1, 3, 5],
        number2=[2, 4, 6],
        evidence=[EVIDENCE | {"when": "2020-01-01T00:00:00Z"}, None, None],
        negative_kind=[None, "hard", "random"],
    )
)
DATASET = PairDataset({"test": ROWS}, "somewhere")


def drawn(place, label=None):
    console = Console(
        file=io.StringIO(), width=100, force_terminal=True, color_system="standard"
    )
    console.print(pairkit.show(DATASET, row=place, label=label))
    return console.file.getvalue()


def test_shared_words_and_evidence():
    picture = drawn(0)
    assert "\x1b[1;33mparser\x1b[0m" in picture
    assert "\x1b[1;33mwith\x1b[0m" not in picture
    assert "a/b#1" in picture
    assert "closer_comment by eve on 2020-01-01" in picture


def test_row_number_with_label():
    assert "drawn as a hard negative" in drawn(0, label=0)
    assert "drawn as a random negative" in drawn(1, label=0)


def test_missing_split_or_row():
    earlier = {"dev": DATASET["test"]}
    assert pairkit.show(earlier, split="dev").where == "validation, row 0"
    with config_error("somewhere has test"):
        pairkit.show(DATASET, split="train")
    with config_error("has 1 such rows, counted from 0"):
        pairkit.show(DATASET, row=1, label=1)
    with config_error("label = 2: no pair in test of somewhere has it"):
        pairkit.show(DATASET, label=2)


def test_plain_text_and_pictures():
    shown = pairkit.show(DATASET)
    assert "Crash on startup" in repr(shown)
    assert "\x1b" not in repr(shown)
    assert shown._repr_html_().startswith("<svg")
    assert "…" in pairkit.show(DATASET, row=2).to_svg()
    assert "Crash on startup" in DATASET._repr_html_()


def test_texts_are_not_markup():
    evidence = {
        "kind": "note",
        "url": "http://x/[/y]",
        "who": "dup[bot]",
        "when": "2020-01-01",
    }
    row = pair("[/b] \x1b[31m", "[red]")
    row |= {"repo": "[/a]/b", "number1": 1, "number2": 2}
    dataset = PairDataset({"[/s]": pl.DataFrame([row | {"evidence": evidence}])}, "x")
    console = Console(file=io.StringIO(), width=100)
    console.print(pairkit.show(dataset))
    picture = console.file.getvalue()
    for words in (
        "[/s], row 0",
        "[/a]/b#1",
        "[/b] \ufffd[31m",
        "[red]",
        "dup[bot]",
        "http://x/[/y]",
    ):
        assert words in picture


EXPORTED = pl.DataFrame(
    [("a", "d", 1, {"kind": "x", "n": 1}), ('b,\n"c"', "é", 0, None)],
    schema=["text1", "text2", "label", "evidence"],
    orient="row",
)


def test_export(tmp_path):
    dataset = PairDataset({"train": EXPORTED}, "x")
    (lines,) = pairkit.export(dataset, tmp_path)
    assert [
        json.loads(line) for line in lines.read_text().splitlines()
    ] == EXPORTED.to_dicts()
    (sheet,) = pairkit.export(dataset, tmp_path, format="csv")
    assert sheet.name == "train.csv"
    assert pairkit.read(sheet).splits["train"].rows() == [
        ("a", "d", 1, '{"kind": "x", "n": 1}'),
        ('b,\n"c"', "é", 0, None),
    ]


def test_apostrophes_that_export_adds_are_removed_by_reading(tmp_path):
    texts = ["=1", "'=1", "''-a", "'tis", "plain", "- b", "'"]
    rows = [{"text1": text, "text2": "@b", "label": 1, "=n": text} for text in texts]
    (sheet,) = pairkit.export(rows, tmp_path, format="csv")
    assert pairkit.read(sheet).splits["train"].to_dicts() == rows
    sheet.write_text("text1,text2\n'=1,'tis\n")  # a user's own
    assert pairkit.read(sheet, columns={"anchor": "text1", "positive": "text2"}).splits[
        "train"
    ].row(0)[:2] == ("'=1", "'tis")


@parametrize("mark", ["=", "+", "-", "@", "\t", "\r", "\n", "＝"])
def test_formulas_are_escaped(tmp_path, mark):
    text = mark + 'cmd|"/c calc"!A1'
    rows = [(text, "b", 1, -1, None), ("1=1", " -", 0, 2, text)]
    names = ["text1", "text2", "label", "n", f"{mark}more"]
    frame = pl.DataFrame(rows, names, orient="row")
    dataset = PairDataset({"train": frame}, "x")

    def sheet(folder, **how):
        (path,) = pairkit.export(dataset, tmp_path / folder, format="csv", **how)
        with path.open(encoding="utf-8", newline="") as file:
            return [*csv.reader(file)]

    assert sheet("a") == [
        [*names[:-1], f"'{mark}more", "apostrophes_added"],
        [f"'{text}", "b", "1", "-1", "", "1"],
        ["1=1", " -", "0", "2", f"'{text}", "1"],
    ]
    assert [row[0] for row in sheet("b", raw=True)] == ["text1", text, "1=1"]
    (lines,) = pairkit.export(dataset, tmp_path / "c")
    assert json.loads(lines.read_text().splitlines()[0])["text1"] == text


def test_export_of_durations(tmp_path):
    frame = pl.DataFrame(pair(["a"], ["b"], [1], age=[timedelta(seconds=3)]))
    (sheet,) = pairkit.export(frame, tmp_path, format="csv")
    assert sheet.read_text() == "text1,text2,label,age\na,b,1,PT3S\n"


@parametrize("value", [b"x", [b"x"], {"a": [b"x"]}])
@parametrize("file_format", ["jsonl", "csv"])
def test_columns_of_bytes_are_refused(tmp_path, value, file_format):
    frame = pl.DataFrame(pair(["a"], ["b"], [1], raw=[value]))
    with data_error(
        f"train.{file_format}: column raw has bytes, which {file_format} can't"
    ):
        pairkit.export(PairDataset({"train": frame}, "x"), tmp_path, format=file_format)
    assert list(tmp_path.iterdir()) == []


DROPPED = object()
WHOLE = {"kind": "said", "url": "u", "who": None, "when": "2020"}


@parametrize(
    "name, value, expected",
    [
        *values(
            r"""
                cluster | 7 | "7"
                cluster | None | None
                number1 | 7 | "7"
                number1 | 7.0 | "7"
                confidence | "0.5" | 0.5
                confidence | much | None
                evidence | WHOLE | WHOLE
                cluster | [1] | DROPPED
                repo | {'a': 1} | DROPPED
                repo | b'\xff' | DROPPED
                evidence | it was said | DROPPED
                evidence | {'kind': 'x', 'url': 'y'} | DROPPED
            """,
            DROPPED=DROPPED,
            WHOLE=WHOLE,
        ),
        ("evidence", WHOLE | {"who": 7, "more": 1}, WHOLE | {"who": "7"}),
        ("evidence", WHOLE | {"who": [1]}, DROPPED),
    ],
)
def test_provenance_columns_are_typed(name, value, expected):
    rows = pl.DataFrame({"text1": ["a"], "text2": ["b"], "label": [1], name: [value]})
    assert pairkit.show(rows).row.get(name, DROPPED) == expected
