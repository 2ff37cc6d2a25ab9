"""The command line of `gis build` on the sample trackers over HTTP, and `pairs` on its dataset."""

import json

import datasets
import polars as pl
import pytest

from tests.contract.conftest import SAMPLE, SAMPLE_REPOS, run_pairs
from tests.contract.label_command import tree

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def frame(out):
    return pl.concat(
        pl.read_parquet(path) for path in sorted((out / "data").glob("*.parquet"))
    )


def truth():
    return {
        ("/".join(path.parts[-3:-1]), row["number"]): row
        for path in SAMPLE.glob("*/*/truth.jsonl")
        for row in map(json.loads, path.read_text().splitlines())
    }


def test_json_ends_with_one_object(sample_build):
    out, done = sample_build
    assert len(done.out.strip().splitlines()) == 1
    result = done.result
    assert " ".join(result) == (
        "out positives negatives train validation test points requests seconds peak_rss_mb"
    )
    assert result["out"] == str(out)
    assert result["positives"] + result["negatives"] == sum(
        result[s] for s in ("train", "validation", "test")
    )
    assert result["positives"] >= 115
    assert 0 < result["points"] <= 25
    assert "points per 100 positives" in done.err


def test_dataset_loads_as_it_is(sample_build, tmp_path):
    out, done = sample_build
    loaded = datasets.load_dataset(str(out), cache_dir=str(tmp_path))
    assert {split: rows.num_rows for split, rows in loaded.items()} == {
        split: done.result[split] for split in ("train", "validation", "test")
    }
    assert loaded["train"].column_names[:3] == ["text1", "text2", "label"]
    assert loaded["train"].features["label"].dtype == "int64"
    positive = datasets.load_dataset(str(out), "positive", cache_dir=str(tmp_path))
    assert positive["train"].column_names == ["anchor", "positive"]
    assert sum(rows.num_rows for rows in positive.values()) == done.result["positives"]


def test_labels_agree_with_the_hand_written_truth(sample_build):
    """Positives are duplicate and target, or two duplicates of one target; negatives are neither."""
    out, _ = sample_build
    stated = truth()
    for repo, one, two, label in (
        frame(out).select("repo", "number1", "number2", "label").iter_rows()
    ):
        pair = [stated.get((repo, one)), stated.get((repo, two))]
        targets = [
            row["targets"]
            for row in pair
            if row and (not label or row["verdict"] == "duplicate")
        ]
        tied = any(one in t or two in t for t in targets)
        assert tied if label else not tied, (repo, one, two)


def test_verdicts_file(sample_build):
    work = sample_build[0].with_name("gis.work")
    columns = "repo number verdict targets targets_elsewhere confidence reason evidence relation"
    assert " ".join(pl.read_parquet(work / "verdicts.parquet").columns) == columns
    for name in ("store.sqlite", "verdicts.parquet"):
        assert (work / name).stat().st_mode & 0o077 == 0


def test_audit_show_export(sample_build, tmp_path):
    out, _ = sample_build
    shown = run_pairs("show", out, "--label", "1")
    assert shown.code == 0, shown.err
    exported = run_pairs("export", out, "--format", "csv", "--out", tmp_path / "csv")
    assert exported.code == 0, exported.err
    assert (tmp_path / "csv" / "train.csv").is_file()
    audited = run_pairs("audit", tmp_path / "csv" / "train.csv")
    assert audited.code == 0, audited.err
    assert audited.out.endswith("no leaks\n")
    assert run_pairs("audit", out).out.endswith("no leaks\n")
    assert (
        audited.err.splitlines()[-1]
        == f"  pairs report {tmp_path / 'csv' / 'train.csv'}"
    )


def test_a_second_run_sends_no_request_and_changes_nothing(
    sample_build, sample_url, gis
):
    out, first = sample_build
    before = tree(out)
    again = gis(
        "build",
        "--repos",
        SAMPLE_REPOS,
        "--api-url",
        sample_url,
        "--out",
        out,
        "--json",
    )
    assert again.code == 0, again.err
    assert again.result["points"] == first.result["points"]
    assert tree(out) == before


def test_the_stages_one_by_one_give_the_same_bytes(
    sample_build, sample_url, gis, tmp_path
):
    out, _ = sample_build
    work, again = str(tmp_path / "work"), tmp_path / "again"
    crawl = gis(
        "crawl",
        "--repos",
        SAMPLE_REPOS,
        "--api-url",
        sample_url,
        "--work",
        work,
        "--json",
    )
    assert crawl.code == 0, crawl.err
    assert gis("detect", "--work", work).code == 0
    paired = gis("pair", "--work", work, "--out", again)
    assert paired.code == 0, paired.err
    assert tree(again) == tree(out)
    others = [
        "--seed",
        "7",
        "--negatives",
        "hard",
        "--split-sizes",
        "120,20,10",
        "--fresh",
        "--json",
    ]
    done = gis("pair", "--work", work, "--out", again, *others)
    assert done.code == 0, done.err
    assert set(frame(again)["negative_kind"].drop_nulls()) <= {"hard", "random"}
    assert [done.result[name] for name in ("train", "validation", "test")] == [
        120,
        20,
        10,
    ]


def test_no_label_in_the_texts(sample_build):
    out, _ = sample_build
    rows = frame(out)
    for column, partner in (("text1", "number2"), ("text2", "number1")):
        leaks = rows.filter(
            pl.col(column).str.contains(pl.format("#{}\\b", pl.col(partner)))
            | pl.col(column).str.contains(pl.format("/issues/{}\\b", pl.col(partner)))
            | pl.col(column)
            .str.to_lowercase()
            .str.contains(r"duplicate of|dup of|\[duplicate\]")
        )
        assert leaks.is_empty(), leaks.select("repo", "number1", "number2")


def test_secrets_are_scrubbed(sample_build):
    out, _ = sample_build
    texts = pl.concat([frame(out)["text1"], frame(out)["text2"]])
    assert not texts.str.contains(
        r"ghp_[A-Za-z0-9]{36}|AKIA[0-9A-Z]{16}|[\w.]+@example\.org"
    ).any()
