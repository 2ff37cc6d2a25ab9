from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_labeler.dataset.texts import InputTexts, read_texts
from llm_labeler.records import content_hash
from llm_labeler.settings import InputSettings
from pairkit.base.errors import DataError, RemoteError

PLAIN = ["Tea is hot.", "Ice is cold.", "Is it late?"]


def read(path: Path | str, column: str | None = None, **settings: int) -> InputTexts:
    return read_texts(str(path), columns=column and {"text": column}, settings=InputSettings(**settings))


def contents(texts: InputTexts) -> list[str]:
    return [text.text for text in texts.texts]


def frame(**columns: list[object]) -> pl.DataFrame:
    return pl.DataFrame(columns)


def test_lines_of_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes("\ufeffTea is hot.\r\nIce is cold.\n\n Is it late? \nTea is hot.\n42\n".encode())
    texts = read(path)
    assert contents(texts) == PLAIN
    assert [text.row for text in texts.texts] == [1, 2, 4]
    assert texts.texts[0].text_id == content_hash("Tea is hot.")
    assert (texts.name, texts.rows) == ("s.txt", 6)
    assert texts.dropped == {"empty": 1, "no_letters": 1, "repeated": 1}
    assert texts.examples == {"empty": f"{path}:3", "repeated": f"{path}:5", "no_letters": f"{path}:6"}


@pytest.mark.parametrize("name", ["s.parquet", "s.jsonl", "s.ndjson", "s.json", "s.csv", "s.tsv", "s.csv.gz"])
@pytest.mark.parametrize("column", ["sentence", "Title", "body"])
def test_tables(tmp_path: Path, name: str, column: str) -> None:
    table = frame(**{"number": [1, 2, 3], column: PLAIN, "size": [4.5, 1.0, 2.0]})
    path = tmp_path / name
    if name.endswith(".parquet"):
        table.write_parquet(path)
    elif name.endswith((".jsonl", ".ndjson")):
        table.write_ndjson(path)
    elif name.endswith(".json"):
        path.write_text(table.write_json())
    else:
        text = table.write_csv(separator="\t" if ".tsv" in name else ",").encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    # Without column types, an unusual name must be given.
    named = column if column == "body" and (".csv" in name or ".tsv" in name) else None
    texts = read(path, named)
    assert contents(texts) == PLAIN
    assert [text.row for text in texts.texts] == (
        [2, 3, 4] if named or ".csv" in name or ".tsv" in name else [1, 2, 3]
    )


def test_json_strings_are_sentences(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps([*PLAIN, 7, None, [1]]))
    texts = read(tmp_path / "s.json")
    assert contents(texts) == PLAIN
    assert texts.dropped == {"empty": 1, "not_text": 2}


def test_the_column_is_given_or_recognised_by_name(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("title,text,body\nA title,A text,A body\n")
    assert contents(read(path)) == ["A text"]
    assert contents(read(path, "body")) == ["A body"]
    with pytest.raises(DataError, match=r"s\.csv: no column 'boddy' for text; there are title, text, body"):
        read(path, "boddy")
    path.write_text("head,body\nA head,A body\n")
    with pytest.raises(DataError, match=r"no known text column among head, body.*columns="):
        read(path)


def test_some_objects_may_lack_the_column(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"id": 1}\n\n{"id": 2, "note": "Tea is hot."}\n')
    texts = read(path, "note")
    assert (contents(texts), texts.texts[0].row, dict(texts.dropped)) == (["Tea is hot."], 3, {"empty": 1})
    with pytest.raises(DataError, match="no column 'notes' for text; there are id"):
        read(path, "notes")


def test_a_sentence_as_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("Tea is usually hot.\nIce is cold.\n")
    with pytest.raises(DataError, match="header line seems to be missing"):
        read(path)
    assert contents(read(path, "Tea is usually hot.")) == ["Ice is cold."]


def test_the_first_texts_of_a_pair_dataset_are_read(tmp_path: Path) -> None:
    (tmp_path / "set/data").mkdir(parents=True)
    for split, first in (
        ("train", ["Tea is hot.", "Tea is hot.", "Ice is cold."]),
        ("test", ["Not me."] * 3),
    ):
        table = frame(text1=first, text2=["a", "b", "c"], label=[1, 0, 1])
        table.write_parquet(tmp_path / f"set/data/{split}-00000-of-00001.parquet")
    texts = read(tmp_path / "set")
    assert (contents(texts), texts.name, dict(texts.dropped)) == (
        ["Tea is hot.", "Ice is cold."],
        "set",
        {"repeated": 1},
    )
    (tmp_path / "triplets").mkdir()
    frame(anchor=PLAIN, positive=PLAIN, negative=PLAIN).write_ndjson(tmp_path / "triplets/train.jsonl")
    assert contents(read(tmp_path / "triplets")) == PLAIN


def test_a_folder_without_a_train_split(tmp_path: Path) -> None:
    frame(text=PLAIN).write_ndjson(tmp_path / "test.jsonl")
    with pytest.raises(DataError, match="has no train split"):
        read(tmp_path)
    (tmp_path / "test.jsonl").rename(tmp_path / "all.jsonl")
    assert contents(read(tmp_path)) == PLAIN


def test_a_hub_name(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    asked: list[object] = []

    def load_dataset(*names: object) -> object:
        asked.append(names)
        return datasets.DatasetDict(
            {"test": datasets.Dataset.from_dict({"sentence1": ["No."]}),
             "train": datasets.Dataset.from_dict({"id": [1, 2, 3], "sentence1": PLAIN})}
        )  # fmt: skip

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    texts = read("owner/some-set:part")
    assert (contents(texts), texts.name, asked) == (
        PLAIN,
        "owner/some-set:part",
        [("owner/some-set", "part")],
    )

    def fail(*_names: object) -> object:
        raise ConnectionError("offline")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(RemoteError, match="owner/some-set: no such file or folder; loading"):
        read("owner/some-set")


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("s.txt", b"", r"s\.txt: has no rows"),
        ("s.csv", b"text\n", "has no rows"),
        ("s.txt", b"ok\ncaf\x81\n", r"s\.txt:2: neither UTF-8 nor Windows-1252"),
        ("s.jsonl", b'{"text": "ok"}\n{"text": ok}\n', r"s\.jsonl:2: not JSON"),
        ("s.json", b'[\n"ok",\n}', r"s\.json:3: not JSON"),
        ("s.txt.gz", gzip.compress(b"Tea is hot.\n" * 99, mtime=0)[:-9], "not readable"),
        ("s.txt", b"\n12\n \n", r"s\.txt: no usable text in 3 rows \(empty 2, no_letters 1\)"),
    ],
)
def test_unusable_inputs_are_refused(tmp_path: Path, name: str, content: bytes, match: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=match) as caught:
        read(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


def test_unusable_rows_are_counted_with_an_example(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    rows = [
        "Tea is hot.",
        "half \ud800 a pair",
        "a nul \0 inside",
        "bell \a",
        "x" * 50_000,
        None,
        "?!",
        5,
        "ab",
    ]
    path.write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
    texts = read(path, min_chars=3)
    assert contents(texts) == ["Tea is hot."]
    counts = {"too_short": 2, "unusable_characters": 3}
    assert texts.dropped == dict.fromkeys(("empty", "not_text", "too_long"), 1) | counts
    assert texts.examples["unusable_characters"] == f"{path}:2"
    assert texts.examples["too_long"] == f"{path}:5"
    assert len(texts.texts) + sum(texts.dropped.values()) == texts.rows


def test_the_limit_counts_usable_texts(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_bytes(b"\nTea is hot.\nTea is hot.\nIce is cold.\nIs it late?\n\xff\n")
    texts = read(tmp_path / "s.txt", limit=2)
    assert (contents(texts), texts.rows) == (PLAIN[:2], 4)


def test_the_hash_depends_only_on_the_sentences(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(PLAIN))
    frame(number=[1, 2, 3], text=PLAIN).write_parquet(tmp_path / "b.parquet")
    (tmp_path / "c.txt").write_text("\n".join(reversed(PLAIN)))
    a, b, c = (read(tmp_path / name).sha256 for name in ("a.txt", "b.parquet", "c.txt"))
    assert a == b != c
    assert len(a) == 64


@given(st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8"))))
def test_every_row_is_kept_or_counted(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("lines") / "s.txt"
    path.write_text("\n".join([*lines, "One that will do."]), encoding="utf-8", newline="")
    texts = read(path)
    assert texts.rows == len(lines) + 1 == len(texts.texts) + sum(texts.dropped.values())
    assert len(set(contents(texts))) == len(texts.texts)
    assert [text.row for text in texts.texts] == sorted(text.row for text in texts.texts)
    assert set(texts.examples) == set(texts.dropped)


def test_a_sample_depends_on_the_seed_and_keeps_the_order(tmp_path: Path) -> None:
    lines = [f"Sentence number {number} is here." for number in range(100)]
    path, reversed_lines = tmp_path / "s.txt", tmp_path / "t.txt"
    path.write_text("\n".join(lines))
    reversed_lines.write_text("\n".join(reversed(lines)))
    drawn = read(path, draw=10)
    assert len(set(contents(drawn))) == 10
    assert [text.row for text in drawn.texts] == sorted(text.row for text in drawn.texts)
    assert max(text.row for text in drawn.texts) > 50  # not the first ones
    assert set(contents(read(reversed_lines, draw=10))) == set(contents(drawn))
    other = read_texts(str(path), columns=None, settings=InputSettings(draw=10), seed=7)
    assert set(contents(other)) != set(contents(drawn))
    assert contents(read(path, draw=1000)) == lines
    assert len(contents(read(path, draw=3, limit=5))) == 3
    assert all(text.row <= 5 for text in read(path, draw=3, limit=5).texts)
