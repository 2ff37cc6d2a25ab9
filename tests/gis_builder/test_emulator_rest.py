from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import github
import pytest
import requests

from gis_builder._emulator import Server, serve
from gis_builder._emulator.errors import RestRefusal
from gis_builder._emulator.rest_pages import PageRequest, cut, cut_search


@pytest.fixture(scope="module")
def server(tiny_dump: Path) -> Iterator[Server]:
    with serve(tiny_dump) as running:
        yield running


def get(server: Server, path: str, *, token: str | None = "any", **options: Any) -> requests.Response:
    headers = {} if token is None else {"Authorization": f"token {token}"}
    headers |= options.pop("headers", {})
    return requests.get(f"{server.url}{path}", headers=headers, timeout=10, allow_redirects=False, **options)


def listed(server: Server, path: str, key: str = "number", **parameters: str | int) -> list[Any]:
    return [item[key] for item in get(server, path, params=parameters).json()]


def test_a_repository(server: Server) -> None:
    found = get(server, "/repos/Acme/rocket").json()
    assert found["full_name"] == "acme/rocket"
    assert found["open_issues_count"] == 2
    assert get(server, f"/repositories/{found['id']}").json() == found
    assert get(server, "/api/v3/repos/acme/rocket").json() == found


def test_what_is_not_there(server: Server) -> None:
    for path in (
        "/repos/acme/vault",
        "/repos/acme/none",
        "/repositories/1",
        "/repos/acme/rocket/x",
        "/nothing",
    ):
        response = get(server, path)
        assert (response.status_code, response.json()["message"]) == (404, "Not Found")
    assert get(server, "/repos/acme/rocket", token="noaccess").status_code == 404
    assert requests.post(f"{server.url}/repos/acme/rocket", timeout=10).status_code == 404


def test_a_former_name_moves_permanently(server: Server) -> None:
    response = get(server, "/repos/acme/missile/issues?state=all")
    assert response.status_code == 301
    assert response.headers["location"].endswith("/issues?state=all")
    followed = requests.get(f"{server.url}/repos/acme/missile/issues?state=all", timeout=10)
    assert len(followed.json()) == 7


def test_issues_by_state_label_and_time(server: Server) -> None:
    path = "/repos/acme/rocket/issues"
    assert listed(server, path) == [5, 1]
    assert listed(server, path, state="all") == [9, 6, 5, 4, 3, 2, 1]
    assert listed(server, path, state="closed", direction="asc") == [2, 3, 4, 6, 9]
    assert listed(server, path, state="all", sort="updated", since="2020-01-24T12:00:00Z") == [9, 6, 5]
    assert listed(server, path, state="all", labels="bug") == [1]
    assert listed(server, path, state="all", labels="bug,duplicate") == []
    assert listed(server, path, state="all", creator="ann", sort="comments") == [4, 2, 3, 5, 1]
    assert listed(server, path, state="all", since="1970-01-01T00:00:00Z") == []
    assert listed(server, path, state="all", since="2008-01-01T00:00:00+00:00")[0] == 9
    for bad in ({"state": "shut"}, {"since": "then"}):
        assert get(server, path, params=bad).status_code == 422
    assert get(server, "/repos/acme/quiet/issues").status_code == 410


def test_pages_with_links(server: Server) -> None:
    response = get(server, "/repos/acme/rocket/issues?state=all&per_page=3&page=2")
    assert [item["number"] for item in response.json()] == [4, 3, 2]
    assert {rel: link["url"].rpartition("=")[2] for rel, link in response.links.items()} == {
        "first": "1",
        "prev": "1",
        "next": "3",
        "last": "3",
    }
    assert "link" not in get(server, "/repos/acme/rocket/issues").headers
    assert get(server, "/repos/acme/rocket/issues?page=9&per_page=x").json() == []


def test_an_issue_in_full(server: Server) -> None:
    found = get(server, "/repos/acme/rocket/issues/2").json()
    assert found["user"]["login"] == "ann"
    assert found["closed_by"]["login"] == "max"
    assert found["state_reason"] == "duplicate"
    assert found["comments"] == 2
    assert found["repository_url"] == f"{server.url}/repos/acme/rocket"
    assert get(server, "/repos/acme/rocket/issues/4").json()["body"] is None
    pull = get(server, "/repos/acme/rocket/issues/3").json()
    assert pull["pull_request"]["merged_at"]
    assert pull["html_url"] == "https://github.com/acme/rocket/pull/3"


def test_deleted_moved_and_unknown_issues(server: Server) -> None:
    base = "/repos/acme/rocket/issues"
    assert get(server, f"{base}/7").status_code == 410
    assert get(server, f"{base}/7/comments").status_code == 410
    moved = get(server, f"{base}/8")
    assert moved.status_code == 301
    assert requests.get(moved.headers["location"], timeout=10).json()["title"] == "Came from afar"
    assert get(server, f"{base}/8/comments").status_code == 404  # only the issue itself is redirected
    assert get(server, f"{base}/12").status_code == 404


def test_comments_and_events(server: Server) -> None:
    base = "/repos/acme/rocket/issues"
    assert listed(server, f"{base}/2/comments", "id") == [11, 12]
    assert listed(server, f"{base}/2/comments", "id", since="2020-01-21T00:00:00Z") == [12]
    assert listed(server, f"{base}/5/events", "event") == [
        "marked_as_duplicate",
        "closed",
        "unmarked_as_duplicate",
        "reopened",
    ]
    timeline = get(server, f"{base}/2/timeline").json()
    assert [item["event"] for item in timeline] == ["commented", "marked_as_duplicate", "closed", "commented"]
    assert all("canonical" not in item for item in timeline)  # as on GitHub, only GraphQL tells
    events = get(server, f"{base}/events").json()
    assert (events[0]["issue"]["number"], events[0]["state_reason"]) == (9, "not_planned")
    assert len({item["id"] for item in events}) == 10


def test_all_comments(server: Server) -> None:
    path = "/repos/acme/rocket/issues/comments"
    assert listed(server, path, "id", per_page=5) == [11, 12, 13, 14, 1000]
    assert listed(server, path, "id", per_page=2, direction="desc") == [11, 12]  # ignored without a sort
    assert listed(server, path, "id", per_page=2, sort="created") == [1119, 1118]
    assert listed(server, path, "id", sort="updated", direction="asc", since="2020-01-15T00:00:00Z") == [
        11,
        13,
        14,
        12,
    ]
    assert listed(server, path, "id", since="1970-01-01T00:00:00Z") == []


def test_search(server: Server) -> None:
    found = get(server, "/search/issues?q=repo:acme/rocket+is:issue&sort=created&order=asc&per_page=2").json()
    assert found["total_count"] == 6
    assert [item["number"] for item in found["items"]] == [1, 2]
    assert get(server, "/search/issues?q=repo:acme/none").status_code == 422
    assert get(server, "/search/issues").status_code == 422
    beyond = get(server, "/search/issues?q=is:issue&per_page=100&page=11")
    assert beyond.json()["message"] == "Only the first 1000 search results are available"


def test_unchanged_answers_are_free(server: Server) -> None:
    path = "/repos/acme/rocket/issues/1"
    first = get(server, path, token="thrifty")
    again = get(server, path, token="thrifty", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["x-ratelimit-used"] == first.headers["x-ratelimit-used"] == "1"
    other = get(server, "/repos/acme/rocket/issues/2", headers={"If-None-Match": first.headers["etag"]})
    assert other.status_code == 200


def test_who_asks(server: Server) -> None:
    assert get(server, "/user").json()["login"] == "emulated-user"
    assert get(server, "/user", token=None).status_code == 401
    assert get(server, "/user", token="bad").json()["message"] == "Bad credentials"
    assert get(server, "/", token=None).headers["x-ratelimit-limit"] == "60"
    assert get(server, "/").json()["rate_limit_url"] == f"{server.url}/rate_limit"


def test_rate_limit_is_free_to_ask(server: Server) -> None:
    for _ in range(2):
        found = get(server, "/rate_limit", token="fresh").json()
        assert {name: entry["used"] for name, entry in found["resources"].items()} == {
            "core": 0,
            "graphql": 0,
            "search": 0,
        }


def test_pygithub_can_crawl_it(server: Server) -> None:
    with github.Github(auth=github.Auth.Token("any"), base_url=server.url) as client:
        repository = client.get_repo("acme/missile")
        assert repository.full_name == "acme/rocket"
        issues = repository.get_issues(state="all")
        assert issues.totalCount == 7
        assert [found.number for found in issues] == [9, 6, 5, 4, 3, 2, 1]
        assert [found.id for found in repository.get_issue(4).get_comments()] == list(range(1000, 1120))


def test_long_lists_are_paged_by_cursor_only() -> None:
    items = list(range(250))
    shown: list[int] = []
    request = PageRequest("http://x", {"per_page": "100"})
    while True:
        page, headers = cut(items, request, depth=200)
        shown += page
        if 'rel="next"' not in headers["link"]:
            break
        assert 'rel="last"' not in headers["link"]
        query = headers["link"].partition("?")[2].partition(">")[0]
        request = PageRequest("http://x", dict(parse_qsl(query)))
    assert shown == items
    previous = headers["link"].partition("?")[2].partition(">")[0]
    page, _ = cut(items, PageRequest("http://x", dict(parse_qsl(previous))), depth=200)
    assert page == items[100:200]


def test_page_numbers_end_where_github_ends_them() -> None:
    items = list(range(250))
    assert cut(items, PageRequest("", {"page": "1", "per_page": "100"}), depth=200)[0] == items[:100]
    with pytest.raises(RestRefusal, match="cursor based pagination") as caught:
        cut(items, PageRequest("", {"page": "2", "per_page": "100"}), depth=200)
    assert caught.value.status == 422
    with pytest.raises(RestRefusal, match="cursor"):
        cut(items, PageRequest("", {"after": "!"}), depth=200)
    assert cut(items, PageRequest("", {"page": "3", "per_page": "100"}), depth=250)[0] == items[200:]


def test_search_pages_stop_at_what_is_reachable() -> None:
    items = list(range(1500))
    page, headers = cut_search(items, PageRequest("http://x", {"page": "34"}), 1000)
    assert page == items[990:1000]
    assert 'rel="next"' not in headers["link"]
    with pytest.raises(RestRefusal):
        cut_search(items, PageRequest("http://x", {"page": "35"}), 1000)


def test_people_and_reactions_are_there_for_clients_that_ask(server: Server) -> None:
    assert get(server, "/users/ann").json()["login"] == "ann"
    assert get(server, "/users/ann/orgs").json() == []
    issue = get(server, "/repos/acme/rocket/issues", params={"state": "all"}).json()[0]
    assert issue["reactions"]["total_count"] == 0
    assert issue["reactions"]["url"] == f"{issue['url']}/reactions"
