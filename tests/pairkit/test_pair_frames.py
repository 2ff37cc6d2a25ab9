from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pairkit

TEXTS = ["", " ", "one two three four", "one two three four five", "six seven eight", "nine"]
SCHEMA = {
    "text1": pl.String,
    "text2": pl.String,
    "label": pl.Int64,
    "url1": pl.String,
    "url2": pl.String,
    "cluster": pl.String,
}
ROWS = st.lists(
    st.tuples(
        st.sampled_from(TEXTS),
        st.sampled_from(TEXTS),
        st.sampled_from([0, 1]),
        st.sampled_from([None, "", "u1", "u2"]),
        st.sampled_from(["u3", "u4"]),
        st.sampled_from([None, "c1", "c2"]),
    ),
    min_size=1,
    max_size=8,
)


def write_shards(folder: Path, split: str, *shards: pl.DataFrame) -> None:
    folder.mkdir(exist_ok=True)
    for place, rows in enumerate(shards):
        rows.write_parquet(folder / f"{split}-{place:05d}-of-{len(shards):05d}.parquet")


@settings(max_examples=10)
@given(st.lists(ROWS, min_size=1, max_size=3), ROWS, st.booleans())
def test_audit_of_shards(
    tmp_path_factory: pytest.TempPathFactory, train: list[list[object]], test: list[object], pages: bool
) -> None:
    assume(test or any(train))
    folder = tmp_path_factory.mktemp("sharded") / "made"
    dropped = [] if pages else ["url1"]
    write_shards(folder, "train", *(pl.DataFrame(r, SCHEMA, orient="row").drop(dropped) for r in train))
    write_shards(folder, "test", pl.DataFrame(test, SCHEMA, orient="row").drop(dropped))
    whole = pairkit.read(folder, bad_rows="skip")
    assume(len(whole))
    found = pairkit.audit(folder)
    assert whole.bad_rows is not None
    assert {reason: finding.count for reason, finding in found.bad_rows.items()} == Counter(
        whole.bad_rows["reason"]
    )
    expected = pairkit.audit(whole).to_dict()
    assert found.to_dict() == expected | {"bad_rows": found.to_dict()["bad_rows"]}


def test_labels_of_shards(tmp_path: Path) -> None:
    rows = [pl.DataFrame({"text1": ["a"], "text2": ["b"], "label": [word]}) for word in ("yes", "no")]
    write_shards(tmp_path / "words", "train", *rows)
    report = pairkit.audit(tmp_path / "words", labels={"yes": 1, "no": 0})
    assert report.splits["train"].positive_share == 0.5
    write_shards(tmp_path / "scores", "train", *(rows[0].with_columns(label=pl.lit(n / 2)) for n in (2, 1)))
    graded = pairkit.audit(tmp_path / "scores")
    assert (graded.label_kind, graded.splits["train"].positive_share) == ("graded", 0.75)


def test_positives_and_triplets_in_shards(tmp_path: Path) -> None:
    triplet = pl.DataFrame({"anchor": ["a"], "positive": ["b"], "negative": ["c"]})
    write_shards(tmp_path / "made", "train", triplet, triplet.with_columns(anchor=pl.lit("d")))
    report = pairkit.audit(tmp_path / "made")
    assert (report.splits["train"].pairs, report.splits["train"].positive_share) == (4, 0.5)
