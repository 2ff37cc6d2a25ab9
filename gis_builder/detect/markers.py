"""Read one text: mask what isn't said, find references and markers, and say what is claimed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

from gis_builder.detect import grammar
from gis_builder.detect.claims import Claim, ClaimKind, Reading, Stance
from gis_builder.detect.masking import mask
from gis_builder.detect.prefilter import is_worth_reading, might_guess
from gis_builder.detect.references import Reference, find_references
from gis_builder.detect.tokens import Sentence, hide_references, sentence_spans, tokenise
from gis_builder.records import IssueRef

_KINDS = {"D": ClaimKind.DUPLICATE, "F": ClaimKind.FAVOUR, "S": ClaimKind.SAME, "K": ClaimKind.TRACKED}
_LEADS_AWAY = re.compile("X|L")  # a sentence about a fix or a likeness names something else
_PARTIAL = re.compile(
    r"\b(?:remain\w*|rest of|left over|leftover|left to|work left|other|otherwise|longer|partly|partially"
    r"|part of (?:this|it|the)|second|half)\b"
)
_THIS = re.compile(r"\b(?:this|it|it's|mine)\b")
_REACH, _FAR_REACH = 3, 40  # sentences back
_SHORT = 300  # characters
_MOST_SAID = 200
MOST_CLAIMS = 500  # of a text; nobody makes as many


def read(text: str, issue: IssueRef, former_names: Collection[str] = ()) -> Reading:
    """Read a comment, body or title of `issue`; `former_names` are what its repository was called before."""
    page = _Page(text, issue, former_names)
    worth_reading = page.sentences_worth_reading()
    sentences = list(worth_reading.values())
    opening = sentences[0].codes if sentences else ""
    readers = (_Reader(page, place, sentence) for place, sentence in worth_reading.items() if sentence.codes)
    claims = tuple(islice((claim for reader in readers for claim in reader.claims()), MOST_CLAIMS + 1))
    if any("Q" in sentence.codes for sentence in sentences):
        claims = tuple(_left_open(claim) for claim in claims)
    return Reading(
        claims=claims,
        mentions=tuple(dict.fromkeys(reference.ref for reference in page.references)),
        pulls=frozenset(reference.ref for reference in page.references if reference.is_pull),
        agrees=any(
            grammar.begins_with_yes(sentence.codes) and not grammar.says_different(sentence.codes)
            for sentence in sentences
        ),
        thanks=any(grammar.begins_with_thanks(sentence.codes) for sentence in sentences),
        disagrees=grammar.begins_with_no(opening),
        says_different=any(grammar.says_different(sentence.codes) for sentence in sentences),
        says_otherwise=any(grammar.says_fixed(sentence.codes) for sentence in sentences),
        speaks_of_duplicates=any("D" in sentence.codes for sentence in sentences),
        reopens=any(grammar.is_reopening(sentence.codes) for sentence in sentences),
        is_closing=any("C" in sentence.codes for sentence in sentences),
        words=len(page.hidden.split()),
    )


def _left_open(claim: Claim) -> Claim:
    """A claim whose speaker says that there is no telling; what is asserted stays asserted."""
    return claim if claim.stance in (Stance.ASSERTED, Stance.DENIED) else replace(claim, stance=Stance.OPEN)


def read_body(text: str, issue: IssueRef, former_names: Collection[str] = ()) -> Reading:
    """Read the body of `issue`, as it was written before anybody looked: what it names, and its guesses.

    A guess speaks of "this" and of a duplicate; it is no more than hedged, and closes nothing.
    """
    if not might_guess(text):
        references = find_references(mask(text), issue.repo, former_names)
        return Reading(mentions=tuple(dict.fromkeys(reference.ref for reference in references)))
    reading = read(text, issue, former_names)
    guesses = tuple(
        replace(claim, stance=Stance.HEDGED, is_closing=False)
        for claim in reading.claims
        if claim.kind is ClaimKind.DUPLICATE and claim.stance is not Stance.DENIED and claim.about_this
    )
    return Reading(claims=guesses, mentions=reading.mentions)


class _Page:
    """A text ready to be read: masked, with its references hidden and its sentences marked out."""

    def __init__(self, text: str, issue: IssueRef, former_names: Collection[str]) -> None:
        self.text, self.issue = text, issue
        masked = mask(text)
        self.references = find_references(masked, issue.repo, former_names)
        self.hidden = hide_references(masked, self.references).lower().replace("’", "'")
        self.spans = sentence_spans(self.hidden)
        self._by_start = {reference.start: reference for reference in self.references}
        self._starts = list(self._by_start)
        self._read: dict[int, Sentence] = {}

    def sentence(self, place: int) -> Sentence:
        if place not in self._read:
            self._read[place] = tokenise(self.hidden, self.spans[place], self._by_start)
        return self._read[place]

    def sentences_worth_reading(self) -> dict[int, Sentence]:
        """By place, a short text whole; of a long one the beginning and what may bear on duplicates."""
        is_short = len(self.hidden) <= _SHORT
        return {
            place: self.sentence(place)
            for place, (start, end) in enumerate(self.spans)
            if is_short or place == 0 or is_worth_reading(self.hidden[start:end])
        }

    def references_of(self, place: int) -> list[Reference]:
        start, end = (bisect_left(self._starts, bound) for bound in self.spans[place])
        return self.references[start:end]

    def only_reference(self) -> list[Reference]:
        """The one issue that the text names, if it names just one."""
        return self.references[:1] if len({reference.ref for reference in self.references}) == 1 else []


class _Reader:
    """Reads one sentence of a page: what is the same for all its claims is found once."""

    def __init__(self, page: _Page, place: int, sentence: Sentence) -> None:
        self.page, self.place, self.sentence = page, place, sentence
        self.start, self.end = sentence.spans[0][0], sentence.spans[-1][1]
        this = _THIS.search(page.hidden, self.start, self.end)
        self.speaks_of_this_by = this.end() if this else self.end + 1
        self.is_partial = (
            "X" in sentence.codes or _PARTIAL.search(page.hidden, self.start, self.end) is not None
        )
        self.said = _said(page.text[self.start : self.end])

    def claims(self) -> Iterator[Claim]:
        finds = grammar.find_markers(self.sentence.codes)
        # "Same cause as in #1, closed that one as a duplicate of this": the likeness too is the other's.
        is_reversed = any(find.is_reversed for find in finds)
        for find in finds:
            if grammar.is_in_vain(self.sentence.codes, find.start) or (
                find.opens_list and not self._ends_in_colon()
            ):
                continue
            if find.kind == "D" or not grammar.is_of_a_fix(self.sentence.codes, find.start):
                claim = self._claim(find)
                yield replace(claim, about_others=True) if is_reversed and find.kind != "D" else claim

    def _claim(self, find: grammar.Find) -> Claim:
        page, sentence = self.page, self.sentence
        targets = _chosen(_within(sentence, find.targets), page.issue)
        others = _within(sentence, find.subject)
        about_others = bool(others) and all(other.ref != page.issue for other in others)
        if not targets and not about_others:
            targets = _chosen(self._neighbours(find), page.issue)
        return Claim(
            kind=_KINDS[find.kind],
            stance=_stance(sentence, find),
            targets=targets,
            is_closing="C" in sentence.codes,
            is_added="M" in sentence.codes,
            about_others=about_others or find.is_reversed,
            points_back=find.points_back,
            is_partial=self.is_partial,
            is_part=sentence.codes[find.start] == "P",
            about_this=self.speaks_of_this_by <= sentence.spans[find.end - 1][1],
            is_command=page.hidden[sentence.spans[find.start][0]] == "/",
            corrects=find.corrects,
            marker=page.hidden[sentence.spans[find.start][0] : sentence.spans[find.end - 1][1]],
            said=self.said,
        )

    def _neighbours(self, find: grammar.Find) -> list[Reference]:
        """The references that a claim leans on: those of its sentence, else of the nearest sentence."""
        page, sentence, here = self.page, self.sentence, self.place
        own = _within(sentence, (0, find.start)) or _within(sentence, (find.end, len(sentence.codes)))
        if own:
            return own
        if find.opens_list:
            return _list_after(page, here)
        reach = _FAR_REACH if find.points_back or "C" in sentence.codes else _REACH
        before = range(here - 1, max(-1, here - 1 - reach), -1)
        after = range(here + 1, min(len(page.spans), here + (1 if find.points_back else 2)))
        for place in (*before, *after):
            found = page.references_of(place)
            if found and not _LEADS_AWAY.search(page.sentence(place).codes):
                return found
        return page.only_reference() if "C" in sentence.codes else []

    def _ends_in_colon(self) -> bool:
        return self.page.hidden[self.start : self.end].rstrip().endswith(":")


def _list_after(page: _Page, here: int) -> list[Reference]:
    """The references of the sentences that follow, up to the first without any."""
    found: list[Reference] = []
    for place in range(here + 1, len(page.spans)):
        more = page.references_of(place)
        if not more:
            break
        found += more
    return found


def _stance(sentence: Sentence, find: grammar.Find) -> Stance:
    if sentence.is_question and not sentence.codes.startswith("C"):
        return Stance.ASKED
    if grammar.is_denied(sentence.codes, find.start):
        return Stance.DENIED
    if "Q" in sentence.codes:
        return Stance.OPEN
    if grammar.is_hedged(sentence.codes, find.start):
        return Stance.HEDGED
    return Stance.ASSERTED


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
