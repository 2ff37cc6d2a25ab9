"""A tracker's past replayed: what is right, what is learnt, and how it is judged, worked out by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import gis_builder
from gis_builder._cli import app
from gis_builder._suggest.calibration import read_calibration
from pairkit.agreement import wilson
from pairkit.errors import ConfigError, DataError

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


def test_the_earlier_half_teaches_and_the_later_half_judges(work: Path, tmp_path: Path) -> None:
    done = gis_builder.backtest(write(tmp_path, hits()), work, tmp_path / "out")
    assert (done.issues, done.repeats, done.later_issues, done.later_repeats) == (240, 60, 120, 30)
    # 128, 144, … 240 are the sixteenths of the later half; 60 / 4 duplicates of all are sixteenths.
    assert done.recall[1].value == 45 / 60
    assert done.later_recall[1].value == 22 / 30
    assert done.later_recall[1].interval == wilson(22, 30)
    assert list(done.recall) == [1]  # no issue has more than two hits
    assert done.weeks == pytest.approx(119 / 7)
    at = {one.least: one for one in done.at_least}
    assert (at[0.9].suggestions, at[0.9].precision.value, at[0.9].found.value) == (22, 1.0, 22 / 30)
    assert at[0.9].a_week == pytest.approx(22 / 17)
    assert [tenth.seen for tenth in done.reliability] == [0.0, 1.0]
    learnt = read_calibration(tmp_path / "out" / "calibration.json")
    assert (learnt.evidence, learnt.issues, learnt.right) == (["cosine"], 119, 23)
    assert (learnt.until, learnt.repositories) == (day(120), [SUN])
    told = json.loads((tmp_path / "out" / "backtest.json").read_text())
    assert told == json.loads(json.dumps(done.to_dict()))
    assert done.suggestions.filter("right").height == 22
    assert done.suggestions.row(0)[:2] == (f"{SUN}#124", f"{SUN}#123")
    assert b"<svg" in (tmp_path / "out" / "precision.svg").read_bytes()


def test_all_of_a_cluster_says_the_same_and_other_relations_count_where_they_are_asked_for(
    work: Path, tmp_path: Path
) -> None:
    file = write(tmp_path, hits())
    with pytest.raises(
        DataError, match="0 of 119 first hits of the earlier part are right; expected at least"
    ):
        gis_builder.backtest(file, work, tmp_path / "out", relations="superseded")
    assert not (tmp_path / "out").exists()


def test_an_earlier_part_that_leaves_no_later_one_is_refused(work: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"learn 0\.999: of 240 issues none is left to judge by"):
        gis_builder.backtest(write(tmp_path, hits()), work, tmp_path / "out", learn=0.999)
    assert not (tmp_path / "out").exists()


def test_the_same_bytes_each_time_and_nothing_else_is_replaced(work: Path, tmp_path: Path) -> None:
    file, out = write(tmp_path, hits()), tmp_path / "out"
    gis_builder.backtest(file, work, out)
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    gis_builder.backtest(file, work, out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first
    (out / "mine.txt").write_text("x")
    with pytest.raises(ConfigError, match=r"mine\.txt"):
        gis_builder.backtest(file, work, out)


def test_hits_of_other_repositories_are_left_out_and_counted(tmp_path: Path) -> None:
    write_tracker(tmp_path / "dump", "acme/moon", issues=[issue("acme/moon", 1, created_at=day(0))])
    write_tracker(tmp_path / "dump", SUN, issues=[issue(SUN, 1, created_at=day(1))])
    gis_builder.import_tracker(tmp_path / "dump", tmp_path / "work", progress=False)
    gis_builder.detect(tmp_path / "work", progress=False)
    table = hits().head(1).with_columns(id_1=pl.lit(f"{SUN}#1"), id_2=pl.lit("acme/moon#1"))
    with pytest.raises(DataError, match="no hit of one repository"):
        gis_builder.backtest(write(tmp_path, table), tmp_path / "work", tmp_path / "out")


def test_a_hit_that_the_crawl_lacks_is_named(work: Path, tmp_path: Path) -> None:
    table = pl.concat([hits(), hits().head(1).with_columns(id_2=pl.lit("acme/moon#1"))])
    words = rf"hits\.parquet:{table.height}: acme/moon#1 is not in the crawl"
    with pytest.raises(DataError, match=words):
        gis_builder.backtest(write(tmp_path, table), work, tmp_path / "out")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pl.DataFrame({"a": [1]}), "holds no hits with the columns id_1, id_2, rank, cosine, words"),
        (hits().rename({"id_1": "id_2", "id_2": "id_1"}), r"is not older than acme/sun#1, which found it"),
        (hits().with_columns(cosine=None), "none with cosine or words"),
        (hits().with_columns(cosine=pl.lit("near")), "holds no hits with the columns"),
        (hits().with_columns(cosine=float("nan")), "that is no number"),
        (hits().with_columns(rank=None), "that is no number"),
        (hits().with_columns(id_2=None), "None is not in the crawl"),
        (hits().head(0), "no hit of one repository"),
    ],
)
def test_what_is_no_file_of_hits(work: Path, tmp_path: Path, table: pl.DataFrame, words: str) -> None:
    with pytest.raises(DataError, match=words):
        gis_builder.backtest(write(tmp_path, table), work, tmp_path / "out")
    with pytest.raises(DataError, match="no such file; have `aoe search`"):
        gis_builder.backtest(tmp_path / "none", work, tmp_path / "out")


def test_the_command_prints_a_table_or_json(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # a table that nobody looks at has no edge
    words = ["suggest", "--backtest", str(write(tmp_path, hits())), "--work", str(work)]
    words += ["--out", str(tmp_path / "out")]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert "60 of 240 issues repeat an older one" in shown.stderr
    assert ["0.90", "22", "1.29", "100.0%", "85.1%", "to", "100.0%", "73.3%"] in map(
        str.split, shown.stdout.splitlines()
    )
    told = CliRunner().invoke(app, [*words, "--json", "--learn", "0.6", "-q"])
    assert json.loads(told.stdout)["later_issues"] == 96
    assert told.stderr == ""
