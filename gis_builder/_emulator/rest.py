"""The REST routes: repositories, issues, comments, events and search; `rest_writes` has what is written."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

from gis_builder._emulator.errors import RestRefusal, SearchRefusal, not_found
from gis_builder._emulator.listing import Choice, Happened, Listing
from gis_builder._emulator.reply import Reply
from gis_builder._emulator.rest_pages import PageRequest, cut, cut_search
from gis_builder._emulator.rest_views import Views
from gis_builder._emulator.rest_writes import Writes, denied
from gis_builder._emulator.search import REACHABLE, Search
from gis_builder._emulator.tracker import Account, Catalogue, Comment, Event, Issue, Repository

T = TypeVar("T")

DEPTH = 10_000  # items that page numbers reach
_DOCUMENTATION = "https://docs.github.com/rest"
_USER = re.compile(r"/users/(?P<login>[\w\[\]-]+)(?P<orgs>/orgs)?")
_REPOSITORY = re.compile(r"/(?:repos/(?P<name>[^/]+/[^/]+)|repositories/(?P<id>\d+))(?P<rest>/.*)?")
_EPOCH_YEAR = 1970


@dataclass(frozen=True)
class RestCall:
    """One request."""

    path: str  # without the query string
    parameters: Mapping[str, str]
    login: str | None
    sees_repositories: bool  # False: the token may read none of them
    may_write: bool = False
    method: str = "GET"
    body: bytes = b""


class RestApi:
    """Answers requests.

    Args:
        base: The server's root address, for the links in answers.
        clock: Unix time.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        search: Search,
        listing: Listing,
        base: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._catalogue = catalogue
        self._search = search
        self._listing = listing
        self._base = base
        self._views = Views(base)
        self._writes = Writes(self._views, self._forget, clock)
        self._routes: list[tuple[re.Pattern[str], Callable[..., Reply]]] = [
            (re.compile(r""), self._get_repository),
            (re.compile(r"/issues"), self._list_issues),
            (re.compile(r"/issues/comments"), self._list_comments),
            (re.compile(r"/issues/events"), self._list_events),
            (re.compile(r"/issues/(\d+)"), self._get_issue),
            (re.compile(r"/issues/(\d+)/comments"), self._list_issue_comments),
            (re.compile(r"/issues/(\d+)/events"), self._list_issue_events),
            (re.compile(r"/issues/(\d+)/timeline"), self._list_timeline),
        ]

    def answer(self, call: RestCall) -> Reply:
        """The answer to a request; refusals are answers too."""
        try:
            return self._route(call) if call.method == "GET" else self._write(call)
        except RestRefusal as refusal:
            return _refusal_reply(refusal)

    def _write(self, call: RestCall) -> Reply:
        match = _REPOSITORY.fullmatch(call.path)
        if match is None or match["rest"] is None:
            raise not_found()
        if call.login is None:
            raise RestRefusal(401, "Requires authentication")
        repository = self._repository(call, match)
        if not call.may_write:
            raise denied()
        return self._writes.answer(call.method, repository, match["rest"], call.body, call.login)

    def _forget(self) -> None:
        self._search.forget()
        self._listing.forget()

    def _route(self, call: RestCall) -> Reply:
        if call.path in {"", "/"}:
            return Reply(200, self._root())
        if call.path == "/user":
            return self._get_user(call)
        if call.path == "/search/issues":
            return self._search_issues(call)
        if user := _USER.fullmatch(call.path):
            return self._get_account(user["login"], organizations=bool(user["orgs"]))
        match = _REPOSITORY.fullmatch(call.path)
        if match is None:
            raise not_found()
        repository, rest = self._repository(call, match), match["rest"] or ""
        for pattern, answer in self._routes:
            if found := pattern.fullmatch(rest.rstrip("/")):
                return answer(call, repository, *(int(group) for group in found.groups()))
        raise not_found()

    def _repository(self, call: RestCall, match: re.Match[str]) -> Repository:
        name = match["name"]
        found = self._catalogue.find(name) if name else self._catalogue.find_id(int(match["id"]))
        if found is None or not call.sees_repositories:
            raise not_found()
        if name and name.lower() != found.name.lower():
            query = f"?{urlencode(call.parameters)}" if call.parameters else ""
            location = f"{self._base}/repositories/{found.id}{match['rest'] or ''}{query}"
            raise RestRefusal(301, "Moved Permanently", location=location)
        return found

    def _root(self) -> dict[str, str]:
        return {
            "current_user_url": f"{self._base}/user",
            "issue_search_url": f"{self._base}/search/issues?q={{query}}{{&page,per_page,sort,order}}",
            "rate_limit_url": f"{self._base}/rate_limit",
            "repository_url": f"{self._base}/repos/{{owner}}/{{repo}}",
        }

    def _get_user(self, call: RestCall) -> Reply:
        if call.login is None:
            raise RestRefusal(401, "Requires authentication")
        return Reply(200, {"login": call.login, "id": 1, "node_id": f"U_{call.login}", "type": "User"})

    def _get_account(self, login: str, *, organizations: bool) -> Reply:
        """Anybody's public face: a dump says no more of a person than the login."""
        return Reply(200, [] if organizations else self._views.account(Account(login, "User")))

    def _get_repository(self, _call: RestCall, repository: Repository) -> Reply:
        return Reply(200, self._views.repository(repository))

    def _list_issues(self, call: RestCall, repository: Repository) -> Reply:
        _need_issues(repository)
        parameters = call.parameters
        state = parameters.get("state", "open")
        labels = parameters.get("labels")
        since, is_hopeless = _since(parameters)
        choice = Choice(
            states=None if state == "all" else _states(state),
            all_labels=frozenset(label.strip().lower() for label in labels.split(",")) if labels else None,
            since=since,
            creator=parameters.get("creator", "").lower() or None,
            sort=_one_of(parameters, "sort", ("created", "updated", "comments")),
            descending=_one_of(parameters, "direction", ("desc", "asc")) == "desc",
        )
        issues = [] if is_hopeless else self._listing.issues(repository.tracker, choice)
        return self._listed(call, issues, partial(self._views.issue, repository))

    def _list_comments(self, call: RestCall, repository: Repository) -> Reply:
        _need_issues(repository)
        since, is_hopeless = _since(call.parameters)
        sort = _one_of(call.parameters, "sort", ("created", "updated"))
        # GitHub looks at `direction` only where `sort` is given.
        default = "desc" if "sort" in call.parameters else "asc"
        comments = [] if is_hopeless else self._listing.comments(repository.tracker, sort, since)
        if "sort" in call.parameters and call.parameters.get("direction", default) == "desc":
            comments = comments[::-1]
        return self._listed(call, comments, lambda written: self._views.comment(repository, *written))

    def _list_events(self, call: RestCall, repository: Repository) -> Reply:
        _need_issues(repository)

        def view(happened: Happened) -> dict[str, Any]:
            event = self._views.event(repository, happened.issue, happened.event)
            return {**event, "issue": self._views.issue(repository, happened.issue)}

        return self._listed(call, self._listing.events(repository.tracker), view)

    def _get_issue(self, _call: RestCall, repository: Repository, number: int) -> Reply:
        issue = repository.issue(number)
        if issue is not None:
            return Reply(200, self._views.issue(repository, issue))
        gone = repository.tracker.missing.get(number)
        if gone is None:
            raise not_found()
        if gone.to is None:
            raise RestRefusal(410, "This issue was deleted")
        target = self._catalogue.follow(gone.to, repository)
        if target is None:
            raise not_found()
        location = f"{self._base}/repositories/{target[0].id}/issues/{target[1].number}"
        raise RestRefusal(301, "Moved Permanently", location=location)

    def _list_issue_comments(self, call: RestCall, repository: Repository, number: int) -> Reply:
        issue = _need_issue(repository, number)
        since, is_hopeless = _since(call.parameters)
        comments = [c for c in issue.comments if not is_hopeless and (since is None or c.updated_at >= since)]
        return self._listed(call, comments, partial(self._views.comment, repository, issue))

    def _list_issue_events(self, call: RestCall, repository: Repository, number: int) -> Reply:
        issue = _need_issue(repository, number)
        happened = [*issue.events, *issue.labelled]
        return self._listed(call, happened, partial(self._views.event, repository, issue))

    def _list_timeline(self, call: RestCall, repository: Repository, number: int) -> Reply:
        issue = _need_issue(repository, number)
        items: list[Event | Comment] = sorted(
            [*issue.events, *issue.labelled, *issue.comments], key=lambda item: item.created_at
        )
        return self._listed(call, items, partial(self._timeline_item, repository, issue))

    def _timeline_item(self, repository: Repository, issue: Issue, item: Event | Comment) -> dict[str, Any]:
        if isinstance(item, Event):
            return self._views.event(repository, issue, item)
        view = self._views.comment(repository, issue, item)
        return {**view, "event": "commented", "actor": view["user"]}

    def _search_issues(self, call: RestCall) -> Reply:
        query = call.parameters.get("q")
        if not query:
            raise RestRefusal(422, "Validation Failed", errors=[{"resource": "Search", "field": "q"}])
        if "sort" in call.parameters:
            order = call.parameters.get("order", "desc")
            query = f"{query} sort:{call.parameters['sort']}-{order}"
        try:
            hits = self._search.run(query) if call.sees_repositories else []
        except SearchRefusal as refusal:
            error = {"message": str(refusal), "resource": "Search", "field": "q", "code": "invalid"}
            raise RestRefusal(422, "Validation Failed", errors=[error]) from refusal
        page, headers = cut_search(hits, self._page(call), REACHABLE)
        items = [{**self._views.issue(*hit), "score": 1.0} for hit in page]
        found = {"total_count": len(hits), "incomplete_results": False, "items": items}
        return Reply(200, found, headers)

    def _listed(self, call: RestCall, items: Sequence[T], view: Callable[[T], dict[str, Any]]) -> Reply:
        """A page of a list."""
        page, headers = cut(items, self._page(call), DEPTH)
        return Reply(200, list(map(view, page)), headers)

    def _page(self, call: RestCall) -> PageRequest:
        return PageRequest(self._base + call.path, call.parameters)


def _refusal_reply(refusal: RestRefusal) -> Reply:
    payload: dict[str, Any] = {
        "message": str(refusal),
        "documentation_url": _DOCUMENTATION,
        "status": str(refusal.status),
    }
    if refusal.errors:
        payload["errors"] = refusal.errors
    if refusal.location is None:
        return Reply(refusal.status, payload)
    return Reply(refusal.status, {**payload, "url": refusal.location}, {"location": refusal.location})


def _need_issues(repository: Repository) -> None:
    if not repository.has_issues:
        raise RestRefusal(410, "Issues are disabled for this repo")


def _need_issue(repository: Repository, number: int) -> Issue:
    """The issue whose parts are asked for; the parts of a transferred one answer 404, not a redirection."""
    issue = repository.issue(number)
    if issue is None:
        gone = repository.tracker.missing.get(number)
        raise RestRefusal(410, "This issue was deleted") if gone and gone.to is None else not_found()
    return issue


def _states(state: str) -> frozenset[str]:
    if state not in {"open", "closed"}:
        raise RestRefusal(422, "Validation Failed", errors=[{"field": "state", "value": state}])
    return frozenset({"closed", "merged"}) if state == "closed" else frozenset({"open"})


def _one_of(parameters: Mapping[str, str], key: str, allowed: tuple[str, ...]) -> str:
    """A parameter with a fixed set of values, the first of them being the default; GitHub ignores others."""
    value = parameters.get(key, allowed[0])
    return value if value in allowed else allowed[0]


def _since(parameters: Mapping[str, str]) -> tuple[str | None, bool]:
    """The bound, and whether it is one of those that GitHub answers with an empty list, such as 1970."""
    text = parameters.get("since")
    if text is None:
        return None, False
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RestRefusal(422, "Validation Failed", errors=[{"field": "since", "value": text}]) from None
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}", moment.year <= _EPOCH_YEAR
