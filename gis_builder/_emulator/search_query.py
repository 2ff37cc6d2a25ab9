"""The language of GitHub's issue search: qualifiers, quoted phrases and words.

Understood: `repo: user: org: is: type: state: label: no:label author: commenter: reason: in: created:
updated: closed: comments: sort:`, each negated by a leading `-`; every remaining word or phrase must occur,
or with `NOT` or `-` must not. A key that is not a qualifier is searched for as text, as GitHub does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from gis_builder._emulator.errors import SearchRefusal

MAX_TEXT_CHARACTERS = 256
MAX_OPERATORS = 5
FIELDS = ("title", "body", "comments")

_TERM = re.compile(
    r"""(?P<minus>-)?(?:(?P<key>[A-Za-z]+):(?P<value>(?:"[^"]*"|[^\s"])+)|"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))"""
)
_VALUE = re.compile(r'"([^"]*)"|([^",]+)')  # of a list such as bug,"help wanted"
_TIMES = frozenset({"created", "updated", "closed"})
_QUALIFIERS = _TIMES | {
    *("repo", "user", "org", "is", "type", "state", "label", "no", "author", "commenter", "reason"),
    *("in", "comments", "sort", "archived"),
}
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_SORTS = frozenset({"created", "updated", "comments"})


class Span(NamedTuple):
    """A range of values, both ends included; None: no bound. Times compare as ISO text."""

    low: str | None
    high: str | None

    def holds(self, value: str) -> bool:
        """Whether `value` lies within."""
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


class Condition(NamedTuple):
    """One qualifier; `values` are alternatives."""

    key: str
    values: tuple[str, ...]
    negated: bool = False
    span: Span | None = None


class Term(NamedTuple):
    """Words that must occur next to each other in this order, or must not."""

    text: str
    negated: bool = False


@dataclass(frozen=True)
class Query:
    """A parsed search."""

    repositories: tuple[str, ...] = ()  # owner/name, alternatives; empty: everywhere
    owners: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    terms: tuple[Term, ...] = ()
    fields: tuple[str, ...] = FIELDS
    sort: str = "created"
    descending: bool = True


def parse_query(text: str) -> Query:
    """Parse a search query.

    Raises:
        SearchRefusal: more than 256 characters of text besides qualifiers, more than five AND/OR/NOT, an `OR`
            (GitHub's answer to it differs between its two search engines), or a date that is none.
    """
    builder = _Builder()
    for match in _TERM.finditer(text):
        builder.add(match)
    return builder.finish()


class _Builder:
    def __init__(self) -> None:
        self._repositories: list[str] = []
        self._owners: list[str] = []
        self._conditions: list[Condition] = []
        self._terms: list[Term] = []
        self._fields: tuple[str, ...] = FIELDS
        self._sort, self._descending = "created", True
        self._operators: list[str] = []
        self._length = 0
        self._negate_next = False

    def add(self, match: re.Match[str]) -> None:
        key, negated = (match["key"] or "").lower(), bool(match["minus"])
        is_operator = match["word"] in _OPERATORS and not negated
        if is_operator:
            self._operators.append(match["word"])
        elif key in _QUALIFIERS:
            self._add_qualifier(key, match["value"], negated)
        else:
            self._length += len(match[0]) + (self._length > 0)
            words = f"{match['key']} {match['value']}" if key else match["phrase"] or match["word"] or ""
            self._terms.append(Term(words, negated or self._negate_next))
        self._negate_next = is_operator and match["word"] == "NOT"

    def _add_qualifier(self, key: str, text: str, negated: bool) -> None:
        values = tuple((quoted or bare).strip().lower() for quoted, bare in _VALUE.findall(text))
        value = values[0] if values else ""
        if key == "repo" and not negated:
            self._repositories.append(value)
        elif key in {"user", "org"} and not negated:
            self._owners.append(value)
        elif key == "in":
            self._fields = tuple(name for name in values if name in FIELDS) or FIELDS
        elif key == "sort":
            field, _, direction = value.partition("-")
            if field in _SORTS:
                self._sort, self._descending = field, direction != "asc"
        elif key in _TIMES:
            self._conditions.append(Condition(key, values, negated, _time_span(value.upper())))
        elif key == "comments":
            self._conditions.append(Condition(key, values, negated, _count_span(value)))
        else:
            self._conditions.append(Condition(key, values, negated))

    def finish(self) -> Query:
        if self._length > MAX_TEXT_CHARACTERS:
            raise SearchRefusal(f"The search is longer than {MAX_TEXT_CHARACTERS} characters.")
        if len(self._operators) > MAX_OPERATORS:
            raise SearchRefusal("More than five AND / OR / NOT operators were used.")
        if "OR" in self._operators:
            raise SearchRefusal("The emulator's search has no OR: send one query for each alternative.")
        return Query(
            repositories=tuple(self._repositories),
            owners=tuple(self._owners),
            conditions=tuple(self._conditions),
            terms=tuple(self._terms),
            fields=self._fields,
            sort=self._sort,
            descending=self._descending,
        )


def _bounds(value: str) -> tuple[str, str, str]:
    """Split into (operator, left, right); the operator is one of `..`, `>=`, `<=`, `>`, `<` and empty."""
    if ".." in value:
        left, _, right = value.partition("..")
        return "..", left, right
    for operator in (">=", "<=", ">", "<"):
        if value.startswith(operator):
            return operator, value[len(operator) :], ""
    return "", value, value


def _time_span(value: str) -> Span:
    operator, left, right = _bounds(value)
    if operator == ">":  # after the whole day, or after the second
        return Span(_moment(left, end_of_day=True) + "\x00", None)
    if operator == ">=":
        return Span(_moment(left, end_of_day=False), None)
    if operator == "<":
        return Span(None, _moment(left, end_of_day=False)[:-1])
    if operator == "<=":
        return Span(None, _moment(left, end_of_day=True))
    low = None if left == "*" else _moment(left, end_of_day=False)
    return Span(low, None if right == "*" else _moment(right, end_of_day=True))


def _moment(text: str, *, end_of_day: bool) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SearchRefusal(
            f"{text!r} is not a recognized date/time format. Please provide an ISO 8601 date/time value, "
            "such as YYYY-MM-DD."
        ) from None
    if "T" not in text.upper():
        return f"{moment:%Y-%m-%d}T{'23:59:59' if end_of_day else '00:00:00'}Z"
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z"


def _count_span(value: str) -> Span:
    operator, left, right = _bounds(value)
    open_ended = {"*"} if operator == ".." else set()
    if not all(part.isdigit() or part in open_ended for part in (left, right or left)):
        raise SearchRefusal(f"{value!r} is not a number of comments, such as >10 or 5..20.")
    if operator in {">", ">="}:
        return Span(count_key(int(left) + (operator == ">")), None)
    if operator in {"<", "<="}:
        return Span(None, count_key(int(left) - (operator == "<")))
    return Span(*(None if part == "*" else count_key(int(part)) for part in (left, right or left)))


def count_key(count: int) -> str:
    """A number as text that compares as the number does."""
    return f"{count + 1:012d}"
