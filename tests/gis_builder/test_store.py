"""The store: pages and threads, snapshots, hashes, invalid files; lists of repositories and sites."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

import gis_builder
from gis_builder.api.common_options import read_repos
from gis_builder.store import Page, Store, StoredThread
from gis_builder.store.issue_records import Thread
from gis_builder.store.store import site_at
from pairkit import ConfigError, DataError
from tests.support.shorthand import (
    SAMPLE,
    config_error,
    data_error,
    parametrize,
    raises,
    table,
)

from .detect_threads import thread
from .working_folder import imported, verdicts

REPO = "acme/rocket"


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store.sqlite", create=True) as opened:
        yield opened


def an_issue(number, **changes):
    return thread(
        **{"repo": REPO, "number": number, "title": f"title {number}", **changes}
    ).issue


def test_reading_uses_a_snapshot(store):
    store.save(Page(threads=[Thread(an_issue(n)) for n in range(1, 4)]))
    reader = map(StoredThread.read, store.stored_threads(REPO))
    first = next(reader)
    store.save(Page(threads=[Thread(an_issue(n, title="newer")) for n in range(1, 6)]))
    assert [first.issue.number, *(t.issue.number for t in reader)] == [1, 2, 3]


def of_a_newer_version(path):
    with Store.open(path, create=True):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def of_another_program(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE songs (name)")


@table(
    """
    make, message
    absent | no such store; run `gis import` or `gis crawl` first
    newer | made by a newer version .99, here 1.: update aoe-toolkit, or choose
    other | not a crawl store
    """,
    absent=bool,
    newer=of_a_newer_version,
    other=of_another_program,
)
def test_invalid_stores_end_in_a_one_line_error(tmp_path, make, message):
    make(tmp_path / "store.sqlite")
    for use in (gis_builder.status, gis_builder.detect):
        with raises((ConfigError, DataError), match=message) as caught:
            use(tmp_path)
        assert "\n" not in str(caught.value)
    with config_error("no such folder"):
        gis_builder.detect(tmp_path / "misspelt")
    assert not (tmp_path / "misspelt").exists()


LISTED = (
    "\ufeff# ours\r\nrust-lang/rust  # the compiler\r\n\r\nhttps://github.com/Vercel/next.js.git\r\n"
    "git@github.com:a/b.git\r\nRust-Lang/Rust\r\nhttps://github.com/c/d/\r\n"
    "https://github.com/e/issues/issues?q=is%3Aopen\r\n"
).encode()


def test_lists_of_repositories(tmp_path):
    file = tmp_path / "repos.txt"
    file.write_bytes(LISTED)
    assert read_repos(str(file)) == [
        "rust-lang/rust",
        "Vercel/next.js",
        "a/b",
        "c/d",
        "e/issues",
    ]
    assert read_repos("a/b, c/d,,A/B") == ["a/b", "c/d"]
    assert read_repos("ann_acme/tools") == ["ann_acme/tools"]  # of a managed user
    many = [f"o/n{number}" for number in range(999)]  # longer than any path
    assert read_repos(",".join(many)) == many
    assert len(read_repos(SAMPLE.parent / "repos.txt")) == 55


@parametrize(
    "source", ["", "nosuch.txt", "a/b,c", "a/b/c", "a/..", "-a/b", "a/b\0", "x" * 300]
)
def test_invalid_lists_of_repositories(source):
    with config_error("neither an existing file nor owner/name"):
        gis_builder.plan(source, token="t")


@table(r"""
    content, message
    b'' | expected one owner/name per line
    b'# nothing\n\n' | expected one owner/name per line
    b'\xff\xfe\x00a' | expected owner/name
    b'a/b\n\nbump.tech glide\n' | repos.txt:3: 'bump.tech glide' is not a repository
""")
def test_invalid_files_of_repositories(tmp_path, content, message):
    (tmp_path / "repos.txt").write_bytes(content)
    with data_error(message):
        gis_builder.plan(tmp_path / "repos.txt", token="t")


def test_sites_of_api_hosts():
    sites = {
        "api.github.com": "https://github.com",
        "api.acme.ghe.com": "https://acme.ghe.com",
        "github.example.com": "https://github.example.com",
        "apiary.example.com": "https://apiary.example.com",
        **dict.fromkeys(("127.0.0.1", "::1", "localhost"), "https://github.com"),
    }
    assert {host: site_at(host) for host in sites} == sites


def test_urls_belong_to_the_server(tmp_path, work):
    """Saved addresses name it, such as a GitHub Enterprise; links in texts to it are references."""
    saved = Path(shutil.copytree(SAMPLE / "quarryhq", tmp_path / "saved"))
    for path in saved.rglob("*.jsonl"):
        text = path.read_text().replace("api.github.com", "git.acme.org/api/v3")
        path.write_text(text.replace("github.com", "git.acme.org"))
    imported(saved, work)
    imported(SAMPLE / "quarryhq", tmp_path / "github")
    assert verdicts(work) == verdicts(tmp_path / "github")
    rows = gis_builder.pair(work, tmp_path / "gis").pairs.rows
    rendered = gis_builder.render(work, tmp_path / "issues.parquet")
    evidence = rows.filter(pl.col("label") == 1)["evidence"].struct.field("url")
    links = [rows["url1"], rows["url2"], evidence, pl.read_parquet(rendered.out)["url"]]
    found = pl.concat([link.alias("url") for link in links])
    assert found.len() > 50
    assert found.str.starts_with("https://git.acme.org/").all()
    with config_error(r"contains issues of git\.acme\.org, not github\.com"):
        imported(SAMPLE / "quarryhq", work)
    hosts = {work: "api.github.com", tmp_path / "github": "git.acme.org"}
    for folder, host in hosts.items():
        access = {"token": "t", "api_url": f"https://{host}"}
        with config_error(f"contains issues of .*, not {host}"):
            gis_builder.crawl("quarryhq/quarry", folder, update=True, **access)
        with config_error("contains an imported tracker; choose another"):
            gis_builder.crawl("quarryhq/quarry", folder, **access)
