"""Read the claims of one sentence: what each says, of what, and how firmly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from gis_builder.detection import grammar
from gis_builder.detection.claims import Claim, ClaimKind, Stance
from gis_builder.detection.lexicon import Code, code_pattern
from gis_builder.detection.page import Page
from gis_builder.detection.references import Reference
from gis_builder.detection.tokens import Sentence
from gis_builder.store.records import IssueRef

_LOGIN = r"@(?P<who>[a-z\d](?:-?[a-z\d]){0,38})"
_YOURS = re.compile(
    r"\byours?\b(?: (?!this\b|it\b)[\w-]+){0,2}"
    r" (?:is|was|are|seems|looks|sounds|appears|might|may|could|must)\b"
    r"|\bwhat you(?:'re|'ve)?(?: \w+){1,3} (?:is|looks|seems|sounds)\b"
)
_THEIRS = re.compile(
    rf"{_LOGIN}(?:'s (?:\w+ )?(?:issue|problem|bug|case|example|error|crash)"
    r"| (?:sees?|has|hits?|hit|describe[sd]|reports?|reported|is seeing|ran into|mentioned|encountered))\b"
)
_ADDRESSED = re.compile(rf"\s{{0,4}}(?:\w{{1,12}},? )?{_LOGIN}\b")


class Address(NamedTuple):
    """The login that something is said to, if one is named, and whether it is about that person's problem."""

    who: str | None = None
    is_theirs: bool = False


def address_of(text: str, start: int, marker: int) -> Address:
    """Read the address of a claim."""
    theirs = _THEIRS.search(text, start, marker)
    if theirs is not None:
        return Address(theirs["who"], is_theirs=True)
    addressed = _ADDRESSED.match(text, start) or _ADDRESSED.match(text)
    is_theirs = _YOURS.search(text, start, marker) is not None
    return Address(addressed["who"] if addressed else None, is_theirs)


_LEADS_AWAY = code_pattern("[FIXED RELATED SIMILAR_TO]")  # such a sentence names something else
_PARTIAL = re.compile(
    r"\b(?:remain\w*|rest of|left over|leftover|left to|work left|other|otherwise|longer|partly|partially"
    r"|part of (?:this|it|the)|second|half)\b"
)
_BUT_APART = re.compile(
    r"\b(?:but|though|although|however|yet|except)\b[^.\n]{0,60}"
    r"\b(?:another|different\w*|differs?|other|separate\w*|distinct|not the same|unrelated|its own)\b"
)
_THIS = re.compile(r"\b(?:this|it|it's|mine)\b")
_SEVERAL = re.compile(r"(?:\s+(?:of|to|as|with|for|the)\b)*+\s+(?:those|these|them|both|two)\b")
_REACH, _FAR_REACH = 3, 40  # sentences back
_MOST_SAID = 200


class SentenceReader:
    """Reads one sentence of a page: what is the same for all its claims is found once."""

    def __init__(self, page: Page, place: int, sentence: Sentence) -> None:
        self.page, self.place, self.sentence = page, place, sentence
        self.start, self.end = sentence.spans[0][0], sentence.spans[-1][1]
        this = _THIS.search(page.hidden, self.start, self.end)
        self.speaks_of_this_by = this.end() if this else self.end + 1
        self.is_partial = (
            Code.FIXED in sentence.codes or _PARTIAL.search(page.hidden, self.start, self.end) is not None
        )
        self.said = _said(page.text[self.start : self.end])

    def claims(self) -> Iterator[Claim]:
        """The claims of the sentence, in order of place."""
        finds = grammar.find_markers(self.sentence.codes)
        # "Same cause as in #1, closed that one as a duplicate of this": the likeness too is the other's.
        is_reversed = any(find.is_reversed for find in finds)
        for find in finds:
            if self._counts(find):
                claim = self._claim(find)
                yield (
                    replace(claim, about_others=True)
                    if is_reversed and find.kind is not ClaimKind.DUPLICATE
                    else claim
                )

    def _counts(self, find: grammar.Find) -> bool:
        """Whether a marker claims anything where it stands."""
        codes = self.sentence.codes
        if grammar.is_in_vain(codes, find.start) or (find.rule.opens_list and not self._ends_in_colon()):
            return False
        if find.rule.must_close and not grammar.only_closes(self.page.near(self.place)):
            return False
        if find.rule.is_open_question and not self.sentence.is_question:
            return False
        return find.kind is ClaimKind.DUPLICATE or not grammar.is_of_a_fix(codes, find.start)

    def _claim(self, find: grammar.Find) -> Claim:
        page, sentence = self.page, self.sentence
        targets = _chosen(_within(sentence, find.targets), page.issue)
        others = _within(sentence, find.subject)
        about_others = bool(others) and all(other.ref != page.issue for other in others)
        if not targets and not about_others:
            targets = _chosen(self._neighbours(find), page.issue)
        begin, end = sentence.spans[find.start][0], sentence.spans[find.end - 1][1]
        address = address_of(page.hidden, self.start, begin)
        return Claim(
            kind=find.kind,
            stance=self._stance(find),
            targets=targets,
            is_closing=Code.CLOSE in sentence.codes,
            is_added=Code.ALSO in sentence.codes,
            about_others=about_others or find.is_reversed,
            points_back=find.rule.points_back,
            is_plural=find.rule.points_back and _SEVERAL.match(page.hidden, end) is not None,
            is_partial=self.is_partial,
            is_part=sentence.codes[find.start] == Code.PART_OF,
            about_this=self.speaks_of_this_by <= end,
            is_command=page.hidden[begin] == "/",
            corrects=find.rule.corrects,
            addressee=address.who,
            is_theirs=address.is_theirs,
            marker=page.hidden[begin:end],
            said=self.said,
        )

    def _neighbours(self, find: grammar.Find) -> list[Reference]:
        """The references that a claim leans on: those of its sentence, else of the nearest sentence."""
        page, sentence, here = self.page, self.sentence, self.place
        own = _within(sentence, (0, find.start)) or _within(sentence, (find.end, len(sentence.codes)))
        if own:
            return own
        if find.rule.opens_list:
            return page.list_after(here)
        reach = _FAR_REACH if find.rule.points_back or Code.CLOSE in sentence.codes else _REACH
        before = range(here - 1, max(-1, here - 1 - reach), -1)
        after = range(here + 1, min(len(page.spans), here + (1 if find.rule.points_back else 2)))
        for place in (*before, *after):
            found = page.references_of(place)
            if found and not _LEADS_AWAY.search(page.sentence(place).codes):
                return found
        return page.only_reference() if Code.CLOSE in sentence.codes else []

    def _stance(self, find: grammar.Find) -> Stance:
        sentence = self.sentence
        if sentence.is_question and not sentence.codes.startswith(Code.CLOSE):
            return Stance.OPEN if find.rule.is_open_question else Stance.ASKED
        if grammar.is_denied(sentence.codes, find.start):
            return Stance.DENIED
        if Code.UNDECIDED in sentence.codes or self._is_taken_back(find):
            return Stance.OPEN
        if grammar.is_hedged(sentence.codes, find.start):
            return Stance.HEDGED
        return Stance.ASSERTED

    def _is_taken_back(self, find: grammar.Find) -> bool:
        """Whether a likeness is told apart in the same breath: "the same cause, but another symptom"."""
        if find.kind is not ClaimKind.SAME or Code.CLOSE in self.sentence.codes:
            return False
        return _BUT_APART.search(self.page.hidden, self.sentence.spans[find.end - 1][1], self.end) is not None

    def _ends_in_colon(self) -> bool:
        return self.page.hidden[self.start : self.end].rstrip().endswith(":")


def _within(sentence: Sentence, stretch: tuple[int, int] | None) -> list[Reference]:
    return list(chain(*sentence.references[slice(*stretch)])) if stretch else []


def _chosen(references: Iterable[Reference], issue: IssueRef) -> tuple[IssueRef, ...]:
    """The distinct targets; a link to one comment gives way to a plain one, the issue itself to others."""
    found = list(references)
    plain = [reference for reference in found if not reference.is_anchored] or found
    refs = tuple(dict.fromkeys(reference.ref for reference in plain))
    return tuple(ref for ref in refs if ref != issue) or refs


def _said(text: str) -> str:
    said = " ".join(text.split())
    return said if len(said) <= _MOST_SAID else said[: _MOST_SAID - 1] + "…"
