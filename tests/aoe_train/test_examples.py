from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aoe_train import records as _records
from aoe_train.data.examples import check_labels, negative_counts, negatives_in_words, read_examples
from aoe_train.records import ABSENT, Examples
from pairkit.app.errors import ConfigError, DataError
from pairkit.dataset.records import shard
from tests.published import REAL, real_data, write_pairs


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def columns_of(examples: Examples) -> list[list[str]]:
    """The texts of each row; a negative that it lacks is left out."""
    return [[examples.texts[number] for number in row if number != ABSENT] for row in examples.rows]


def test_binary_pairs(tmp_path: Path) -> None:
    examples = read_examples(put(tmp_path / "a.csv", "text1,text2,label\nb,a,1\na,c,0\nb,b,0\n"))
    assert (examples.kind, len(examples)) == ("binary", 3)
    assert examples.texts == ["b", "a", "c"]
    assert examples.rows.tolist() == [[0, 1], [1, 2], [0, 0]]
    assert examples.rows.dtype == np.int64
    assert examples.labels is not None
    assert (examples.labels.tolist(), examples.labels.dtype) == ([1, 0, 0], np.float32)


def test_graded_pairs(tmp_path: Path) -> None:
    examples = read_examples(put(tmp_path / "a.tsv", "score\tsentence1\tsentence2\n4.5\ta\tb\n1\tb\tc\n"))
    assert examples.kind == "graded"
    assert examples.labels is not None
    assert examples.labels.tolist() == [4.5, 1]


def test_positives_triplets_and_single_texts(tmp_path: Path) -> None:
    positives = read_examples(put(tmp_path / "a.csv", "id,anchor,positive\n1,a,b\n2,b,c\n"))
    assert (positives.kind, positives.labels, columns_of(positives)) == (
        "positive",
        None,
        [["a", "b"], ["b", "c"]],
    )
    triplets = read_examples(put(tmp_path / "b.csv", "negative,anchor,positive\nc,a,b\n"))
    assert (triplets.kind, triplets.labels, columns_of(triplets)) == ("triplet", None, [["a", "b", "c"]])
    singles = read_examples(put(tmp_path / "c.csv", "sentence\na\nb\na\n"))
    assert (singles.kind, singles.labels, singles.rows.tolist()) == ("single", None, [[0], [1], [0]])
    mapped = read_examples(put(tmp_path / "d.csv", "id,title\n1,a\n"), columns={"text": "title"})
    assert (mapped.kind, mapped.texts) == ("single", ["a"])


def test_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress("one\u2028still, one\r\n two \n".encode()))
    examples = read_examples(path)
    assert (examples.kind, examples.texts) == ("single", ["one\u2028still, one", " two "])


def test_texts_are_told_apart_exactly(tmp_path: Path) -> None:
    examples = read_examples(put(tmp_path / "a.tsv", "text1\ttext2\tlabel\nA\ta\t1\nA \tá\t0\n"))
    assert examples.texts == ["A", "a", "A ", "á"]


letters = st.sampled_from("abcde")


@given(st.lists(st.tuples(letters, letters, st.lists(letters, min_size=1, max_size=4)), min_size=1))
def test_rows_still_say_what_the_file_says(rows: list[tuple[str, str, list[str]]]) -> None:
    from aoe_train.data.examples import distinct

    frame = pl.DataFrame(rows, schema=["anchor", "positive", "negatives"], orient="row")
    examples = distinct(frame)
    expected = [[anchor, positive, *negatives] for anchor, positive, negatives in rows]
    assert columns_of(examples) == expected
    assert examples.texts == list(dict.fromkeys(text for row in expected for text in row))
    assert examples.rows.shape[1] == max(map(len, expected))
    assert sum(negative_counts(examples).values()) == len(rows)


def test_one_row_of_very_many_negatives_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_records, "_MOST_CELLS", 1000)
    rows = [{"anchor": f"a{n}", "positive": f"p{n}", "negatives": [f"n{n}"]} for n in range(100)]
    many = {"anchor": "a", "positive": "p", "negatives": [f"m{n}" for n in range(30)]}
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, [*rows[:7], many, *rows[7:]])))
    with pytest.raises(DataError, match=r"rows.jsonl:8: has 30 negatives, where rows have 1.3 on average; "):
        read_examples(str(path))
    assert len(read_examples(str(path), limit=7)) == 7
    path.write_text("\n".join(map(json.dumps, [many] * 100)))
    assert read_examples(str(path)).rows.shape == (100, 32)


def test_rows_with_any_number_of_negatives(tmp_path: Path) -> None:
    text = "anchor,positive,negative_1,negative_2\na,b,c,d\ne,f,,g\nh,i,j,\n"
    examples = read_examples(put(tmp_path / "a.csv", text))
    assert examples.kind == "triplet"
    assert columns_of(examples) == [["a", "b", "c", "d"], ["e", "f", "g"], ["h", "i", "j"]]
    assert examples.rows[:, 3].tolist() == [3, ABSENT, ABSENT]
    assert negative_counts(examples) == {"1": 2, "2": 1}
    assert negatives_in_words({"1": 2, "2": 1}) == "1 to 2 a row; 2 of 3 rows have fewer than 2"
    assert negatives_in_words({"3": 1_000}) == "3 a row"
    assert examples.token_counts(np.arange(1, 11), slice(None)).tolist() == [
        [1, 2, 3, 4],
        [5, 6, 7, 0],
        [8, 9, 10, 0],
    ]
    assert negative_counts(read_examples(put(tmp_path / "b.csv", "anchor,positive\na,b\n"))) == {}


def dataset(folder: Path) -> Path:
    rows = pl.DataFrame({"text1": ["a", "b"], "text2": ["c", "d"], "label": [1, 0]})
    positive = pl.DataFrame({"anchor": ["a"], "positive": ["c"]})
    for split, first in (("train", 0), ("validation", 1)):
        for config, frame in (("default", rows[first:]), ("positive", positive)):
            path = folder / shard(config, split)
            path.parent.mkdir(parents=True, exist_ok=True)
            frame.write_parquet(path)
    return folder


def test_a_dataset_folder_its_splits_and_its_positives(tmp_path: Path) -> None:
    folder = dataset(tmp_path)
    assert columns_of(read_examples(folder)) == [["a", "c"], ["b", "d"]]
    assert columns_of(read_examples(folder, split="dev")) == [["b", "d"]]
    assert read_examples(folder / "positive").kind == "positive"
    with pytest.raises(DataError, match="no split 'test'; there are train, validation"):
        read_examples(folder, split="test")


def test_training_never_touches_other_splits(tmp_path: Path) -> None:
    put(tmp_path / "train.csv", "text1,text2,label\na,b,1\n")
    put(tmp_path / "test.csv", "text1,text2,label\na,b,oops\n")
    assert len(read_examples(tmp_path)) == 1


def test_without_a_training_split_one_must_be_named(tmp_path: Path) -> None:
    for name in ("dev", "test"):
        put(tmp_path / f"{name}.csv", "text1,text2,label\na,b,1\n")
    with pytest.raises(ConfigError, match="has the splits validation, test; say which"):
        read_examples(tmp_path)
    assert len(read_examples(tmp_path / "dev.csv")) == 1


def test_a_limit_takes_the_first_rows_and_keeps_the_kind(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "text1,text2,label\na,b,1\nc,d,0\ne,f,0.5\n")
    examples = read_examples(path, limit=2)
    assert (examples.kind, examples.texts) == ("graded", ["a", "b", "c", "d"])
    with pytest.raises(ConfigError, match="limit 0"):
        read_examples(path, limit=0)


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.jsonl"])
def test_nothing_to_train_on(tmp_path: Path, name: str) -> None:
    path = put(tmp_path / name, "text1,text2,label\n" if name == "a.csv" else "")
    with pytest.raises(DataError, match=name):
        read_examples(path)


def test_labels_that_rank_nothing(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "text1,text2,label\na,b,1\nc,d,1\n")
    with pytest.raises(DataError, match=r"a\.csv: all 2 labels are 1; this objective needs two"):
        check_labels(read_examples(path), path)
    check_labels(read_examples(put(tmp_path / "b.csv", "text1,text2,label\na,b,1\nc,d,0\n")), path)
    check_labels(read_examples(put(tmp_path / "c.csv", "anchor,positive\na,b\n")), path)


@pytest.mark.parametrize(
    ("name", "kind", "rows", "texts"),
    [
        ("stsb/stsb-train.tsv", "graded", 2, 4),
        ("nli/nli-triplets.derived.tsv.gz", "triplet", 3, 8),  # an anchor stands there twice
        ("domain/medquad-sentences.txt.gz", "single", 3, 3),
    ],
)
def test_layouts_of_published_data(tmp_path: Path, name: str, kind: str, rows: int, texts: int) -> None:
    examples = read_examples(write_pairs(tmp_path) / name)
    assert (examples.kind, len(examples), len(examples.texts)) == (kind, rows, texts)


@real_data
@pytest.mark.parametrize(
    ("name", "kind", "rows", "texts"),
    [
        ("stsb/stsb-train.tsv", "graded", 5749, 10534),
        ("nli/nli-triplets.derived.tsv.gz", "triplet", 22932, 58523),
        ("domain/medquad-sentences.txt.gz", "single", 121086, 121086),
    ],
)
def test_published_data(name: str, kind: str, rows: int, texts: int) -> None:
    examples = read_examples(REAL / name)
    assert (examples.kind, len(examples), len(examples.texts)) == (kind, rows, texts)
