"""The detector over the sample trackers: the verdict on every variety of duplicate is the labelled one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gis_builder.crawling.crawl import import_tracker
from gis_builder.settings import DetectSettings
from gis_builder.store import Store
from gis_builder.store.issue_records import IssueRef, Verdict, VerdictOutcome

from .conftest import judge

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
Verdicts = dict[IssueRef, Verdict]


def judged(store: Store, **settings: Any) -> Verdicts:
    repos = [row.full_name for row in store.repos()]
    return {verdict.ref: verdict for verdict in judge(store, repos, DetectSettings(**settings))}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("sample") / "store.sqlite", create=True) as opened:
        import_tracker(opened, SAMPLE, lambda _words: None)
        yield opened


@pytest.fixture(scope="module")
def verdicts(sample: Store) -> Verdicts:
    return judged(sample, allow_cross_repository=True)


def labels() -> Iterator[Any]:
    for path in sorted(SAMPLE.glob("*/*/truth.jsonl")):
        repo = "/".join(path.parts[-3:-1])
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            yield pytest.param(repo, row, id=f"{repo}-{row['number']}-{row['variety']}")


def _ref(target: int | str, repo: str) -> IssueRef:
    if isinstance(target, int):
        return IssueRef(repo, target)
    name, _, number = target.rpartition("#")
    return IssueRef(name, int(number))


@pytest.mark.parametrize(("repo", "row"), list(labels()))
def test_each_variety(sample: Store, verdicts: Verdicts, repo: str, row: dict[str, Any]) -> None:
    ref = IssueRef(repo, row["number"])
    verdict, thread = verdicts[ref], sample.thread(ref)
    assert thread is not None
    if thread.issue.state == "open":
        assert (verdict.outcome, verdict.reason) == (VerdictOutcome.NOT, "open")
        return
    assert verdict.outcome == row["verdict"], verdict
    if verdict.outcome is VerdictOutcome.DUPLICATE:
        assert set(verdict.targets) == {_ref(target, repo) for target in row["targets"]}


def test_unlabelled_issues_are_not_duplicates(verdicts: Verdicts) -> None:
    listed = {IssueRef(param.values[0], param.values[1]["number"]) for param in labels()}
    others = [verdict for ref, verdict in verdicts.items() if ref not in listed]
    assert len(others) > 100
    assert {verdict.outcome for verdict in others} == {VerdictOutcome.NOT}


def test_another_repository_is_uncertain_by_default(sample: Store) -> None:
    by_ref = judged(sample)
    crossing = [param.values for param in labels() if param.values[1]["variety"] == "cross-repository"]
    assert crossing
    for repo, row in crossing:
        verdict = by_ref[IssueRef(repo, row["number"])]
        assert (verdict.outcome, verdict.reason) == (VerdictOutcome.UNCERTAIN, "cross_repository")
