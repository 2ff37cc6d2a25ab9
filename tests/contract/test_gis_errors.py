"""Bad input of `gis`: one line that says what to do, and the right exit code."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.contract.conftest import SAMPLE, SAMPLE_REPOS, Gis
from tests.support.github import FaultPlan, Rule, serve

ONE = "quarryhq/quarry"


def write_repo(folder: Path, name: str, issues: list[dict[str, object]], **info: object) -> None:
    """A tracker whose issues have what they must have; a comment of the owner closes those with `dup`."""
    at = folder / name
    at.mkdir(parents=True)
    (at / "repo.json").write_text(json.dumps({"full_name": name, **info}))
    base = {
        "title": "Something breaks when it should not",
        "state": "closed",
        "state_reason": "completed",
        "user": {"login": "ann", "type": "User"},
        "author_association": "NONE",
        "labels": [],
        "created_at": "2020-01-01T00:00:00Z",
        "updated_at": "2020-01-03T00:00:00Z",
        "closed_at": "2020-01-02T00:00:00Z",
        "closed_by": {"login": "owner"},
        "repository_url": f"https://api.github.com/repos/{name}",
    }
    comments = []
    with (at / "issues.jsonl").open("w", encoding="utf-8") as file:
        for issue in issues:
            target = issue.pop("dup", None)
            file.write(json.dumps(base | issue) + "\n")
            if target:
                comments.append(
                    {
                        "issue_url": f"{base['repository_url']}/issues/{issue['number']}",
                        "id": int(str(issue["number"])),
                        "user": {"login": "owner", "type": "User"},
                        "author_association": "OWNER",
                        "created_at": "2020-01-02T00:00:00Z",
                        "updated_at": "2020-01-02T00:00:00Z",
                        "body": f"Closing as a duplicate of #{target}",
                    }
                )
    (at / "comments.jsonl").write_text("".join(json.dumps(comment) + "\n" for comment in comments))


def lorem(number: int) -> str:
    return " ".join(f"word{number * 37 % 101}x{place * number % 89}" for place in range(60))


@pytest.fixture(scope="module")
def odd_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Repositories of every odd kind."""
    folder = tmp_path_factory.mktemp("odd")
    plain = [{"number": n, "body": lorem(n)} for n in range(1, 12)]
    write_repo(folder, "good/one", [{"number": 20, "body": lorem(20), "dup": 3}, *plain])
    write_repo(folder, "good/calm", [dict(issue) for issue in plain])
    write_repo(folder, "odd/private", [dict(issue) for issue in plain], private=True)
    write_repo(folder, "odd/no-issues", [], has_issues=False)
    write_repo(folder, "odd/empty", [])
    write_repo(folder, "odd/new-name", [dict(issue) for issue in plain], previous_names=["odd/old-name"])
    bodies = [
        None,
        "",
        "\U0001f980 " * 50,
        "long line " * 6000,
        "one\r\ntwo\r\n" * 30,
        "nul \u0000 in it " * 20,
    ]
    write_repo(
        folder,
        "odd/bodies",
        [
            *(
                {"number": n, "body": body, "dup": 50 + n, "title": f"Odd body number {n} breaks the parser"}
                for n, body in enumerate(bodies, 1)
            ),
            *({"number": 50 + n, "body": lorem(50 + n)} for n in range(1, 10)),
        ],
    )
    with serve(folder) as server:
        yield server.url


def test_no_token(gis: Gis, tmp_path: Path) -> None:
    done = gis("build", "--repos", "a/b", "--out", str(tmp_path / "o"), token=None)
    assert done.code == 2
    assert "set GITHUB_TOKEN" in done.error
    assert not (tmp_path / "o.work").exists()


def test_bad_token_never_shows(gis: Gis, odd_url: str, tmp_path: Path) -> None:
    done = gis(
        "build", "--repos", "good/one", "--api-url", odd_url, "--out", str(tmp_path / "o"), token="bad"
    )
    assert done.code == 4
    assert "refuses the token" in done.error


def test_token_without_access(gis: Gis, odd_url: str, tmp_path: Path) -> None:
    done = gis(
        "build", "--repos", "good/one", "--api-url", odd_url, "--out", str(tmp_path / "o"), token="noaccess"
    )
    assert done.code == 2
    assert "no repository can be crawled (good/one" in done.error


def test_unreachable_server(gis: Gis, tmp_path: Path) -> None:
    done = gis(
        *("build", "--repos", "a/b", "--api-url", "http://127.0.0.1:9", "--out", str(tmp_path / "o")),
        *("--set", "crawl.backoff_s=0.01"),
    )
    assert done.code == 4
    assert "can't be reached" in done.error


def test_odd_repositories_do_not_stop_the_good_one(gis: Gis, odd_url: str, tmp_path: Path) -> None:
    names = [
        "good/one",
        "odd/private",
        "odd/no-issues",
        "odd/empty",
        "odd/old-name",
        "odd/unknown",
        "misspelt/x",
    ]
    out = tmp_path / "o"
    done = gis(
        "build", "--repos", ",".join(names), "--api-url", odd_url, "--out", str(out), "--split", "1,0,0"
    )
    assert done.code == 0, done.err
    repositories = json.loads((out / "run.json").read_text())["repositories"]
    outcomes = {name: repositories[name]["outcome"] for name in names}
    assert outcomes == {
        "good/one": "ok",
        "odd/private": "not_found",  # what GitHub says to who may not see it
        "odd/no-issues": "issues_disabled",
        "odd/empty": "empty",
        "odd/old-name": "renamed",
        "odd/unknown": "not_found",
        "misspelt/x": "not_found",
    }
    for name in names[1:]:
        assert any(line.startswith(f"{name}: ") for line in done.err.splitlines())


def test_unknown_repository(gis: Gis, odd_url: str, tmp_path: Path) -> None:
    done = gis("build", "--repos", "good/onne", "--api-url", odd_url, "--out", str(tmp_path / "o"))
    assert done.code == 2
    assert "good/onne" in done.error


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "names no repository"), ("a/b\nnot a repository\n", "repos.txt:2: 'not a repository'")],
)
def test_bad_repos_file(gis: Gis, tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "repos.txt").write_text(content)
    done = gis("build", "--repos", str(tmp_path / "repos.txt"), "--out", str(tmp_path / "o"))
    assert done.code == 3
    assert words in done.error


def test_zero_duplicates(gis: Gis, odd_url: str, tmp_path: Path) -> None:
    done = gis("build", "--repos", "good/calm", "--api-url", odd_url, "--out", str(tmp_path / "o"))
    assert done.code == 3
    assert "no duplicates found" in done.error
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("flag", [(), ("--strategy", "sweep")])
def test_odd_bodies(gis: Gis, odd_url: str, tmp_path: Path, flag: tuple[str, ...]) -> None:
    out = tmp_path / "o"
    done = gis(
        "build", "--repos", "odd/bodies", "--api-url", odd_url, "--out", str(out), "--split", "1,0,0", *flag
    )
    assert done.code == 0, done.err
    rows = pl.read_parquet(out / "data" / "train-*.parquet")
    texts = pl.concat([rows["text1"], rows["text2"]])
    assert not texts.str.contains("\r|\u0000").any()
    assert texts.str.contains("\U0001f980").any()
    assert texts.str.len_chars().max() > 50_000


def test_outputs_in_the_way(gis: Gis, odd_url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    common = ("build", "--repos", "good/one", "--api-url", odd_url)
    for out, words in (
        (tmp_path / "file", "is a file"),
        (tmp_path / "mine", "no dataset of `gis`"),
        (tmp_path / "file" / "below", "can't be written"),
    ):
        done = gis(*common, "--out", str(out), "--work", str(tmp_path / "w"))
        assert done.code == 2, done.err
        assert words in done.error
        assert gis(*common, "--out", str(out), "--work", str(tmp_path / "w"), "--fresh").code == 2
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "x"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_folder(gis: Gis, odd_url: str, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    done = gis("build", "--repos", "good/one", "--api-url", odd_url, "--out", str(tmp_path / "locked" / "o"))
    assert done.code == 2
    assert "can't be written" in done.error


def test_full_disk(gis: Gis, sample_url: str, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small disk can be mounted by root only")
    try:
        common = ("build", "--repos", SAMPLE_REPOS, "--api-url", sample_url)
        full = gis(*common, "--out", str(tmp_path / "o"), "--work", str(disk / "w"))
        out_full = gis(*common, "--out", str(disk / "o"), "--work", str(tmp_path / "w"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    for done in (full, out_full):
        assert done.code == 2, done.err
        assert "no space left" in done.error
        assert "run the same command again" in done.error


def test_store_of_a_newer_version_or_damaged(gis: Gis, odd_url: str, tmp_path: Path) -> None:
    common = (
        "build",
        "--repos",
        "good/one",
        "--api-url",
        odd_url,
        "--out",
        str(tmp_path / "o"),
        "--split",
        "1,0,0",
    )
    assert gis(*common).code == 0
    store = tmp_path / "o.work" / "store.sqlite"
    whole = store.read_bytes()
    with sqlite3.connect(store) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    newer = gis(*common)
    assert newer.code == 3
    assert "newer version" in newer.error
    store.write_bytes(b"not a database at all" * 100)
    for broken in (b"not a database at all" * 100, whole[: len(whole) // 2]):
        store.write_bytes(broken)
        damaged = gis(*common)
        assert damaged.code == 3, damaged.err
        assert "move it away and run again" in damaged.error


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--split", "5000,10,10"), "the largest in this proportion"),
        (("--split", "nan,nan,nan"), "finite number"),
        (("--strategy", "fast"), "'search' or 'sweep'"),
        (("--set", "pair.rato=1"), "unknown setting 'pair.rato'"),
        (("--config", "nosuch.toml"), "no such configuration file"),
    ],
)
def test_settings_that_do_not_fit(
    gis: Gis, odd_url: str, tmp_path: Path, flags: tuple[str, ...], words: str
) -> None:
    done = gis("build", "--repos", "good/one", "--api-url", odd_url, "--out", str(tmp_path / "o"), *flags)
    assert done.code == 2, done.err
    assert words in done.error


def test_a_dry_run_checks_all_that_a_build_checks(gis: Gis, tmp_path: Path) -> None:
    done = gis("build", "--repos", "a/b", "--out", str(tmp_path / "gis"), "--split", "0.5,0.1", "--dry-run")
    assert done.code == 2
    assert "expected three numbers" in done.error


def test_clock_skew_waits_by_the_servers_clock(gis: Gis, tmp_path: Path) -> None:
    """The server's clock is two hours ahead and its quota is spent for a moment: nothing waits two hours."""
    plan = FaultPlan(clock_skew_s=7200, retry_after_s=0.2, rules=(Rule(kind="rate_limited_200", at=(2, 4)),))
    with serve(SAMPLE, faults=plan) as server:
        done = gis("crawl", "--repos", ONE, "--api-url", server.url, "--work", str(tmp_path / "w"), "--json")
        assert server.stats.faults
    assert done.code == 0, done.err
    assert done.result["seconds"] < 30


def test_one_process_in_a_working_folder(gis: Gis, sample_url: str, tmp_path: Path) -> None:
    import fcntl

    work = tmp_path / "w"
    work.mkdir()
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = gis("crawl", "--repos", ONE, "--api-url", sample_url, "--work", str(work))
    assert done.code == 2
    assert "another gis process" in done.error


def test_ctrl_c_does_not_wait_for_a_server_that_hangs(tmp_path: Path) -> None:
    plan = FaultPlan(stall_s=60, rules=(Rule(kind="stalled", probability=1),))
    with serve(SAMPLE, faults=plan) as server:
        command = [sys.executable, "-m", "gis_builder", "crawl", "--repos", ONE, "--api-url", server.url]
        process = subprocess.Popen(
            [*command, "--work", str(tmp_path / "w")],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "GITHUB_TOKEN": "any"},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        until = time.monotonic() + 20
        while not server.stats.requests and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == "interrupted; run the same command again to continue\n"


def test_a_dataset_never_replaces_its_store(gis: Gis, odd_url: str, tmp_path: Path) -> None:
    common = ("build", "--repos", "good/one", "--api-url", odd_url)
    for out, work in (("same", "same"), ("o", "o/work"), (".", "w")):
        done = gis(*common, "--out", out, "--work", work, cwd=tmp_path)
        assert done.code == 2
        assert "folder" in done.error
    assert list(tmp_path.iterdir()) == []


def test_no_working_folder(gis: Gis, tmp_path: Path) -> None:
    assert gis("status", "--work", str(tmp_path / "none")).code == 2


def test_usage_errors_exit_with_2(gis: Gis) -> None:
    assert gis("build").code == 2
    assert gis("nonsense").code == 2
    assert gis("build", "--repos", "a/b", "--nope").code == 2
