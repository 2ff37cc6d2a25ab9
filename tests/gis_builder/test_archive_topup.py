"""Originals that the hours lack come from GitHub, and the dataset is as if they had been there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gis_builder
from gis_builder.store import Store
from gis_builder.store.records import Thread
from pairkit.app.errors import ConfigError, RemoteError
from tests.gis_builder.archive_world import SOURCES, events_of, lines_of, write_hours
from tests.gis_builder.test_archive import RANGE, files
from tests.support.github import Server, serve

HOURS = ["2015-01-01-0", "2015-01-01-1"]


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> list[Thread]:
    work = tmp_path_factory.mktemp("topup") / "gis.work"
    gis_builder.import_tracker(SOURCES, work, progress=False)
    with Store.open(work / "store.sqlite") as store:
        return list(store.threads(store.repos()[0].full_name))[:250]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, threads: list[Thread]) -> Any:
    folder = tmp_path_factory.mktemp("topup")
    write_hours(folder / "hours", lines_of(events_of(7, threads)), HOURS)
    return build(folder / "hours", folder / "gis")


@pytest.fixture(scope="module")
def originals(whole: Any) -> list[int]:
    """Half of the issues that are originals alone."""
    rows = whole.pairs.rows.filter(pl.col("label") == 1)
    clusters = {int(name.rpartition("#")[2]) for name in rows["cluster"]}
    return sorted(clusters)[::2]


@pytest.fixture(scope="module")
def lacking(tmp_path_factory: pytest.TempPathFactory, threads: list[Thread], originals: list[int]) -> Path:
    """Hours without any event of these originals."""
    folder = tmp_path_factory.mktemp("topup") / "hours"
    left = [thread for thread in threads if thread.issue.number not in originals]
    write_hours(folder, lines_of(events_of(7, left)), HOURS)
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(SOURCES) as server:
        yield server


def build(source: Path, out: Path, **more: Any) -> Any:
    given = {"workers": 1, "progress": False, **more}
    return gis_builder.archive(RANGE, source, out, **given)


def told(server: Server, token: str = "any") -> dict[str, Any]:
    return {"settings": {"api_url": server.url}, "token": token, "top_up": True}


def pairs(built: Any) -> set[tuple[str, ...]]:
    rows = built.pairs.rows.filter(pl.col("label") == 1)
    return {tuple(sorted(row)) for row in rows.select("url1", "url2").iter_rows()}


def test_what_the_hours_lack_comes_from_github(
    whole: Any,
    lacking: Path,
    originals: list[int],
    tmp_path: Path,
) -> None:
    without = build(lacking, tmp_path / "without")
    assert len(pairs(without)) < len(pairs(whole)) - len(originals) // 2
    assert "GitHub was asked for nothing" in (without.out / "README.md").read_text()
    with serve(SOURCES) as other:
        there = told(other)
        made = build(lacking, tmp_path / "gis", **there)
    assert len(pairs(made) & pairs(whole)) >= 0.95 * len(pairs(whole))
    assert made.statistics["topped_up"]["issues"] >= len(originals) * 0.9
    assert made.statistics["verdicts"].keys() == whole.statistics["verdicts"].keys()
    card = (made.out / "README.md").read_text()
    assert f"GitHub had {made.statistics['topped_up']['issues']:,} issues" in card
    assert "asked for nothing" not in card
    made.audit.check()
    first = files(made.out)
    again = build(lacking, tmp_path / "gis", **there)  # the server is gone, and is not asked
    assert (again.judged_anew, files(again.out)) == (0, first)
    without_again = build(lacking, tmp_path / "without-again", work=made.work)
    assert files(without_again.out) == files(without.out)


def test_of_a_name_that_was_taken_over_later_nothing_is_taken(
    lacking: Path, threads: list[Thread], originals: list[int], server: Server, tmp_path: Path
) -> None:
    """All that the server has is younger than what the hours know of the repository."""
    early = [
        replace(
            thread,
            issue=replace(thread.issue, **{key: _before(getattr(thread.issue, key)) for key in _TIMES}),
            comments=tuple(replace(c, created_at=_before(c.created_at)) for c in thread.comments),
            events=tuple(replace(e, created_at=_before(e.created_at)) for e in thread.events),
        )
        for thread in threads
        if thread.issue.number not in originals
    ]
    write_hours(tmp_path / "hours", lines_of(events_of(7, early)), HOURS)
    made = build(tmp_path / "hours", tmp_path / "gis", **told(server))
    assert made.statistics["topped_up"]["issues"] == 0
    assert made.statistics["topped_up"]["missing"] > 0


_TIMES = ("created_at", "updated_at", "closed_at")


def _before(time: str | None) -> str | None:
    return None if time is None else f"200{time[3:]}"


def test_a_server_that_fails_and_one_without_a_token(
    lacking: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="no GitHub token found"):
        build(lacking, tmp_path / "gis", top_up=True)
    with serve(SOURCES) as other:
        with pytest.raises(RemoteError, match="refuses the token"):
            build(lacking, tmp_path / "gis", **told(other, "bad"))
        made = build(lacking, tmp_path / "gis", **told(other))
    assert made.statistics["topped_up"]["issues"] > 0


@pytest.mark.slow
def test_killed_while_it_asks_it_continues(lacking: Path, tmp_path: Path) -> None:
    with serve(SOURCES, latency=0.3) as slow:
        command = [
            *(sys.executable, "-m", "gis_builder", "archive", "--hours", RANGE, "--source", str(lacking)),
            *("--out", str(tmp_path / "gis"), "--workers", "1", "-q", "--top-up"),
            *("--set", f"api_url={slow.url}"),
        ]
        driver = subprocess.Popen(command, env={**os.environ, "GITHUB_TOKEN": "any"})
        until = time.monotonic() + 120
        while not list((tmp_path / "gis.work").glob("topped/*/store.sqlite")) and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.3)
        driver.kill()
        driver.wait()
        made = build(lacking, tmp_path / "gis", **told(slow))
        other = build(lacking, tmp_path / "other", **told(slow))
    assert files(made.out) == files(other.out)
