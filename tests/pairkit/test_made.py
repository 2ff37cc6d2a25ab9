import json

import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import pairkit
from pairkit import DataError, PairDataset
from pairkit.dataset.making.dataset_folder import dataset_card
from tests.support.shorthand import (
    config_error,
    data_error,
    pair,
    pair_table,
    parametrize,
    raises,
    table,
    values,
)

TSV = (
    "text1\ttext2\tlabel\na b\tc d\t1\na b\te f\t0\ng h\ti j\t1\ng h\tk l\t0\nm\tn\t1\n"
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.tsv").write_text(TSV)
    return tmp_path


def fingerprint(folder):
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@parametrize(
    "rows, category",
    [
        (0, "n<1K"),
        (999, "n<1K"),
        (1_000, "1K<n<10K"),
        (9_999_999, "1M<n<10M"),
        (10_000_000, "10M<n<100M"),
        (100_000_000, "100M<n<1B"),
        (10**12, "n>1T"),
    ],
)
def test_the_size_category_of_a_card(rows, category):
    card = dataset_card("a", configs={"default": {}}, rows=rows, sections=[])
    assert f"size_categories:\n- {category}\n" in card


@parametrize("title", ["1.5", "no", "a: b", "- x #1", '"quoted" \\ é', "x]"])
def test_a_title_is_text_in_the_head_of_a_card(title):
    card = dataset_card(title, configs={"default": {}}, rows=1, sections=[])
    head = yaml.safe_load(card.split("---\n")[1])
    assert head["pretty_name"] == title


def test_merged_folder(home):
    made = pairkit.merge({"a|b": "train.tsv"}, "out")
    assert {*fingerprint(home / "out")} == {
        "README.md",
        "run.json",
        "statistics.json",
        "data/train-00000-of-00001.parquet",
    }
    shard = home / "out/data/train-00000-of-00001.parquet"
    assert pl.read_parquet(shard).columns == ["text1", "text2", "label", "source"]
    run = json.loads((home / "out/run.json").read_text())
    assert run["command"] == "merge"
    assert [(each["name"], each["rows"]) for each in run["inputs"]] == [("a|b", 5)]
    assert json.loads((home / "out/statistics.json").read_text()) == made.statistics
    datasets = pytest.importorskip("datasets")
    assert (
        datasets.load_dataset("out", cache_dir=str(home / "cache"))["train"].num_rows
        == 5
    )
    card = (home / "out/README.md").read_text()
    assert "| a\\|b | 5 |" in card


def test_sources_are_not_replaced(home):
    for out in (".", "train.tsv"):
        with config_error("would replace"):
            pairkit.merge(["train.tsv"], out, fresh=True)
    pairkit.merge(["train.tsv"], "made")
    with config_error("would replace its source made"):
        pairkit.split("made", "made", fresh=True)


@parametrize(
    "out, message",
    [
        *(
            (out, "a dataset needs a folder of its own; give it a name")
            for out in (".", "..", "/")
        ),
        ("train.tsv", "train.tsv: is a file; choose another folder"),
        ("mine", "mine: has files, but not a dataset of `pairs`"),
        ("made", "made: has data/notes.txt, which isn't part of a dataset of `pairs`"),
    ],
)
def test_unusable_output_folders(home, out, message):
    pairkit.write("train.tsv", "made")
    (home / "made/data/notes.txt").touch()
    (home / "mine").mkdir()
    for run in ("[" * 100_000, "{", "[]", "1" * 5_000, "\udcff", "", "{}"):
        (home / "mine/run.json").write_bytes(run.encode(errors="surrogateescape"))
        with config_error(message):
            pairkit.write([pair("a", "b")], out, fresh=True)


def test_no_pairs_left(home):
    (home / "other.tsv").write_text("text1\ttext2\tlabel\na\tb\t1\nb\ta\t0\n")
    with data_error("no pair is left of 2"):
        pairkit.merge(["other.tsv"], "out", conflicts="drop")
    assert not (home / "out").exists()


LONG = "the parser stops at the first comma of a list and says nothing about it in any log that we keep here"


def pairs(name="x", **splits):
    names = ["text1", "text2", "label", "cluster", "url1", "url2"]
    schema = dict.fromkeys(names, pl.String) | {"label": pl.Int64}
    frames = {}
    for split, rows in splits.items():
        padded = [(*row, None, None, None)[:6] for row in rows]
        frames[split] = pl.DataFrame(padded, schema, orient="row")
    return PairDataset(frames, name)


def texts(made):
    return {
        split: rows.select("source", "text1", "text2", "label").rows()
        for split, rows in made.pairs.splits.items()
    }


def test_merged_pairs_occur_once_with_source(tmp_path):
    one = pairs(train=[("a", "b", 1), ("b", "a", 1), ("c", "d", 0)])
    other = pairs(train=[("d", "c", 0), ("e", "f", 1)])
    made = pairkit.merge(
        {"one": one, "other": other}, dropped=tmp_path / "dropped.parquet"
    )
    assert pl.read_parquet(tmp_path / "dropped.parquet").equals(made.dropped)
    (tmp_path / "mine.csv").write_text("a,b")
    for file, words in (
        (tmp_path / "mine.csv", "already exists with other"),
        (tmp_path, "expected a name"),
        (tmp_path / "out/d.csv", r"dropped = .*d\.csv: is in the dataset's folder"),
    ):
        with config_error(words):
            pairkit.merge([one], tmp_path / "out", dropped=file, fresh=False)
    assert texts(made) == {
        "train": values("""
            one | a | b | 1
            one | c | d | 0
            other | e | f | 1
        """)
    }
    assert made.statistics["dropped_pairs"] == {"repeated": 2}
    assert made.statistics["sources"] == {"one": 2, "other": 1}
    assert made.dropped.select("source", "source_row", "left_out").rows() == [
        ("one", 2, "repeated"),
        ("other", 1, "repeated"),
    ]


def test_conflicts():
    one, other = (
        pairs(train=[("k", "l", 1), ("a", "b", 1)]),
        pairs(test=[("b", "a", 0), ("m", "n", 0)]),
    )
    with raises(DataError) as caught:
        pairkit.merge({"one": one, "other": other})
    assert str(caught.value) == (
        "pairs with different labels (1), such as 'a' (one:2: label 1; other:1: label 0); leave them out with"
        " conflicts='drop', take the first label with conflicts='first', or keep them with conflicts='keep'"
    )
    dropped = pairkit.merge({"one": one, "other": other}, conflicts="drop")
    assert texts(dropped) == {
        "train": [("one", "k", "l", 1)],
        "test": [("other", "m", "n", 0)],
    }
    assert dropped.statistics["dropped_pairs"] == {"conflicting_labels": 2}
    first = pairkit.merge({"one": one, "other": other}, conflicts="first")
    assert texts(first)["train"] == [("one", "k", "l", 1), ("one", "a", "b", 1)]
    with config_error("conflicts = 'all': expected 'drop', 'first', 'error' or 'keep'"):
        pairkit.merge([one], conflicts="all")


@parametrize(
    "train, test, reason",
    [
        *values(
            """
                ('a', 'b', 1) | ('a', 'c', 0) | shared_with_test
                ('a', 'b', 1, None, 'u1', 'u2') | ('c', 'd', 0, None, 'u3', 'u1') | shared_with_test
                ('a', 'b', 1, 'k#1') | ('c', 'd', 1, 'k#1') | shared_with_test
                ('a', 'b', 1, 'k#1') | ('c', 'd', 1, 'k#2') | None
                ('a', 'b', 1, ' ') | ('c', 'd', 1, ' ') | None
            """,
        ),
        ((LONG, "b", 1), ("x", LONG + " today", 0), "shared_with_test"),
    ],
)
def test_shared_texts_stay_in_the_split_of_lowest_rank(train, test, reason):
    made = pairkit.merge([pairs(train=[train, ("y", "z", 1)]), pairs(test=[test])])
    assert made.statistics["dropped_pairs"] == ({reason: 1} if reason else {})
    assert made.pairs["test"].height == 1
    assert pairkit.audit(made.pairs).leaks == []


def test_a_pair_of_two_splits_stays_in_the_one_of_lowest_rank():
    repeated = ("a", "b", 1)
    other = [("c", "d", 0)]
    made = pairkit.merge(
        [pairs(validation=[repeated], train=other), pairs(test=[repeated])]
    )
    assert sizes(made) == {"train": 1, "test": 1}
    assert made.statistics["dropped_pairs"] == {"repeated": 1}


def test_dropped_rows_connect_no_texts():
    """A dropped validation row doesn't keep its other text out of train."""
    validation = [("a", "b", 1), ("v", "w", 1)]
    made = pairkit.merge(
        [pairs(train=[("b", "c", 1)], validation=validation, test=[("a", "t", 0)])]
    )
    assert sizes(made) == {"train": 1, "validation": 1, "test": 1}


def test_columns_of_different_types_are_kept():
    one = pl.DataFrame(pair(["a"], ["b"], [1], who=["x"], n=[1]))
    other = pl.DataFrame(pair(["c"], ["d"], [0], who=[["y", "z"]], n=[0.5]))
    made = pairkit.merge({"one": one, "other": other})
    assert made.pairs["train"].select("source", "text1", "who", "n").rows() == [
        ("one", "a", "x", 1.0),
        ("other", "c", '["y", "z"]', 0.5),
    ]


def test_sources_of_earlier_merges():
    first = pairkit.merge({"one": pairs(train=[("a", "b", 1)])}).pairs
    assert pairkit.merge({"again": first}).pairs["train"]["source"].to_list() == [
        "again/one"
    ]
    numbered = pl.DataFrame(pair(["a"], ["b"], [1], source=[7]))
    assert pairkit.merge({"x": numbered}).pairs["train"]["source"].to_list() == ["x/7"]


ROWS = st.lists(
    st.tuples(
        st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh"), st.integers(0, 1)
    ),
    min_size=1,
    max_size=9,
)
SETS = st.lists(
    st.dictionaries(
        st.sampled_from(["train", "validation", "test", "more"]), ROWS, min_size=1
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=25)
@given(SETS, st.sampled_from(["drop", "first"]))
def test_any_merge_has_no_leaks_and_all_rows(sets, conflicts):
    given_ = [pairs(**splits) for splits in sets]
    try:
        made = pairkit.merge(given_, conflicts=conflicts)
    except DataError as error:
        assert "no pair is left" in str(error)  # noqa: PT017
        return
    check_complete(made, sum(map(len, given_)))


def check_complete(made, rows):
    report = pairkit.audit(made.pairs)
    assert report.leaks == []
    assert (report.repeated_pairs.count, report.contradictory_pairs.count) == (0, 0)
    assert len(made.pairs) + made.dropped.height == rows
    assert made.dropped["left_out"].null_count() == 0


MANY = pl.DataFrame(
    pair(
        [f"text {n // 2}" for n in range(400)],
        [f"other {n}" for n in range(400)],
        [n % 2 for n in range(400)],
    )
)


def sizes(made):
    return {split: rows.height for split, rows in made.pairs.splits.items()}


def test_split_sizes_and_seed():
    made = pairkit.split(MANY)
    assert sizes(made) == {"train": 320, "validation": 40, "test": 40}
    assert pairkit.audit(made.pairs).leaks == []
    assert made.statistics["dropped_pairs"] == {}
    test = {*made.pairs["test"]["text2"]}
    assert {
        *pairkit.split(MANY.sample(fraction=1, shuffle=True, seed=3)).pairs["test"][
            "text2"
        ]
    } == test
    assert {*pairkit.split(MANY, seed=2).pairs["test"]["text2"]} != test


def test_a_split_may_have_fewer_rows_than_requested():
    in_sixes = MANY.head(100).with_columns(
        text1=pl.int_range(100).floordiv(6).cast(pl.String)
    )
    made = pairkit.split(in_sixes)
    assert sizes(made) == {"train": 84, "validation": 6, "test": 10}


def test_connected_pairs():
    text2 = pl.when(pl.col("label") == 0).then(pl.lit("the same")).otherwise("text2")
    ring = MANY.with_columns(text2=text2)
    with data_error(
        r"400 of 400 rows are connected.*validation would get 0 rows of 40"
    ):
        pairkit.split(ring)
    made = pairkit.split(ring, cut_negatives=True)
    assert pairkit.audit(made.pairs).leaks == []
    assert {*made.statistics["dropped_pairs"]} == {"crosses_splits"}
    positive = {name: rows["label"].sum() for name, rows in made.pairs.splits.items()}
    assert positive == {"train": 160, "validation": 20, "test": 20}  # none of them goes


@parametrize(
    "shares", [(), (0, 0, 0), (-1, 1, 1), (float("nan"), 1, 1), (float("inf"), 1, 1)]
)
def test_invalid_sizes(shares):
    with config_error("expected sizes of train, validation and test, such as"):
        pairkit.split(MANY, split_sizes=shares)
    with config_error(
        "8,0.5,0.5: fractions must add up to 1, not 9; other proportions"
    ):
        pairkit.split(MANY, split_sizes=(8, 0.5, 0.5))


def test_other_splits_are_read_as_they_were_written(tmp_path):
    splits = {
        name: [pair(name, "b")] for name in ("train", "test_easy", "test_hard", "x y")
    }
    pairkit.write(splits, tmp_path / "out")
    found = pairkit.read(tmp_path / "out").splits
    assert {name: rows["text1"].to_list() for name, rows in found.items()} == {
        name: [name] for name in splits
    }


def test_names_of_other_columns_are_free():
    rows = [pair("a", "b", 1, conflicting_rows=7, left_out="x")]
    made = pairkit.split(rows, split_sizes=(1, 0, 0)).pairs["train"]
    assert made.select("conflicting_rows", "left_out").rows() == [(7, "x")]


NUMBERED = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 1)),
    min_size=1,
    max_size=60,
)


@settings(max_examples=25)
@given(NUMBERED, st.booleans(), st.integers(0, 3))
def test_any_split_has_no_leaks_and_all_rows(rows, cut_negatives, seed):
    frame = pair_table([(f"one {a}", f"two {b}", label) for a, b, label in rows])
    try:
        made = pairkit.split(frame, cut_negatives=cut_negatives, seed=seed)
    except DataError as error:
        assert "are connected" in str(error) or "no pair is left" in str(error)  # noqa: PT017
        return
    check_complete(made, len(rows))
    assert cut_negatives or "crosses_splits" not in made.statistics["dropped_pairs"]


AGAIN = values("""
    Is it late? | What's the time | 1
    whats the time? | is it LATE | 0
    What’s the time! | Is it late | 1
    C | A language | 1
    C++ | a language. | 0
    Ｈｅｌｌｏ，你好 世界 | no | 1
    no | hello 你好世界！ | 1
""")


@table("""
    conflicts, kept, dropped, counts
    drop | [3, 4, 5] | [1, 2, 3, 7] | {'conflicting_labels': 3, 'repeated': 1}
    first | [0, 3, 4, 5] | [2, 3, 7] | {'repeated': 2, 'conflicting_labels': 1}
    keep | [0, 1, 3, 4, 5] | [3, 7] | {'repeated': 2}
""")
def test_repeats_and_conflicts_of_a_split(tmp_path, conflicts, kept, dropped, counts):
    frame = pair_table(AGAIN)
    file = tmp_path / "left-out.jsonl"
    made = pairkit.split(
        frame,
        tmp_path / "out",
        conflicts=conflicts,
        split_sizes=(1, 0, 0),
        dropped=file,
    )
    assert made.pairs["train"].rows() == [AGAIN[place] for place in kept]
    assert made.statistics["dropped_pairs"] == counts
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted(row["source_row"] for row in rows) == dropped
    assert made.statistics.get("conflicting_rows") == (
        2 if conflicts == "keep" else None
    )
    assert (
        json.loads((tmp_path / "out/run.json").read_text())["settings"]["conflicts"]
        == conflicts
    )


def test_conflicts_of_scores():
    """Scores that differ by less than a fifth of their scale are repeats."""
    rows = values("""
        a | b | 4.5
        b | a | 4.0
        c | d | 4.5
        d | c | 3.0
    """)
    scores = pair_table(rows)
    made = pairkit.split(scores, split_sizes=(1, 0, 0))
    assert made.pairs["train"].rows() == [("a", "b", 4.5)]
    assert made.statistics["dropped_pairs"] == {"conflicting_labels": 2, "repeated": 1}
