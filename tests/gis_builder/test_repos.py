from pathlib import Path

import pytest

from gis_builder.store.repos import read_repos
from pairkit.app.errors import ConfigError, DataError

DATA = Path(__file__).parents[2] / "data"


def test_the_papers_list_has_55_repositories() -> None:
    names = read_repos(str(DATA / "repos.txt"))
    assert len(names) == 55
    assert {"bumptech/glide", "jax-ml/jax", "fastapi/fastapi"} <= set(names)


def test_file_with_comments_addresses_and_repeats(tmp_path: Path) -> None:
    file = tmp_path / "repos.txt"
    file.write_bytes(
        "\ufeff# ours\r\nrust-lang/rust  # the compiler\r\n\r\nhttps://github.com/Vercel/next.js.git\r\n"
        "git@github.com:a/b.git\r\nRust-Lang/Rust\r\nhttps://github.com/c/d/\r\n".encode()
    )
    assert read_repos(str(file)) == ["rust-lang/rust", "Vercel/next.js", "a/b", "c/d"]


def test_comma_list() -> None:
    assert read_repos("a/b, c/d,,A/B") == ["a/b", "c/d"]


def test_a_list_longer_than_any_path() -> None:
    assert len(read_repos(",".join(f"owner/name-{number}" for number in range(1000)))) == 1000


def test_a_managed_users_name() -> None:
    assert read_repos("ann_acme/tools") == ["ann_acme/tools"]


@pytest.mark.parametrize(
    "source", ["", " , ", "nosuch.txt", "a/b,c", "a/b/c", "a/..", "-a/b", "a/b\0", "x" * 300]
)
def test_neither_file_nor_list(source: str) -> None:
    with pytest.raises(ConfigError, match="neither an existing file nor owner/name"):
        read_repos(source)


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
