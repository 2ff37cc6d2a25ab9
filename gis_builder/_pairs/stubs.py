"""The words that only lead to a reference and would hang without it, as "see" in "(see #12)".

They go with it, by their form alone, where the reference ends its clause. Words such as "of", "in", "by" go
wherever they stand before it; words such as "see", "related", "blocked on" only where the clause says nothing
else, so that "the crash is related to #12" keeps that it is related.
"""

from __future__ import annotations

import re

from gis_builder._markdown import Span

# Say nothing without what follows them.
_JOINTS = frozenset((
    "about", "and", "as", "at", "because", "between", "by", "cf", "due", "for", "from", "in", "into",
    "like", "nor", "of", "on", "or", "per", "see", "since", "than", "through", "to", "under", "until",
    "upon", "via", "vs", "with",
))  # fmt: skip
# Say no more than that there is a reference, where a clause has no other words.
_LEADS = _JOINTS | frozenset((
    "a", "again", "already", "also", "are", "based", "be", "blocked", "blocker", "blocks", "bug", "bugs",
    "caused", "closely", "could", "depends", "described", "discovered", "discussed", "discussion",
    "encountered", "extracted", "few", "fixed", "fixes", "follow-up", "followup", "found", "further", "i",
    "introduced", "is", "issue", "issues", "it", "it's", "likely", "linked", "loosely", "may", "maybe",
    "mentioned", "might", "more", "moved", "noticed", "original", "originally", "other", "parent", "part",
    "perhaps", "possibly", "potentially", "pr", "presumably", "previous", "previously", "probably", "re",
    "ref", "reference", "references", "refs", "regressed", "related", "relates", "relevant", "reported",
    "same", "seems", "separated", "similar", "somewhat", "spawned", "split", "spun", "that", "the",
    "these", "this", "ticket", "tickets", "tracked", "tracking", "was", "were", "which",
))  # fmt: skip
_WORD = re.compile(r"(?:(?<=[\s(\[,;:.!?>*_])|^)(?P<word>[A-Za-z][A-Za-z'-]*)(?P<stop>[.:]?)[ \t]*\Z")
_ABBREVIATIONS = frozenset(("cf", "ref", "refs", "re"))
_MOST_WORDS = 6
_WINDOW = 32  # characters, more than the longest of the words
_CLAUSE_OPENS = re.compile(r"(?:^|[\n(\[;:.!?,–—>/]|(?:^|(?<=\s))[-*+#]+)[ \t]*\Z")
_TAIL = re.compile(
    r"[ \t]+(?:for|on|about)[ \t]+(?:(?:more|further|some|the|full|additional)[ \t]+)?"
    r"(?:details?|info(?:rmation)?|discussion|context|background|reference|example|it|this|that)(?![\w-])"
)
_CLAUSE_ENDS = re.compile(r"[ \t]*(?:[.,;:!?)\]\n]|\Z)")
_FULL_STOP = re.compile(r"[ \t]*[.,;:]")


def with_stub(text: str, span: Span) -> Span:
    """The span of a reference, or list of references, together with the words that would be left hanging."""
    start, end = span
    tail = _TAIL.match(text, end)
    if _CLAUSE_ENDS.match(text, tail.end() if tail else end) is None:
        return span
    joints, leads = _walk(text, start, _JOINTS), _walk(text, start, _LEADS)
    opens = _CLAUSE_OPENS.search(text, max(0, leads - _WINDOW), leads)
    if leads < start and opens is not None:
        return _whole_clause(text, leads, tail.end() if tail else end)
    return (joints, end) if tail is None else span


def _walk(text: str, position: int, words: frozenset[str]) -> int:
    """How far back such words reach without a break; blanks before the reference stay if there are none."""
    for _ in range(_MOST_WORDS):
        found = _WORD.search(text[max(0, position - _WINDOW) : position])
        if found is None or found["word"].lower() not in words:
            break
        if found["stop"] == "." and found["word"].lower() not in _ABBREVIATIONS:
            break
        position = max(0, position - _WINDOW) + found.start()
    return position


def _whole_clause(text: str, start: int, end: int) -> Span:
    """A clause of which nothing stays takes one of the stops around it along."""
    before = text[max(0, start - _WINDOW) : start].rstrip(" \t")[-1:]
    if before in (",", ";", "–", "—", "-") and _CLAUSE_ENDS.match(text, end):
        return text.rfind(before, 0, start), end
    stop = _FULL_STOP.match(text, end)
    if stop is None or (before in ("(", "[") and text[stop.end() : stop.end() + 1] not in (")", "]")):
        return start, end
    return start, stop.end()
