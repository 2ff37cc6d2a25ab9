"""Converts threads to hours of an archive, with an event for each opening, comment, closing and reopening."""

import gzip
import json
import sqlite3
import sys
from contextlib import closing
from typing import Any, NamedTuple

import gis_builder
from tests.support.shorthand import SAMPLE, module_fixture

RANGE = "2015-01-01-0..2015-02-01-2"
HOURS = [*(f"2015-01-01-{hour}" for hour in range(4)), "2015-02-01-0", "2015-02-01-1"]
MORE = "2015-02-01-2"  # an hour that is added later


class Thread(NamedTuple):
    """The rows of a thread in a store."""

    issue: dict[str, Any]
    comments: list[dict[str, Any]]
    events: list[dict[str, Any]]


def account(login, *, is_bot=False):
    return {"login": login or "ghost", "type": "Bot" if is_bot else "User"}


def events_of(repo_id, threads, pulls=()):
    """The events of one repository by time; `pulls` has name, number and time of each pull request."""
    found = [event for thread in threads for event in _of_thread(thread)]
    found += [
        {"type": "PullRequestEvent", "repo": {"name": repo}, "created_at": at, "actor": account("max"),
         "payload": {"action": "opened", "number": number}}
        for repo, number, at in pulls
    ]  # fmt: skip
    for event in found:
        event["repo"]["id"] = repo_id
    return found


def saved_threads(work):
    """The complete threads of a working folder by repository."""
    with closing(sqlite3.connect(work / "store.sqlite")) as connection:
        connection.row_factory = sqlite3.Row

        def read(table, order):
            rows = {}
            for row in map(
                dict, connection.execute(f"SELECT * FROM {table} ORDER BY {order}")
            ):
                rows.setdefault((row["repo"], row["number"]), []).append(row)
            return rows

        issues = read("issues", "1, 2")
        comments = read("comments", "id")
        events = read("events", "place")
    threads = {}
    for ref, (issue,) in issues.items():
        if issue["depth"] == 2 and not issue["is_pull"]:
            threads.setdefault(ref[0], []).append(
                Thread(issue, comments.get(ref, []), events.get(ref, []))
            )
    return threads


def lines_of(events):
    """Events as the lines of an archive, by time, each with an id."""
    ordered = sorted(events, key=lambda event: event["created_at"])
    return [
        json.dumps(
            {"id": str(1000 + 3 * place), **event}, separators=(",", ":")
        ).encode()
        for place, event in enumerate(ordered)
    ]


def write_hours(folder, lines, hours):
    """Divide lines evenly among hours, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, hour in enumerate(hours):
        some = lines[
            len(lines) * place // len(hours) : len(lines) * (place + 1) // len(hours)
        ]
        data = b"".join(line + b"\n" for line in some)
        (folder / f"{hour}.json.gz").write_bytes(gzip.compress(data, mtime=0))


def save_dump(folder, threads):
    """Save threads as a dump, without duplicate marks."""
    from .conftest import write_lines  # imports the fixtures below

    lines = {"issues": [], "comments": [], "events": []}
    for thread in threads:
        issue = thread.issue
        url = f"https://api.github.com/repos/{issue['repo']}"
        home = {"issue_url": f"{url}/issues/{issue['number']}"}
        saved = _issue(issue, issue["updated_at"], issue["closed_at"])
        lines["issues"].append(saved | {"repository_url": url})
        lines["comments"] += [home | _comment(comment) for comment in thread.comments]
        lines["events"] += [
            home
            | {"event": event["kind"], "actor": account(event["actor"])}
            | {name: event[name] for name in ("created_at", "state_reason")}
            for event in _closings(thread)
        ]
    for name, values in lines.items():
        write_lines(folder / f"{name}.jsonl", values)


def _closings(thread):
    return [event for event in thread.events if event["kind"] in ("closed", "reopened")]


def _of_thread(thread):
    issue = thread.issue
    happened = [(issue["created_at"], 0, issue)]
    happened += [(comment["created_at"], 1, comment) for comment in thread.comments]
    happened += [(event["created_at"], 2, event) for event in _closings(thread)]
    happened.sort(key=lambda item: item[:2])
    closed_at = None
    for at, kind, what in happened:
        if kind == 2:
            closed_at = at if what["kind"] == "closed" else None
        shown = _issue(
            issue, at, issue["closed_at"] if what is happened[-1][2] else closed_at
        )
        base = {"repo": {"name": issue["repo"]}, "created_at": at}
        payload = {"issue": shown, "action": what.get("kind", "opened")}
        name = "IssuesEvent"
        if kind == 1:
            payload |= {"action": "created", "comment": _comment(what)}
            name = "IssueCommentEvent"
        actor = account(what["actor" if kind == 2 else "author"])
        yield base | {"type": name, "actor": actor, "payload": payload}


def _comment(comment):
    """The REST object of a comment."""
    user = account(comment["author"], is_bot=comment["is_bot"])
    same = ("id", "author_association", "created_at", "body")
    return {"user": user, **{name: comment[name] for name in same}}


def _issue(issue, at, closed_at):
    """The REST object of an issue at a time."""
    return {
        **{
            name: issue[name]
            for name in ("number", "title", "body", "author_association", "created_at")
        },
        "user": account(issue["author"], is_bot=issue["is_bot"]),
        "labels": [{"name": name} for name in json.loads(issue["labels"])],
        "state": "closed" if closed_at else "open",
        "state_reason": issue["state_reason"] if closed_at else None,
        "updated_at": at,
        "closed_at": closed_at,
    }


def files(folder):
    """The contents of a folder's files by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def tables(folder):
    return {
        name: data for name, data in files(folder).items() if name.endswith(".parquet")
    }


def times(work):
    """The modification times of the tasks' files."""
    paths = (path for path in work.glob("*/**/*.*.*.*") if path.is_file())
    return {
        path.relative_to(work).as_posix(): path.stat().st_mtime_ns for path in paths
    }


@module_fixture
def threads(tmp_path_factory):
    """The threads of two sample trackers."""
    work = tmp_path_factory.mktemp("archive") / "gis.work"
    gis_builder.import_tracker(SAMPLE, work)
    return dict(sorted(saved_threads(work).items())[:2])


@module_fixture
def source(tmp_path_factory, threads):
    folder = tmp_path_factory.mktemp("archive") / "hours"
    write_hours(folder, world(threads), HOURS)
    return folder


def world(threads):
    """The lines of an archive of these repositories."""
    return lines_of(
        event
        for repo_id, stored in enumerate(threads.values(), 100)
        for event in events_of(repo_id, stored)
    )


def build(source, out, **more):
    return gis_builder.archive(RANGE, source, out, **{"workers": 1, **more})


def command(source, out, *more):
    flags = ("--hours", RANGE, "--source", str(source), "--out", str(out), "-q")
    return [sys.executable, "-m", "gis_builder", "archive", *flags, *more]


@module_fixture
def built(source, tmp_path_factory):
    return build(source, tmp_path_factory.mktemp("archive") / "gis")
