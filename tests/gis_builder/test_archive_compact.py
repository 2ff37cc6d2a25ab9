"""A month's hours to one file: the same rows however few hours are open at once."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gis_builder._archive import compact
from gis_builder._archive.compact import SHARES, compact_month, ledgers_of
from gis_builder._archive.extract import extract_hour
from tests.gis_builder.archive_world import write_hours
from tests.gis_builder.test_archive_extract import event, issue

NAMES = [f"2015-01-01-{hour}" for hour in range(5)]


@pytest.fixture
def hours(tmp_path: Path) -> list[Path]:
    """Five hours of three repositories; an issue is seen in each, another state every time."""
    lines = [
        event(
            10 * hour + repo,
            "IssuesEvent",
            {"action": "opened", "issue": issue(1, title=f"Crash {hour}")},
            f"acme/r{repo}",
            created_at=f"2015-01-01T{hour:02d}:00:00Z",
        ).replace(b'"repo":{"id":7', b'"repo":{"id":%d' % repo)
        for hour in range(5)
        for repo in (7, 8, 9)
    ]
    write_hours(tmp_path, lines, NAMES)
    made = []
    for name in NAMES:
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(extract_hour(tmp_path / f"{name}.json.gz", name))
        made.append(path)
    return made


def test_few_hours_at_once_give_the_rows_of_all_at_once(
    hours: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [compact_month(hours, place) for place in range(SHARES)]
    monkeypatch.setattr(compact, "_AT_ONCE", 2)
    assert [compact_month(hours, place) for place in range(SHARES)] == whole
    for place, data in enumerate(whole):
        (tmp_path / f"share-{place}").write_bytes(data)
    rows = pl.concat([pl.read_parquet(tmp_path / f"share-{place}") for place in range(SHARES)])
    issues = rows.filter(pl.col("kind") == "issue").sort("repo_id")
    assert issues["repo_id"].to_list() == [7, 8, 9]
    assert issues["title"].to_list() == ["Crash 4"] * 3  # the newest, of whichever hour
    assert [row.hour for row in ledgers_of([tmp_path / "share-0"])] == NAMES
