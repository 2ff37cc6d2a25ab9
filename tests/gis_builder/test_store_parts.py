"""Working folders, lists of repositories, tables of references, decoding and sites."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gis_builder
from gis_builder.api.common_options import read_repos
from gis_builder.pairing.split import RefTable
from gis_builder.store.decoding import MAX_NUMBER
from gis_builder.store.issue_records import IssueRef
from gis_builder.store.store import open_store, site_at, working_folder
from pairkit import ConfigError, DataError


def test_a_misspelt_working_folder_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"), working_folder(tmp_path / "w", create=False):
        pass
    assert not (tmp_path / "w").exists()


def test_a_file_of_repositories(tmp_path: Path) -> None:
    file = tmp_path / "repos.txt"
    file.write_bytes(
        "\ufeff# ours\r\nrust-lang/rust  # the compiler\r\n\r\nhttps://github.com/Vercel/next.js.git\r\n"
        "git@github.com:a/b.git\r\nRust-Lang/Rust\r\nhttps://github.com/c/d/\r\n".encode()
    )
    assert read_repos(str(file)) == ["rust-lang/rust", "Vercel/next.js", "a/b", "c/d"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("a/b, c/d,,A/B", ["a/b", "c/d"]),
        ("ann_acme/tools", ["ann_acme/tools"]),  # of a managed user
        (",".join(f"o/n{number}" for number in range(999)), [f"o/n{number}" for number in range(999)]),
    ],
    ids=["commas", "managed", "longer than any path"],
)
def test_lists_of_repositories(source: str, names: list[str]) -> None:
    assert read_repos(source) == names


@pytest.mark.parametrize(
    "source", ["", " , ", "nosuch.txt", "a/b,c", "a/b/c", "a/..", "-a/b", "a/b\0", "x" * 300]
)
def test_invalid_lists_of_repositories(source: str) -> None:
    with pytest.raises(ConfigError, match="neither an existing file nor owner/name"):
        read_repos(source)


def test_the_papers_list() -> None:
    names = read_repos(SAMPLE.parent / "repos.txt")
    assert len(names) == 55
    assert {"bumptech/glide", "jax-ml/jax", "fastapi/fastapi"} <= set(names)


def test_malformed_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "repos.txt"
    file.write_text("a/b\n\nbump.tech glide\n")
    with pytest.raises(DataError, match=r"repos.txt:3: 'bump.tech glide' is not a repository"):
        read_repos(str(file))


@pytest.mark.parametrize("content", [b"", b"# nothing\n\n", b"\xff\xfe\x00a"])
def test_empty_or_binary_file(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "repos.txt"
    file.write_bytes(content)
    with pytest.raises(DataError, match="owner/name"):
        read_repos(str(file))


REFS = st.builds(
    IssueRef,
    st.sampled_from(["a/b", "A/b", "a/b-", "ä/ö", "z/z"]),  # the order differs in lower case
    st.one_of(st.integers(1, 20), st.integers(1, MAX_NUMBER)),
)


@given(st.lists(REFS, max_size=40))
def test_a_table_of_references_is_sorted(refs: list[IssueRef]) -> None:
    table = RefTable(refs)
    expected = sorted(set(refs))
    assert [table[place] for place in range(len(table))] == expected
    assert list(table.at(np.arange(len(table)))) == expected
    assert table.indices(refs).tolist() == [expected.index(ref) for ref in refs]
    assert table.repos == sorted({ref.repo for ref in refs})
    assert [table.repos[rank] for rank in table.repo_at(np.arange(len(table)))] == [r.repo for r in expected]
    for repo in {"a/b", "z/z", "none/here"}:
        assert [table[place] for place in table.of_repo(repo)] == [r for r in expected if r.repo == repo]


SAMPLE = Path(__file__).resolve().parents[2] / "data" / "sample"


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("api.github.com", "https://github.com"),
        ("api.acme.ghe.com", "https://acme.ghe.com"),
        ("github.example.com", "https://github.example.com"),
        ("apiary.example.com", "https://apiary.example.com"),
        ("127.0.0.1", "https://github.com"),
        ("::1", "https://github.com"),
        ("localhost", "https://github.com"),
    ],
)
def test_sites_of_api_hosts(host: str, site: str) -> None:
    assert site_at(host) == site


def test_urls_belong_to_the_server(tmp_path: Path) -> None:
    work = tmp_path / "gis.work"
    gis_builder.import_tracker(SAMPLE / "quarryhq", work, progress=False)
    with open_store(work) as store:
        assert store.site == "https://github.com"  # a saved tracker has no server
        store.set_crawl_record(store.crawl_record() | {"server": "github.example.com"})
        assert store.site == "https://github.example.com"
    gis_builder.detect(work, progress=False)
    rows = gis_builder.pair(work, tmp_path / "gis", progress=False).pairs.rows
    rendered = gis_builder.render(work, tmp_path / "issues.parquet", progress=False)
    evidence = rows.filter(pl.col("label") == 1)["evidence"].struct.field("url")
    links = [rows["url1"], rows["url2"], evidence, pl.read_parquet(rendered.out)["url"]]
    found = pl.concat([link.alias("url") for link in links])
    assert found.len() > 50
    assert found.str.starts_with("https://github.example.com/").all()
