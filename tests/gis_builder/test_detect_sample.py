"""The detector over the sample trackers: every variety of marking, decided as a careful reader would."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gis_builder.detection import Rules, decide
from gis_builder.store.records import Comment, Event, Issue, IssueRef, Kind, Thread, VerdictOutcome
from gis_builder.trackers.dump import find_dumps
from gis_builder.trackers.rest_records import comment_record, event_record, issue_record

SAMPLE = Path(__file__).parents[2] / "data" / "sample"


class Tracker:
    """All sample repositories in memory."""

    def __init__(self) -> None:
        self.issues: dict[IssueRef, Issue] = {}
        self.comments: dict[IssueRef, list[Comment]] = defaultdict(list)
        self.events: dict[IssueRef, list[Event]] = defaultdict(list)
        self.former: dict[str, frozenset[str]] = {}
        for dump in find_dumps(SAMPLE):
            self.former[str(dump.repo)] = frozenset(dump.info.get("previous_names", ()))
            for row in dump.issues():
                self.issues[IssueRef(row.repo, row.number)] = issue_record(row.repo, row.value)
            for row in dump.comments():
                self.comments[IssueRef(row.repo, row.number)].append(comment_record(row.value))
            for row in dump.events():
                event = event_record(row.value)
                if event is not None:
                    self.events[IssueRef(row.repo, row.number)].append(event)

    def thread(self, ref: IssueRef) -> Thread:
        comments = sorted(self.comments[ref], key=lambda comment: (comment.created_at, comment.id))
        events = sorted(self.events[ref], key=lambda event: event.created_at)
        return Thread(self.issues[ref], tuple(comments), tuple(events))

    def kind(self, ref: IssueRef) -> Kind:
        issue = self.issues.get(ref)
        if issue is None:
            return Kind.MISSING
        return Kind.PULL if issue.is_pull else Kind.ISSUE


@pytest.fixture(scope="module")
def tracker() -> Tracker:
    return Tracker()


def truths() -> Iterator[Any]:
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


@pytest.mark.parametrize(("repo", "row"), list(truths()))
def test_each_variety(tracker: Tracker, repo: str, row: dict[str, Any]) -> None:
    ref = IssueRef(repo, row["number"])
    thread = tracker.thread(ref)
    verdict = decide(
        thread, tracker.kind, Rules(allow_cross_repository=True, former_names=tracker.former[repo])
    )
    if thread.issue.state == "open":
        assert (verdict.outcome, verdict.reason) == (
            VerdictOutcome.NOT,
            "open",
        )  # doubt about an open issue is no matter
        return
    assert verdict.outcome == row["verdict"], verdict
    if verdict.outcome is VerdictOutcome.DUPLICATE:
        assert set(verdict.targets) == {_ref(target, repo) for target in row["targets"]}


def test_no_other_issue_is_called_a_duplicate(tracker: Tracker) -> None:
    listed = {IssueRef(param.values[0], param.values[1]["number"]) for param in truths()}
    for ref, issue in tracker.issues.items():
        if ref not in listed and not issue.is_pull:
            verdict = decide(
                tracker.thread(ref),
                tracker.kind,
                Rules(allow_cross_repository=True, former_names=tracker.former[ref.repo]),
            )
            assert verdict.outcome is VerdictOutcome.NOT, verdict


def test_another_repository_is_uncertain_by_default(tracker: Tracker) -> None:
    for param in truths():
        repo, row = param.values
        if row["variety"] == "cross-repository":
            rules = Rules(former_names=tracker.former[repo])
            verdict = decide(tracker.thread(IssueRef(repo, row["number"])), tracker.kind, rules)
            assert (verdict.outcome, verdict.reason) == (VerdictOutcome.UNCERTAIN, "cross_repository")
