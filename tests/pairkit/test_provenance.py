"""Columns that bear a name of ours and hold something else."""

from __future__ import annotations

import polars as pl
import pytest

from pairkit.provenance import with_provenance, written_rows
from pairkit.records import PairDataset

WHOLE = {"kind": "said", "url": "u", "who": None, "when": "2020"}


def typed(**columns: object) -> pl.DataFrame:
    rows = pl.DataFrame({"text1": ["a"], "text2": ["b"], "label": [1], **columns})
    return with_provenance(PairDataset({"train": rows}, "made up")).splits["train"]


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("cluster", 7, "7"),
        ("cluster", None, None),
        ("number1", 7, "7"),
        ("confidence", "0.5", 0.5),
        ("confidence", "much", None),
        ("evidence", WHOLE, WHOLE),
        ("evidence", WHOLE | {"who": 7, "more": 1}, WHOLE | {"who": "7"}),
    ],
)
def test_what_can_be_told_is_told(name: str, value: object, told: object) -> None:
    assert typed(**{name: [value]})[name].to_list() == [told]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cluster", [1]),
        ("repo", {"a": 1}),
        ("repo", b"\xff"),
        ("evidence", "it was said"),
        ("evidence", {"kind": "x", "url": "y"}),
        ("evidence", WHOLE | {"who": [1]}),
    ],
)
def test_what_has_another_shape_is_left_out(name: str, value: object) -> None:
    assert typed(**{name: [value]}).columns == ["text1", "text2", "label"]


def test_other_columns_and_rows_without_evidence_stay() -> None:
    rows = pl.DataFrame({"text1": ["a", "b"], "evidence": [WHOLE, None], "mine": [[1], [2]]})
    found = with_provenance(PairDataset({"train": rows}, "made up")).splits["train"]
    assert found["evidence"].to_list() == [WHOLE, None]
    assert found["mine"].to_list() == [[1], [2]]


@pytest.mark.parametrize(
    ("llms", "count"),
    [
        ([["chatgpt"], ["llama", "chatgpt"], [], None], 2),
        (['["wordnet"]', "[]", "", None], 1),  # as CSV has it
        ([1, 2, 3, 4], 0),
    ],
)
def test_rows_that_an_llm_wrote(llms: list[object], count: int) -> None:
    rows = pl.DataFrame({"text1": ["a"] * 4, "llms": llms, "prompt_hashes": [["x"]] * 4})
    assert written_rows(rows) == count
    assert written_rows(rows.drop("prompt_hashes")) == 0  # somebody's column of that name
