"""Small threads for the tests of detection: an issue by ann, closed by mia, who is a member."""

from dataclasses import replace
from datetime import datetime, timedelta
from textwrap import dedent

import pytest

from gis_builder.detection.decision import decide
from gis_builder.detection.explain import explained as explain_thread
from gis_builder.store.issue_records import (
    Comment,
    Event,
    Issue,
    IssueRef,
    Kind,
    Thread,
    VerdictOutcome,
)

REPO = "o/n"
CLOSED_AT = "2020-01-10T12:00:00Z"
MEMBERS = ("mia", "max")
DUPLICATE = VerdictOutcome.DUPLICATE


def ref(number, repo=REPO):
    return IssueRef(repo, number)


def at(hours):
    """The time this many hours before the closing; negative for later."""
    moment = datetime.fromisoformat(CLOSED_AT) - timedelta(hours=hours)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def said(who, body, hours=0.01, *, is_bot=False):
    """A comment; mia and max are members."""
    association = "MEMBER" if who in MEMBERS else "NONE"
    return Comment(int(1e6 - hours * 100), who, association, at(hours), body, is_bot)


_EVENTS = {"marked": "marked_as_duplicate", "unmarked": "unmarked_as_duplicate"}


def talk(*lines):
    """Comments from `bob 30: dup of #1`, 30 hours before the closing (default 0.01), and events by mia from
    `!marked 3 #1`.
    """
    parts = []
    for line in lines:
        if line.startswith("!"):
            kind, hours, *target = line[1:].split()
            parts.append(
                event(
                    _EVENTS.get(kind, kind), float(hours), *(int(t[1:]) for t in target)
                )
            )
        else:
            head, body = line.split(": ", 1)
            who, _, hours = head.partition(" ")
            parts.append(said(who, body, float(hours or 0.01), is_bot=who == "bot"))
    return parts


def talks(table):
    """Parameters for `check` from lines such as `#1 bob: dup of #1 | mia: Yes.` below a rule."""
    params, rule = [], ""
    for line in dedent(table).strip().splitlines():
        if line.startswith(" "):
            expected, _, lines = line.strip().replace("\\n", "\n").partition(" ")
            params.append(
                pytest.param(expected, lines.split(" | "), id=f"{rule}: {lines}")
            )
        else:
            rule = line
    return params


def check(expected, lines, **fields):
    """Expect a duplicate of `#1` or of `#1,#2`, or a verdict with a reason code, or `no` duplicate."""
    verdict = decided(*talk(*lines), **fields)
    if verdict.outcome is DUPLICATE:
        assert expected == ",".join(f"#{target.number}" for target in verdict.targets)
    else:
        assert expected in ("no", verdict.reason)


def event(kind, hours, target=None, **fields):
    return Event(
        kind, "mia", at(hours), None if target is None else ref(target), **fields
    )


def thread(*parts, **fields):
    """Closed issue number 100 with these comments and events, and other `fields` than usual."""
    issue = Issue(
        repo=REPO,
        number=100,
        title="The window flickers",
        body="Steps to reproduce: open it.",
        state="closed",
        state_reason="completed",
        author="ann",
        author_association="NONE",
        created_at=at(240),
        updated_at=CLOSED_AT,
        closed_at=CLOSED_AT,
        closed_by="mia",
    )
    comments = tuple(part for part in parts if isinstance(part, Comment))
    events = tuple(part for part in parts if isinstance(part, Event))
    return Thread(replace(issue, **fields), comments, events)


def kind_of(target):
    """Numbers below 500 are issues, below 600 pull requests, below 700 not fetched; others are missing."""
    ends = {500: Kind.ISSUE, 600: Kind.PULL, 700: Kind.UNKNOWN}
    kinds = (kind for end, kind in ends.items() if target.number < end)
    return next(kinds, Kind.MISSING)


def decided(*parts, **fields):
    return decide(thread(*parts, **fields), kind_of)


def explained(*parts, **fields):
    """The explanation of the verdict."""
    return explain_thread(thread(*parts, **fields), kind_of).text
