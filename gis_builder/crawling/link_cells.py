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

from gis_builder.detection.claim_reader import Claim, Stance
from gis_builder.detection.issue_references import REFERENCE_MARK
from gis_builder.detection.lexicon import code_pattern
from gis_builder.detection.page import PreparedText
from gis_builder.detection.reading import read
from gis_builder.detection.rules import relation_of
from gis_builder.store import IssueRef, Relation
from pairkit.base.printable import comparable

_ONE = r"(?:https?://[^\s,;|<>()\[\]\"]+|(?<![\w#./-])(?=[\w#./-]{0,200}\d)[\w#./-]+)"
_AND = r"[\s&+/]*+(?:and|or|und|oder|et|ou|y|e|o|ed|en|of|i|lub|oraz|и|или|ve|と|和|及|与|와|과)?[\s&+/]*+"
_ID = re.compile(f"(?ai){_ONE}")
_IDS = re.compile(f"(?ai){_ONE}(?:{_AND}{_ONE})*")
_LETTER = re.compile(r"[^\W\d_]")
_CUT = re.compile(r"(?=\n)|[,;|，、；]")
_HEADING = re.compile(r"(?m)[:：]\s*$")
# Signs that become blanks, as in "has_duplicate: #1".
_SPACED = re.compile(r"(?i)(?<=[a-z])[_.-](?=[a-z])|\bn[or]\.\s*(?=#1)|[\s:：]+(?=#1)")
# The title of the other ticket; only its claims are about the link.
_TITLE = re.compile(r"(?s)(?<=#1)(?:\s*[:–—-]\s.{24}|.{32}).*")
_TICKET = IssueRef("a/b", 9_999_999)

_LEXICON = tomllib.loads(
    Path(__file__).with_name("link_words.toml").read_text(encoding="utf-8")
)


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


_CODES = {
    LinkKind[name]: code_pattern(pattern) for name, pattern in _LEXICON["codes"].items()
}
# A word begins after no letter of a script with blanks.
_WORDS = {
    LinkKind[name]: re.compile(
        rf"(?<![a-z\u00c0-\u024f\u0400-\u04ff])(?:{'|'.join(words)})".replace(
            "R", f"{REFERENCE_MARK}[^ ]?"
        )
    )
    for name, words in _LEXICON["words"].items()
}


def read_cell(cell: str, ticket: str) -> list[LinkPart]:
    """The parts of a cell of this ticket that have ids, or the whole cell."""
    parts: list[LinkPart] = []
    lead = ""

    def own_as_this(match: re.Match[str]) -> str:
        is_own = match[0].lower().strip("#.") == ticket.lower()
        return "this" if is_own else match[0]

    for text in _texts(_ID.sub(own_as_this, comparable(cell))):
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
            is_for_all = all(part.kind is LinkKind.PLAIN for part in parts)
            if is_for_all and tail.strip()[:1].isalpha():
                parts = [part._replace(kind=kind) for part in parts]
        elif is_bare or is_headed:
            kind = kind_of(f"{lead} #1")
        named = "; ".join(_ID.findall(ids[0]))
        if kind is LinkKind.PLAIN and not is_bare:
            named = text  # "2 customers" does not name ticket 2
        beside = " ".join(words.replace("#1", "…").lower().split())
        parts.append(LinkPart(named, beside, kind))
    return parts or [LinkPart(cell, "", LinkKind.PLAIN)]


def _texts(cell: str) -> Iterator[str]:
    """The parts of a cell, each with ids that have the same words, or a heading."""
    text = ""
    for part in _CUT.split(cell):
        # A remark such as "A-1, not a duplicate" or "no, not A-1"; of bounded length
        has_ids = _ID.search(text) and _ID.search(part)
        is_remark = len(text) < 1000 and not has_ids
        if text and is_remark and not _HEADING.search(f"{text}\n{part}"):
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
    text = _SPACED.sub(" ", words).strip(' \n¿¡>"')
    kinds = set(map(_claimed, read(text, _TICKET).claims))
    page = PreparedText(_TITLE.sub("", text), _TICKET, ())
    sentences = map(page.sentence, range(len(page.spans)))
    codes = "".join(sentence.codes for sentence in sentences)
    if kinds <= {LinkKind.PLAIN}:
        kinds.update(kind for kind, pattern in _CODES.items() if pattern.search(codes))
    kinds.update(
        kind for kind, pattern in _WORDS.items() if pattern.search(page.hidden)
    )
    return min(kinds, key=[*LinkKind].index, default=LinkKind.PLAIN)


def _claimed(claim: Claim) -> LinkKind:
    if claim.stance is Stance.DENIED:
        return LinkKind.DENIED
    if claim.stance is not Stance.ASSERTED:
        return LinkKind.DOUBTED
    if claim.about_others:
        return LinkKind.REVERSED
    relation = relation_of(claim.kind, claim.marker)
    is_same = relation in (Relation.DUPLICATE, Relation.SAME)
    return LinkKind.DUPLICATE if is_same else LinkKind.PLAIN
