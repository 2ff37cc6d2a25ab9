"""Issue search with GitHub's limits, order and errors.

Supports `repo: is: label: reason: created: in:`; each other phrase or word must occur. Texts are scanned,
which for a dozen phrases is faster than building an inverted index of 150,000 comments.
"""

import re
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from tests.support.github.trackers import Issue, Repository

REACHABLE = 1000  # of a query's results, however many there are
_MOST_CHARACTERS = 256
_TERM = re.compile(
    r'(?:(?P<key>[a-z]+):(?P<value>"[^"]*"|\S+)|"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))'
)
_KEYS = frozenset({"repo", "is", "label", "reason", "created", "in"})
_FIELDS = ("title", "body", "comments")
# Scripts without spaces between words: each character counts as a word, as in GitHub's analyser.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


class SearchRefusal(Exception):  # noqa: N818 - it becomes one entry of an answer's `errors`
    """A query that GitHub would not run."""


class Hit(NamedTuple):
    """One result of a search."""

    repository: Repository
    issue: Issue


class Search:
    """Runs queries and caches the hits of recent ones for further pages."""

    def __init__(self, catalogue):
        self._catalogue = catalogue
        self.run = lru_cache(128)(self._run)
        self._scan = lru_cache(512)(_scan)

    def _run(self, text):
        """Every hit, newest first; none where the repository can't be seen or has another name now."""
        qualifiers = []
        phrases = []
        for term in _TERM.finditer(text):
            if term["key"] in _KEYS:
                qualifiers.append((term["key"], term["value"].strip('"').lower()))
            else:
                phrases.append(term["phrase"] or term["word"] or term[0])
        if len(" ".join(phrases)) > _MOST_CHARACTERS:
            raise SearchRefusal(
                f"The search is longer than {_MOST_CHARACTERS} characters."
            )
        found = self._catalogue.find(
            dict(qualifiers).get("repo", ""), follow_renames=False
        )
        if found is None:
            return []
        tests = [_test(key, value) for key, value in qualifiers]
        fields = tuple(value for key, value in qualifiers if key == "in") or _FIELDS
        said = [self._scan(found, phrase, fields) for phrase in phrases]
        issues = [
            issue
            for number, issue in found.issues.items()
            if found.issue(number)
            and all(number in numbers for numbers in said)
            and all(t(issue) for t in tests)
        ]
        issues.sort(key=lambda issue: (issue.created_at, issue.number), reverse=True)
        return [Hit(found, issue) for issue in issues]


def _test(key, value):
    match key, value:
        case "is", "issue" | "pr":
            return lambda issue: issue.is_pull is (value == "pr")
        case "is", _:
            return lambda issue: issue.state == value
        case "label", _:
            return lambda issue: any(label.lower() == value for label in issue.labels)
        case "reason", _:
            return lambda issue: issue.state_reason == value.replace(" ", "_")
        case "created", _:
            low, high = _span(value.upper())
            return lambda issue: low <= issue.created_at <= high
        case _:
            return lambda _issue: True


def _span(value):
    """A range of times, both ends included; they compare as ISO text."""
    if value.startswith("<="):
        return "", value[2:]
    if value.startswith(">="):
        return value[2:], "9999"
    low, dots, high = value.partition("..")
    if not dots:
        raise SearchRefusal(f"{value!r} is not a recognized date/time format.")
    return low, high


def _scan(repository, phrase, fields):
    says = phrase_test(phrase)
    return frozenset(
        number
        for number, issue in repository.issues.items()
        if any(says(text) for field in fields for text in _texts(issue, field))
    )


def phrase_test(phrase):
    """A test of whether a text contains the words of `phrase` in a row, in any case."""
    words = _WORD.findall(phrase.lower())
    if not words:
        return lambda _text: True
    longest = max(words, key=len)
    pattern = re.escape(words[0]) + "".join(
        (r"\W*" if _is_unspaced(left) or _is_unspaced(right) else r"\W+")
        + re.escape(right)
        for left, right in pairwise(words)
    )
    before = "" if _is_unspaced(words[0]) else rf"(?<![^\W{_UNSPACED}])"
    after = "" if _is_unspaced(words[-1]) else rf"(?![^\W{_UNSPACED}])"
    search = re.compile(before + pattern + after).search

    def says(text):
        folded = text.lower()
        return longest in folded and search(folded) is not None

    return says


def _is_unspaced(word):
    return re.match(rf"[{_UNSPACED}]", word) is not None


def _texts(issue, field):
    if field == "title":
        yield issue.title
    elif field == "body":
        yield issue.body or ""
    else:
        yield from (comment.body or "" for comment in issue.comments)
