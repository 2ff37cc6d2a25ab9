"""Promises of `gis`: it continues after stops, counts what it drops, leaks nothing, and repeats its bytes."""

from __future__ import annotations

import gzip
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gis_builder
from pairkit import ConfigError
from tests.contract.conftest import (
    SAMPLE,
    SAMPLE_REPOS,
    Done,
    Gis,
    environment,
    killed_when,
    run_pairs,
)
from tests.contract.label_command import tree
from tests.contract.test_gis_build import frame
from tests.gis_builder.archive_world import (
    HOURS,
    MORE,
    build,
    command,
    files,
    tables,
    times,
    world,
    write_hours,
)
from tests.gis_builder.test_detect_probe import HOME, crawled, imported, write_probe
from tests.support.github import FaultPlan, Rule, serve

REPO = "quarryhq/quarry"
TWO_REPOS = f"lumenbase/lumen,{REPO}"
FAULTS = {
    **dict.fromkeys(("502", "partial", "dropped", "truncated"), 0.04),
    **dict.fromkeys(("504", "rate_limited_200", "secondary_403", "too_many_429"), 0.01),
    "stalled": 0.005,
}
# The sample's repositories are so small that a search would sweep them.
SETTINGS = ("all_if_small=false", "backoff_s=0.01", "secondary_wait_s=0.05", "timeout_s=2")


@pytest.mark.parametrize(
    ("kills", "repos", "strategy"),
    [
        (1, REPO, "search"),
        (1, TWO_REPOS, "all"),
        pytest.param(20, SAMPLE_REPOS, "search", marks=pytest.mark.slow),
        pytest.param(20, SAMPLE_REPOS, "all", marks=pytest.mark.slow),
    ],
)
def test_a_killed_build_continues_to_the_same_bytes(
    gis: Gis, kills: int, repos: str, strategy: str, tmp_path: Path
) -> None:
    """Whatever the moment, and with faults of the server."""
    settings = [flag for setting in SETTINGS for flag in ("--set", f"crawl.{setting}")]
    common = ("build", "--repos", repos, "--strategy", strategy, *settings)
    with serve(SAMPLE) as server:
        assert gis(*common, "--api-url", server.url, "--out", str(tmp_path / "calm")).code == 0
        most = server.stats.requests
    rules = tuple(Rule(kind=kind, probability=share) for kind, share in FAULTS.items())
    plan = FaultPlan(seed=11, retry_after_s=0.05, stall_s=1.0, rules=rules)
    moments = random.Random(11)
    with serve(SAMPLE, faults=plan) as server:
        arguments = (*common, "--api-url", server.url, "--out", str(tmp_path / "killed"))
        while kills:
            until = server.stats.requests + moments.randrange(1, most // 2)
            killed = killed_when(
                lambda until=until: server.stats.requests >= until,
                *("gis_builder", *arguments, "--fresh"),
                environ=environment(GITHUB_TOKEN="any"),
            )
            kills -= killed
            if not killed:  # it ended first: start again, so that kills are spread
                shutil.rmtree(tmp_path / "killed.work")
        while (done := gis(*arguments)).code == 4:
            pass
    assert done.code == 0, done.err
    assert tree(tmp_path / "killed") == tree(tmp_path / "calm")


@pytest.mark.parametrize("kind", ["stalled", "secondary_403"])
def test_ctrl_c_does_not_wait_for_a_server_that_hangs_or_lets_wait(tmp_path: Path, kind: str) -> None:
    plan = FaultPlan(stall_s=60, retry_after_s=600, rules=(Rule(kind=kind, probability=1),))
    with serve(SAMPLE, faults=plan) as server:
        flags = ("--repos", REPO, "--api-url", server.url, "--work", str(tmp_path / "w"))
        process = subprocess.Popen(
            [sys.executable, "-m", "gis_builder", "crawl", *flags],
            stderr=subprocess.PIPE,
            text=True,
            env=environment(GITHUB_TOKEN="any"),
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        while process.poll() is None and not server.stats.requests:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    *waits, last = said.splitlines()
    assert last == "interrupted; run the same command again to continue"
    assert all(line.startswith("waiting 600 s") for line in waits)


def test_a_second_run_sends_no_request_and_changes_nothing(
    sample_build: tuple[Path, Done], sample_url: str, gis: Gis
) -> None:
    out, first = sample_build
    before = tree(out)
    again = gis("build", "--repos", SAMPLE_REPOS, "--api-url", sample_url, "--out", str(out), "--json")
    assert again.code == 0, again.err
    assert again.result["points"] == first.result["points"]
    assert tree(out) == before


def test_the_stages_one_by_one_give_the_same_bytes_and_other_settings_need_fresh(
    sample_build: tuple[Path, Done], sample_url: str, gis: Gis, tmp_path: Path
) -> None:
    out, _ = sample_build
    work, again = str(tmp_path / "work"), tmp_path / "again"
    crawl = gis("crawl", "--repos", SAMPLE_REPOS, "--api-url", sample_url, "--work", work, "--json")
    assert crawl.code == 0, crawl.err
    assert gis("detect", "--work", work).code == 0
    pair = ("pair", "--work", work, "--out", str(again))
    paired = gis(*pair)
    assert paired.code == 0, paired.err
    assert tree(again) == tree(out)
    refused = gis(*pair, "--seed", "7")
    assert refused.code == 2
    assert "give --fresh to replace it" in refused.error
    others = ("--seed", "7", "--negatives", "hard", "--split-sizes", "120,20,10", "--fresh", "--json")
    done = gis(*pair, *others)
    assert done.code == 0, done.err
    assert set(frame(again)["negative_kind"].drop_nulls()) <= {"hard", "random"}
    assert [done.result[name] for name in ("train", "validation", "test")] == [120, 20, 10]


def test_no_label_in_the_texts(sample_build: tuple[Path, Done]) -> None:
    out, _ = sample_build
    rows = frame(out)
    for column, partner in (("text1", "number2"), ("text2", "number1")):
        leaks = rows.filter(
            pl.col(column).str.contains(pl.format("#{}\\b", pl.col(partner)))
            | pl.col(column).str.contains(pl.format("/issues/{}\\b", pl.col(partner)))
            | pl.col(column).str.to_lowercase().str.contains(r"duplicate of|dup of|\[duplicate\]")
        )
        assert leaks.is_empty(), leaks.select("repo", "number1", "number2")


def test_secrets_are_scrubbed(sample_build: tuple[Path, Done]) -> None:
    out, _ = sample_build
    texts = pl.concat([frame(out)["text1"], frame(out)["text2"]])
    assert not texts.str.contains(r"ghp_[A-Za-z0-9]{36}|AKIA[0-9A-Z]{16}|[\w.]+@example\.org").any()


def test_no_issue_in_two_splits(sample_build: tuple[Path, Done]) -> None:
    out, _ = sample_build
    seen: dict[tuple[str, int], set[str]] = {}
    for path in (out / "data").glob("*.parquet"):
        split = path.name.split("-")[0]
        for repo, *numbers in pl.read_parquet(path).select("repo", "number1", "number2").iter_rows():
            for number in numbers:
                seen.setdefault((repo, number), set()).add(split)
    assert all(len(splits) == 1 for splits in seen.values())
    audit = run_pairs("audit", str(out), "--json")
    assert audit.code == 0
    assert audit.result["leaks"] == []


@pytest.fixture(scope="module", params=["sample", "probe"])
def tracker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tracker")
    if request.param == "probe":
        return write_probe(root / "probe")
    ignored = shutil.ignore_patterns("inkwell-notes", "orrery3d", "tidepool-ui")
    return Path(shutil.copytree(SAMPLE, root / "sample", ignore=ignored))


def names(folder: Path) -> str:
    return ",".join(sorted(str(path.parent.relative_to(folder)) for path in folder.glob("*/*/repo.json")))


def test_import_and_crawls_give_the_same_verdicts(tracker: Path, tmp_path: Path) -> None:
    base = imported(tracker, tmp_path / "import")
    with serve(tracker) as server:
        for strategy in ("all", "search"):
            verdicts = crawled(
                server.url, names(tracker), tmp_path / strategy, "--strategy", strategy, "--update"
            )
            assert verdicts == {key: base[key] for key in verdicts}
            assert strategy == "search" or verdicts == base


def test_an_update_gives_the_same_verdicts(tmp_path: Path) -> None:
    """The first crawl precedes most threads."""
    whole, early = write_probe(tmp_path / "whole"), write_probe(tmp_path / "early")
    issues = early / HOME / "issues.jsonl"
    issues.write_text("".join(issues.read_text().splitlines(keepends=True)[:4]))
    for strategy in ("all", "search"):
        work = tmp_path / strategy
        with serve(early) as server:
            before = crawled(server.url, HOME, work, "--strategy", strategy)
        with serve(whole) as server:
            updated = crawled(server.url, HOME, work, "--strategy", strategy, "--update")
            fresh = crawled(server.url, HOME, tmp_path / f"{strategy}-fresh", "--strategy", strategy)
        assert updated == {key: fresh.get(key, updated[key]) for key in updated}
        assert updated.keys() >= fresh.keys()
        assert len(updated) > len(before)


def test_the_order_of_archived_events_does_not_change_pairs(built: Any, threads: Any, tmp_path: Path) -> None:
    lines = world(threads)
    shuffled = sorted(lines, key=lambda line: line[::-1])
    write_hours(tmp_path / "hours", [*shuffled, *lines[::7]], HOURS[::2])
    assert tables(build(tmp_path / "hours", tmp_path / "gis").out) == tables(built.out)


def test_a_second_archive_reuses_every_file(source: Path, tmp_path: Path) -> None:
    first = build(source, tmp_path / "gis")
    before, dataset = times(first.work), files(first.out)
    again = gis_builder.archive(
        "2015-01-01-0 .. 2015-02-01-2", source, tmp_path / "gis", workers=1, progress=False
    )
    assert again.positives
    assert (times(first.work), files(first.out)) == (before, dataset)


def test_an_added_hour_reuses_the_other_hours(threads: Any, tmp_path: Path) -> None:
    lines = world(threads)
    source, whole = tmp_path / "hours", tmp_path / "whole"
    write_hours(source, lines[:-40], HOURS)
    first = build(source, tmp_path / "gis")
    kept = {path: at for path, at in times(first.work).items() if path.startswith("hours/")}
    shutil.copytree(source, whole)
    write_hours(whole, [*lines[-40:], lines[0]], [MORE])  # with a repeated line
    with pytest.raises(ConfigError, match="fresh=True"):
        build(whole, tmp_path / "gis")
    more = build(whole, tmp_path / "gis", fresh=True)
    assert kept.items() < times(more.work).items()
    scratch = build(whole, tmp_path / "other")
    assert files(more.out) == files(scratch.out)
    assert times(more.work).keys() == times(scratch.work).keys()  # superseded files are gone
    write_hours(whole, lines[-60:-20], [MORE])  # another file of this hour
    replaced = build(whole, tmp_path / "gis", fresh=True)
    assert files(replaced.out) == files(build(whole, tmp_path / "third").out) != files(scratch.out)


def test_damaged_and_missing_hours_are_counted(source: Path, tmp_path: Path) -> None:
    hurt = tmp_path / "hours"
    shutil.copytree(source, hurt)
    (hurt / f"{HOURS[0]}.json.gz").unlink()
    path = hurt / f"{HOURS[1]}.json.gz"
    path.write_bytes(path.read_bytes()[:-2000])
    path = hurt / f"{HOURS[2]}.json.gz"
    path.write_bytes(gzip.compress(b"junk\n" + gzip.decompress(path.read_bytes()), mtime=0))
    made = build(hurt, tmp_path / "gis")
    month = made.statistics["months"]["2015-01"]
    assert HOURS[0] in month["missing_hours"]
    assert list(month["hours_broken_off"]) == [HOURS[1]]
    assert month["broken_lines"] == {"truncated line": 1}
    assert "1 truncated, 1 broken lines" in made.notes()[-1]


@pytest.mark.parametrize("places", [("judged",), pytest.param(("hours", "judged"), marks=pytest.mark.slow)])
def test_a_killed_archive_continues_to_the_same_bytes(
    built: Any, source: Path, tmp_path: Path, places: tuple[str, ...]
) -> None:
    """Kill the driver in several stages; its workers end, too."""
    out = tmp_path / "gis"
    for place in places:
        driver = subprocess.Popen(
            command(source, out, "--workers", "2"), env={**os.environ, "RUN_OF": str(out)}
        )
        while not list((tmp_path / "gis.work" / place).rglob("*.*")) and driver.poll() is None:
            time.sleep(0.01)
        driver.kill()
        driver.wait()
    assert files(build(source, out, fresh=True).out) == files(built.out)
    until = time.monotonic() + 60
    while list(_with_mark(f"RUN_OF={out}")) and time.monotonic() < until:
        time.sleep(0.05)
    assert not list(_with_mark(f"RUN_OF={out}"))


def _with_mark(mark: str) -> Iterator[int]:
    """The processes with this mark in their environment."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in variables:
            yield int(process.name)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_an_archive_in_one_line(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "gis"
    driver = subprocess.Popen(
        command(source, out, "--workers", "2"), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not list((tmp_path / "gis.work").glob("hours/*.parquet")) and driver.poll() is None:
        time.sleep(0.01)
    os.killpg(driver.pid, signal.SIGINT)  # like a terminal
    assert driver.communicate(timeout=300)[1] == "interrupted; run the same command again to continue\n"
    assert driver.returncode == 130
    assert not out.exists()


def test_logs_have_requests_and_verdicts_but_no_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "ghp_" + "s3cr3t" * 6
    with serve(SAMPLE) as server:
        access: Any = {"api_url": server.url, "token": secret, "progress": False, "work": tmp_path / "w"}
        gis_builder.crawl([REPO], **access)
        assert not caplog.messages  # no logging by default
        caplog.set_level(logging.INFO, "gis_builder")
        usage = gis_builder.crawl([REPO], update=True, **access).status.usage
        requests = [said for said in caplog.messages if said.startswith("200 ok in ")]
        gis_builder.detect(tmp_path / "w", progress=False)
    assert usage.requests > len(requests) > 0  # also those of the first crawl
    assert all(" points, " in said and " left: {" in said for said in requests)
    assert any(said.startswith(f"{REPO}: stored threads ") for said in caplog.messages)
    verdicts = [said for said in caplog.messages if said.startswith(f"{REPO}#")]
    assert any(": reused: duplicate (" in said for said in verdicts)
    assert secret not in caplog.text
