"""The sentences that `generate` reads from files and datasets, and the rows that it can't use."""

import json
import random
from itertools import count
from types import SimpleNamespace

import polars as pl
import pytest

import llm_labeler
from tests.support.shorthand import config_error, data_error, remote_error, table

PLAIN = ["Tea is hot.", "Ice is cold.", "Is it late?"]
FILTERS = dict.fromkeys(("filters.same_kind", "filters.same_script"), False)
FILTERS |= {"filters.min_length_ratio": 0.0, "filters.max_length_ratio": 99.0}
_NUMBERS = count()


def read(source, folder, column=None, **options):
    """The sentences that are labelled, by an LLM that has one answer for all of them."""
    out = folder / f"out-{next(_NUMBERS)}"
    given = {"polarity": "positive", "settings": FILTERS, **options}
    columns = {"text": column} if column else None
    result = llm_labeler.generate(
        str(source),
        llm={"one": lambda _: "1. So they say."},
        columns=columns,
        out=out,
        **given,
    )
    texts = pl.read_parquet(result.work / "texts.parquet")
    run = json.loads((out / "run.json").read_text())["input"]
    unused = [line for line in result.messages if ": not used, " in line]
    return SimpleNamespace(
        texts=[*texts["text"]],
        rows=[*texts["row"]],
        dropped=llm_labeler.report(result.work).dropped_texts,
        examples=[line.partition(" (")[0] for line in unused],
        name=run["name"],
        sha256=run["sha256"],
        work=result.work,
    )


def frame(**columns):
    return pl.DataFrame(columns)


def test_lines_of_a_text_file(tmp_path):
    path = tmp_path / "s.txt"
    path.write_bytes(
        "\ufeffTea is hot.\r\nIce is cold.\n\n Is it late? \nTea is hot.\n42\nN/A\n".encode()
    )
    result = read(path, tmp_path)
    assert (result.texts, result.rows, result.name) == (PLAIN, [1, 2, 4], "s.txt")
    reasons = {3: "empty", 5: "repeated", 6: "no_letters", 7: "placeholder"}
    assert result.dropped == dict.fromkeys(reasons.values(), 1)
    assert sorted(result.examples) == [
        f"{path}:{row}: not used, {reason}" for row, reason in reasons.items()
    ]


def test_the_column_is_given_or_recognised_by_name(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("title,text,body\nA title,A text,A body\n")
    assert read(path, tmp_path).texts == ["A text"]
    assert read(path, tmp_path, "body").texts == ["A body"]
    with data_error(r"s\.csv: no column 'boddy' for text; there are title, text, body"):
        read(path, tmp_path, "boddy")
    path.write_text("head,body\nA head,A body\n")
    with data_error(r"no known text column among head, body.*columns="):
        read(path, tmp_path)


def test_the_only_column_of_strings_must_have_texts(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"id": "c-17", "turns": [{"says": "Tea is hot."}]}\n')
    with data_error("no known text column among id, turns"):
        read(path, tmp_path)
    path.write_text('{"id": "c-17", "says": "Tea is hot.", "size": 3}\n')
    assert read(path, tmp_path).texts == ["Tea is hot."]
    (tmp_path / "s.csv").write_text(
        "id,stars,said\nc-17,3,Tea is hot.\nc-18,4,\nc-19,4,\n"
    )
    assert read(tmp_path / "s.csv", tmp_path).texts == ["Tea is hot."]


def test_some_objects_may_lack_the_column(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"id": 1}\n\n{"id": 2, "note": "Tea is hot."}\n')
    result = read(path, tmp_path, "note")
    assert (result.texts, result.rows) == (["Tea is hot."], [3])
    assert result.dropped == {"empty": 1}
    with data_error("no column 'notes' for text; there are id"):
        read(path, tmp_path, "notes")
    # Strings instead of objects.
    (tmp_path / "s.json").write_text(json.dumps([*PLAIN, 7, None, [1]]))
    result = read(tmp_path / "s.json", tmp_path)
    assert (result.texts, result.dropped) == (PLAIN, {"empty": 1, "not_text": 2})


def test_a_sentence_as_header_is_refused(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("Tea is usually hot.\nIce is cold.\n")
    with data_error("header line seems to be missing"):
        read(path, tmp_path)
    assert read(path, tmp_path, "Tea is usually hot.").texts == ["Ice is cold."]


def test_the_first_texts_of_a_pair_dataset_are_read(tmp_path):
    (tmp_path / "set/data").mkdir(parents=True)
    train = ["Tea is hot.", "Tea is hot.", "Ice is cold."]
    for split, first in (("train", train), ("test", ["Not me."] * 3)):
        table = frame(text1=first, text2=["a", "b", "c"], label=[1, 0, 1])
        table.write_parquet(tmp_path / f"set/data/{split}-00000-of-00001.parquet")
    result = read(tmp_path / "set", tmp_path)
    assert (result.texts, result.name) == (PLAIN[:2], "set")
    assert result.dropped == {"repeated": 1}
    (tmp_path / "triplets").mkdir()
    frame(anchor=PLAIN, positive=PLAIN, negative=PLAIN).write_ndjson(
        tmp_path / "triplets/train.jsonl"
    )
    assert read(tmp_path / "triplets", tmp_path).texts == PLAIN


def test_a_folder_without_a_train_split(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    frame(text=PLAIN).write_ndjson(folder / "test.jsonl")
    with data_error("has no train split"):
        read(folder, tmp_path)
    (folder / "test.jsonl").rename(folder / "all.jsonl")
    assert read(folder, tmp_path).texts == PLAIN


def test_files_of_a_pattern(tmp_path):
    (tmp_path / "b[1].txt").write_text("Ice is cold.\nIs it late?\n")
    (tmp_path / "a.txt").write_text("Tea is hot.\n")
    result = read(tmp_path / "*.txt", tmp_path)
    assert (result.texts, result.rows) == (PLAIN, [1, 1, 2])
    with data_error("2 sentences match 'row:1'; give one"):
        llm_labeler.show("row:1", work=result.work)
    assert read(tmp_path / "b[1].txt", tmp_path).texts == PLAIN[1:]
    with data_error("no table matches this pattern"):
        read(tmp_path / "*.csv", tmp_path)
    with config_error("not a valid path"):
        read("Tea is hot. " * 400, tmp_path)


def test_a_hub_name(monkeypatch, tmp_path):
    datasets = pytest.importorskip("datasets")
    asked = []

    def load_dataset(*names):
        asked.append(names)
        return datasets.DatasetDict(
            {"test": datasets.Dataset.from_dict({"sentence1": ["No."]}),
             "train": datasets.Dataset.from_dict({"id": [1, 2, 3], "sentence1": PLAIN})}
        )  # fmt: skip

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    result = read("owner/some-set:part", tmp_path)
    assert (result.texts, result.name) == (PLAIN, "owner/some-set:part")
    assert asked == [("owner/some-set", "part")]

    def fail(*_names):
        raise ConnectionError("offline")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with remote_error("owner/some-set: no such file or folder; loading"):
        read("owner/some-set", tmp_path)


@table(r"""
    name, content, match
    s.csv | b'text\n' | has no rows
    s.json | b'[\n"ok",\n}' | s\.json:3: not JSON
    s.txt | b'\n12\n \n' | s\.txt: no usable text in 3 rows \(empty 2, no_letters 1\)
""")
def test_unusable_inputs_are_refused(tmp_path, name, content, match):
    (tmp_path / name).write_bytes(content)
    with data_error(match) as caught:
        llm_labeler.plan(tmp_path / name, llm="wordnet")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


def test_unusable_rows_are_counted_with_an_example(tmp_path):
    path = tmp_path / "s.jsonl"
    rows = [
        "Tea is hot.",
        "half \ud800 a pair",
        "a nul \0",
        "bell \a",
        "x" * 50_000,
        None,
        "?!",
        5,
        "ab",
    ]
    path.write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
    result = read(path, tmp_path, settings=FILTERS | {"input.min_chars": 3})
    assert result.texts == ["Tea is hot."]
    once = dict.fromkeys(("empty", "not_text", "too_long"), 1)
    assert result.dropped == {**once, "too_short": 2, "unusable_characters": 3}
    assert f"{path}:2: not used, unusable_characters" in result.examples
    assert f"{path}:5: not used, too_long" in result.examples


def test_the_limit_counts_usable_texts(tmp_path):
    (tmp_path / "s.txt").write_bytes(
        b"\nTea is hot.\nTea is hot.\nIce is cold.\nIs it late?\n\xff\n"
    )
    result = read(tmp_path / "s.txt", tmp_path, limit=2)
    assert (result.texts, result.rows) == (PLAIN[:2], [2, 4])


def test_the_hash_depends_only_on_the_sentences(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(PLAIN))
    frame(number=[1, 2, 3], text=PLAIN).write_parquet(tmp_path / "b.parquet")
    (tmp_path / "c.txt").write_text("\n".join(reversed(PLAIN)))
    names = ("a.txt", "b.parquet", "c.txt")
    a, b, c = (read(tmp_path / name, tmp_path).sha256 for name in names)
    assert a == b != c
    assert len(a) == 64


def test_every_row_is_kept_or_counted(tmp_path):
    draw = random.Random(4)
    characters = [*"ab. 1?\t\r\x0b\x0c\x85\u2028\x00é猫\U0001f600\ufeff\u200b"]
    lines = [
        "".join(draw.choices(characters, k=draw.randint(0, 6))) for _ in range(400)
    ]
    path = tmp_path / "s.txt"
    path.write_text("\n".join([*lines, "One that will do."]), newline="")
    result = read(path, tmp_path)
    assert len(result.texts) + sum(result.dropped.values()) == len(lines) + 1
    assert len(set(result.texts)) == len(result.texts)
    assert result.rows == sorted(result.rows)
    assert len(result.examples) == len(result.dropped) > 3


def test_a_sample_depends_on_the_seed_and_keeps_the_order(tmp_path):
    lines = [f"Sentence number {number} is here." for number in range(100)]
    path, reversed_lines = tmp_path / "s.txt", tmp_path / "t.txt"
    path.write_text("\n".join(lines))
    reversed_lines.write_text("\n".join(reversed(lines)))
    drawn = read(path, tmp_path, draw=10)
    assert len(set(drawn.texts)) == 10
    assert drawn.rows == sorted(drawn.rows)
    assert max(drawn.rows) > 50  # not the first ones
    assert set(read(reversed_lines, tmp_path, draw=10).texts) == set(drawn.texts)
    assert set(read(path, tmp_path, draw=10, seed=7).texts) != set(drawn.texts)
    assert read(path, tmp_path, draw=1000).texts == lines
    few = read(path, tmp_path, draw=3, limit=5)
    assert (len(few.texts), max(few.rows) <= 5) == (3, True)
