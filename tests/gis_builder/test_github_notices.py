"""One comment and one label, whatever goes wrong on the way, and however many runs there are at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import requests

from gis_builder._emulator import FaultPlan, Rule, Server, serve
from gis_builder._emulator.tracker import Repository
from gis_builder._github import Notices, Token
from gis_builder._records import IssueRef
from pairkit.errors import AuthError, DataError, RemoteError

from .crawl_world import quick

ROCKET = IssueRef("acme/rocket", 1)


@contextmanager
def served(dump: Path, *rules: dict[str, Any]) -> Iterator[Server]:
    plan = FaultPlan(rules=tuple(Rule.model_validate({"on": "write", **rule}) for rule in rules))
    with serve(dump, faults=plan) as server:
        yield server


def notices(server: Server, token: str = "one", **changes: object) -> Notices:
    return Notices(quick(server.url, **changes), Token(token, server.url))


def comments(server: Server, number: int = 1) -> list[str]:
    found = requests.get(f"{server.url}/repos/acme/rocket/issues/{number}/comments", timeout=10).json()
    return [comment["body"] for comment in found]


def test_a_comment_is_written_once(tiny_dump: Path) -> None:
    with served(tiny_dump) as server:
        first = notices(server).comment(ROCKET, "Look at #2")
        again = notices(server).comment(ROCKET, "Look at #4")
        assert (first.is_new, again.is_new, first.id == again.id) == (True, False, True)
        (body,) = comments(server)
        assert body.startswith("Look at #2\n\n<!-- gis suggest ")


@pytest.mark.parametrize("kind", ["502", "504", "truncated", "dropped", "too_many_429", "secondary_403"])
@pytest.mark.parametrize("arrives", [True, False])
def test_a_lost_answer_leaves_one_comment(tiny_dump: Path, kind: str, arrives: bool) -> None:
    rule = {"kind": kind, "at": [1, 2], "arrives": arrives and kind in ("502", "504"), "retry_after": False}
    with served(tiny_dump, rule) as server:
        assert notices(server).comment(ROCKET, "Look").is_new
        assert notices(server).label(ROCKET, "maybe")
        assert len(comments(server)) == 1


def test_of_runs_at_once_one_comment_stays(tiny_dump: Path) -> None:
    runs = 6
    start = Barrier(runs)
    with served(tiny_dump) as server:

        def run(number: int) -> bool:
            mine = notices(server)
            marked = mine._marked

            def all_look_first(ref: IssueRef) -> Any:
                found = marked(ref)
                mine._marked = marked  # type: ignore[method-assign]
                start.wait(30)
                return found

            mine._marked = all_look_first  # type: ignore[method-assign]
            return mine.comment(ROCKET, f"run {number}").is_new

        with ThreadPoolExecutor(runs) as pool:
            assert sorted(pool.map(run, range(runs))) == [False] * (runs - 1) + [True]
        assert len(comments(server)) == 1


def test_a_label_that_was_taken_off_stays_off(tiny_dump: Path) -> None:
    with served(tiny_dump) as server:
        assert not notices(server).label(ROCKET, "BUG")  # as it is there
        assert notices(server).label(ROCKET, "maybe")
        tracker = server.catalogue.repositories[0]
        issue = next(r for r in server.catalogue.repositories if r.name == ROCKET.repo).issue(1)
        assert tracker is not None
        assert issue is not None
        issue.labels = ("bug",)
        assert not notices(server).label(ROCKET, "maybe")
        assert issue.labels == ("bug",)


def test_who_may_not_write_is_told_what_to_do(tiny_dump: Path) -> None:
    with served(tiny_dump) as server:
        with pytest.raises(AuthError, match=r"the token may not write here .*permissions: issues: write"):
            notices(server, "readonly").comment(ROCKET, "x")
        with pytest.raises(AuthError, match="refuses the token"):
            notices(server, "bad").comment(ROCKET, "x")
        with pytest.raises(DataError, match="acme/none: no such repository"):
            notices(server).repository("acme/none")
        assert comments(server) == []


def test_a_server_that_never_answers_ends_in_one_line(tiny_dump: Path) -> None:
    with served(tiny_dump, {"kind": "502", "probability": 1}) as server:
        with pytest.raises(RemoteError, match="failed 3 times in a row"):
            notices(server, attempts=3).comment(ROCKET, "x")
        assert comments(server) == []


def test_issues_are_read_where_they_are_now(tiny_dump: Path) -> None:
    with served(tiny_dump) as server:
        mine = notices(server)
        found = {number: mine.issue(IssueRef("acme/missile", number)) for number in (1, 3, 7, 8, 99)}
        assert {number: shown and str(shown.issue.ref) for number, shown in found.items()} == {
            1: "acme/rocket#1",
            3: None,  # a pull request
            7: None,  # deleted
            8: "acme/fuel#2",
            99: None,
        }
        assert mine.repository("Acme/Missile") == "acme/rocket"


def test_a_page_is_the_one_that_the_server_names(tiny_dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def page(self: Repository, number: int, *, is_pull: bool = False) -> str:
        return f"https://git.acme.test/{self.name}/issues/{number}"

    monkeypatch.setattr(Repository, "url", page)
    with served(tiny_dump) as server:
        shown = notices(server).issue(ROCKET)
    assert shown is not None
    assert shown.page == "https://git.acme.test/acme/rocket/issues/1"
