"""Invalid input of `gis` ends with a one-line message and the right exit code."""

import json

import polars as pl

from tests.gis_builder.conftest import closed, comment, issue, write_tracker
from tests.support.github import serve
from tests.support.shorthand import each_line, module_fixture, parametrize

ONE = "quarryhq/quarry"


def write_repo(folder, name, bodies, duplicates=None, **info):
    """Write a tracker of closed issues with comments of the owner that close some as duplicates."""

    def at(day):
        return f"2020-01-0{day}T00:00:00Z"

    times = {"created_at": at(1), "updated_at": at(3)}
    issues = [
        issue(
            name,
            1,
            title=f"The parser breaks in case {number}",
            body=body,
            **closed("owner", 2),
        )
        | {"number": number, "closed_at": at(2), **times}
        for number, body in bodies.items()
    ]
    comments = [
        comment(name, number, number, f"Closing as a duplicate of #{target}", "owner")
        | {"author_association": "OWNER", **times}
        for number, target in (duplicates or {}).items()
    ]
    write_tracker(folder, name, info, issues=issues, comments=comments)


def lorem(number):
    return " ".join(
        f"word{number * 37 % 101}x{place * number % 89}" for place in range(60)
    )


@module_fixture
def odd_url(tmp_path_factory):
    """The URL of a server with unusual repositories."""
    folder = tmp_path_factory.mktemp("odd")
    plain = {number: lorem(number) for number in range(1, 12)}
    write_repo(folder, "good/one", plain | {20: lorem(20)}, {20: 3})
    write_repo(folder, "good/calm", plain)
    write_repo(folder, "odd/private", plain, private=True)
    write_repo(folder, "odd/no-issues", {}, has_issues=False)
    write_repo(folder, "odd/empty", {})
    write_repo(folder, "odd/new-name", plain, previous_names=["odd/old-name"])
    bodies = (
        None,
        "",
        "\U0001f980 " * 50,
        "long line " * 6000,
        "one\r\ntwo\r\n" * 30,
        "nul \u0000 in it " * 20,
    )
    odd = dict(enumerate(bodies, 1))
    targets = {number: lorem(number) for number in range(51, 60)}
    write_repo(
        folder, "odd/bodies", odd | targets, {number: 50 + number for number in odd}
    )
    with serve(folder) as server:
        yield server.url


def build(gis, url, out, *flags, repos="good/one", **options):
    return gis(
        "build", "--repos", repos, "--api-url", url, "--out", out, *flags, **options
    )


@each_line("""
    code, says, token, flags
    2 | set GITHUB_TOKEN | |
    4 | rejects the token | bad |
    2 | no repository can be crawled (good/one | noaccess |
    2 | good/onne | any | --repos good/onne
    3 | no duplicates found | any | --repos good/calm
    4 | can't be reached | any | --api-url http://127.0.0.1:9 --set crawl.backoff_s=0.01
    2 | largest possible sizes | any | --split-sizes 5000,10,10
    2 | finite number | any | --split-sizes nan,nan,nan
    2 | expected three numbers | any | --split-sizes 0.5,0.1 --dry-run
    2 | three numbers | any | --split-sizes a,b,c --dry-run
    2 | add up to 1 | any | --split-sizes 0.5,0.1,0.1 --dry-run
    2 | negative | any | --split-sizes -1,2,3 --dry-run
    2 | train | any | --split-sizes 0,1,0 --dry-run
    2 | 'search' or 'all' | any | --strategy fast
    2 | unknown setting 'pair.rato' | any | --set pair.rato=1
    2 | no such configuration file | any | --config nosuch.toml
""")
def test_invalid_builds_end_with_a_message(
    gis, odd_url, tmp_path, code, says, token, flags
):
    done = build(gis, odd_url, tmp_path / "o", *flags.split(), token=token or None)
    assert done.code == int(code), done.err
    assert says in done.error
    assert not (tmp_path / "o").exists()
    assert token or not (tmp_path / "o.work").exists()


def test_odd_repositories_do_not_stop_the_good_one(gis, odd_url, tmp_path):
    outcomes = {
        "good/one": "ok",
        "odd/private": "not_found",  # GitHub's response without access
        "odd/no-issues": "issues_disabled",
        "odd/empty": "empty",
        "odd/old-name": "renamed",
        "odd/unknown": "not_found",
        "misspelt/x": "not_found",
    }
    done = build(
        gis, odd_url, tmp_path / "o", "--split-sizes", "1,0,0", repos=",".join(outcomes)
    )
    assert done.code == 0, done.err
    repositories = json.loads((tmp_path / "o" / "run.json").read_text())["repositories"]
    assert {name: repositories[name]["outcome"] for name in outcomes} == outcomes
    named = [line.partition(": ")[0] for line in done.err.splitlines()]
    assert {*outcomes} - {*named} == {"good/one"}


@parametrize("flag", [(), ("--strategy", "all")])
def test_odd_bodies(gis, odd_url, tmp_path, flag):
    out = tmp_path / "o"
    done = build(gis, odd_url, out, "--split-sizes", "1,0,0", *flag, repos="odd/bodies")
    assert done.code == 0, done.err
    rows = pl.read_parquet(out / "data" / "train-*.parquet")
    texts = pl.concat([rows["text1"], rows["text2"]])
    assert not texts.str.contains("\r|\u0000").any()
    assert texts.str.contains("\U0001f980").any()
    assert texts.str.len_chars().max() > 50_000
