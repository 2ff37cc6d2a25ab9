"""A small dataset with all that `gis` writes, hostile texts among it, for the tests of the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from pairkit.dataset.records import PairDataset

HOSTILE = (
    "</div><script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)> \x1b[31m &amp; \u202e"
)


def row(number: int, label: int, **fields: Any) -> dict[str, Any]:
    plain = {
        "text1": f"Crash number {number}\n\nthe parser crashes on start {number}",
        "text2": f"Parser crashes {number}\n\nit crashes on every start, alas {number}",
        "label": label,
        "repo": "acme/rocket" if number % 3 else "acme/fuel",
        "number1": number,
        "number2": number + 1000,
        "url1": f"https://github.com/acme/rocket/issues/{number}",
        "url2": f"https://github.com/acme/rocket/issues/{number + 1000}",
        "created_at1": "2020-01-01T00:00:00Z",
        "created_at2": "2020-01-02T00:00:00Z",
        "evidence": {
            "kind": "closer_comment",
            "url": "https://github.com/acme/rocket/issues/1#issuecomment-1",
            "who": "max",
            "when": "2020-01-03T00:00:00Z",
        }
        if label
        else None,
        "negative_kind": None if label else ("hard" if number % 2 else "random"),
    }
    return plain | fields


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema_overrides={"negative_kind": pl.String}, infer_schema_length=None)


def dataset(source: Path | str = "somewhere") -> PairDataset:
    train = [row(n, n % 2, negative_kind=None if n % 2 else "random") for n in range(1, 13)]
    train += [row(20, 0, negative_kind="hard"), row(21, 1, text1=HOSTILE, url1="javascript:alert(3)")]
    test = [row(30, 1), row(31, 0)]
    return PairDataset({"train": frame(train), "test": frame(test)}, str(source))


def written(folder: Path) -> Path:
    """The same dataset as files, with statistics."""
    folder.mkdir(parents=True)
    for split, rows in dataset().splits.items():
        rows.write_parquet(folder / f"{split}.parquet")
    statistics = {
        "dropped_positives": {"same_text": 4, "not_fetched": 57},
        "rejected_issues": {},
        "verdicts": {"duplicate": {"closer_same": 9}, "not": {"open": 2}},
        "clusters": 3,
    }
    (folder / "statistics.json").write_text(json.dumps(statistics), encoding="utf-8")
    return folder
