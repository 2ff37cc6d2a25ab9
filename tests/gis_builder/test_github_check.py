"""Look-ups of private, forbidden and failing repositories, which the test server lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest

import gis_builder
from pairkit import ConfigError, RemoteError

from .crawl_world import serving

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
FOUND = {"data": {"r0": NODE}}


def absent(type_: str, message: str = "no") -> dict[str, Any]:
    error = {"type": type_, "path": ["r0"], "message": message}
    return {"data": {"r0": None, "rateLimit": {"cost": 1}}, "errors": [error]}


def look_up(*answers: Any, **changes: Any) -> gis_builder.Plan:
    """Plan a crawl of a repository, with these answers in order."""
    left = [SCHEMA, *answers]

    def respond(_path: str, _headers: object) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, json.dumps(left.pop(0)).encode()

    settings = {f"crawl.{name}": value for name, value in ({"backoff_s": 0.001} | changes).items()}
    with serving(respond) as url:
        return gis_builder.plan("acme/vault", api_url=url, token="t", settings=settings, progress=False)


@pytest.mark.parametrize("answers", [[FOUND], [absent("INTERNAL"), FOUND]], ids=["at once", "retried"])
def test_a_private_repository_that_is_wanted(answers: list[Any]) -> None:
    row = look_up(*answers, include_private=True).repositories[0].row
    assert (row.outcome, row.detail, row.max_number, row.as_of) == ("ok", "", 7, "2020-01-03T00:00:00Z")
    assert row.labels == ("Resolution: Duplicate", "dupe", "duplicates")


@pytest.mark.parametrize(
    ("answers", "error", "detail"),
    [
        ([FOUND], ConfigError, "include_private"),
        ([absent("FORBIDDEN", "SAML enforcement")], ConfigError, "SAML enforcement"),
        ([absent("NOT_FOUND")], ConfigError, "no such repository"),
        ([absent("INTERNAL", "the disk is full")] * 2, RemoteError, "the disk is full.*run the same command"),
    ],
    ids=["private", "not for this token", "missing", "failed for good"],
)
def test_refused_look_ups(answers: list[Any], error: type[Exception], detail: str) -> None:
    with pytest.raises(error, match=f"no repository can be crawled .acme/vault: .*{detail}"):
        look_up(*answers, attempts=2)
