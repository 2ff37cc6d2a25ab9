"""The public functions on the sample trackers."""

import json

import polars as pl

import gis_builder
from tests.gis_builder.crawl_world import crawled
from tests.support.github import serve
from tests.support.shorthand import (
    SAMPLE,
    config_error,
    data_error,
    module_fixture,
    parametrize,
    raises,
    table,
)

from .conftest import issue, write_tracker

REPO = "quarryhq/quarry"


def test_a_build_from_lists_and_keywords(tmp_path):
    reported = []
    with serve(SAMPLE) as server:
        built = gis_builder.build(
            [REPO, "github.com/northbeam/ferry"],
            tmp_path / "gis",
            api_url=server.url,
            token="any",
            strategy="all",
            split_sizes=(0.6, 0.2, 0.2),
            settings={"pair.cluster_cap": 5},
            progress=reported.append,
        )
        plan = gis_builder.plan([REPO], api_url=server.url, token="any", strategy="all")
    assert built.work == tmp_path / "gis.work"
    assert [row.name for row in built.repositories] == [REPO, "northbeam/ferry"]
    assert built.positives + built.negatives == sum(
        rows.height for rows in built.pairs.splits.values()
    )
    assert str(tmp_path / "gis") in repr(built)
    assert "<table>" in built._repr_html_()
    run = json.loads((built.out / "run.json").read_text())
    assert run["settings"]["split"]["sizes"] == [0.6, 0.2, 0.2]
    assert run["settings"]["pair"]["cluster_cap"] == 5
    assert plan.points > 0
    stages = {at.stage for at in reported}
    assert {
        "repositories: sweeping",
        f"{REPO}: sweeping",
        "detecting duplicates",
    } <= stages
    assert any(at.note.endswith("points left") for at in reported)
    (last,) = {
        at.done for at in reported if at.stage == "repositories: sweeping" and at.ended
    }
    assert last == 2


def test_a_failed_repository_is_reported_with_all_outcomes(tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text('[[rules]]\nkind = "dropped"\nat = [3, 4]\n')
    quick = {"crawl.attempts": 2, "crawl.backoff_s": 0, "crawl.strategy": "all"}
    repos = [REPO, "northbeam/ferry"]
    with (
        serve(SAMPLE, faults=plan) as server,
        raises(gis_builder.IncompleteCrawlError, match="ferry") as caught,
    ):
        gis_builder.crawl(
            repos, tmp_path / "work", api_url=server.url, token="any", settings=quick
        )
    assert "northbeam/ferry: failed, the others continue (" in capsys.readouterr().err
    assert [row.outcome for row in caught.value.crawled.repositories] == [
        "ok",
        "failed",
    ]


def by_length(texts):
    """Rank texts by similar length."""
    places = range(len(texts))
    return [
        sorted(
            (p for p in places if p != own),
            key=lambda p: abs(len(texts[p]) - len(texts[own])),
        )[:9]
        for own in places
    ]


def test_negatives_from_a_function(demo, tmp_path):
    work = demo.work
    built = gis_builder.pair(work, tmp_path / "own", negatives=by_length, match="none")
    name = f"{by_length.__module__}.by_length"
    assert (
        json.loads((built.out / "run.json").read_text())["settings"]["pair"][
            "negatives"
        ]
        == name
    )
    assert built.statistics["negative_kinds"][name] > 0.8 * built.negatives
    train = built.pairs.splits["train"]
    lengths = [train[text].str.len_chars().cast(int) for text in ("text1", "text2")]
    gaps = (lengths[0] - lengths[1]).abs()
    assert (
        gaps.filter(train["label"] == 0).median()
        < gaps.filter(train["label"] == 1).median()
    )
    with config_error("other settings"):
        gis_builder.pair(work, tmp_path / "own", negatives="hard", match="none")
    with config_error(r"expected random, mixed, hard, or in Python a function"):
        gis_builder.pair(work, tmp_path / "own", negatives="os:system")


@parametrize(
    "rank, message",
    [
        (lambda texts: [[len(texts)] for _ in texts], "expected indices of"),
        (lambda _texts: [], "text . has none"),
        (lambda texts: [["best"] for _ in texts], "a list of indices"),
    ],
)
def test_an_invalid_ranking_is_refused(demo, tmp_path, rank, message):
    with data_error(f"negatives by .*{message}"):
        gis_builder.pair(demo.work, tmp_path / "gis", negatives=rank)


def test_issues_are_rendered_as_in_a_dataset(tmp_path):
    work, file = tmp_path / "gis.work", tmp_path / "issues.parquet"
    gis_builder.import_tracker(SAMPLE / "quarryhq", work)
    gis_builder.detect(work)
    pairs = gis_builder.pair(work, tmp_path / "gis").pairs.rows
    counts = gis_builder.render(work, file).counts
    rows = pl.read_parquet(file)
    columns = "id repo number url text created_at state labels"
    assert " ".join(rows.columns) == columns
    assert rows.height == counts["written"] == rows["id"].n_unique()
    texts = dict(rows.select("id", "text").iter_rows())
    for side in ("1", "2"):
        names = ("repo", f"number{side}", f"text{side}")
        assert all(
            texts[f"{repo}#{n}"] == text
            for repo, n, text in pairs.select(names).iter_rows()
        )


def test_issues_without_text_are_counted(tmp_path, work):
    empty = {2: "", 3: "**EDIT:**", 4: "? - :-( \N{CRAB}"}
    issues = [
        issue("ann/tool", 1),
        *(issue("ann/tool", n, title="", body=body) for n, body in empty.items()),
    ]
    write_tracker(tmp_path / "saved", "ann/tool", issues=issues)
    gis_builder.import_tracker(tmp_path / "saved", work)
    rendered = gis_builder.render(work, tmp_path / "issues.parquet")
    assert rendered.to_dict() == {
        "out": str(rendered.out),
        "written": 1,
        "text_empty": 3,
    }


def test_a_renamed_repository_is_rendered_once(tiny, tmp_path, work):
    crawled(tiny, work, ["acme/missile", "acme/rocket"], strategy="all")
    rendered = gis_builder.render(work, tmp_path / "issues.parquet")
    assert sum(rendered.counts.values()) == 6
    assert pl.read_parquet(rendered.out)["id"].is_unique().all()


SUN = "acme/sun"


@module_fixture
def sun(tmp_path_factory):
    root = tmp_path_factory.mktemp("sun")
    write_tracker(
        root / "dump",
        SUN,
        issues=[issue(SUN, 1, title="...", body="edit:"), issue(SUN, 4)],
    )
    gis_builder.import_tracker(root / "dump", root / "sun")
    return root / "sun"


@table("""
    given, error, words
    {'issue': 1, 'top': 0} | ConfigError | top 0: expected 1 to 50
    {'issue': 999} | DataError | acme/sun#999: no such issue
    {'issue': 1} | DataError | acme/sun#1: its text has no words to search for
    {'issue': 'SUN-4'} | ConfigError | expected a number or the key of a ticket of acme/sun
    {'issue': 4} | ConfigError | aoe search: .*no index.json
    {'issue': 4, 'repo': 'ACME/Sun'} | ConfigError | aoe search: .*no index.json
""")
def test_invalid_requests(sun, tmp_path, given, error, words):
    given = {"repo": SUN, **given}
    with raises(error, match=words):
        gis_builder.suggest(work=sun, index=tmp_path / "none", **given)
