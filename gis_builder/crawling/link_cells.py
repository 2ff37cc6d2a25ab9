"""Reads cells of links, such as "duplicate of A-1; see also A-2", by the rules for comments.

A cell is cut into parts with ids and the words beside them. Words before an id also hold for the bare ids that
follow on its line, and a heading such as "Related:" for all ids whose own words name no relation.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from gis_builder.detection.claim_reader import Claim, SentenceReader, Stance
from gis_builder.detection.lexicon import Code, code_pattern
from gis_builder.detection.page import PreparedText
from gis_builder.detection.phrase_codes import REFERENCE_MARK
from gis_builder.detection.rules import relation_of
from gis_builder.store.issue_records import IssueRef, Relation


class LinkKind(StrEnum):
    """How the words beside an id are read."""

    DENIED = "not a duplicate"
    DOUBTED = "in doubt"
    REVERSED = "a duplicate of this ticket"
    DUPLICATE = "duplicate"
    OTHER = "another relation"
    PLAIN = "without words of a relation"  # the name of the column decides


class LinkPart(NamedTuple):
    """The text of a cell with one id or a list of ids, the words beside them, and how these are read."""

    text: str
    words: str
    kind: LinkKind


_ID = re.compile(
    r"(?a)https?://[^\s,;|<>()\[\]\"]+|(?<![\w#./-])(?=[\w#./-]{0,200}\d)[\w#./-]+", re.IGNORECASE
)
_LETTER = re.compile(r"[^\W\d_]")
_CUT = re.compile(r"(?=\n)|[,;|，、；]")
_JOIN = re.compile(
    r"(?i)[\s&+/]*+(?:and|or|und|oder|et|ou|y|e|o|ed|en|of|i|lub|oraz|и|или|ve|と|和|及|与|와|과)?[\s&+/]*+"
)
_HEADING = re.compile(r"[:：]\s*$")
_TITLE = re.compile(r"\s*[:–—-]\s.{24}|.{32}")  # after an id; only its claims are about the link
_SAYS = re.compile(r"[^\W\d_]|[?？]")
_JOINED_NAME = re.compile(r"(?<=[a-z])[_-](?=[a-z])", re.IGNORECASE)  # "has_duplicate", "caused-by"
_JOINED_WORDS = re.compile(r"\s*\w")  # "A-1, A-2 are duplicates", unlike "A-1, A-2 (duplicate)"
_MAX_WORDS = 300  # characters
_TICKET = IssueRef("a/b", 9_999_999)

_START = r"(?<![a-z\u00c0-\u024f\u0400-\u04ff])"  # of a word; scripts without blanks have none
_WORDS = {
    LinkKind[name.upper()]: re.compile(
        f"{_START}(?:{'|'.join(words)})".replace("R", f"{REFERENCE_MARK}[^ ]?")
    )
    for name, words in tomllib.loads(
        Path(__file__).with_name("link_words.toml").read_text(encoding="utf-8")
    ).items()
}
_CODES = {
    LinkKind.DUPLICATE: code_pattern("REFERENCE IS FILLER? DUPLICATES"),  # several ids
    LinkKind.DENIED: code_pattern(
        "DIFFERENT | NOT [OF ARTICLE ISSUE FILLER DUPLICATE SAME SAME_AS]{0,4} REFERENCE"
        "| NOT .{0,5} [DUPLICATE SAME SAME_AS] | [DUPLICATE SAME SAME_AS] .{0,5} NOT"
    ),
    LinkKind.DOUBTED: code_pattern("[MAYBE UNDECIDED QUESTION] .{0,4} REFERENCE | REFERENCE .{0,3} QUESTION"),
    LinkKind.OTHER: code_pattern(
        "[RELATED SIMILAR_TO PART_OF] .{0,3} REFERENCE | REFERENCE .{0,4} [RELATED SIMILAR_TO] (?!WORD)"
        "| FIXED BY REFERENCE"
    ),
}
_BY_RELATION = {
    Relation.DUPLICATE: LinkKind.DUPLICATE,
    Relation.SAME: LinkKind.DUPLICATE,
    Relation.PART_OF: LinkKind.OTHER,
}


def read_cell(cell: str, ticket: str) -> list[LinkPart]:
    """The parts of a cell of this ticket that have ids."""
    parts: list[LinkPart] = []
    lead, heading = "", ""
    for text in _texts(_with_this(cell, ticket)):
        ids = [*_ID.finditer(text)]
        if not ids:
            heading = text
            continue
        head = text[: ids[0].start()]
        tail = text[ids[-1].end() :]
        is_bare = not _LETTER.search(head + tail)
        if text.startswith("\n"):
            lead = ""
        kind = kind_of(head, tail)
        if kind is LinkKind.PLAIN:
            kind = kind_of(heading or (lead if is_bare else ""), "")
        else:
            heading = ""
            if _JOINED_WORDS.match(tail) and not any(part.words for part in parts):
                parts = [part._replace(kind=kind) for part in parts]
        if _LETTER.search(head):
            lead = head
            heading = head if _HEADING.search(head) else heading
        words = "" if is_bare else " ".join(f"{head} … {tail}".lower().split())
        parts.append(LinkPart(text, words, kind))
    return parts


def _with_this(cell: str, ticket: str) -> str:
    """The cell with "this" for the ticket's own id beside others."""
    own = re.compile(rf"(?i)(?<![\w#-])#?{re.escape(ticket)}(?![\w-])")
    replaced = own.sub("this", cell) if ticket.lower() in cell.lower() else cell
    return replaced if _ID.search(replaced) else cell


def _texts(cell: str) -> Iterator[str]:
    """The parts of a cell with ids, or headings; words after a separator belong to the ids before it."""
    last = ""
    for part in _CUT.split(cell):
        is_remark = last and not _ID.search(part) and not _HEADING.search(part)
        is_begun = last.strip() and not _ID.search(last) and not part.startswith("\n")  # "no, not A-1"
        if is_remark or is_begun:
            last = f"{last}, {part}"
            continue
        yield from _between_ids(last)
        last = part
    yield from _between_ids(last)


def _between_ids(part: str) -> Iterator[str]:
    """Cut where words are between two ids: before an id if the part begins with one, else after it."""
    ids = [*_ID.finditer(part)]
    begins_with_id = bool(ids) and not _LETTER.search(part[: ids[0].start()])
    start = 0
    for first, second in pairwise(ids):
        if not _JOIN.fullmatch(part, first.end(), second.start()):
            cut = second.start() if begins_with_id else first.end()
            yield part[start:cut]
            start = cut
    if _LETTER.search(part, start) or ids:
        yield part[start:]


@lru_cache(1 << 14)
def kind_of(head: str, tail: str) -> LinkKind:
    """How the words before and after an id are read."""
    head = _JOINED_NAME.sub(" ", head[-_MAX_WORDS:]).rstrip(" :：")
    tail = _JOINED_NAME.sub(" ", tail[:_MAX_WORDS])
    if not _SAYS.search(head + tail):
        return LinkKind.PLAIN
    page = PreparedText(f"{head} #1{tail}".strip(' \n¿¡>"'), _TICKET, ())
    sentences = {index: page.sentence(index) for index in range(len(page.spans))}
    found = {
        _claimed(claim)
        for index, sentence in sentences.items()
        if sentence.codes
        for claim in SentenceReader(page, index, sentence).claims()
    }
    hidden = page.hidden
    codes = "".join(sentence.codes for sentence in sentences.values())
    if _TITLE.match(tail):
        hidden = hidden[: hidden.find(REFERENCE_MARK) + 2]
        codes = codes[: codes.find(Code.REFERENCE) + 1]
    if not found:
        found.update(kind for kind, pattern in _CODES.items() if pattern.search(codes))
    found.update(kind for kind, pattern in _WORDS.items() if pattern.search(hidden))
    return next((kind for kind in LinkKind if kind in found), LinkKind.PLAIN)


def _claimed(claim: Claim) -> LinkKind:
    if claim.stance is Stance.DENIED:
        return LinkKind.DENIED
    if claim.stance is not Stance.ASSERTED:
        return LinkKind.DOUBTED
    if claim.about_others:
        return LinkKind.REVERSED
    return _BY_RELATION.get(relation_of(claim.kind, claim.marker), LinkKind.PLAIN)
