from gis_builder.store.records import Comment, Event, Issue, IssueRef
from gis_builder.trackers.rest_records import (
    comment_record,
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


def test_issue_of_a_deleted_account_with_null_body() -> None:
    assert issue_record("a/b", ISSUE) == Issue(
        repo="a/b",
        number=7,
        title="Crash",
        body="",
        state="closed",
        state_reason="completed",
        author=None,
        author_association="NONE",
        created_at="2020-01-01T00:00:00Z",
        updated_at="2020-01-03T00:00:00Z",
        closed_at="2020-01-02T00:00:00Z",
        closed_by=None,
        labels=("a", "b"),
    )


def test_pull_request_by_a_bot() -> None:
    issue = issue_record("a/b", ISSUE | {"pull_request": {}, "user": {"login": "ci", "type": "Bot"}})
    assert (issue.is_pull, issue.is_bot, issue.author) == (True, True, "ci")


def test_comment() -> None:
    value = {
        "id": 5,
        "issue_url": "https://api.github.com/repos/a/b/issues/7",
        "user": {"login": "eve", "type": "User"},
        "author_association": "MEMBER",
        "created_at": "2020-01-01T00:00:00Z",
        "body": "dup of #3",
    }
    assert comment_record(value) == Comment(5, "eve", "MEMBER", "2020-01-01T00:00:00Z", "dup of #3")


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


def test_who_closed_a_reopened_issue_did_not_close_it() -> None:
    assert issue_record("a/b", ISSUE | {"closed_at": None, "closed_by": {"login": "eve"}}).closed_by is None


def test_text_that_no_file_can_hold() -> None:
    assert issue_record("a/b", ISSUE | {"title": "half \ud83d of it"}).title == "half ? of it"


def test_of_a_pull_request_only_the_title_is_kept() -> None:
    pull = title_only(
        issue_record("a/b", ISSUE | {"pull_request": {}, "body": "much", "user": {"login": "eve"}})
    )
    assert (pull.title, pull.body, pull.author, pull.is_pull) == ("Crash", "", None, True)
