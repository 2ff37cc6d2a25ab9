from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gis_builder.pairing.pair_folder import (
    counted_columns,
    drop_counts,
    make_rows,
    reasons_of,
    row_counts,
    write_dropped,
    write_gis,
)
from gis_builder.store.issue_records import DroppedPair, IssuePair
from pairkit.base.errors import DataError

from .pair_material import grounds, ref, text_of

ISSUES = [ref(n) for n in range(1, 41)]
TEXTS = {issue: text_of(issue) for issue in ISSUES}
POSITIVES = {
    "train": [IssuePair(ref(n + 1), ref(n), 1, f"o/n#{n}", grounds(ref(n + 1))) for n in range(1, 31, 2)],
    "test": [IssuePair(ref(n + 1), ref(n), 1, f"o/n#{n}") for n in range(31, 41, 2)],
}
NEGATIVES = {
    "train": [IssuePair(ref(n), ref(n + 2), 0, "", negative_kind="random") for n in range(1, 27, 2)],
    "test": [IssuePair(ref(n), ref(n + 2), 0, "", negative_kind="hard") for n in range(31, 38, 2)],
}


def write(out: Path, seed: int = 0) -> dict[str, Any]:
    return write_gis(out, POSITIVES, NEGATIVES, TEXTS, seed=seed, statistics={"extra": 1}, run={"seed": seed})


def test_rows_have_their_provenance() -> None:
    rows = make_rows(POSITIVES["train"], NEGATIVES["train"], TEXTS, 0)
    assert rows.columns[:3] == ["text1", "text2", "label"]
    row = rows.filter(pl.col("cluster") == "o/n#1").row(0, named=True)
    assert {row["number1"], row["number2"]} == {1, 2}
    assert row["text1"] == TEXTS[ref(row["number1"])].text
    assert row["url2"] == f"https://github.com/o/n/issues/{row['number2']}"
    assert row["created_at1"] == TEXTS[ref(row["number1"])].created_at
    assert row["evidence"]["url"].endswith("/issues/2#issuecomment-1")
    assert (row["relation"], row["reason"], row["confidence"]) == ("duplicate", "closer_duplicate", 0.98)
    negative = rows.filter(pl.col("label") == 0).row(0, named=True)
    assert (negative["cluster"], negative["evidence"], negative["negative_kind"]) == (None, None, "random")


def test_the_order_of_rows_and_texts_is_independent_of_the_label() -> None:
    rows = make_rows(POSITIVES["train"], NEGATIVES["train"], TEXTS, 0)
    labels = rows["label"].to_list()
    assert labels not in (sorted(labels), sorted(labels, reverse=True))
    newer_first = (
        rows.filter(pl.col("label") == 1).select((pl.col("number1") > pl.col("number2")).mean()).item()
    )
    assert 0 < newer_first < 1


def test_counts_of_rows() -> None:
    counts = row_counts(
        {name: counted_columns(make_rows(POSITIVES[name], NEGATIVES[name], TEXTS, 0)) for name in POSITIVES}
    )
    sizes = {"positive": 15, "negative": 13, "total": 28, "long_share": 0.0}
    assert counts["splits"]["train"] == sizes | {"gap_auc": 1.0}  # a second apart against two
    assert counts["gap_auc"] == 1.0
    assert counts["repositories"]["test"] == {"o/n": {"positive": 5, "negative": 4}}
    assert counts["evidence"] == {"closer_comment": 15}
    assert counts["relations"] == {"duplicate": 15}
    assert counts["negative_kinds"] == {"hard": 4, "random": 13}


def test_the_folder(tmp_path: Path) -> None:
    statistics = write(tmp_path / "out")
    assert sorted(
        p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*") if p.is_file()
    ) == [
        "README.md",
        "data/test-00000-of-00001.parquet",
        "data/train-00000-of-00001.parquet",
        "positive/test-00000-of-00001.parquet",
        "positive/train-00000-of-00001.parquet",
        "run.json",
        "statistics.json",
    ]
    assert json.loads((tmp_path / "out/statistics.json").read_text()) == statistics
    assert statistics["extra"] == 1
    card = (tmp_path / "out/README.md").read_text()
    assert "| positive | 15 | 5 |" in card
    assert "1 repository." in card
    anchors = pl.read_parquet(tmp_path / "out/positive/test-00000-of-00001.parquet")
    assert set(anchors.rows()) == {(TEXTS[p.first].text, TEXTS[p.second].text) for p in POSITIVES["test"]}


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({}, "no duplicates found"),
        (
            {"rejected_issues": {"text_empty": 2}, "dropped_positives": {"identical": 1}},
            r"every duplicate was rejected \(text_empty 2, identical 1; see dropped.parquet\); crawl more",
        ),
        ({"rejected_issues": {"text_too_short": 2}}, r"\); lower text.min_words and text.min_chars"),
    ],
)
def test_no_dataset_without_positives(tmp_path: Path, counts: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        write_gis(tmp_path / "out", {"train": []}, {}, {}, seed=0, statistics=counts, run={})
    assert not (tmp_path / "out").exists()


def test_dropped_pairs_and_issues_are_counted_and_listed(tmp_path: Path) -> None:
    rejected = {ref(7): "text_empty", ref(8): "text_empty"}
    dropped = [DroppedPair(ref(1), ref(2), 1, "repeated"), DroppedPair(ref(1), ref(3), 0, "linked")]
    assert drop_counts(reasons_of(rejected, dropped), {"email": 3}) == {
        "rejected_issues": {"text_empty": 2},
        "dropped_positives": {"repeated": 1},
        "dropped_negatives": {"linked": 1},
        "removed_from_texts": {"email": 3},
    }
    write_dropped(tmp_path / "dropped.parquet", rejected, dropped)
    assert pl.read_parquet(tmp_path / "dropped.parquet").rows() == [
        ("text_empty", None, "o/n#7", None),
        ("text_empty", None, "o/n#8", None),
        ("repeated", 1, "o/n#1", "o/n#2"),
        ("linked", 0, "o/n#1", "o/n#3"),
    ]
