"""Reads cells of links, such as "duplicate of A-1; see also A-2", by the rules for comments.

A cell is cut into parts with ids and the words beside them. Words before an id also hold for the bare ids
that follow on its line, and a heading such as "Related:" for all ids whose own words name no relation.
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
    """The ids in a part of a cell, the words beside them (… stands for the ids), and how these are read."""

    ids: str  # or all of the text, in which a number may be no id
    words: str
    kind: LinkKind


_ONE = r"(?:https?://[^\s,;|<>()\[\]\"]+|(?<![\w#./-])(?=[\w#./-]{0,200}\d)[\w#./-]+)"
_AND = r"[\s&+/]*+(?:and|or|und|oder|et|ou|y|e|o|ed|en|of|i|lub|oraz|и|или|ve|と|和|及|与|와|과)?[\s&+/]*+"
_ID = re.compile(_ONE, re.ASCII | re.IGNORECASE)
_IDS = re.compile(f"{_ONE}(?:{_AND}{_ONE})*", re.ASCII | re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")
_CUT = re.compile(r"(?=\n)|[,;|，、；]")
_HEADING = re.compile(r"[:：]\s*$")
_SPACED = re.compile(r"(?<=[a-z])[_.-](?=[a-z])|[\s:：]+(?=#1)", re.IGNORECASE)  # "has_duplicate: #1"
_TITLE = re.compile(
    r"#1(?:\s*[:–—-]\s.{24}|.{32})"
)  # of the other ticket; only its claims are about the link
_TICKET = IssueRef("a/b", 9_999_999)

_LEXICON = tomllib.loads(Path(__file__).with_name("link_words.toml").read_text(encoding="utf-8"))
_START = r"(?<![a-z\u00c0-\u024f\u0400-\u04ff])"  # of a word; scripts without blanks have none
_CODES = {LinkKind[name]: code_pattern(pattern) for name, pattern in _LEXICON["codes"].items()}
_WORDS = {
    LinkKind[name]: re.compile(f"{_START}(?:{'|'.join(words)})".replace("R", f"{REFERENCE_MARK}[^ ]?"))
    for name, words in _LEXICON["words"].items()
}


def read_cell(cell: str, ticket: str) -> list[LinkPart]:
    """The parts of a cell of this ticket that have ids."""
    parts: list[LinkPart] = []
    lead = ""
    for text in _texts(_with_this(cell, ticket.lower())):
        ids = _IDS.search(text)
        if ids is None:
            lead = text
            continue
        head = text[: ids.start()]
        tail = text[ids.end() :]
        is_bare = not _LETTER.search(head + tail)
        is_headed = _HEADING.search(lead)
        if text.startswith("\n") and not is_headed:
            lead = ""
        words = f"{head} #1{tail}"
        kind = kind_of(words)
        if kind is not LinkKind.PLAIN:
            lead = head
            # "A-1, A-2 are duplicates", unlike "A-1, A-2 (duplicate)"
            if tail.strip()[:1].isalpha() and all(part.kind is LinkKind.PLAIN for part in parts):
                parts = [part._replace(kind=kind) for part in parts]
        elif is_bare or is_headed:
            kind = kind_of(f"{lead} #1")
        # "2 customers" does not name ticket 2
        is_clear = is_bare or kind is not LinkKind.PLAIN
        named = "; ".join(_ID.findall(ids[0])) if is_clear else text
        parts.append(LinkPart(named, " ".join(words.replace("#1", "…").lower().split()), kind))
    return parts


def _with_this(cell: str, own: str) -> str:
    """The cell with "this" for the ticket's own id beside others."""
    replaced = _ID.sub(lambda found: "this" if found[0].strip("#.").lower() == own else found[0], cell)
    return replaced if _ID.search(replaced) else cell


def _texts(cell: str) -> Iterator[str]:
    """The parts of a cell, each with ids that have the same words, or a heading."""
    text = ""
    for part in _CUT.split(cell):
        # A remark such as "A-1, not a duplicate" or "no, not A-1"
        is_remark = not (_ID.search(text) and _ID.search(part))
        if text and is_remark and not _HEADING.search(text) and not _HEADING.search(part):
            text = f"{text}, {part}"
        else:
            yield from _between_ids(text)
            text = part
    yield from _between_ids(text)


def _between_ids(text: str) -> Iterator[str]:
    """Cut where words are between two ids: before an id if the text begins with one, else after it."""
    ids = [*_IDS.finditer(text)]
    if ids and not _LETTER.search(text[: ids[0].start()]):
        cuts = [found.start() for found in ids[1:]]
    else:
        cuts = [found.end() for found in ids[:-1]]
    for start, end in pairwise([0, *cuts, len(text)]):
        yield text[start:end]


@lru_cache(1 << 14)
def kind_of(words: str) -> LinkKind:
    """How words are read, in which `#1` stands for the ids."""
    page = PreparedText(_SPACED.sub(" ", words).strip(' \n¿¡>"'), _TICKET, ())
    sentences = page.sentences_worth_reading()
    readers = (
        SentenceReader(page, index, sentence) for index, sentence in sentences.items() if sentence.codes
    )
    found = {_claimed(claim) for reader in readers for claim in reader.claims()}
    hidden = page.hidden
    codes = "".join(sentence.codes for sentence in sentences.values())
    if _TITLE.search(words):
        hidden = hidden[: hidden.find(REFERENCE_MARK) + 2]
        codes = codes[: codes.find(Code.REFERENCE) + 1]
    if found <= {LinkKind.PLAIN}:
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
    is_same = relation_of(claim.kind, claim.marker) in (Relation.DUPLICATE, Relation.SAME)
    return LinkKind.DUPLICATE if is_same else LinkKind.PLAIN
