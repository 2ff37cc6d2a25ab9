"""Read the claims of one sentence of codes: which marker points where, of whom it speaks, and how firmly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from gis_builder.detection.lexicon import Code, code_pattern
from gis_builder.detection.page import PreparedText
from gis_builder.detection.rules import RULES, ClaimKind, ClaimRule, compile_rule
from gis_builder.detection.tokens import CodedSentence, Reference
from gis_builder.store.records import IssueRef


class Stance(StrEnum):
    """How firmly a claim is put."""

    ASSERTED = "asserted"
    HEDGED = "hedged"
    ASKED = "asked"
    OPEN = "open"  # "maybe, there is no telling"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim about the thread's own issue (or, with `about_others`, about other issues)."""

    kind: ClaimKind
    stance: Stance
    targets: tuple[IssueRef, ...]  # empty: the text names none near the marker
    is_closing: bool  # the sentence also says that the issue is closed
    is_added: bool  # "also a duplicate of #2": beside the earlier target, not instead of it
    about_others: bool  # "#1 is a dup of #2", "#1 is a dup of this"
    points_back: bool  # "dup of that one", "dupe of ^"
    is_plural: bool  # it points back to several: "dup of those"
    is_partial: bool  # "the rest is tracked in #1": something else was done about the issue
    is_part: bool  # "this is part of #1": nothing more than a hint unless it closes the issue
    about_this: bool  # "this is", as against "the wording of the message is"
    is_command: bool  # "/duplicate of #1"
    corrects: bool  # "I meant #2": counts only where the speaker claimed something before
    addressee: str | None  # the login that it is said to
    is_theirs: bool  # "your problem is", "what @bob sees is", as against this issue
    marker: str  # the words that decided, in lower case
    said: str


class Marker(NamedTuple):
    """A marker in a sentence: its place, and which stretches of codes hold its targets and its subject."""

    kind: ClaimKind
    rule: ClaimRule
    start: int
    end: int
    targets: tuple[int, int] | None
    subject: tuple[int, int] | None
    is_reversed: bool  # the other issue is said to be a duplicate of this one


# By kind, the codes of which its rules need at least one, a cheap test before the patterns.
_NEEDED = {
    ClaimKind.DUPLICATE: {
        Code.DUPLICATE, Code.DUPLICATES, Code.DUPLICATED, Code.CORRECTION, Code.HAS_DUPLICATES,
    },
    ClaimKind.FAVOUR: {Code.FAVOUR, Code.MOVED},
    ClaimKind.SAME: {Code.SAME_AS, Code.SAME, Code.THIS, Code.SIMILAR_TO, Code.DIFFERENT},
    ClaimKind.TRACKED: {Code.TRACKED, Code.REPORTED, Code.COVERS, Code.PART_OF},
}  # fmt: skip
_COMPILED = {kind: [(rule, compile_rule(rule)) for rule in rules] for kind, rules in RULES.items()}


def find_markers(codes: str) -> list[Marker]:
    """List the markers of a sentence in order; of overlapping readings the earlier rule wins."""
    found: list[Marker] = []
    taken = bytearray(len(codes))
    present = frozenset(codes)
    for kind, rules in _COMPILED.items():
        if present.isdisjoint(_NEEDED[kind]):
            continue
        for rule, pattern in rules:
            for match in pattern.finditer(codes):
                start, end = match.span("marker")
                if not any(taken[start:end]):
                    taken[start:end] = b"\x01" * (end - start)
                    found.append(_find(kind, rule, match))
    return sorted(found, key=lambda marker: marker.start)


def _find(kind: ClaimKind, rule: ClaimRule, match: re.Match[str]) -> Marker:
    spans = {name: match.span(name) for name in match.re.groupindex if match.start(name) >= 0}
    return Marker(
        kind, rule, *spans["marker"], spans.get("targets"), spans.get("subject"), "reversed" in spans
    )


# What rules a marker; each ends where the marker begins.
_DENIAL = code_pattern(
    # "isn't really a ...", but not "couldn't find a ..."
    r"NOT (?!WORD{0,2} SEARCH) [^COMMA AND CLOSE REFERENCE NO FAVOUR]{0,5} $"
    r"| [NO NOT] COMMA? NOT [^COMMA AND CLOSE REFERENCE]{0,5} $"  # "no, not a ..."
)
_HEDGE = code_pattern(r"[MAYBE IF] [^AND]{0,9} $")  # "I think that this is a ...", "if it is a ..."
_OF_A_FIX = code_pattern(
    r"(?<!AS) FIXED [^REFERENCE COMMA CLOSE]{0,3} $"
)  # "the fix was ...", not "as wontfix, ..."
_IN_VAIN = code_pattern(
    r"[NOT NO] [^REFERENCE]{0,4} SEARCH [^REFERENCE]{0,6} $"  # "couldn't find any ..."
    r"| (?:IF | OF) FILLER? SEARCH [^REFERENCE]{0,3} $"  # "please search for ...", "to look for ..."
)
# What a sentence says as a whole.
_DIFFERENT = code_pattern(
    # "this is different", "#1 is a different bug"
    r"[THIS REFERENCE THAT_ONE] [IS FILLER MAYBE ARTICLE]{0,3} DIFFERENT "
    r"(?=WORD? [OF ISSUE] | [COMMA QUESTION AND] | $)"
    r"| DIFFERENT ISSUE"  # "different issue"
    r"| DIFFERENT [OF WORD ARTICLE BY IS]{0,2} [REFERENCE THIS THAT_ONE]"  # "unrelated to #1"
)
_FIXED = code_pattern(r"(?<!NOT) (?<!NOT WORD) (?<!NOT FILLER) FIXED")  # "fixed", not "not yet fixed"
# How it begins: "yes", "ok, that's right" | "oh, ..." | "no" | "reopening", not "reopen if ..."
_AGREEMENT = code_pattern(r"[COMMA WORD]? [COMMA THANKS]{0,2} [FILLER THIS]? YES")
_THANKS = code_pattern(r"[COMMA WORD]? COMMA? FILLER? [THANKS YES]")
_DISAGREEMENT = code_pattern(r"[COMMA WORD]? COMMA? NO")
_NOT_KEPT = code_pattern(r"[NOT NO] [^STOP]{0,5} KEEP_OPEN")  # "no need to keep this open"
_REOPENING = code_pattern(r"(?:^ | [COMMA YES]) [FILLER THIS IS MAYBE]{0,3} REOPEN")


def is_denied(codes: str, start: int) -> bool:
    """Whether a "not" rules the marker at `start`: "isn't really a dup", not "not a bug, dup of #1"."""
    return _DENIAL.search(codes, max(0, start - 9), start) is not None


def is_hedged(codes: str, start: int) -> bool:
    """Whether a "maybe" or an "if" rules the marker at `start`."""
    return _HEDGE.search(codes, max(0, start - 12), start) is not None


def is_in_vain(codes: str, start: int) -> bool:
    """Whether the marker at `start` is what somebody looked for: "couldn't find a duplicate"."""
    return _IN_VAIN.search(codes, max(0, start - 12), start) is not None


def is_of_a_fix(codes: str, start: int) -> bool:
    """Whether it is a fix that is said to be the same or tracked: "the fix was the same as for #1"."""
    return _OF_A_FIX.search(codes, max(0, start - 8), start) is not None


def says_different(codes: str) -> bool:
    """Whether the sentence tells two issues apart: "a different bug", "not the same as #1"."""
    return Code.DIFFERENT in codes and _DIFFERENT.search(codes) is not None


def says_fixed(codes: str) -> bool:
    """Whether the sentence calls the issue fixed, or no bug; not "isn't fixed yet"."""
    return Code.FIXED in codes and _FIXED.search(codes) is not None


def begins_with_yes(codes: str) -> bool:
    """Whether the sentence begins by agreeing."""
    return _AGREEMENT.match(codes) is not None


def begins_with_thanks(codes: str) -> bool:
    """Whether the sentence begins with thanks, an apology or a cry of surprise."""
    return _THANKS.match(codes) is not None


def begins_with_no(codes: str) -> bool:
    """Whether the sentence begins by disagreeing."""
    return _DISAGREEMENT.match(codes) is not None


def is_reopening(codes: str) -> bool:
    """Whether the speaker reopens the issue, not "reopen if it comes back"."""
    return Code.REOPEN in codes and Code.IF not in codes and _REOPENING.search(codes) is not None


def is_kept_open(codes: str) -> bool:
    """Whether the speaker leaves it open; not "no need to keep this open", nor where closing comes last."""
    return codes.rfind(Code.KEEP_OPEN) > codes.rfind(Code.CLOSE) and _NOT_KEPT.search(codes) is None


def only_closes(codes: str) -> bool:
    """Whether something is closed there, and not as fixed or as no bug."""
    return Code.CLOSE in codes and not says_fixed(codes)


def is_in_jest(codes: str) -> bool:
    """Whether the speaker says that what was said is not meant."""
    return Code.JOKE in codes


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


class Addressee(NamedTuple):
    """The login that something is said to, if one is named, and whether it is about that person's problem."""

    who: str | None = None
    is_theirs: bool = False


def address_of(text: str, start: int, marker: int) -> Addressee:
    """Read the address of a claim."""
    theirs = _THEIRS.search(text, start, marker)
    if theirs is not None:
        return Addressee(theirs["who"], is_theirs=True)
    addressed = _ADDRESSED.match(text, start) or _ADDRESSED.match(text)
    is_theirs = _YOURS.search(text, start, marker) is not None
    return Addressee(addressed["who"] if addressed else None, is_theirs)


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

    def __init__(self, page: PreparedText, place: int, sentence: CodedSentence) -> None:
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
        finds = find_markers(self.sentence.codes)
        # "Same cause as in #1, closed that one as a duplicate of this": the likeness too is the other's.
        is_reversed = any(marker.is_reversed for marker in finds)
        for marker in finds:
            if self._counts(marker):
                claim = self._claim(marker)
                yield (
                    replace(claim, about_others=True)
                    if is_reversed and marker.kind is not ClaimKind.DUPLICATE
                    else claim
                )

    def _counts(self, marker: Marker) -> bool:
        """Whether a marker claims anything where it stands."""
        codes = self.sentence.codes
        if is_in_vain(codes, marker.start) or (marker.rule.opens_list and not self._ends_in_colon()):
            return False
        if marker.rule.must_close and not only_closes(self.page.near(self.place)):
            return False
        if marker.rule.is_open_question and not self.sentence.is_question:
            return False
        return marker.kind is ClaimKind.DUPLICATE or not is_of_a_fix(codes, marker.start)

    def _claim(self, marker: Marker) -> Claim:
        page, sentence = self.page, self.sentence
        targets = _chosen(_within(sentence, marker.targets), page.issue)
        others = _within(sentence, marker.subject)
        about_others = bool(others) and all(other.ref != page.issue for other in others)
        if not targets and not about_others:
            targets = _chosen(self._neighbours(marker), page.issue)
        begin, end = sentence.spans[marker.start][0], sentence.spans[marker.end - 1][1]
        address = address_of(page.hidden, self.start, begin)
        return Claim(
            kind=marker.kind,
            stance=self._stance(marker),
            targets=targets,
            is_closing=Code.CLOSE in sentence.codes,
            is_added=Code.ALSO in sentence.codes,
            about_others=about_others or marker.is_reversed,
            points_back=marker.rule.points_back,
            is_plural=marker.rule.points_back and _SEVERAL.match(page.hidden, end) is not None,
            is_partial=self.is_partial,
            is_part=sentence.codes[marker.start] == Code.PART_OF,
            about_this=self.speaks_of_this_by <= end,
            is_command=page.hidden[begin] == "/",
            corrects=marker.rule.corrects,
            addressee=address.who,
            is_theirs=address.is_theirs,
            marker=page.hidden[begin:end],
            said=self.said,
        )

    def _neighbours(self, marker: Marker) -> list[Reference]:
        """The references that a claim leans on: those of its sentence, else of the nearest sentence."""
        page, sentence, here = self.page, self.sentence, self.place
        own = _within(sentence, (0, marker.start)) or _within(sentence, (marker.end, len(sentence.codes)))
        if own:
            return own
        if marker.rule.opens_list:
            return page.list_after(here)
        reach = _FAR_REACH if marker.rule.points_back or Code.CLOSE in sentence.codes else _REACH
        before = range(here - 1, max(-1, here - 1 - reach), -1)
        after = range(here + 1, min(len(page.spans), here + (1 if marker.rule.points_back else 2)))
        for place in (*before, *after):
            found = page.references_of(place)
            if found and not _LEADS_AWAY.search(page.sentence(place).codes):
                return found
        return page.only_reference() if Code.CLOSE in sentence.codes else []

    def _stance(self, marker: Marker) -> Stance:
        sentence = self.sentence
        if sentence.is_question and not sentence.codes.startswith(Code.CLOSE):
            return Stance.OPEN if marker.rule.is_open_question else Stance.ASKED
        if is_denied(sentence.codes, marker.start):
            return Stance.DENIED
        if Code.UNDECIDED in sentence.codes or self._is_taken_back(marker):
            return Stance.OPEN
        if is_hedged(sentence.codes, marker.start):
            return Stance.HEDGED
        return Stance.ASSERTED

    def _is_taken_back(self, marker: Marker) -> bool:
        """Whether a likeness is told apart in the same breath: "the same cause, but another symptom"."""
        if marker.kind is not ClaimKind.SAME or Code.CLOSE in self.sentence.codes:
            return False
        return (
            _BUT_APART.search(self.page.hidden, self.sentence.spans[marker.end - 1][1], self.end) is not None
        )

    def _ends_in_colon(self) -> bool:
        return self.page.hidden[self.start : self.end].rstrip().endswith(":")


def _within(sentence: CodedSentence, stretch: tuple[int, int] | None) -> list[Reference]:
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
