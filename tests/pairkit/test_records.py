from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import pairkit

ROWS = pl.DataFrame({"text1": ["a", 'b,\n"c"'], "text2": ["d", "é"], "label": [1, 0], "n": [{"x": 1}, None]})


def test_write_and_read(tmp_path: Path) -> None:
    splits = {"train": ROWS, "validation": ROWS.clear(), "test": ROWS[:1]}
    made = pairkit.write(splits, tmp_path / "some pairs")
    read = pairkit.read(tmp_path / "some pairs")
    assert {name: frame.rows() for name, frame in read.splits.items()} == {
        "train": ROWS.rows(),
        "test": ROWS[:1].rows(),
    }
    assert (read.label_kind, len(read)) == ("binary", 3)
    assert json.loads((tmp_path / "some pairs/statistics.json").read_text()) == made.statistics
    card = (tmp_path / "some pairs/README.md").read_text()
    assert card.startswith("---\npretty_name: some pairs\n")
    assert ("split: validation" in card, "    path: data/test-*.parquet" in card) == (False, True)
    assert "# some pairs\n\nPairs written by `pairkit.write`.\n\n## Counts\n\n" in card
    assert "|  | train | test |\n| --- | ---: | ---: |\n| total | 2 | 1 |\n" in card


DROPPED = object()
WHOLE = {"kind": "said", "url": "u", "who": None, "when": "2020"}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        *(("cluster", 7, "7"), ("cluster", None, None), ("number1", 7, "7")),
        *(("confidence", "0.5", 0.5), ("confidence", "much", None)),
        *(("evidence", WHOLE, WHOLE), ("evidence", WHOLE | {"who": 7, "more": 1}, WHOLE | {"who": "7"})),
        *(("cluster", [1], DROPPED), ("repo", {"a": 1}, DROPPED), ("repo", b"\xff", DROPPED)),
        *(("evidence", "it was said", DROPPED), ("evidence", {"kind": "x", "url": "y"}, DROPPED)),
        ("evidence", WHOLE | {"who": [1]}, DROPPED),
    ],
)
def test_provenance_columns_are_typed(name: str, value: object, expected: object) -> None:
    rows = pl.DataFrame({"text1": ["a"], "text2": ["b"], "label": [1], name: [value]})
    assert pairkit.show(rows).row.get(name, DROPPED) == expected
