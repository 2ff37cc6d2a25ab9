"""Look-ups of private, forbidden and failing repositories, which the test server lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gis_builder.store import RepoOutcome, Store
from gis_builder.store.issue_records import IssueRef, Kind

from .crawl_world import open_github, quick, serving

LABELS = ('"dup"', "Resolution: Duplicate", "deduplication", "dupe", "duplicates")
NODE = {
    "nameWithOwner": "acme/vault",
    "isPrivate": True,
    "hasIssuesEnabled": True,
    "createdAt": "2020-01-01T00:00:00Z",
    "newest": {"totalCount": 1, "nodes": [{"number": 5, "createdAt": "2020-01-02T00:00:00Z"}]},
    "fresh": {"nodes": [{"updatedAt": "2020-01-03T00:00:00Z"}]},
    "pulls": {"nodes": [{"number": 7}]},
    "labels": {"nodes": [{"name": name} for name in LABELS]},
}


SCHEMA = {"data": {"issue": None, "closed": None}}


def absent(type_: str, message: str = "no") -> dict[str, Any]:
    error = {"type": type_, "path": ["r0"], "message": message}
    return {"data": {"r0": None, "rateLimit": {"cost": 1}}, "errors": [error]}


def look_up(store: Store, *answers: Any, **changes: Any) -> Any:
    """Respond with the answers in order, repeating the last one."""
    left = [SCHEMA, *answers]

    def respond(_path: str, _headers: object) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, json.dumps(left.pop(0) if len(left) > 1 else left[0]).encode()

    with serving(respond) as url, open_github(quick(url, **changes), store) as github:
        (row,) = github.check(["acme/vault"])
        if row.outcome is RepoOutcome.PRIVATE:
            github.fetch([IssueRef("acme/vault", 5)])  # without a request
            assert store.kind(IssueRef("acme/vault", 5)) is Kind.MISSING
    return row


WANTED = {"include_private": True}


@pytest.mark.parametrize(
    ("answers", "changes", "outcome", "detail"),
    [
        ([{"data": {"r0": NODE}}, "nonsense"], {}, RepoOutcome.PRIVATE, "include_private"),
        ([{"data": {"r0": NODE}}], WANTED, RepoOutcome.OK, ""),
        ([absent("FORBIDDEN", "SAML enforcement"), "nonsense"], {}, RepoOutcome.PRIVATE, "SAML enforcement"),
        ([absent("INTERNAL"), {"data": {"r0": NODE}}], WANTED, RepoOutcome.OK, ""),  # retried
        ([absent("INTERNAL", "the disk is full")], {"attempts": 2}, RepoOutcome.FAILED, "the disk is full"),
    ],
    ids=["private", "private and wanted", "not for this token", "failed once", "failed for good"],
)
def test_outcomes_of_look_ups(
    store: Store, answers: list[Any], changes: dict[str, Any], outcome: RepoOutcome, detail: str
) -> None:
    row = look_up(store, *answers, **changes)
    assert row.outcome is outcome
    assert detail in row.detail
    if outcome is RepoOutcome.OK:
        assert (row.max_number, row.as_of) == (7, "2020-01-03T00:00:00Z")
        assert row.labels == ("Resolution: Duplicate", "dupe", "duplicates")
