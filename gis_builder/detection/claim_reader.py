"""Read the claims of one coded sentence: the markers, their targets and subjects, and how firm they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from gis_builder.detection.issue_references import Reference
from gis_builder.detection.lexicon import Code, CodedSentence, Span, code_pattern
from gis_builder.detection.page import RELATES, PreparedText
from gis_builder.detection.rules import (
    FOREIGN_RULES,
    RULES,
    ClaimKind,
    ClaimRule,
    compile_rule,
)
from gis_builder.store import IssueRef, IssueRefs
from pairkit.base.printable import one_line

# Every rule of a kind needs one of these codes: a cheap test before the patterns.
_REQUIRED_CODES = {
    ClaimKind.DUPLICATE: code_pattern(
        "[DUPLICATE DUPLICATES DUPLICATED CORRECTION HAS_DUPLICATES]"
    ),
    ClaimKind.FAVOUR: code_pattern("[FAVOUR MOVED ADDED_TO]"),
    ClaimKind.SAME: code_pattern("[SAME_AS SAME THIS SIMILAR_TO DIFFERENT]"),
    ClaimKind.TRACKED: code_pattern("[TRACKED REPORTED COVERS PART_OF]"),
}

# Words before a marker that change its meaning; each pattern ends where the marker begins.
_DENIAL = code_pattern(
    # "isn't really a ...", but not "couldn't find a ..."
    r"NOT (?!WORD{0,2} SEARCH) [^COMMA AND CLOSE REFERENCE NO FAVOUR]{0,5} $"
    r"| [NO NOT] COMMA? NOT [^COMMA AND CLOSE REFERENCE]{0,5} $"  # "no, not a ..."
)
# The same on either side of the marker, for languages with another order of words.
_FOREIGN_DENIAL = code_pattern("NOT [^COMMA AND CLOSE]{0,9} $")
_DENIED_AFTER = code_pattern("[^COMMA AND CLOSE REFERENCE]{0,5} NOT")
_HEDGED_AFTER = code_pattern("[^CLOSE]{0,9} [MAYBE IF]")
# Before the marker of a guess or condition: "I think that this is a ...", "if it is a ..."
_HEDGE = code_pattern(r"[MAYBE IF] [^AND]{0,9} $")
# Before a marker that is about a fix: "the fix was ...", but not "as wontfix, ..."
_OF_A_FIX = code_pattern(r"(?<!AS) FIXED [^REFERENCE COMMA CLOSE]{0,3} $")
_IN_VAIN = code_pattern(
    r"[NOT NO] [^REFERENCE]{0,4} SEARCH [^REFERENCE]{0,6} $"  # "couldn't find any ..."
    r"| (?:IF | OF) FILLER? SEARCH [^REFERENCE]{0,3} $"  # "please search for ...", "to look for ..."
)
# Patterns over a whole sentence.
_DIFFERENT = code_pattern(
    # "this is different", "#1 is a different bug"
    r"[THIS REFERENCE THAT_ONE] [IS FILLER MAYBE ARTICLE]{0,3} DIFFERENT "
    r"(?=WORD? [OF ISSUE] | [COMMA QUESTION AND] | $)"
    r"| DIFFERENT ISSUE"  # "different issue"
    r"| DIFFERENT [OF WORD ARTICLE BY IS]{0,2} [REFERENCE THIS THAT_ONE]"  # "unrelated to #1"
)
# Finds "fixed", but not "not yet fixed".
_FIXED = code_pattern(r"(?<!NOT) (?<!NOT WORD) (?<!NOT FILLER) FIXED")
# The beginning of a sentence: "yes", "ok, that's right" | "oh, ..." | "no"
AGREEMENT = code_pattern(r"[COMMA WORD]? [COMMA THANKS]{0,2} [FILLER THIS]? YES")
THANKS = code_pattern(r"[COMMA WORD]? COMMA? FILLER? [THANKS YES]")
# Languages with one word for "no" and "not" have a comma or the end after a "no".
DISAGREEMENT = code_pattern(r"[COMMA WORD THANKS]? COMMA? NO | NOT (?:COMMA | $)")
# Finds "no need to keep this open".
_NOT_KEPT = code_pattern(r"[NOT NO] [^STOP]{0,5} KEEP_OPEN")
_REOPENING = code_pattern(r"(?:^ | [COMMA YES]) [FILLER THIS IS MAYBE]{0,3} REOPEN")

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

# Sentences with such words only lead to another subject, so their references aren't targets.
_LEADS_AWAY = code_pattern("[FIXED RELATED SIMILAR_TO]")
_PARTIAL = re.compile(
    r"\b(?:remain\w*|rest of|left over|leftover|left to|work left|other|otherwise|longer|partly|partially"
    r"|part of (?:this|it|the)|second|half)\b"
)
_BUT_DIFFERENT = re.compile(
    r"\b(?:but|though|although|however|yet|except)\b[^.\n]{0,60}"
    r"\b(?:another|different\w*|differs?|other|separate\w*|distinct|not the same|unrelated|its own)\b"
)
_THIS = re.compile(r"\b(?:this|it|it's|mine)\b")
_SEVERAL = re.compile(
    r"(?:\s+(?:of|to|as|with|for|the)\b)*+\s+(?:those|these|them|both|two)\b"
)
# How many sentences before a marker are searched for its target; the further reach is for "dup of that one".
_REACH = 3
_FAR_REACH = 40
_LONGEST_LEAD = 12  # codes of the patterns that end at a marker
_MAX_SAID = 200


class Stance(StrEnum):
    """How certain the speaker is of a claim."""

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
    targets: IssueRefs  # empty if there is no reference near the marker
    is_closing: bool  # the sentence also says that the issue is closed
    is_added: bool  # "also a duplicate of #2": the earlier target remains
    about_others: bool  # "#1 is a dup of #2", "#1 is a dup of this"
    points_back: bool  # "dup of that one", "dupe of ^"
    is_plural: bool  # "dup of those"
    # "the rest is tracked in #1": part of the issue was handled otherwise
    is_partial: bool
    is_part: bool  # "this is part of #1": only a hint unless it closes the issue
    about_this: bool  # "this is", not "the wording of the message is"
    is_command: bool  # "/duplicate of #1"
    corrects: bool  # "I meant #2": counts only after another claim of the same speaker
    addressee: str | None  # login
    is_theirs: bool  # "your problem is", "what @bob sees is"
    marker: str  # the matched words, in lower case
    said: str  # the sentence, shortened


class Marker(NamedTuple):
    """The position of a marker in a sentence of codes, and the spans of its targets and its subject."""

    kind: ClaimKind
    rule: ClaimRule
    start: int
    end: int
    is_reversed: bool  # the other issue is said to be a duplicate of this one
    targets: Span | None = None
    subject: Span | None = None


@cache
def _compiled(
    *, is_foreign: bool
) -> dict[ClaimKind, list[tuple[ClaimRule, re.Pattern[str]]]]:
    table = FOREIGN_RULES if is_foreign else RULES
    compiled = {}
    for kind, rules in table.items():
        compiled[kind] = [(rule, compile_rule(rule)) for rule in rules]
    return compiled


def find_markers(codes: str, *, is_foreign: bool = False) -> list[Marker]:
    """The markers of a sentence in order; if two overlap, the earlier rule wins."""
    markers = []
    covered = bytearray(len(codes))
    for kind, rules in _compiled(is_foreign=is_foreign).items():
        if not _REQUIRED_CODES[kind].search(codes):
            continue
        for rule, pattern in rules:
            for match in pattern.finditer(codes):
                start, end = match.span("marker")
                if not any(covered[start:end]):
                    covered[start:end] = b"\x01" * (end - start)
                    markers.append(_marker(kind, rule, match))
    return sorted(markers, key=attrgetter("start"))


def _marker(kind: ClaimKind, rule: ClaimRule, match: re.Match[str]) -> Marker:
    groups = match.re.groupindex
    spans = {name: match.span(name) for name in groups if match.start(name) >= 0}
    is_reversed = spans.pop("reversed", None) is not None
    start, end = spans.pop("marker")
    return Marker(kind, rule, start, end, is_reversed, **spans)


def says_different(codes: str) -> bool:
    """Whether the sentence distinguishes two issues: "a different bug", "not the same as #1"."""
    return _DIFFERENT.search(codes) is not None


def says_fixed(codes: str) -> bool:
    """Whether the sentence calls the issue fixed or not a bug."""
    return _FIXED.search(codes) is not None


def is_reopening(codes: str) -> bool:
    """Whether the speaker reopens the issue, not "reopen if it comes back"."""
    return Code.IF not in codes and _REOPENING.search(codes) is not None


def is_kept_open(codes: str) -> bool:
    """Whether the speaker leaves the issue open and doesn't close it later in the text."""
    if codes.rfind(Code.KEEP_OPEN) <= codes.rfind(Code.CLOSE):
        return False
    return _NOT_KEPT.search(codes) is None


def addressee(text: str, start: int, marker: int) -> tuple[str | None, bool]:
    """The login that a claim is addressed to, and whether the claim is about that person's problem."""
    owner = _THEIRS.search(text, start, marker)
    if owner:
        return owner["who"], True
    addressed = _ADDRESSED.match(text, start) or _ADDRESSED.match(text)
    is_theirs = _YOURS.search(text, start, marker) is not None
    return addressed["who"] if addressed else None, is_theirs


class SentenceReader:
    """Reads the claims of one sentence; common properties of its claims are computed once."""

    def __init__(self, page: PreparedText, index: int) -> None:
        self.page = page
        self.index = index
        self.sentence = sentence = page.sentence(index)
        self.start = sentence.spans[0][0]
        self.end = sentence.spans[-1][1]
        this = _THIS.search(page.hidden, self.start, self.end)
        self.this_end = this.end() if this else self.end + 1
        self.is_partial = (
            Code.FIXED in sentence.codes
            or _PARTIAL.search(page.hidden, self.start, self.end) is not None
        )
        self.said = one_line(page.text[self.start : self.end], _MAX_SAID)

    def claims(self) -> Iterator[Claim]:
        """The claims of the sentence, in order."""
        markers = find_markers(self.sentence.codes, is_foreign=self.sentence.is_foreign)
        is_reversed = any(marker.is_reversed for marker in markers)
        for marker in markers:
            if self._counts(marker):
                claim = self._claim(marker)
                if is_reversed and marker.kind is not ClaimKind.DUPLICATE:
                    # "Same cause as in #1, closed that one as a duplicate of this": both are about #1.
                    claim = replace(claim, about_others=True)
                yield claim

    def _is_preceded(self, by: re.Pattern[str], marker: Marker) -> bool:
        start = max(0, marker.start - _LONGEST_LEAD)
        return by.search(self.sentence.codes, start, marker.start) is not None

    def _counts(self, marker: Marker) -> bool:
        """Whether a marker is a claim in its context."""
        rule = marker.rule
        if self._is_preceded(_IN_VAIN, marker):
            return False
        sentence_text = self.page.hidden[self.start : self.end]
        if rule.opens_list and not sentence_text.rstrip().endswith(":"):
            return False
        codes = self.sentence.codes
        if rule.must_close:
            near = self.page.near(self.index)
            if Code.CLOSE not in near or says_fixed(near):
                return False
        is_alone = marker.targets is None and Code.CLOSE not in codes
        if self.sentence.is_foreign and is_alone:
            # After another word, something else is duplicated, such as data.
            return codes[: marker.start][-1:] != Code.WORD
        if rule.is_open_question and not self.sentence.is_question:
            return False
        if self._is_quoted(marker):
            return False
        # "The fix was the same as for #1."
        is_of_a_fix = self._is_preceded(_OF_A_FIX, marker)
        return marker.kind is ClaimKind.DUPLICATE or not is_of_a_fix

    def _is_quoted(self, marker: Marker) -> bool:
        """Whether marker and targets are in a quotation: the log has "duplicate of #1"."""
        if marker.targets is None:
            return False
        targets_start, targets_end = marker.targets
        first, last = self.page.spans[self.index]
        start, _ = self.sentence.spans[min(marker.start, targets_start)]
        _, end = self.sentence.spans[max(marker.end, targets_end) - 1]
        text = self.page.hidden
        return text.count('"', first, start) % 2 == 1 and '"' in text[end:last]

    def _claim(self, marker: Marker) -> Claim:
        page = self.page
        sentence = self.sentence
        targets = _distinct_targets(_within(sentence, marker.targets), page.issue)
        subjects = _within(sentence, marker.subject)
        about_others = bool(subjects) and all(
            subject.ref != page.issue for subject in subjects
        )
        if not targets and not about_others:
            targets = _distinct_targets(self._nearby_references(marker), page.issue)
        begin, _ = sentence.spans[marker.start]
        _, end = sentence.spans[marker.end - 1]
        who, is_theirs = addressee(page.hidden, self.start, begin)
        return Claim(
            kind=marker.kind,
            stance=self._stance(marker),
            targets=targets,
            is_closing=Code.CLOSE in sentence.codes,
            is_added=Code.ALSO in sentence.codes,
            about_others=about_others or marker.is_reversed,
            points_back=marker.rule.points_back or Code.THAT_ONE in sentence.codes,
            is_plural=marker.rule.points_back
            and _SEVERAL.match(page.hidden, end) is not None,
            is_partial=self.is_partial,
            is_part=sentence.codes[marker.start] == Code.PART_OF,
            about_this=self.this_end <= end,
            is_command=page.hidden[begin] == "/",
            corrects=marker.rule.corrects,
            addressee=who,
            is_theirs=is_theirs,
            marker=page.hidden[begin:end],
            said=self.said,
        )

    def _nearby_references(self, marker: Marker) -> list[Reference]:
        """The references that a marker without a target may mean: in its sentence, or else the nearest."""
        page = self.page
        sentence = self.sentence
        here = self.index
        before = (0, marker.start)
        after = (marker.end, len(sentence.codes))
        for start, end in (before, after):
            references = _within(sentence, (start, end))
            is_meant = marker.rule.points_back or not RELATES.search(
                sentence.codes, start, end
            )
            if references and is_meant:
                return references
        if marker.rule.opens_list:
            return page.list_after(here)
        points_back = marker.rule.points_back
        closes = Code.CLOSE in sentence.codes
        reach = _FAR_REACH if points_back or closes else _REACH
        first = max(0, here - reach)
        nearest = list(reversed(range(first, here)))
        if not points_back and here + 1 < len(page.spans):
            nearest.append(here + 1)
        for index in nearest:
            references = page.references_of(index)
            is_meant = points_back or page.is_pointer(index)
            if (
                references
                and is_meant
                and not _LEADS_AWAY.search(page.sentence(index).codes)
            ):
                return references
        return page.only_reference if closes else []

    def _stance(self, marker: Marker) -> Stance:
        sentence = self.sentence
        if sentence.is_question and not sentence.codes.startswith(Code.CLOSE):
            return Stance.OPEN if marker.rule.is_open_question else Stance.ASKED
        if self._is_denied(marker):
            return Stance.DENIED
        is_condition = self.page.hidden.startswith("if ", self.start)
        if sentence.is_foreign:
            is_condition = sentence.codes.startswith(Code.IF)
        if is_condition and marker.kind is not ClaimKind.DUPLICATE:
            return Stance.OPEN
        if Code.UNDECIDED in sentence.codes or self._is_qualified(marker):
            return Stance.OPEN
        is_hedged_later = self._is_followed(_HEDGED_AFTER, marker)
        if is_hedged_later or self._is_preceded(_HEDGE, marker):
            return Stance.HEDGED
        return Stance.ASSERTED

    def _is_denied(self, marker: Marker) -> bool:
        before = _FOREIGN_DENIAL if self.sentence.is_foreign else _DENIAL
        if self._is_followed(_DENIED_AFTER, marker):
            return True
        return self._is_preceded(before, marker)

    def _is_followed(self, by: re.Pattern[str], marker: Marker) -> bool:
        """Whether a pattern follows in a language with another order of words."""
        sentence = self.sentence
        return sentence.is_foreign and bool(by.match(sentence.codes, marker.end))

    def _is_qualified(self, marker: Marker) -> bool:
        """Whether the sentence also names a difference: "the same cause, but another symptom"."""
        if marker.kind is not ClaimKind.SAME or Code.CLOSE in self.sentence.codes:
            return False
        if self.sentence.is_foreign and Code.DIFFERENT in self.sentence.codes:
            return True
        _, marker_end = self.sentence.spans[marker.end - 1]
        return _BUT_DIFFERENT.search(self.page.hidden, marker_end, self.end) is not None


def _within(sentence: CodedSentence, span: Span | None) -> list[Reference]:
    if span is None:
        return []
    start, end = span
    return list(chain(*sentence.references[start:end]))


def _distinct_targets(references: Sequence[Reference], issue: IssueRef) -> IssueRefs:
    """The distinct targets; links to comments, and the issue itself, count only if there are no others."""
    plain = [
        reference for reference in references if not reference.is_anchored
    ] or references
    refs = tuple(dict.fromkeys(reference.ref for reference in plain))
    return tuple(ref for ref in refs if ref != issue) or refs
