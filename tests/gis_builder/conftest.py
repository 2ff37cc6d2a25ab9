"""A small saved tracker, and servers and stores for tests."""

import json
import shutil
from pathlib import Path

import pytest
from graphql import build_schema

import gis_builder
from tests.support.github import serve
from tests.support.shorthand import module_fixture

from .archive_world import built, source, threads  # noqa: F401

API = "https://api.github.com/repos"
OFFICIAL = Path(__file__).parents[3] / "shared" / "github"
DATA = Path(__file__).with_name("data")
DAY = "2020-01-{:02d}T12:00:00Z"


def issue(repo, number, **fields):
    """An open issue by ann, opened on day `number`; `fields` override its defaults."""
    texts = {"title": f"Issue {number}", "body": f"Body of {number}", "labels": []}
    state = {
        "state": "open",
        **dict.fromkeys(("state_reason", "closed_at", "closed_by")),
    }
    author = {"user": {"login": "ann", "type": "User"}, "author_association": "NONE"}
    times = dict.fromkeys(("created_at", "updated_at"), DAY.format(number))
    return (
        {"repository_url": f"{API}/{repo}", "number": number}
        | texts
        | state
        | author
        | times
        | fields
    )


def closed(by, day, reason="completed"):
    """The fields of a closed issue."""
    state = {"state": "closed", "state_reason": reason, "closed_by": {"login": by}}
    return state | dict.fromkeys(("closed_at", "updated_at"), DAY.format(day))


def comment(repo, number, id_, body, login="max", day=20):
    """A comment of a maintainer."""
    author = {"user": {"login": login, "type": "User"}, "author_association": "MEMBER"}
    times = dict.fromkeys(("created_at", "updated_at"), DAY.format(day))
    return (
        {"issue_url": f"{API}/{repo}/issues/{number}", "id": id_, "body": body}
        | author
        | times
    )


def event(repo, number, kind, day, **fields):
    """An event by max."""
    about = {"event": kind, "actor": {"login": "max"}, "created_at": DAY.format(day)}
    return {"issue_url": f"{API}/{repo}/issues/{number}", **about, **fields}


def write_lines(path, rows):
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_tracker(root, name, info=None, **files):
    """Write one repository: `repo.json` and a file of JSON lines for each of `files`."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "repo.json").write_text(json.dumps({"full_name": name, **(info or {})}))
    for stem, rows in files.items():
        write_lines(folder / f"{stem}.jsonl", rows)


def write_world(root, remarks=5):
    """acme/rocket with seven issues, acme/fuel with two; a private, an issueless and an empty repository.

    | acme/rocket | |
    |---|---|
    | 1 | open, label bug |
    | 2 | closed as a duplicate of 1, marked so |
    | 3 | a merged pull request |
    | 4 | closed; null body; `remarks` comments |
    | 5 | marked as a duplicate of 1, unmarked, reopened |
    | 6 | closed by mark as a duplicate of acme/fuel#1; written by a bot |
    | 7, 8 | deleted; transferred to acme/fuel#2 |
    | 9 | closed as not planned, perhaps a duplicate of 8; its author's account is gone |
    """
    shutil.copytree(DATA / "world", root, dirs_exist_ok=True)
    own = [
        comment("acme/rocket", 4, 1000 + n, f"remark {n}", day=10)
        for n in range(remarks)
    ]
    with (root / "acme/rocket/comments.jsonl").open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in own)
    return root


@pytest.fixture(scope="session")
def tiny_dump(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("tiny"), remarks=120)


@module_fixture
def station_dump(tmp_path_factory):
    from .crawl_world import STATION, station_rows  # imports the functions above

    root = tmp_path_factory.mktemp("station")
    write_tracker(root, STATION, **station_rows())
    return root


@module_fixture
def station(station_dump):
    with serve(station_dump) as server:
        yield server


@module_fixture
def tiny(tiny_dump):
    with serve(tiny_dump) as server:
        yield server


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The dataset of the sample trackers, made without a token."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GITHUB_TOKEN", raising=False)
        return gis_builder.demo(tmp_path_factory.mktemp("demo") / "demo")


@pytest.fixture(scope="session")
def official():
    """GitHub's published schema with the fields of 2025."""
    files = [OFFICIAL / "schema.graphql", OFFICIAL / "schema-extensions.graphql"]
    if not all(file.exists() for file in files):
        pytest.skip("GitHub's published schema is not at ../shared/github")
    # The published schema repeats two fields of EnterpriseOwnerInfo, so it can't be validated.
    return build_schema(
        "\n".join(file.read_text() for file in files), assume_valid=True
    )


@pytest.fixture
def out(tmp_path):
    """Where a test writes its dataset."""
    return tmp_path / "out"


@pytest.fixture
def work(tmp_path):
    """The working folder of a test."""
    return tmp_path / "work"
