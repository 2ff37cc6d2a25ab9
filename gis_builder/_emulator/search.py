"""Issue search over everything that is served."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from gis_builder._emulator.errors import NothingToSearch
from gis_builder._emulator.search_query import Condition, Query, count_key, parse_query
from gis_builder._emulator.text_index import TextIndex
from gis_builder._emulator.tracker import Catalogue, Issue, Repository, Tracker

REACHABLE = 1000  # of a query's results, however many there are
_REMEMBERED = 128  # queries whose hits are kept for their next page


class Hit(NamedTuple):
    """One result of a search."""

    repository: Repository
    issue: Issue


class Search:
    """Runs queries; the hits of recent ones are kept, so that further pages cost nothing."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._indexes: dict[Tracker, TextIndex] = {}
        self._recent = lru_cache(_REMEMBERED)(self._find)

    def run(self, text: str) -> list[Hit]:
        """Every hit of the query `text`, in its order; callers serve the first 1,000.

        Raises:
            SearchRefusal: GitHub would not run it.
        NothingToSearch: none of the repositories that it names can be seen; a former name counts as none.
        """
        return self._recent(text)

    def forget(self) -> None:
        """Look anew, as something was written."""
        self._recent.cache_clear()
        self._indexes = {}

    def _find(self, text: str) -> list[Hit]:
        query = parse_query(text)
        hits = [
            Hit(repository, issue)
            for repository in self._scope(query)
            for issue in self._matching(repository, query)
        ]
        hits.sort(
            key=lambda hit: (_sort_key(hit.issue, query.sort), hit.issue.number), reverse=query.descending
        )
        return hits

    def _scope(self, query: Query) -> list[Repository]:
        if not query.repositories and not query.owners:
            return [repository for repository in self._catalogue.repositories if repository.is_visible]
        # Search does not follow renames: a former name is as good as no name.
        named = [self._catalogue.find(name, follow_renames=False) for name in query.repositories]
        owned = [
            repository
            for repository in self._catalogue.repositories
            if repository.is_visible and repository.name.lower().partition("/")[0] in query.owners
        ]
        scope = [repository for repository in (*named, *owned) if repository is not None]
        if not scope:
            raise NothingToSearch(
                "The listed users and repositories cannot be searched either because the resources do not "
                "exist or you do not have permission to view them."
            )
        return list(dict.fromkeys(scope))

    def _matching(self, repository: Repository, query: Query) -> list[Issue]:
        tests = [_test(condition) for condition in query.conditions]
        issues = [
            issue
            for number, issue in repository.tracker.issues.items()
            if repository.issue(number) is not None and all(test(issue) for test in tests)
        ]
        if query.terms:
            index = self._indexes.setdefault(repository.tracker, TextIndex(repository.tracker))
            for term in query.terms:
                numbers = index.numbers(term.text, query.fields)
                issues = [issue for issue in issues if (issue.number in numbers) is not term.negated]
        return issues


def _sort_key(issue: Issue, sort: str) -> str:
    if sort == "comments":
        return count_key(len(issue.comments))
    return issue.updated_at if sort == "updated" else issue.created_at


def _test(condition: Condition) -> Callable[[Issue], bool]:
    holds = _positive_test(condition)
    return (lambda issue: not holds(issue)) if condition.negated else holds


def _positive_test(condition: Condition) -> Callable[[Issue], bool]:
    key, values, span = condition.key, frozenset(condition.values), condition.span
    if span is not None:
        value_of = _SPAN_VALUES[key]
        return lambda issue: (value := value_of(issue)) is not None and span.holds(value)
    if key in {"is", "type", "state"}:
        checks = [_STATES.get(value, _never) for value in values]
        return lambda issue: any(check(issue) for check in checks)
    if key == "label":
        return lambda issue: any(label.lower() in values for label in issue.labels)
    if key == "no":
        return lambda issue: "label" not in values or not issue.labels
    if key == "reason":
        reasons = {value.replace(" ", "_") for value in values}
        return lambda issue: issue.state_reason in reasons
    if key == "author":
        return lambda issue: issue.author is not None and issue.author.login.lower() in values
    if key == "commenter":
        return lambda issue: any(
            c.author is not None and c.author.login.lower() in values for c in issue.comments
        )
    return lambda _issue: True  # archived: and the like tell nothing apart here


def _never(_issue: Issue) -> bool:
    return False


_SPAN_VALUES: dict[str, Callable[[Issue], str | None]] = {
    "created": lambda issue: issue.created_at,
    "updated": lambda issue: issue.updated_at,
    "closed": lambda issue: issue.closed_at,
    "comments": lambda issue: count_key(len(issue.comments)),
}

_STATES: dict[str, Callable[[Issue], bool]] = {
    "issue": lambda issue: not issue.is_pull,
    "pr": lambda issue: issue.is_pull,
    "pull-request": lambda issue: issue.is_pull,
    "open": lambda issue: issue.state == "open",
    "closed": lambda issue: issue.state == "closed",
    "merged": lambda issue: issue.is_merged,
    "unmerged": lambda issue: issue.is_pull and not issue.is_merged,
    "public": lambda _issue: True,  # private repositories are never searched
}
