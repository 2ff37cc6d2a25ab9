import json

import polars as pl

import pairkit
from pairkit import LeakError, PairDataset, audit
from pairkit.dataset.reading.tables import read_table
from tests.contract.conftest import run_pairs
from tests.support.shorthand import (
    config_error,
    data_error,
    pair,
    pair_table,
    parametrize,
    raises,
    values,
)

LONG = "the parser stops at the first comma of a list and says nothing about it in any log that we keep here"
NAMES = ("text1", "text2", "label", "url1", "url2", "cluster")
SCHEMA = {**dict.fromkeys(NAMES, pl.String), "label": pl.Int64}


def dataset(**splits):
    frames = {name: pair_table(rows) for name, rows in splits.items()}
    return PairDataset(frames, "made up")


def issues(*rows):
    return pl.DataFrame(rows, SCHEMA, orient="row")


@parametrize(
    "train, text, leak",
    [
        ([("a b c", "d e f", 1), ("a b c", "g h i", 0)], "j k l", ""),
        ([("a b c", "d e f", 1)], "a b c", "1 shared texts"),
        ([(LONG, "d e f", 1)], f"{LONG} today", "1 near-identical texts"),
        ([(LONG, "d e f", 1), (f"{LONG} today", "x y z", 0)], "j k l", ""),
    ],
)
def test_texts_in_two_splits(train, text, leak):
    report = audit(dataset(train=train, test=[(text, "m n o", 0)]))
    leaks = json.loads(json.dumps(report.to_dict()))["leaks"]
    assert report.leaks == leaks == [leak] * bool(leak)
    assert report.splits["train"].pairs == len(train)
    assert report.splits["train"].positive_share == 1 / len(train)
    last = f"LEAKS: {leak}" if leak else "no leaks"
    assert repr(report).splitlines()[-1] == last
    if leak:
        with raises(LeakError, match=f"made up: leaks between splits: {leak}"):
            report.check()
    if leak == "1 shared texts":
        assert report.shared_issues.examples == ("a b c  in train, test",)


def test_issues_by_url_and_clusters():
    train = issues(("p q r", "p q", 1, "https://e.x/1", "https://e.x/2", "o/n#1"))
    test = issues(("s t u", "s t", 1, "https://e.x/2", "https://e.x/3", "o/n#1"))
    report = audit(PairDataset({"train": train, "test": test}, "x"))
    assert report.issues_by == "page"
    assert report.shared_issues.examples == ("https://e.x/2  in train, test",)
    assert report.shared_clusters.count == 1
    assert report.leaks == ["1 shared issues", "1 shared clusters"]


@parametrize(
    "url, leaks", [("3", ["1 near-identical texts"]), ("1", ["1 shared issues"])]
)
def test_equal_texts_of_issues_in_two_splits(url, leaks):
    frame = issues(("a b c", "d e f", 1, "1", "2", None))
    other = issues(("a b c", "g h i", 0, url, "4", None))
    report = audit(PairDataset({"train": frame, "validation": other}, "x"))
    assert report.leaks == leaks
    if url == "3":
        assert report.near_identical.examples == ("a b c  in train, validation",)


def test_repeated_and_contradictory_pairs():
    rows = values("""
        a b | c d | 1
        e f | g h | 1
        m | n | 1
        c d | a b | 1
        g h | e f | 0
    """)
    rows.append(("n", "m", 0))
    report = audit(dataset(train=[*rows, ("i", "i", 0), ("", "k", 0)]))
    assert report.repeated_pairs.count == 1
    assert report.contradictory_pairs.examples == ("e f | g h", "m | n")
    assert report.splits["train"].same_text == 1
    assert report.to_dict()["bad_rows"] == {
        "empty_text1": {"count": 1, "examples": ("made up:8",)}
    }
    assert report.leaks == []


@parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_repeats_and_contradictions_in_a_file(tmp_path, ending):
    path, out = tmp_path / "pairs.csv", tmp_path / f"again.{ending}"
    path.write_text(
        'text1,text2,label\nA b!,"say ""c""",1\nx,y,0\n\nsay c,a B,0\ne,f,1\nF,e.,1\n'
    )
    assert run_pairs("audit", path, "--out", out).code == 0
    found = read_table(out).select("kind", "group", "row", "text1", "label", "file")
    assert found.select(pl.all().cast(pl.String)).rows() == [
        ("contradiction", "1", "2", "A b!", "1", str(path)),
        ("contradiction", "1", "5", "say c", "0", str(path)),
        ("repeat", "2", "6", "e", "1", str(path)),
        ("repeat", "2", "7", "F", "1", str(path)),
    ]
    with config_error(
        r"out = \S*/again\.xlsx: expected a name that ends in \.csv, \.tsv"
    ):
        audit(path, tmp_path / "again.xlsx")


def test_rows_without_url_are_identified_by_text():
    about = (("a", "c", 1, None), ("b", "d", 1, " "), ("b", "d", 0, ""))
    frame = issues(*((*row, "u", None) for row in about))
    report = audit(
        PairDataset(
            {"train": frame, "test": frame.head(1).with_columns(url2=pl.lit("v"))}, "x"
        )
    )
    assert (report.repeated_pairs.count, report.contradictory_pairs.count) == (0, 1)
    assert report.shared_issues.examples == ("a  in train, test",)


def test_empty_split():
    report = audit(dataset(train=[("a b c", "d e f", 1)], test=[]))
    assert report.splits["test"].pairs == 0
    assert report.leaks == []
    with data_error("has no rows"):
        audit(dataset(train=[], test=[]))


def test_bad_rows(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("text1,text2,label\na,b,yes\n,d,no\ne,f,\ng,,no\ni,j,\n")
    report = audit(path)
    assert report.to_dict()["bad_rows"]["empty_label"] == {
        "count": 2,
        "examples": (f"{path}:4",),
    }
    assert "rows left out: empty label" in repr(report)
    with data_error(r"empty label in 2 \(first: .*csv:4\), empty text1 in 1 .*:3\)"):
        report.check()
    assert report.next_steps()[0][1] == [
        "pairs",
        "report",
        str(path),
        "--bad-rows",
        "skip",
    ]
    assert [
        run_pairs("audit", path, *more).code for more in ((), ("--bad-rows", "skip"))
    ] == [
        3,
        0,
    ]
    skipped = audit(path, bad_rows="skip")
    skipped.check()
    assert (skipped.bad_rows, skipped.splits["train"].pairs) == (report.bad_rows, 1)


def test_bad_rows_file(tmp_path, caplog):
    path, out = tmp_path / "pairs.csv", tmp_path / "out"
    path.write_text("text1,text2,label\na,b,yes\n,d,no\ne,f,\ng,h,no\n")
    with data_error(r"pairs\.csv:4: label None is missing; .*bad_rows='skip'"):
        pairkit.write(path, out)
    made = pairkit.write(path, out, bad_rows="skip")
    assert made.statistics["dropped_pairs"] == {"empty_text1": 1, "empty_label": 1}
    output = [record.getMessage() for record in caplog.records]
    assert (
        output[0]
        == f"rows left out: empty text1 in 1 ({path}:3); empty label in 1 ({path}:4)"
    )
    kept = tmp_path / "out.bad-rows.jsonl"
    assert output[1] == f"rows left out are in {kept}"
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    found = [(row["row"], row["reason"], row["text2"]) for row in rows]
    assert found == [(3, "empty_text1", "d"), (4, "empty_label", "f")]
    with config_error("bad_rows = 'drop'"):
        pairkit.read(path, bad_rows="drop")


def test_scores():
    graded = audit([pair("a", "b", 1.0), pair("c", "d", 0.5)])
    share = graded.splits["train"].positive_share
    assert (graded.label_kind, share) == ("graded", 0.75)
    assert ("mean label" in repr(graded), "label 1" in repr(graded)) == (True, False)
