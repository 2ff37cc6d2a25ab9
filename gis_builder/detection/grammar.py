"""Read a sentence of codes: which marker points where, of whom it speaks, and how firmly."""

from __future__ import annotations

import re
from typing import NamedTuple

from gis_builder.detection.claims import ClaimKind
from gis_builder.detection.lexicon import Code, code_pattern
from gis_builder.detection.rules import RULES, Rule, compile_rule


class Find(NamedTuple):
    """A marker in a sentence: its place, and which stretches of codes hold its targets and its subject."""

    kind: ClaimKind
    rule: Rule
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


def find_markers(codes: str) -> list[Find]:
    """List the markers of a sentence in order; of overlapping readings the earlier rule wins."""
    found: list[Find] = []
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
    return sorted(found, key=lambda find: find.start)


def _find(kind: ClaimKind, rule: Rule, match: re.Match[str]) -> Find:
    spans = {name: match.span(name) for name in match.re.groupindex if match.start(name) >= 0}
    return Find(kind, rule, *spans["marker"], spans.get("targets"), spans.get("subject"), "reversed" in spans)


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
