from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from gis_builder._emulator import Options, Server, serve

from .conftest import comment, issue, write_tracker

ROCKET = 'repository(owner: "acme", name: "rocket")'


@pytest.fixture(scope="module")
def server(tiny_dump: Path) -> Iterator[Server]:
    with serve(tiny_dump) as running:
        yield running


def post(server: Server, query: str, *, token: str = "any", **variables: Any) -> requests.Response:
    return requests.post(
        f"{server.url}/graphql",
        json={"query": query, "variables": variables},
        headers={"Authorization": f"bearer {token}"},
        timeout=10,
    )


def ask(server: Server, query: str, **variables: Any) -> dict[str, Any]:
    answer = post(server, query, **variables).json()
    assert "errors" not in answer
    return answer["data"]


def ask_rocket(server: Server, fields: str, **variables: Any) -> dict[str, Any]:
    return ask(server, f"{{ {ROCKET} {{ {fields} }} }}", **variables)["repository"]


def refusal(server: Server, query: str, **variables: Any) -> dict[str, Any]:
    response = post(server, query, **variables)
    assert response.status_code == 200
    (error,) = response.json()["errors"]
    return error


def test_a_repository_and_its_properties(server: Server) -> None:
    assert ask_rocket(
        server,
        """__typename nameWithOwner name owner { login } isPrivate isArchived isEmpty hasIssuesEnabled
        createdAt description pullRequests(first: 1) { totalCount }
        labels(first: 5, query: "dup") { nodes { name } }""",
    ) == {
        "__typename": "Repository",
        "nameWithOwner": "acme/rocket",
        "name": "rocket",
        "owner": {"login": "acme"},
        "isPrivate": False,
        "isArchived": False,
        "isEmpty": False,
        "hasIssuesEnabled": True,
        "createdAt": "2020-01-01T12:00:00Z",
        "description": "To the moon",
        "pullRequests": {"totalCount": 1},
        "labels": {"nodes": [{"name": "Duplicate"}]},
    }


def test_special_repositories(server: Server) -> None:
    data = ask(
        server,
        """{ quiet: repository(owner: "acme", name: "quiet") { hasIssuesEnabled issues { totalCount } }
             void: repository(owner: "ACME", name: "void") { isEmpty nameWithOwner } }""",
    )
    assert data == {
        "quiet": {"hasIssuesEnabled": False, "issues": {"totalCount": 0}},
        "void": {"isEmpty": True, "nameWithOwner": "acme/void"},
    }


def test_a_former_name_leads_to_the_present_one(server: Server) -> None:
    query = """query($f: Boolean) {
        repository(owner: "acme", name: "missile", followRenames: $f) { nameWithOwner } }"""
    assert ask(server, query)["repository"] == {"nameWithOwner": "acme/rocket"}
    assert refusal(server, query, f=False)["type"] == "NOT_FOUND"


@pytest.mark.parametrize("name", ["vault", "nothing"])
def test_a_private_repository_looks_like_none(server: Server, name: str) -> None:
    response = post(server, f'{{ r0: repository(owner: "acme", name: "{name}") {{ id }} }}')
    assert response.json() == {
        "data": {"r0": None},
        "errors": [
            {
                "type": "NOT_FOUND",
                "path": ["r0"],
                "locations": [{"line": 1, "column": 3}],
                "message": f"Could not resolve to a Repository with the name 'acme/{name}'.",
            }
        ],
    }


def test_the_fields_of_an_issue(server: Server) -> None:
    found = ask_rocket(
        server,
        """issue(number: 2) { __typename number title body url state stateReason(enableDuplicate: true)
        plain: stateReason createdAt updatedAt closedAt closed author { __typename login } authorAssociation
        labels(first: 10) { totalCount nodes { name } } duplicateOf { number repository { nameWithOwner } }
        repository { nameWithOwner }
        comments(last: 5) { totalCount nodes { databaseId fullDatabaseId author { __typename login }
          authorAssociation createdAt updatedAt body url } } }""",
    )["issue"]
    bodies = [node.pop("body") for node in found["comments"]["nodes"]]
    assert bodies == ["Is this known? \U0001f680", "Duplicate of #1, closing."]
    assert found == {
        "__typename": "Issue",
        "number": 2,
        "title": "It dies at once",
        "body": "Body of 2",
        "url": "https://github.com/acme/rocket/issues/2",
        "state": "CLOSED",
        "stateReason": "DUPLICATE",
        "plain": "NOT_PLANNED",
        "createdAt": "2020-01-02T12:00:00Z",
        "updatedAt": "2020-01-21T12:00:00Z",
        "closedAt": "2020-01-21T12:00:00Z",
        "closed": True,
        "author": {"__typename": "User", "login": "ann"},
        "authorAssociation": "NONE",
        "labels": {"totalCount": 1, "nodes": [{"name": "Duplicate"}]},
        "duplicateOf": {"number": 1, "repository": {"nameWithOwner": "acme/rocket"}},
        "repository": {"nameWithOwner": "acme/rocket"},
        "comments": {
            "totalCount": 2,
            "nodes": [
                {
                    "databaseId": id_,
                    "fullDatabaseId": str(id_),
                    "author": {"__typename": "User", "login": login},
                    "authorAssociation": "MEMBER",
                    "createdAt": f"2020-01-{day}T12:00:00Z",
                    "updatedAt": f"2020-01-{day}T12:00:00Z",
                    "url": f"https://github.com/acme/rocket/issues/2#issuecomment-{id_}",
                }
                for id_, login, day in ((11, "ann", 20), (12, "max", 21))
            ],
        },
    }


def test_accounts_of_bots_and_of_nobody(server: Server) -> None:
    found = ask_rocket(
        server,
        "bot: issue(number: 6) { author { __typename login } } gone: issue(number: 9) { author { login } }",
    )
    assert found == {"bot": {"author": {"__typename": "Bot", "login": "helper"}}, "gone": {"author": None}}


def test_a_null_body_is_empty(server: Server) -> None:
    assert ask_rocket(server, "issue(number: 4) { body }") == {"issue": {"body": ""}}


def test_the_timeline_names_the_canonical_issue(server: Server) -> None:
    fields = """timelineItems(last: 20, itemTypes: [CLOSED_EVENT, REOPENED_EVENT, MARKED_AS_DUPLICATE_EVENT,
        UNMARKED_AS_DUPLICATE_EVENT]) { totalCount nodes { __typename
          ... on ClosedEvent { actor { login } createdAt stateReason duplicateOf { ... on Issue { number } } }
          ... on ReopenedEvent { createdAt }
          ... on MarkedAsDuplicateEvent { isCrossRepository canonical { __typename
              ... on Issue { number repository { nameWithOwner } } } duplicate { ... on Issue { number } } }
          ... on UnmarkedAsDuplicateEvent { canonical { ... on Issue { number } } } } }"""
    found = ask_rocket(server, f"a: issue(number: 6) {{ {fields} }} b: issue(number: 5) {{ {fields} }}")
    assert found["a"]["timelineItems"] == {
        "totalCount": 2,
        "nodes": [
            {
                "__typename": "ClosedEvent",
                "actor": {"login": "max"},
                "createdAt": "2020-01-25T12:00:00Z",
                "stateReason": "DUPLICATE",
                "duplicateOf": {"number": 1},
            },
            {
                "__typename": "MarkedAsDuplicateEvent",
                "isCrossRepository": True,
                "canonical": {
                    "__typename": "Issue",
                    "number": 1,
                    "repository": {"nameWithOwner": "acme/fuel"},
                },
                "duplicate": {"number": 6},
            },
        ],
    }
    assert [node["__typename"] for node in found["b"]["timelineItems"]["nodes"]] == [
        "MarkedAsDuplicateEvent",
        "ClosedEvent",
        "UnmarkedAsDuplicateEvent",
        "ReopenedEvent",
    ]


def test_the_timeline_can_hold_comments_and_be_filtered(server: Server) -> None:
    found = ask_rocket(
        server,
        """issue(number: 2) { all: timelineItems(first: 10) { filteredCount pageCount nodes { __typename } }
        late: timelineItems(first: 10, since: "2020-01-21T00:00:00Z", skip: 1) { totalCount } }""",
    )["issue"]
    assert [node["__typename"] for node in found["all"]["nodes"]] == [
        "IssueComment",
        "MarkedAsDuplicateEvent",
        "ClosedEvent",
        "IssueComment",
    ]
    assert (found["all"]["filteredCount"], found["all"]["pageCount"]) == (4, 4)
    assert found["late"] == {"totalCount": 2}


def test_numbers_that_are_pulls_deleted_or_moved(server: Server) -> None:
    response = post(
        server,
        f"""{{ {ROCKET} {{
        i3: issueOrPullRequest(number: 3) {{ __typename ... on PullRequest {{ number state }} }}
        i7: issueOrPullRequest(number: 7) {{ __typename }}
        i8: issueOrPullRequest(number: 8) {{ ... on Issue {{ number repository {{ nameWithOwner }} }} }}
        i12: issueOrPullRequest(number: 12) {{ __typename }} }} }}""",
    )
    assert response.status_code == 200
    answer = response.json()
    assert answer["data"]["repository"] == {
        "i3": {"__typename": "PullRequest", "number": 3, "state": "MERGED"},
        "i7": None,
        "i8": {"number": 2, "repository": {"nameWithOwner": "acme/fuel"}},
        "i12": None,
    }
    assert [(error["type"], error["path"], error["message"]) for error in answer["errors"]] == [
        (
            "NOT_FOUND",
            ["repository", f"i{number}"],
            f"Could not resolve to an issue or pull request with the number of {number}.",
        )
        for number in (7, 12)
    ]


def test_a_pull_request_is_no_issue(server: Server) -> None:
    assert refusal(server, f"{{ {ROCKET} {{ issue(number: 3) {{ id }} }} }}")["type"] == "NOT_FOUND"
    assert ask_rocket(server, "pullRequest(number: 3) { merged }") == {"pullRequest": {"merged": True}}


def test_comments_in_pages_from_either_end(server: Server) -> None:
    query = f"""query($first: Int, $last: Int, $after: String, $before: String) {{
        {ROCKET} {{ issue(number: 4) {{
          comments(first: $first, last: $last, after: $after, before: $before) {{ totalCount
            pageInfo {{ hasNextPage hasPreviousPage startCursor endCursor }}
            nodes {{ databaseId }} }} }} }} }}"""

    def page(**variables: Any) -> dict[str, Any]:
        return ask(server, query, **variables)["repository"]["issue"]["comments"]

    def ids(found: dict[str, Any]) -> list[int]:
        return [node["databaseId"] for node in found["nodes"]]

    start = page(first=100)
    rest = page(first=100, after=start["pageInfo"]["endCursor"])
    assert ids(start) + ids(rest) == list(range(1000, 1120))
    assert (start["pageInfo"]["hasNextPage"], rest["pageInfo"]["hasNextPage"]) == (True, False)
    end = page(last=50)
    before = page(last=100, before=end["pageInfo"]["startCursor"])
    assert ids(before) + ids(end) == list(range(1000, 1120))
    assert (end["pageInfo"]["hasPreviousPage"], before["pageInfo"]["hasPreviousPage"]) == (True, False)
    assert page(first=0)["pageInfo"]["endCursor"] is None


def test_issues_filtered_and_ordered(server: Server) -> None:
    def listed(arguments: str) -> list[int]:
        fields = f"issues(first: 50, {arguments}) {{ nodes {{ number }} }}"
        return [node["number"] for node in ask_rocket(server, fields)["issues"]["nodes"]]

    assert listed("states: [OPEN]") == [1, 5]
    assert listed("orderBy: {field: UPDATED_AT, direction: DESC}") == [9, 6, 5, 4, 2, 1]
    assert listed("orderBy: {field: COMMENTS, direction: DESC}") == [4, 2, 6, 9, 5, 1]
    assert listed('filterBy: {since: "2020-01-24T12:00:00Z"}') == [5, 6, 9]
    assert listed('filterBy: {states: [CLOSED], createdBy: "Ann"}') == [2, 4]
    assert listed('labels: ["bug", "duplicate"]') == [1, 2]


def test_search_pages(server: Server) -> None:
    query = """query($after: String) { search(type: ISSUE, first: 4, after: $after,
        query: "repo:acme/rocket is:issue sort:created-asc") { issueCount pageInfo { hasNextPage endCursor }
        edges { cursor } nodes { __typename ... on Issue { number } } } }"""
    first = ask(server, query)["search"]
    second = ask(server, query, after=first["pageInfo"]["endCursor"])["search"]
    assert [node["number"] for node in first["nodes"] + second["nodes"]] == [1, 2, 4, 5, 6, 9]
    assert first["edges"][-1]["cursor"] == first["pageInfo"]["endCursor"]
    assert (first["issueCount"], first["pageInfo"]["hasNextPage"]) == (6, True)
    assert second["pageInfo"]["hasNextPage"] is False


def test_no_more_than_a_thousand_results(tmp_path: Path) -> None:
    many = [issue("a/b", number) | {"created_at": "2020-01-01T00:00:00Z"} for number in range(1, 29)]
    rows = [row | {"number": row["number"] + 28 * block} for block in range(40) for row in many]
    write_tracker(tmp_path, "a/b", issues=rows, comments=[comment("a/b", 1, 3_000_000_000, "late")])
    query = """query($after: String) { search(type: ISSUE, query: "repo:a/b", first: 90, after: $after) {
        issueCount pageInfo { hasNextPage endCursor } nodes { ... on Issue { number } } } }"""
    with serve(tmp_path) as server:
        found: list[int] = []
        after, has_next = None, True
        while has_next:
            page = ask(server, query, after=after)["search"]
            assert page["issueCount"] == 1120
            found += [node["number"] for node in page["nodes"]]
            after, has_next = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
        assert len(found) == len(set(found)) == 1000
        assert ask(server, query, after=after)["search"]["nodes"] == []
        wide = """{ repository(owner: "a", name: "b") { issue(number: 1) { comments(last: 1) {
            nodes { databaseId fullDatabaseId } } } } }"""
        # Real comment ids passed 2^31 in 2024.
        assert ask(server, wide)["repository"]["issue"]["comments"]["nodes"] == [
            {"databaseId": 3_000_000_000, "fullDatabaseId": "3000000000"}
        ]


@pytest.mark.parametrize("name", ["vault", "nothing", "missile"])
def test_searching_what_can_not_be_seen_finds_nothing(server: Server, name: str) -> None:
    query = (
        "query($q: String!) { search(type: ISSUE, query: $q, first: 1) { issueCount nodes { __typename } } }"
    )
    assert ask(server, query, q=f"repo:acme/{name} is:issue")["search"] == {"issueCount": 0, "nodes": []}


def test_a_search_that_is_refused(server: Server) -> None:
    error = refusal(
        server, "query($q: String!) { search(type: ISSUE, query: $q, first: 1) { issueCount } }", q="x" * 300
    )
    assert error["message"] == "The search is longer than 256 characters."


@pytest.mark.parametrize(
    ("fields", "kind", "message"),
    [
        (
            "issues(first: 101) { nodes { id } }",
            "EXCESSIVE_PAGINATION",
            "Requesting 101 records on the `issues` connection exceeds the `first` limit of 100 records.",
        ),
        (
            "issues { nodes { id } }",
            "MISSING_PAGINATION_BOUNDARIES",
            "You must provide a `first` or `last` value to properly paginate the `issues` connection.",
        ),
        (
            "issues { ...F }",
            "MISSING_PAGINATION_BOUNDARIES",
            "You must provide a `first` or `last` value to properly paginate the `issues` connection.",
        ),
        (
            'issues(first: 1, after: "x") { totalCount }',
            "INVALID_CURSOR_ARGUMENTS",
            "`x` does not appear to be a valid cursor.",
        ),
        ("issues(first: -1) { totalCount }", "UNPROCESSABLE", None),
        ("issues(first: 1, last: 1) { totalCount }", "UNPROCESSABLE", None),
    ],
)
def test_refused_pages(server: Server, fields: str, kind: str, message: str | None) -> None:
    fragment = "fragment F on IssueConnection { edges { cursor } }" if "...F" in fields else ""
    error = refusal(server, f"{{ {ROCKET} {{ {fields} }} }} {fragment}")
    assert error["type"] == kind
    assert error["path"] == ["repository", "issues"]
    assert message is None or error["message"] == message


def test_too_many_nodes(server: Server) -> None:
    error = refusal(
        server,
        f"""{{ {ROCKET} {{ issues(first: 100) {{ nodes {{ comments(last: 100) {{ nodes {{ id }} }}
        labels(first: 100) {{ nodes {{ id }} }} repository {{ issues(first: 50) {{ nodes {{
        labels(first: 100) {{ totalCount }} }} }} }} }} }} }} }}""",
    )
    assert error == {
        "type": "MAX_NODE_LIMIT_EXCEEDED",
        "message": "This query requests up to 525,100 possible nodes which exceeds the maximum limit "
        "of 500,000.",
    }


def test_an_unknown_field_is_named_as_github_names_it(server: Server) -> None:
    error = refusal(server, f"{{ {ROCKET} {{ stars }} }}")
    assert error["message"] == "Field 'stars' doesn't exist on type 'Repository'"
    assert error["extensions"] == {"code": "undefinedField", "typeName": "Repository", "fieldName": "stars"}


@pytest.mark.parametrize("query", ["{", "mutation { x }", "query($n: Int!) { viewer { login } }"])
def test_an_invalid_query_is_an_answer(server: Server, query: str) -> None:
    response = post(server, query)
    assert response.status_code == 200
    assert response.json()["errors"][0]["message"]


def test_bodies_without_a_query(server: Server) -> None:
    headers = {"Authorization": "bearer x"}
    url = f"{server.url}/graphql"
    assert requests.post(url, data="{", headers=headers, timeout=10).status_code == 400
    for body in ([], {}, {"query": "{ viewer { login } }", "variables": 3}):
        assert "errors" in requests.post(url, json=body, headers=headers, timeout=10).json()
    assert requests.get(url, headers=headers, timeout=10).status_code == 404


def test_one_of_several_operations(server: Server) -> None:
    query = "query A { viewer { login } } query B { viewer { id } }"
    body = {"query": query, "operationName": "B"}
    headers = {"Authorization": "token x"}
    url = f"{server.url}/graphql"
    assert requests.post(url, json=body, headers=headers, timeout=10).json() == {
        "data": {"viewer": {"id": "U_emulated-user"}}
    }
    assert "errors" in requests.post(url, json={"query": query}, headers=headers, timeout=10).json()


def test_nodes_by_id(server: Server) -> None:
    found = ask_rocket(server, "id issue(number: 2) { id comments(first: 1) { nodes { id body } } }")
    ids = [found["id"], found["issue"]["id"], found["issue"]["comments"]["nodes"][0]["id"]]
    query = """query($ids: [ID!]!) { nodes(ids: $ids) { __typename ... on Issue { number }
        ... on Repository { nameWithOwner } ... on IssueComment { databaseId } } }"""
    assert ask(server, query, ids=ids)["nodes"] == [
        {"__typename": "Repository", "nameWithOwner": "acme/rocket"},
        {"__typename": "Issue", "number": 2},
        {"__typename": "IssueComment", "databaseId": 11},
    ]
    for unknown in ("?", "I_1_2", f"{ids[0]}_99", f"{ids[1]}9", ids[2] + "9", ids[1].replace("I_", "PR_")):
        answer = post(server, query, ids=[unknown, ids[1]]).json()
        assert answer["data"]["nodes"] == [None, {"__typename": "Issue", "number": 2}]
        assert (
            answer["errors"][0]["message"] == f"Could not resolve to a node with the global id of '{unknown}'"
        )
    assert refusal(server, '{ node(id: "R_5") { id } }')["type"] == "NOT_FOUND"


def test_tokens(server: Server) -> None:
    url, query = f"{server.url}/graphql", {"query": "{ viewer { login } }"}
    assert requests.post(url, json=query, timeout=10).status_code == 401
    response = post(server, query["query"], token="bad")
    assert (response.status_code, response.json()["message"]) == (401, "Bad credentials")
    assert requests.post(url, json=query, auth=("me", "secret"), timeout=10).status_code == 200
    assert requests.post(url, json=query, headers={"Authorization": "Basic ?"}, timeout=10).status_code == 401
    blind = post(server, f"{{ viewer {{ login }} {ROCKET} {{ id }} }}", token="noaccess").json()
    assert blind["data"] == {"viewer": {"login": "emulated-user"}, "repository": None}
    assert blind["errors"][0]["type"] == "NOT_FOUND"


def test_the_schema_can_be_probed(server: Server, tiny_dump: Path) -> None:
    query = '{ __type(name: "Issue") { fields { name } } }'

    def fields(asked: Server) -> set[str]:
        return {field["name"] for field in ask(asked, query)["__type"]["fields"]}

    assert "duplicateOf" in fields(server)
    with serve(tiny_dump, options=Options(without_duplicate_of=True)) as older:
        assert "duplicateOf" not in fields(older)
        assert refusal(older, f"{{ {ROCKET} {{ issue(number: 2) {{ duplicateOf {{ id }} }} }} }}")["message"]


def test_transfers_can_be_hidden(tiny_dump: Path) -> None:
    with serve(tiny_dump, options=Options(follows_transfers=False)) as server:
        error = refusal(server, f"{{ {ROCKET} {{ issue(number: 8) {{ id }} }} }}")
        assert error["message"] == "Could not resolve to an Issue with the number of 8."


def test_replicas_answer_under_their_own_names(tiny_dump: Path) -> None:
    with serve(tiny_dump, replicate=2) as server:
        query = """query($name: String!) { repository(owner: "acme", name: $name) { nameWithOwner
            issue(number: 2) { databaseId duplicateOf { repository { nameWithOwner } } } } }"""
        one, two = (ask(server, query, name=name)["repository"] for name in ("rocket", "rocket-2"))
        assert two["nameWithOwner"] == "acme/rocket-2"
        assert two["issue"]["duplicateOf"]["repository"] == {"nameWithOwner": "acme/rocket-2"}
        assert one["issue"]["databaseId"] != two["issue"]["databaseId"]
