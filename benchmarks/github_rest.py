"""The test server with the part of the REST API that perceval uses: issues, comments and accounts.

`python -m benchmarks.github_rest DUMP` has the options of `python -m tests.support.github`.
"""

import re
import sys
import zlib
from urllib.parse import urlencode

from tests.support.github.__main__ import main
from tests.support.github.service import Service
from tests.support.github.trackers import Account

_LIST = re.compile(r"/repos/(?P<repo>[^/]+/[^/]+)/issues(?:/(?P<number>\d+)/comments)?")
_USER = re.compile(r"/users/(?P<login>[^/]+)(?P<orgs>/orgs)?")
_GHOST = Account("ghost")


class RestApi:
    """Answers REST requests."""

    def __init__(self, catalogue, base):
        self._catalogue, self._base = catalogue, base

    def answer(self, path, parameters):
        """Status, payload and headers."""
        if user := _USER.fullmatch(path):
            return 200, [] if user["orgs"] else _account(Account(user["login"])), {}
        found = _LIST.fullmatch(path)
        repository = self._catalogue.find(found["repo"]) if found else None
        if found is None or repository is None:
            return 404, {"message": "Not Found", "status": "404"}, {}
        if found["number"] is None:
            return self._page(
                path,
                parameters,
                _issues(repository, parameters),
                lambda i: _issue(repository, i),
            )
        issue = repository.issue(int(found["number"]))
        comments = issue.comments if issue else []
        return self._page(path, parameters, comments, _comment)

    def _page(self, path, parameters, items, view):
        size, number = (
            int(parameters.get("per_page", 30)),
            int(parameters.get("page", 1)),
        )
        stop = size * number
        following = (
            f"{self._base}{path}?{urlencode({**parameters, 'page': number + 1})}"
        )
        link = {"link": f'<{following}>; rel="next"'} if stop < len(items) else {}
        return 200, [view(item) for item in items[stop - size : stop]], link


def _issues(repository, parameters):
    is_open_only = parameters.get("state", "open") != "all"
    by_update = parameters.get("sort") == "updated"
    return sorted(
        (
            i
            for i in repository.issues.values()
            if not is_open_only or i.state == "open"
        ),
        key=lambda issue: (
            issue.updated_at if by_update else issue.created_at,
            issue.number,
        ),
        reverse=parameters.get("direction", "desc") == "desc",
    )


def _issue(repository, issue):
    view = {
        "id": issue.id,
        "number": issue.number,
        "title": issue.title,
        "user": _account(issue.author or _GHOST),
        "labels": [{"name": label} for label in issue.labels],
        "state": issue.state,
        "assignee": None,
        "assignees": [],
        "comments": len(issue.comments),
        "created_at": issue.created_at,
        "updated_at": issue.updated_at,
        "closed_at": issue.closed_at,
        "body": issue.body,
        "html_url": f"https://github.com/{repository.name}/issues/{issue.number}",
        "reactions": {"total_count": 0},
    }
    return view | ({"pull_request": {}} if issue.is_pull else {})


def _comment(comment):
    return {
        "id": comment.id,
        "user": _account(comment.author or _GHOST),
        "created_at": comment.created_at,
        "updated_at": comment.updated_at,
        "body": comment.body,
        "reactions": {"total_count": 0},
    }


def _account(account):
    return {
        "login": account.login,
        "id": zlib.crc32(account.login.lower().encode()),
        "type": account.kind,
    }


if __name__ == "__main__":
    Service.rest = RestApi
    sys.exit(main())
