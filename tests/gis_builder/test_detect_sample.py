"""The verdict on every variety of duplicate in the sample trackers is the labelled one."""

import json

import pytest

from tests.support.shorthand import SAMPLE, module_fixture, parametrize

from .working_folder import imported, stored, verdicts


@module_fixture
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample") / "work"
    imported(SAMPLE, folder)
    return folder


@module_fixture
def found(work):
    return verdicts(work, allow_cross_repository=True)


@module_fixture
def still_open(work):
    return set(
        stored(work, "SELECT repo || '#' || number FROM issues WHERE state = 'open'")
    )


def labels():
    for path in sorted(SAMPLE.glob("*/*/truth.jsonl")):
        repo = "/".join(path.parts[-3:-1])
        for line in path.read_text().splitlines():
            row = json.loads(line)
            row["targets"] = [
                t if isinstance(t, str) else f"{repo}#{t}"
                for t in row.get("targets", ())
            ]
            yield pytest.param(
                f"{repo}#{row['number']}",
                row,
                id=f"{repo}-{row['number']}-{row['variety']}",
            )


@parametrize("issue, row", list(labels()))
def test_each_variety(found, still_open, issue, row):
    outcome, targets, reason = found[issue]
    if issue in still_open:
        assert (outcome, reason) == ("not", "open")
        return
    assert outcome == row["verdict"], reason
    if outcome == "duplicate":
        assert set(targets) == set(row["targets"])


def test_unlabelled_issues_are_not_duplicates(found):
    others = found.keys() - {param.values[0] for param in labels()}
    assert len(others) > 100
    assert {found[issue][0] for issue in others} == {"not"}


def test_another_repository_is_uncertain_by_default(work):
    found = verdicts(work)
    crossing = [
        param.values[0]
        for param in labels()
        if param.values[1]["variety"] == "cross-repository"
    ]
    assert {found[issue][::2] for issue in crossing} == {
        ("uncertain", "cross_repository")
    }
