"""A dataset's rows, counts and files, and why there is none."""

import json
import re
from collections import Counter

import polars as pl

import gis_builder
from gis_builder.pairing.pair_folder import write_gis
from gis_builder.store import GITHUB
from tests.support.shorthand import data_error, parametrize, table, text_table

from .conftest import closed, comment, issue, write_tracker
from .working_folder import imported

REPO = "quarryhq/quarry"


def test_rows_have_their_provenance(demo):
    rows = demo.pairs.rows
    assert rows.columns[1:4] == ["text1", "text2", "label"]
    is_pair = pl.col("url1").str.ends_with("/239") | pl.col("url2").str.ends_with(
        "/239"
    )
    row = rows.filter(pl.col("repo") == REPO, pl.col("label") == 1, is_pair).row(
        0, named=True
    )
    assert {row["number1"], row["number2"]} == {180, 239}
    assert row["url2"] == f"https://github.com/{REPO}/issues/{row['number2']}"
    assert row["evidence"]["url"].startswith(
        f"https://github.com/{REPO}/issues/239#issuecomment-"
    )
    assert (row["cluster"], row["relation"], row["negative_kind"]) == (
        f"{REPO}#180",
        "duplicate",
        None,
    )
    assert 0.8 < row["confidence"] <= 1
    texts = {row["number1"]: row["text1"], row["number2"]: row["text2"]}
    anchors = pl.concat(
        pl.read_parquet(path) for path in (demo.out / "positive").glob("*.parquet")
    )
    assert (texts[239], texts[180]) in set(anchors.rows())  # the duplicate first
    negative = rows.filter(pl.col("label") == 0).row(0, named=True)
    assert (negative["cluster"], negative["evidence"], negative["negative_kind"]) == (
        None,
        None,
        "random",
    )


def test_the_order_of_rows_and_texts_is_independent_of_the_label(demo):
    for rows in demo.pairs.splits.values():
        labels = rows["label"].to_list()
        assert labels not in (sorted(labels), sorted(labels, reverse=True))
        for label in (0, 1):
            newer_first = rows.filter(pl.col("label") == label).select(
                (pl.col("created_at1") > pl.col("created_at2")).mean()
            )
            assert 0.2 < newer_first.item() < 0.8


def test_counts_are_those_of_the_rows(demo):
    statistics = json.loads((demo.out / "statistics.json").read_text())
    assert statistics == demo.statistics
    rows = demo.pairs.rows
    for split, own in demo.pairs.splits.items():
        positive, counts = int(own["label"].sum()), statistics["splits"][split]
        assert (counts["positive"], counts["total"]) == (positive, own.height)
        of_split = statistics["repositories"][split]
        assert sum(repo["positive"] for repo in of_split.values()) == positive
        assert (
            sum(repo["negative"] for repo in of_split.values()) == own.height - positive
        )
    for name, column in (
        ("relations", "relation"),
        ("negative_kinds", "negative_kind"),
    ):
        assert statistics[name] == dict(
            sorted(Counter(rows[column].drop_nulls()).items())
        )
    assert statistics["repository_count"] == rows["repo"].n_unique()
    assert (
        f"{statistics['repository_count']} repositories."
        in (demo.out / "README.md").read_text()
    )
    dropped = pl.read_parquet(demo.work / "dropped.parquet")
    for name, label in (
        ("rejected_issues", None),
        ("dropped_positives", 1),
        ("dropped_negatives", 0),
    ):
        reasons = dropped.filter(pl.col("label").eq_missing(pl.lit(label, pl.Int64)))[
            "reason"
        ]
        assert statistics[name] == dict(sorted(Counter(reasons).items()))


@parametrize(
    "body, remark, message",
    text_table(r"""
        It dies. | Thanks. | no duplicates found; crawl or import more issues
        It dies at once. | Duplicate. | only uncertain ones \(no_target 1\); crawl or import more issues
        It dies at once. | Duplicate of a/b#1. | \(cross_repository 1\); set detect.allow_cross_repository=
         | Duplicate of #1 | every duplicate was rejected \(text_empty 1; see dropped.parquet\); crawl
        It dies. | Duplicate of #1 | \(text_too_short 1; .*\); lower text.min_words and text.min_chars
        It dies at once, always. | Duplicate of #1 | \(same_text 1; see dropped.parquet\); crawl or
        It dies at once, always. | Merged into #1. | relations='duplicate,superseded'
    """),
)
def test_no_dataset_without_positives(tmp_path, work, out, body, remark, message):
    issues = [
        issue("o/n", 1, title="", body=body),
        issue("o/n", 2, title="", body=body, **closed("max", 9)),
    ]
    write_tracker(
        tmp_path / "dump",
        "o/n",
        issues=issues,
        comments=[comment("o/n", 2, 1, remark, day=9)],
    )
    imported(tmp_path / "dump", work)
    detected = gis_builder.detect(work)
    assert bool(detected.next_steps()) == (detected.duplicates > 0)
    with data_error(message):
        gis_builder.pair(work, out)
    assert not (out).exists()


@table(
    """
    dropped, remedy
    {'relation_duplicate': 1} | give relations='duplicate,same'
    {'relation_tracked': 1, 'relation_indirect': 1} | give relations='same,tracked'
    {'text_too_short': 1, 'same_text': 1, 'low_same_probability': 1} | both
    """,
    both="lower min_same_probability= or lower text.min_words and text.min_chars",
)
def test_the_remedy_follows_the_reasons(out, dropped, remedy):
    run = {"settings": {"pair": {"relations": ["same"]}}}
    statistics = {"dropped_positives": dropped, "verdicts": {}}
    with data_error(f"{re.escape(remedy)}$"):
        write_gis(out, {}, {}, {}, seed=0, statistics=statistics, run=run, site=GITHUB)
