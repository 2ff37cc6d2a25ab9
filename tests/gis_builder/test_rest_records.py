from gis_builder.store.decoding import convert
from gis_builder.store.issue_records import Event, Issue, IssueRef
from gis_builder.trackers.rest_records import EventObject, IssueObject, event_record, issue_record, title_only

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


def issue(**fields: object) -> Issue:
    return issue_record("a/b", convert(ISSUE | fields, IssueObject))


def test_events() -> None:
    mark = {"event": "marked_as_duplicate", "actor": {"login": "eve"}, "created_at": "2020-01-01T00:00:00Z"}
    expected = Event("marked_as_duplicate", "eve", "2020-01-01T00:00:00Z", IssueRef("a/b", 3))
    assert event_record(convert(mark | {"canonical": "a/b#3"}, EventObject)) == expected
    assert event_record(convert({"event": "labeled"}, EventObject)) is None


def test_accounts_are_named_as_in_graphql() -> None:
    bot = issue(user={"login": "fix[bot]"}, closed_by={"login": "ghost"})
    assert (bot.author, bot.is_bot, bot.closed_by) == ("fix", True, None)
    assert issue(user={"login": "ci", "type": "Bot"}).is_bot


def test_a_reopened_issue_has_no_closer() -> None:
    assert issue(closed_at=None, closed_by={"login": "eve"}).closed_by is None


def test_only_the_title_of_a_pull_request_is_kept() -> None:
    pull = title_only(issue(pull_request={}, body="much", user={"login": "eve"}))
    assert (pull.title, pull.body, pull.author, pull.is_pull) == ("Crash", "", None, True)
