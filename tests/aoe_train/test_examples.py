"""Training rows as distinct texts, and conflicting rows."""

from itertools import chain

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.data import examples as reading
from aoe_train.data.examples import (
    distinct,
    negative_counts,
    negatives_in_words,
    read_examples,
)
from aoe_train.objectives.training_rows import ABSENT
from tests.aoe_train.tiny import write_rows
from tests.support.shorthand import config_error, data_error, table, values


def put(path, text):
    path.write_text(text)
    return path


def columns_of(examples):
    """The texts of each row without absent negatives."""
    return [
        [examples.texts[number] for number in row if number != ABSENT]
        for row in examples.rows
    ]


@table(
    r"""
    content, kind, texts, rows
    'text1,text2,label\nb,a,1\na,c,0\nb,b,0\n' | binary | bac | [[0, 1], [1, 2], [0, 0]]
    'text1,text2,label\nA,a,1\nA ,á,0.5\n' | graded | ['A', 'a', 'A ', 'á'] | [[0, 1], [2, 3]]
    'id,anchor,positive\n1,a,b\n2,b,c\n' | positive | abc | [[0, 1], [1, 2]]
    'negative,anchor,positive\nc,a,b\n' | triplet | abc | [[0, 1, 2]]
    'sentence\na\nb\na\n' | single | ab | [[0], [1], [0]]
    """,
)
def test_kinds_of_rows(tmp_path, content, kind, texts, rows):
    examples = read_examples(put(tmp_path / "a.csv", content))
    assert (examples.kind, len(examples), examples.texts) == (kind, len(rows), [*texts])
    assert (examples.rows.tolist(), examples.rows.dtype) == (rows, np.int64)
    assert (examples.labels is None) == (kind not in ("binary", "graded"))
    if kind == "binary":
        assert (examples.labels.tolist(), examples.labels.dtype) == (
            [1, 0, 0],
            np.float32,
        )


letters = st.sampled_from("abcde")


@given(
    st.lists(
        st.tuples(letters, letters, st.lists(letters, min_size=1, max_size=4)),
        min_size=1,
    )
)
def test_examples_reproduce_the_rows(rows):
    examples = distinct(
        pl.DataFrame(rows, schema=["anchor", "positive", "negatives"], orient="row")
    )
    expected = [[anchor, positive, *negatives] for anchor, positive, negatives in rows]
    assert columns_of(examples) == expected
    assert examples.texts == [*dict.fromkeys(chain(*expected))]
    assert examples.rows.shape[1] == max(map(len, expected))
    assert sum(negative_counts(examples).values()) == len(rows)


def test_row_with_far_too_many_negatives_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_MAX_CELLS", 1000)
    rows = [
        {"anchor": f"a{n}", "positive": f"p{n}", "negatives": [f"n{n}"]}
        for n in range(100)
    ]
    many = {"anchor": "a", "positive": "p", "negatives": [f"m{n}" for n in range(30)]}
    path = write_rows(tmp_path / "rows.jsonl", [*rows[:7], many, *rows[7:]])
    with data_error(r"rows.jsonl:8: has 30 negatives, the average row 1.3; "):
        read_examples(str(path))
    assert read_examples([many] * 100).rows.shape == (100, 32)


def test_different_numbers_of_negatives(tmp_path):
    text = "anchor,positive,negative_1,negative_2\na,b,c,d\ne,f,,g\nh,i,j,\n"
    examples = read_examples(put(tmp_path / "a.csv", text))
    assert [*map("".join, columns_of(examples))] == ["abcd", "efg", "hij"]
    assert examples.rows[:, 3].tolist() == [3, ABSENT, ABSENT]
    assert negative_counts(examples) == {"1": 2, "2": 1}
    told = "1 to 2 a row; 2 of 3 rows have fewer than 2"
    assert negatives_in_words({"1": 2, "2": 1}) == told
    assert negatives_in_words({"3": 1_000}) == "3 a row"
    counts = examples.token_counts(np.arange(1, 11), slice(None)).tolist()
    assert counts == [[1, 2, 3, 4], [5, 6, 7, 0], [8, 9, 10, 0]]
    assert negative_counts(read_examples([{"anchor": "a", "positive": "b"}])) == {}


def test_missing_training_split_is_refused(tmp_path):
    for name in ("dev", "test"):
        put(tmp_path / f"{name}.csv", "text1,text2,label\na,b,1\n")
    with config_error("found splits validation, test; expected train"):
        read_examples(tmp_path)
    assert len(read_examples(tmp_path, split="dev")) == 1
    with data_error("no rows; expected at least one"):
        read_examples(put(tmp_path / "a.csv", "text1,text2,label\n"))


def test_html_without_text_is_left_out():
    told = []
    examples = read_examples(["a dog", "<p></p>", "<p>a cat</p>"], say=told.append)
    assert examples.texts == ["a dog", "a cat"]
    assert told == ["the list given: rows left out: empty text in 1 (the list given:2)"]
    assert examples.reading.bad_rows["text1"].to_list() == ["<p></p>"]


def rows_of(examples):
    texts = [tuple(row) for row in columns_of(examples)]
    if examples.labels is None:
        return texts
    return [*zip(texts, examples.labels.tolist(), strict=True)]


CONTRADICTING = "text1,text2,label\na,b,1\nc,d,0\nb,a,0\na,b,1\ne,e,0\n"


@table(
    """
    conflicts, left
    keep | [('a', 'b', 1), ('c', 'd', 0), ('b', 'a', 0), ('a', 'b', 1), ('e', 'e', 0)]
    drop | [('c', 'd', 0)]
    first | [('a', 'b', 1), ('c', 'd', 0), ('a', 'b', 1)]
    """,
)
def test_conflicting_labels(tmp_path, conflicts, left):
    path, told = put(tmp_path / "a.csv", CONTRADICTING), []
    examples = read_examples(path, conflicts=conflicts, say=told.append)
    assert rows_of(examples) == [((one, other), label) for one, other, label in left]
    assert [*examples.texts] == [*dict.fromkeys(chain(*(row[:2] for row in left)))]
    lost = 5 - len(left)
    left_out = {"conflicting_labels": lost} if lost else {}
    assert examples.reading.record() == {
        "labels": "0 and 1",
        "conflicts": 2,
        "left_out": left_out,
    }
    pair = f"such as 'a' and 'b' (1 in {path}:2, 0 in {path}:4)"
    done = f"{lost} rows are left out" if lost else "they are kept"
    assert told == [f"2 pairs have different labels, {pair}; {done}"]


def test_conflict_error_names_both_rows(tmp_path):
    path = put(tmp_path / "a.csv", CONTRADICTING)
    with data_error(r"1 in .*a\.csv:2, 0 in .*a\.csv:4\); set conflicts to drop"):
        read_examples(path, conflicts="error")
    with data_error("no row would be left: correct them"):
        read_examples(
            put(tmp_path / "b.csv", "text1,text2,label\na,b,1\nb,a,0\n"),
            conflicts="drop",
        )
    scores = put(
        tmp_path / "c.csv",
        "text1,text2,score\na,b,4.5\nB,a!,3.25\na,b,4.5\nc,c,1.5\nc,d,1\nc,d,1\n",
    )
    assert rows_of(read_examples(scores, conflicts="first")) == values("""
        ('a', 'b') | 4.5
        ('a', 'b') | 4.5
        ('c', 'c') | 1.5
        ('c', 'd') | 1
        ('c', 'd') | 1
    """)


def test_row_numbers_are_those_of_the_file(tmp_path):
    """Rows of skipped labels and of earlier files count."""
    text = "premise,hypothesis,label\nx,y,neutral\na,b,entailment\nx,y,neutral\na,b,contradiction\n"
    put(tmp_path / "train-0.csv", "premise,hypothesis,label\nu,v,neutral\n")
    put(tmp_path / "train-1.csv", text)
    told = []
    examples = read_examples(tmp_path, say=told.append)
    assert "train-1.csv:3, 0 in" in told[0]
    assert "train-1.csv:5)" in told[0]
    assert examples.reading.record()["left_out"] == {"neutral": 3}


@table(
    """
    conflicts, left
    drop | [('a', 'b', 'c')]
    first | [('a', 'b', 'c'), ('g', 'h', 'i')]
    """,
)
def test_conflicting_triplets(tmp_path, conflicts, left):
    # I is the negative of g, and its positive.
    lines = "anchor,positive,negative\na,b,c\nd,e,d\nf,g,g\ng,h,i\ni,g,x\n"
    path, told = put(tmp_path / "a.csv", lines), []
    assert rows_of(read_examples(path, conflicts=conflicts, say=told.append)) == left
    assert told[0].startswith(
        "3 pairs have different labels, such as 'd' and 'd' (1 as a text and itself, 0 in"
    )
