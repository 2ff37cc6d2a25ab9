from gis_builder.store.records import Event, IssueRef
from gis_builder.trackers.rest_records import (
    event_record,
    issue_record,
    title_only,
)

ISSUE = {
    "number": 7,
    "title": "Crash",
    "body": None,
    "state": "closed",
    "state_reason": "completed",
    "user": None,
    "author_association": "NONE",
    "labels": [{"name": "b"}, {"name": "a"}],
    "created_at": "2020-01-01T00:00:00Z",
    "updated_at": "2020-01-03T00:00:00Z",
    "closed_at": "2020-01-02T00:00:00Z",
}


def test_events() -> None:
    mark = {"event": "marked_as_duplicate", "actor": {"login": "eve"}, "created_at": "2020-01-01T00:00:00Z"}
    assert event_record(mark) == Event("marked_as_duplicate", "eve", "2020-01-01T00:00:00Z")
    named = event_record(mark | {"canonical": "a/b#3"})
    assert named is not None
    assert named.target == IssueRef("a/b", 3)
    assert event_record({"event": "labeled"}) is None


def test_accounts_read_as_over_graphql() -> None:
    bot = issue_record("a/b", ISSUE | {"user": {"login": "fix[bot]"}, "closed_by": {"login": "ghost"}})
    assert (bot.author, bot.is_bot, bot.closed_by) == ("fix", True, None)
    assert issue_record("a/b", ISSUE | {"user": {"login": "ci", "type": "Bot"}}).is_bot


def test_who_closed_a_reopened_issue_did_not_close_it() -> None:
    assert issue_record("a/b", ISSUE | {"closed_at": None, "closed_by": {"login": "eve"}}).closed_by is None


def test_of_a_pull_request_only_the_title_is_kept() -> None:
    pull = title_only(
        issue_record("a/b", ISSUE | {"pull_request": {}, "body": "much", "user": {"login": "eve"}})
    )
    assert (pull.title, pull.body, pull.author, pull.is_pull) == ("Crash", "", None, True)
