"""Read a sentence of codes: which marker points where, of whom it speaks, and how firmly."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gis_builder.detection.rules import RULES


@dataclass(frozen=True, slots=True)
class Find:
    """A marker in a sentence: where it stands and which stretch of codes holds its targets, if any."""

    kind: str  # D | F | S | K: the lexicon code that decides
    start: int
    end: int
    targets: tuple[int, int] | None
    subject: tuple[int, int] | None = None  # other issues that the claim is about
    is_reversed: bool = False  # the other issue is said to be a duplicate of this one
    points_back: bool = False
    opens_list: bool = False  # "a dup of these issues:"
    corrects: bool = False  # "I meant #2"
    must_close: bool = False  # counts only beside a closing: "very similar to #1, closing"
    is_open_question: bool = False  # "how does this differ from #1?"


_COMPILED = tuple((rule.kind, re.compile(rule.pattern)) for rule in RULES)
# The codes of which a rule of that kind needs at least one: a cheap test before the patterns.
_MARKERS = {"D": "DdZcn", "F": "Fm", "S": "SsTlE", "K": "KAfP"}


def find_markers(codes: str) -> list[Find]:
    """List the markers of a sentence in order; of overlapping readings the earlier rule wins."""
    found: list[Find] = []
    taken = bytearray(len(codes))
    present = frozenset(codes)
    for kind, rule in _COMPILED:
        if present.isdisjoint(_MARKERS[kind]):
            continue
        for match in rule.finditer(codes):
            find = _find(kind, match)
            if not any(taken[find.start : find.end]):
                taken[find.start : find.end] = b"\x01" * (find.end - find.start)
                found.append(find)
    return sorted(found, key=lambda find: find.start)


def _find(kind: str, match: re.Match[str]) -> Find:
    groups = match.re.groupindex
    marker = "c" if "c" in groups else "m"
    return Find(
        kind=kind,
        start=match.start(marker),
        end=match.end(marker),
        targets=_stretch(match, "t") if "t" in groups else None,
        subject=_stretch(match, "s") if "s" in groups else None,
        is_reversed="r" in groups and match.start("r") >= 0,
        points_back="p" in groups,
        opens_list="b" in groups,
        corrects="c" in groups,
        must_close="k" in groups,
        is_open_question="q" in groups,
    )


def _stretch(match: re.Match[str], group: str) -> tuple[int, int] | None:
    return match.span(group) if match.start(group) >= 0 else None


# What rules a marker; each ends where the marker begins.
_DENIAL = re.compile(
    r"N(?!w{0,2}G)[^,.&CRBF]{0,5}$"  # "isn't really a ...", but not "couldn't find a ..."
    r"|[BN][,]?N[^,.&CR]{0,5}$"  # "no, not a ..."
)
_HEDGE = re.compile(r"[HI][^.&]{0,9}$")  # "I think that this is a ...", "if it is a ..."
_OF_A_FIX = re.compile(r"(?<!a)X[^.R,C]{0,3}$")  # "the fix was ...", not "as wontfix, ..."
_IN_VAIN = re.compile(
    r"[NB][^.R]{0,4}G[^.R]{0,6}$"  # "couldn't find any ..."
    r"|(?:I|o)J?G[^.R]{0,3}$"  # "please search for ...", "to look for ..."
)
# What a sentence says as a whole.
_DIFFERENT = re.compile(
    r"[TRO][VJHx]{0,3}E(?=w?[oi]|[.,?&]|$)"  # "this is different", "#1 is a different bug"
    r"|Ei"  # "different issue"
    r"|E[owxbV]{0,2}[RTO]"  # "unrelated to #1"
)
_FIXED = re.compile(r"(?<!N)(?<!Nw)(?<!NJ)X")  # "fixed", not "not fixed", "not yet fixed"
# How it begins: "yes", "ok, that's right" | "oh, ..." | "no" | "reopening", not "reopen if ..."
_AGREEMENT = re.compile(r"[,w]?[,y]{0,2}[JT]?Y")
_THANKS = re.compile(r"[,w]?[,]?J?[yY]")
_DISAGREEMENT = re.compile(r"[,w]?[,]?B")
_NOT_KEPT = re.compile(r"[NB][^.]{0,5}k")  # "no need to keep this open"
_REOPENING = re.compile(r"(?:^|[,Y])[JTVH]{0,3}U")


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
    return "E" in codes and _DIFFERENT.search(codes) is not None


def says_fixed(codes: str) -> bool:
    """Whether the sentence calls the issue fixed, or no bug; not "isn't fixed yet"."""
    return "X" in codes and _FIXED.search(codes) is not None


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
    return "U" in codes and "I" not in codes and _REOPENING.search(codes) is not None


def is_kept_open(codes: str) -> bool:
    """Whether the speaker leaves it open; not "no need to keep this open", nor where closing comes last."""
    return codes.rfind("k") > codes.rfind("C") and _NOT_KEPT.search(codes) is None


def only_closes(codes: str) -> bool:
    """Whether something is closed there, and not as fixed or as no bug."""
    return "C" in codes and not says_fixed(codes)


def is_in_jest(codes: str) -> bool:
    """Whether the speaker says that what was said is not meant."""
    return "j" in codes
