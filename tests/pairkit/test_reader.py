import gzip
import json
from datetime import timedelta

import numpy as np
import polars as pl
import pytest

import pairkit
from pairkit.dataset.records import PairDataset, typed_rows
from tests.published import REAL, real_data, write_pairs
from tests.support.shorthand import config_error, data_error, pair, parametrize, values

PAIRS = [("one", "two", 1), ("three", "four", 0)]


def put(path, text):
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def rows(source, **arguments):
    dataset = pairkit.read(source, **arguments)
    return pl.concat(dataset.splits.values()).select("text1", "text2", "label").rows()


BY_NUMBER = {"text1": "1", "text2": "2", "label": "3"}
HEADERS = (
    "sentence1,sentence2,score",
    "question1,question2,is_duplicate",
    "Query,Text,Relevance",
)


@parametrize(
    "name, text, columns, expected",
    [
        *values(
            r"""
                pairs.CSV | 'text1,text2,label,label\none,two,1,x\n"thr""ee,\n",four,0,\n' | None | 'thr"ee,\n'
                p.csv | "Text1,text1,text2,label\nx,one,two,1\nx,three,four,0\n" | None | three
                p.tsv | "one\ttwo\t1\nthree\tfour\t0\n" | BY_NUMBER | three
                p.csv | '"one","two",1\n"a; b; c; d","four",0\n' | BY_NUMBER | a; b; c; d
                # names, not numbers
                p.csv | '"3","1","2"\n1,one,two\n0,three,four\n' | BY_NUMBER | three
            """,
            BY_NUMBER=BY_NUMBER,
        ),
        *(
            ("a.csv", f"{names}\none,two,1\nthree,four,0\n", None, "three")
            for names in HEADERS
        ),
        *(
            (name, "one,two,1\nthree,four,0\n", BY_NUMBER, "three")
            for name in ("p.csv", "p.csv.gz")
        ),
    ],
)
def test_files(tmp_path, name, text, columns, expected):
    path = put(tmp_path / "a[b]*?" / name, text)  # not a pattern
    assert rows(path, columns=columns) == [("one", "two", 1), (expected, "four", 0)]


def test_explicit_mapping(tmp_path):
    path = put(tmp_path / "a.csv", "text1,title,body,label,same\nx,one,two,y,1\n")
    dataset = pairkit.read(
        path, columns={"text1": "title", "text2": "body", "label": "same"}
    )
    assert dataset.splits["train"].to_dicts() == [
        pair("one", "two", source_text1="x", source_label="y")
    ]


def test_folder_of_splits(tmp_path, caplog):
    for name, text in (
        ("test", "e,f,1"),
        ("my-dev", "c,d,0.5"),
        ("train-1", "g,h,0"),
        ("train-0", "a,b,1"),
    ):
        put(tmp_path / f"{name}.csv", f"text1,text2,label\n{text}\n")
    for name in ("notes.txt", "more.csv", "._train.csv"):
        put(tmp_path / name, "\0")
    dataset = pairkit.read(tmp_path)
    assert list(dataset.splits) == ["train", "validation", "test"]
    assert f"{tmp_path}: not read: more.csv, not named after a split" in caplog.text
    assert dataset.splits["train"]["text1"].to_list() == ["a", "g"]
    assert {frame["label"].dtype for frame in dataset.splits.values()} == {pl.Float32}
    assert list(pairkit.read(tmp_path, split="dev").splits) == ["validation"]
    with data_error("no split 'x'; there are train, validation, test"):
        pairkit.read(tmp_path, split="x")


@parametrize(
    "text, usable, left_out",
    [
        *values(
            r"""
                "text1,text2,score\na,b,nan\nc,d,2.5\n" | ['c'] | [(2, 'empty_label')]
                "anchor,positive\na,b\n,c\nd,\n" | ['a'] | [(3, 'empty_anchor'), (4, 'empty_positive')]
            """,
        ),
        (
            "text1,text2,label\na,b,yes\n,b,no\nc,d,\ne,f,maybe\n,f,maybe\n,,\n\ng,h,no\n",
            ["a", "g"],
            [(3, "empty_text1"), (4, "empty_label")],
        ),
    ],
)
def test_bad_rows_are_skipped(tmp_path, text, usable, left_out):
    rules = {"labels": "maybe=skip", "bad_rows": "skip"}
    pairs = pairkit.read(put(tmp_path / "a.csv", text), **rules)
    assert pairs["train"]["text1"].unique(maintain_order=True).to_list() == usable
    assert pairs.bad_rows is not None
    assert pairs.bad_rows.select("row", "reason").rows() == left_out
    assert pairs.bad_rows.equals(pairkit.read(pairs, **rules).bad_rows)


PUBLISHED = values("""
    # file, kind, rows of our sample in its layout, rows of the real file
    stsb/stsb-dev.tsv | graded | 2 | 1500
    pairs/mrpc-test.tsv | binary | 3 | 1725
    pairs/qqp-dev.tsv.gz | binary | 3 | 10000
    pairs/qnli-dev.tsv.gz | binary | 3 | 5463
    sick/sick-test.tsv | graded | 2 | 4927
    nli/nli-triplets.derived.tsv.gz | binary | 6 | 45864
""")


LABELS = {"pairs/qnli-dev.tsv.gz": "0=0,1=1"}  # in GLUE, 0 is entailment


@pytest.mark.parametrize("name, kind, count, _", PUBLISHED)
def test_layouts(tmp_path, name, kind, count, _):
    dataset = pairkit.read(write_pairs(tmp_path) / name, labels=LABELS.get(name))
    assert (dataset.label_kind, len(dataset)) == (kind, count)
    (frame,) = dataset.splits.values()
    assert frame["text1"][0] == 'He said "no'


@real_data
@pytest.mark.parametrize("name, kind, _, count", PUBLISHED)
def test_published_datasets(name, kind, _, count):
    dataset = pairkit.read(REAL / name, labels=LABELS.get(name))
    assert (dataset.label_kind, len(dataset)) == (kind, count)


@parametrize("source", ["x" * 300, f"{'x' * 300}/y.csv", f"{'o' * 300}/name"])
def test_too_long_path(source):
    with config_error(r"not a valid path \(File name too long\)"):
        pairkit.read(source)


@parametrize("name", ["text2", "label"])
def test_columns_of_bytes(tmp_path, name):
    columns = pair(["a", "b"], [b"c", b"d"], [b"1", b"0"])
    pl.DataFrame(columns).write_parquet(tmp_path / "a.parquet")
    assert pairkit.read(tmp_path / "a.parquet").splits["train"]["text2"].to_list() == [
        "c",
        "d",
    ]
    pl.DataFrame(columns | {name: [b"1", b"\xff"]}).write_parquet(
        tmp_path / "a.parquet"
    )
    with data_error(rf"a\.parquet:2: {name} has bytes that aren't UTF-8"):
        pairkit.read(tmp_path / "a.parquet")


def test_row_numbers_without_header(tmp_path, caplog):
    for names, is_header in (("question,answer", True), ("a,question 2", False)):
        path = put(tmp_path / f"{names}.csv", f"{names}\none,two\n")
        assert len(pairkit.read(path, columns={"anchor": "1", "positive": "2"})) == 2
        assert (f"{names}.csv: row 1" in caplog.text) == is_header
    (tmp_path / "pairs.tsv").write_text("a\tb\t1\nc\t\t0\n")
    with data_error(r"pairs\.tsv:2: "):
        pairkit.read(tmp_path / "pairs.tsv", columns=BY_NUMBER)
    with data_error("no column '4' for label; there are 1, 2, 3"):
        pairkit.read(tmp_path / "pairs.tsv", columns={**BY_NUMBER, "label": "4"})
    with config_error("text1 and label are one column, 1"):
        pairkit.read(tmp_path / "pairs.tsv", columns={**BY_NUMBER, "label": "1"})
    with data_error("no such file"):
        pairkit.read(tmp_path / "none.tsv", columns=BY_NUMBER)


@parametrize(
    "other, text",
    [(["u"], '["u"]'), ([["u"]], '[["u"]]'), (timedelta(1), '"1 day, 0:00:00"')],
)
def test_columns_of_several_types_become_texts(tmp_path, other, text):
    for split, page in (("train-0", other), ("train-1", "u"), ("test", other)):
        row = pair(["a"], ["b"], [1], page=[page])
        pl.DataFrame(row).write_parquet(tmp_path / f"{split}.parquet")
    assert pairkit.read(tmp_path)["train"]["page"].to_list() == [text, "u"]
    assert pairkit.read(tmp_path).rows["page"].to_list() == [text, "u", text]


@parametrize(
    "first, later",
    [
        ([1], {"a": 1}),
        ("x", ["y"]),
        ({"k": 1}, {"k": [1]}),
        (10**30, 1),
        (None, []),
        (1 << 130, 1),
    ],
)
@parametrize("rows", [1, 9000])  # also of the next block
def test_other_columns_may_have_any_values(tmp_path, first, later, rows):
    values = [first] * rows + [later]
    lines = [
        json.dumps(pair(f"a{n}", "b", n % 2, more=each))
        for n, each in enumerate(values)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    pairkit.write(tmp_path / "a.jsonl", tmp_path / "out")
    found = pairkit.read(tmp_path / "out").rows
    assert found.height == rows + 1
    if isinstance(first, str | int):
        last = '["y"]' if first == "x" else "1"
        assert found["more"].to_list() == [str(first)] * rows + [last]
    for file_format in ("jsonl", "csv"):
        pairkit.export(found, tmp_path / "files", format=file_format)
    objects = [pair("a", "b", more=tmp_path)]
    pairkit.write(objects, tmp_path / "objects")
    assert pairkit.read(tmp_path / "objects").rows["more"].to_list() == [str(tmp_path)]


TABLE = [
    {"sentence1": "a plane", "sentence2": "an aeroplane", "score": 4.5},
    {"sentence1": "a plane", "sentence2": "a dog", "score": 0.0},
]


def _pandas():
    return pytest.importorskip("pandas").DataFrame(TABLE, index=[7, 8])


def _hub():
    return pytest.importorskip("datasets").Dataset.from_list(TABLE)


@parametrize(
    "make",
    [
        lambda: TABLE,
        lambda: pl.DataFrame(TABLE),
        lambda: pl.LazyFrame(TABLE),
        _pandas,
        _hub,
        lambda: {name: [row[name] for row in TABLE] for name in TABLE[0]},
        lambda: {**_pandas().to_dict("series"), "score": np.array([4.5, 0.0])},
    ],
    ids=["dicts", "polars", "lazy", "pandas", "datasets", "columns", "arrays"],
)
def test_tables_are_read_like_files(make, tmp_path):
    pl.DataFrame(TABLE).write_parquet(tmp_path / "rows.parquet")
    expected = pairkit.read(tmp_path / "rows.parquet")
    found = pairkit.read(make())
    assert found.label_kind == expected.label_kind == "graded"
    assert found.splits["train"].equals(expected.splits["train"])


def test_tables_by_split(caplog):
    splits = {"test": TABLE, "dev": pl.DataFrame(TABLE), "train": TABLE[:1]}
    assert [*pairkit.read(splits).splits] == ["train", "validation", "test"]
    assert pairkit.read(splits).splits["train"].height == 1
    assert pairkit.read(splits, split="dev")["validation"].height == 2
    assert len(pairkit.read(pairkit.read(splits).rows)) == 5
    assert "the column split is not used" in caplog.text
    datasets = pytest.importorskip("datasets")
    by_split = datasets.DatasetDict(validation=_hub(), train=_hub())
    assert [*pairkit.read(by_split).splits] == ["train", "validation"]


def test_earlier_splits_and_empty_datasets():
    earlier = pl.DataFrame(pair("a", "b") | {"split": "x", "source_split": "y"})
    frame = PairDataset({"train": earlier}, "made up").rows
    assert frame.select("split", "source_split", "source_source_split").rows() == [
        ("train", "y", "x")
    ]
    assert PairDataset({}, "made up").rows.is_empty()
    assert "made up" in PairDataset({}, "made up")._repr_html_()


def test_a_confidence_that_is_not_a_number_is_reported(caplog):
    confidences = pl.Series("confidence", ["0.5", "rather high", None, " "])
    assert typed_rows(confidences.to_frame())["confidence"].to_list() == [
        0.5,
        None,
        None,
        None,
    ]
    assert "confidence: values that are not numbers are left out: rather high" in (
        caplog.text
    )


@parametrize(
    "source, message",
    [
        *values(
            """
                7 | found int
                [] | ^the list given: is empty; expected a dict for each row
                {'train': []} | ^the dict given, train: is empty; expected
                ['one', {'text': 'two'}] | row 2 is dict; expected a dict for each row
                [{'text': 'one'}, None] | row 2 is NoneType
                [('one', 'two', 1)] | "row 1 is tuple; .* or a text for each row$"
                ['one', 'two'] | the list given: has single texts, expected pairs; `aoe sample-pairs` draws
                {} | the dict given: is empty
            """,
        ),
        ([pair("", "b")], "the list given:1"),
        (pl.DataFrame({"a": [1]}), "the DataFrame given: found the columns a"),
        ({"train": TABLE, "test": b"x"}, "the dict given, test"),
        ({"text1": ["a"], "text2": np.array("b")}, "the dict given, text2: expected"),
        ({1: TABLE}, "the split 1 can't be in a path"),
        ({"../a": TABLE}, "the split '../a' can't be in a path"),
        (pl.scan_csv("missing.csv"), r"isn't a table \(.*missing\.csv"),
    ],
)
def test_invalid_tables(source, message):
    with data_error(message):
        pairkit.read(source)


def test_streamed_dataset():
    with data_error("is streamed"):
        pairkit.read(_hub().to_iterable_dataset())
