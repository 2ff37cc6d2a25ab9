"""Older issues that an issue may repeat, and R@k on a tracker's past, worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import gis_builder
from gis_builder.cli import app
from pairkit.app.errors import ConfigError, DataError
from pairkit.reviews.agreement import wilson

from .conftest import event, issue, write_tracker

SUN, COUNT = "acme/sun", 240


def day(number: int) -> str:
    return f"{datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=number):%Y-%m-%dT%H:%M:%SZ}"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An issue a day, of which every fourth was marked as a duplicate of the one before it."""
    root = tmp_path_factory.mktemp("sun")
    issues, events = [], []
    for number in range(1, COUNT + 1):
        opened = {"created_at": day(number), "updated_at": day(number)}
        if number % 4 == 0:
            when = {"created_at": day(number + 1), "state_reason": "duplicate"}
            opened |= {"state": "closed", "closed_at": day(number + 1), "closed_by": {"login": "max"}}
            events += [
                event(SUN, number, "marked_as_duplicate", 1, **when, canonical=f"{SUN}#{number - 1}"),
                event(SUN, number, "closed", 1, **when),
            ]
        issues.append(issue(SUN, number, **opened))
    write_tracker(root / "dump", SUN, issues=issues, events=events)
    gis_builder.import_tracker(root / "dump", root / "work", progress=False)
    assert gis_builder.detect(root / "work", progress=False).duplicates == COUNT // 4
    return root / "work"


def hits() -> pl.DataFrame:
    """The first hit is the issue before, with a high cosine where it says the same; but of every sixteenth
    issue it stands second, behind one that says something else."""
    rows = []
    for number in range(2, COUNT + 1):
        found = [(number - 1, 0.9 if number % 4 == 0 else 0.3)]
        if number % 16 == 0:
            found = [(number - 2, 0.5), (number - 1, 0.4)]
        rows += [(number, other, rank, cosine) for rank, (other, cosine) in enumerate(found, 1)]
    return pl.DataFrame(rows, schema=["one", "other", "rank", "cosine"], orient="row").select(
        id_1=pl.lit(f"{SUN}#") + pl.col("one").cast(pl.String),
        id_2=pl.lit(f"{SUN}#") + pl.col("other").cast(pl.String),
        rank="rank",
        cosine="cosine",
        words=pl.lit(None, dtype=pl.Float64),
    )


def write(folder: Path, table: pl.DataFrame) -> Path:
    table.write_parquet(folder / "hits.parquet")
    return folder / "hits.parquet"


def test_recall_is_of_issues_that_repeat_an_older_one(work: Path, tmp_path: Path) -> None:
    file = write(tmp_path, hits())
    done = gis_builder.backtest(file, work)
    assert (done.issues, done.repeats, done.elsewhere) == (240, 60, 0)
    assert done.recall[1].value == 45 / 60  # of every sixteenth issue the right hit is the second one
    assert list(done.recall) == [1]  # no issue has more than two hits
    later = gis_builder.backtest(file, work, since=day(121))
    assert (later.issues, later.repeats) == (120, 30)
    assert later.recall[1].value == 22 / 30  # 128, 144, ... 240 are the sixteenths
    assert later.recall[1].interval == wilson(22, 30)


def test_only_chosen_relations_count(work: Path, tmp_path: Path) -> None:
    done = gis_builder.backtest(write(tmp_path, hits()), work, relations="superseded")
    assert (done.repeats, done.recall[1].value) == (0, None)


def test_hits_in_other_repositories_are_left_out_and_counted(tmp_path: Path) -> None:
    write_tracker(tmp_path / "dump", "acme/moon", issues=[issue("acme/moon", 1, created_at=day(0))])
    write_tracker(
        tmp_path / "dump",
        SUN,
        issues=[issue(SUN, 1, created_at=day(1)), issue(SUN, 2, created_at=day(2))],
    )
    gis_builder.import_tracker(tmp_path / "dump", tmp_path / "work", progress=False)
    gis_builder.detect(tmp_path / "work", progress=False)
    elsewhere = hits().head(1).with_columns(id_1=pl.lit(f"{SUN}#1"), id_2=pl.lit("acme/moon#1"))
    with pytest.raises(DataError, match="no hit in the repository of its issue"):
        gis_builder.backtest(write(tmp_path, elsewhere), tmp_path / "work")
    both = write(tmp_path, pl.concat([elsewhere, hits().head(1)]))
    assert gis_builder.backtest(both, tmp_path / "work").elsewhere == 1


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pl.DataFrame({"a": [1]}), "no hits with the columns id_1, id_2, rank"),
        (hits().rename({"id_1": "id_2", "id_2": "id_1"}), r"is not older than acme/sun#1"),
        (hits().with_columns(rank=None), "a rank is missing"),
        (hits().with_columns(id_2=None), "None is not in the crawl"),
        (
            hits().with_columns(id_2=pl.lit("acme/moon#1")),
            r"hits\.parquet:1: acme/moon#1 is not in the crawl",
        ),
        (hits().head(0), "no hit in the repository"),
    ],
)
def test_unusable_hits_are_refused(work: Path, tmp_path: Path, table: pl.DataFrame, words: str) -> None:
    with pytest.raises(DataError, match=words):
        gis_builder.backtest(write(tmp_path, table), work)


def test_a_time_after_all_issues_is_refused(work: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no issue of the crawl was opened from then on"):
        gis_builder.backtest(write(tmp_path, hits()), work, since="2100")


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({}, ConfigError, "expected --issue"),
        ({"issue": 1, "title": "x"}, ConfigError, "expected --issue"),
        ({"issue": 1, "top": 0}, ConfigError, "top 0: expected 1 to 50"),
        ({"issue": 999}, DataError, "acme/sun#999: no such issue in the crawl"),
        ({"title": " "}, DataError, "acme/sun: no text is left to search for"),
        ({"issue": 4}, ConfigError, "aoe search: .*no index.json"),
    ],
)
def test_a_search_that_is_impossible_ends_in_one_line(
    work: Path, tmp_path: Path, given: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        gis_builder.suggest(SUN, work=work, index=tmp_path / "none", **given)


def test_the_command(work: Path, tmp_path: Path) -> None:
    file = write(tmp_path, hits())
    done = CliRunner().invoke(app, ["backtest", str(file), "--work", str(work)])
    assert (done.exit_code, "75.0%" in done.output) == (0, True)
    done = CliRunner().invoke(app, ["suggest", "--repo", SUN, "--issue", "4"])
    assert done.exit_code == 2  # without --index
