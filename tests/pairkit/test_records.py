from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from pairkit import ConfigError, PairDataset
from pairkit.dataset.making.dataset_card import dataset_card, table
from pairkit.dataset.reading.reader import read_pairs, read_rows
from pairkit.dataset.records import card_files, with_provenance, write_dataset, written_rows
from pairkit.similarity.measures import count_long, estimated_tokens, share_long

ROWS = pl.DataFrame(
    {
        "text1": ["a", 'b,\n"c"'],
        "text2": ["d", "é"],
        "label": [1, 0],
        "evidence": [{"kind": "x", "n": 1}, None],
    }
)
NONE = ROWS.clear()


def write(out: Path) -> None:
    configs = {"default": {"train": ROWS, "validation": NONE, "test": ROWS[:1]}}
    card = dataset_card("Some pairs", configs=card_files(configs), rows=3, sections=[("Counts", "three")])
    write_dataset(out, configs, card=card, statistics={"b": 1, "a": 2}, run={"seed": 0})


def test_write_and_read(tmp_path: Path) -> None:
    write(tmp_path / "out")
    read = read_pairs(tmp_path / "out")
    assert {name: frame.rows() for name, frame in read.splits.items()} == {
        "train": ROWS.rows(),
        "test": ROWS[:1].rows(),
    }
    assert (read.label_kind, len(read)) == ("binary", 3)
    assert json.loads((tmp_path / "out/statistics.json").read_text()) == {"a": 2, "b": 1}
    card = (tmp_path / "out/README.md").read_text()
    assert card.startswith("---\npretty_name: Some pairs\n")
    assert ("split: validation" in card, "    path: data/test-*.parquet" in card) == (False, True)
    assert card.endswith("# Some pairs\n\n## Counts\n\nthree\n")


def test_missing_column_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="positive/train has no column anchor"):
        write_dataset(tmp_path / "out", {"positive": {"train": ROWS}}, card="", statistics={}, run={})
    assert list(tmp_path.iterdir()) == []


def test_tables() -> None:
    lines = ["|  | n |", "| --- | ---: |", "| a\\|b | 12,345 |", "| c | 50.0% |"]
    assert table(["", "n"], [("a|b", 12345), ("c", 0.5)]).split("\n") == lines


def test_estimated_tokens() -> None:
    frame = pl.DataFrame({"t": ["", "a cat", "compilation", "x += 12345;"]})
    # Two special tokens; six letters, two digits or one sign each.
    assert frame.select(estimated_tokens(pl.col("t"))).to_series().to_list() == [2, 4, 4, 9]
    long, short = "a " * 511, "a " * 510
    rows = pl.DataFrame({"one": [long, short], "other": [long, long]})
    assert rows.select(count_long("one", "other")).to_series().to_list() == [2, 1]
    assert share_long(rows, "one", "other") == 0.75
    assert share_long(rows.clear(), "one") == 0.0


@pytest.mark.parametrize("names", [["negative"], ["negative_1", "negative_2"]])
def test_triplets_need_negatives(tmp_path: Path, names: list[str]) -> None:
    triplets = pl.DataFrame({name: [name] for name in ("anchor", "positive", *names)})
    given = {"card": "", "statistics": {}, "run": {}}
    write_dataset(tmp_path / "out", {"triplet": {"train": triplets}}, **given)
    assert read_rows(tmp_path / "out" / "triplet")["train"]["negatives"].to_list() == [names]
    with pytest.raises(ConfigError, match="triplet/train has no column negative"):
        write_dataset(tmp_path / "other", {"triplet": {"train": triplets.drop(names)}}, **given)


DROPPED = object()
WHOLE = {"kind": "said", "url": "u", "who": None, "when": "2020"}


def typed(**columns: object) -> pl.DataFrame:
    rows = pl.DataFrame({"text1": ["a"], "text2": ["b"], "label": [1], **columns})
    return with_provenance(PairDataset({"train": rows}, "made up")).splits["train"]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("cluster", 7, "7"),
        ("cluster", None, None),
        ("number1", 7, "7"),
        ("confidence", "0.5", 0.5),
        ("confidence", "much", None),
        ("evidence", WHOLE, WHOLE),
        ("evidence", WHOLE | {"who": 7, "more": 1}, WHOLE | {"who": "7"}),
        *(("cluster", [1], DROPPED), ("repo", {"a": 1}, DROPPED), ("repo", b"\xff", DROPPED)),
        *(("evidence", "it was said", DROPPED), ("evidence", {"kind": "x", "url": "y"}, DROPPED)),
        ("evidence", WHOLE | {"who": [1]}, DROPPED),
    ],
)
def test_provenance_columns_are_typed(name: str, value: object, expected: object) -> None:
    typed_rows = typed(**{name: [value]})
    assert (typed_rows[name].to_list() if name in typed_rows.columns else DROPPED) == (
        expected if expected is DROPPED else [expected]
    )


@pytest.mark.parametrize(
    ("llms", "count"),
    [
        ([["chatgpt"], ["llama", "chatgpt"], [], None], 2),
        (['["wordnet"]', "[]", "", None], 1),  # as in CSV
        ([1, 2, 3, 4], 0),
    ],
)
def test_rows_with_generated_texts(llms: list[object], count: int) -> None:
    rows = pl.DataFrame({"text1": ["a"] * 4, "llms": llms, "prompt_hashes": [["x"]] * 4})
    assert written_rows(rows) == count
    assert written_rows(rows.drop("prompt_hashes")) == 0  # another column of that name
