"""The patterns over sentences of codes: which marker points where, of whom it speaks, how firm it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A list of references that share one marker: "#1, #2 and also #3".
LIST = r"R(?:[,&]{1,3}M?o?x?i?[,]?R|&?M?[,]?i?R)*"


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


_TARGETS = rf"(?P<t>{LIST})"
_SUBJECT = rf"(?P<s>{LIST})"
_IS = r"(?:[VJMHaxweC,]{0,4}V[VJMHaxwC]{0,5})"

# Each rule names the stretches <m> marker, <t> targets, <s> foreign subject, <p> pointer back, <r> reversal,
# <b> the beginning of a list, <c> a correction. The first letter is the kind of claim.
_RULES: tuple[tuple[str, str], ...] = (
    # --- the target before the marker: "#1, of which this is a dup", "#1 is a dup of this, closing this"
    ("D", rf"{_TARGETS}[,]*oW[,]?T?[^RDF.?]{{0,5}}?(?P<m>D)(?!i?o)"),
    ("D", rf"{_TARGETS}[,]*W[^RDF.?]{{0,4}}?T[^RDF.?]{{0,4}}?(?P<m>D)o(?!i?R)"),
    ("D", rf"{_TARGETS}[VMH]x?[JH]?(?P<m>D)oT(?=.*C[JxM]{{0,2}}T)"),
    ("D", r"(?P<s>R)[^RDFSK?IN]{0,5}?(?P<m>d)(?P<r>T)"),
    # --- foreign subjects: "#1 is a dup of #2", "closing #1 as a dup of #2", "#1 (dup of #2)"
    ("D", rf"{_SUBJECT},?W[^.RDF]{{0,7}}(?P<m>[DZ])i?[,o]{{0,2}}[xJiw]{{0,3}}{_TARGETS}"),
    ("D", rf"{_SUBJECT},?(?:W,?)?{_IS}(?P<m>[DZ])i?[,o]{{0,2}}[xJiw]{{0,3}}{_TARGETS}"),
    ("D", rf"{_SUBJECT},?(?:W,?)?[VJMHaxwC,]{{0,6}}(?P<m>[DZ])i?o[xJi]{{0,2}}(?P<r>[TO])(?!i?[,]?R)"),
    ("D", rf"C[xiJ]{{0,2}}{_SUBJECT},?[Mw]?ax?J?(?P<m>D)i?o[xJi]{{0,2}}(?:{_TARGETS}|(?P<r>[TO]))"),
    ("D", rf"{_SUBJECT},?[JMa]{{0,2}}x?(?P<m>D)o{_TARGETS}"),
    ("D", rf"(?<![TVHJ]){_SUBJECT}[JM]?(?P<m>d){_TARGETS}"),
    ("D", r"(?P<m>d)[:,]{1,2}(?P<s>R)"),
    # --- the target after the marker: "dup of #1", "dup: #1", "dup, see #1", "this duplicates #1"
    ("D", rf"(?P<m>D)i?[,]?o[^DFSKXRLE?]{{0,7}}?{_TARGETS}"),
    ("D", r"(?P<m>D)i?o[xJ]?(?P<r>T)"),
    ("D", r"(?P<m>D)i?ox?O(?P<p>)"),
    ("D", rf"(?P<m>D)i?[,x]{{0,3}}e?[xi,]{{0,2}}{_TARGETS}"),
    ("D", rf"(?P<m>D)i?(?:(?:Vw)?,[^RDFSKXLE?]{{0,4}})?e[xio,J]{{0,3}}{_TARGETS}"),
    ("D", rf"(?:(?<=T)|(?<=^)|(?<=[TJ]J)|(?<=,)|(?<=TH)|(?<=T[wJ]))(?P<m>d)x?i?{_TARGETS}"),
    ("D", rf"(?P<m>Z)[^RDFX.?]{{0,8}}?[bo]x?i?{_TARGETS}"),
    # --- East Asian order
    ("D", rf"{_TARGETS}w{{0,3}}(?P<m>D)(?!i?[oRe])"),
    ("D", r"(?P<m>D)ox?[Jw]{0,2}i[^R.?]{0,3}(?P<b>,)$"),
    # --- no target beside the marker: "closing as a dup", "looks like a dupe, thanks"; not "duplicate code"
    (
        "D",
        r"(?:(?<=^)|(?<=[xaVJTCY&M,HNwoiR?.y]))(?<![bo]x)(?P<m>D)"
        r"(?=i?(?:[.,?J&MT]|$|CT|w{0,5}C|Y|y|w?$|bD))",
    ),
    ("D", r"C[^RDFN.?]{0,4}ax?(?P<m>D)"),
    ("D", r"N[^,.&RC]{0,4}?x(?P<m>D)(?=[wJ]{0,4}$)"),
    # --- closing in favour of another
    ("F", rf"{_SUBJECT}[VJMHCxaw,]{{0,5}}(?P<m>F)[xJi]{{0,2}}(?:{_TARGETS}|(?P<r>T))"),
    ("F", rf"{_TARGETS}[^.?]{{0,12}}C[^RF.?]{{0,5}}(?P<m>F)T(?=[,.?]|$)"),
    ("F", rf"(?P<m>F)[^RDFSXNEO.?]{{0,9}}?{_TARGETS}"),
    ("F", r"(?P<m>F)x?(?P<p>O)"),
    # --- the same issue
    ("S", rf"{_SUBJECT}[VJMHxaw,]{{1,5}}(?P<m>S)[xJiw]{{0,2}}(?:{_TARGETS}|(?P<r>T))"),
    ("S", rf"(?P<m>S)[xJiwob]{{0,3}}?{_TARGETS}"),
    ("S", r"(?P<m>S)x?(?P<p>O)"),
    ("S", rf"{_TARGETS},?(?:W,?)?(?:[HJ]{{0,2}}V|H)[JHxVMi]{{0,4}}(?P<m>s)"),
    ("S", rf"{_TARGETS}w{{0,2}}(?P<m>s)"),
    ("S", rf"(?P<m>s)[,ab]{{1,2}}x?i?{_TARGETS}"),
    # "this is #1", and nothing after it that would make it "this is #1's fault"
    (
        "S",
        rf"(?:^|(?<=[,J]))[TO]?[HJ]{{0,2}}(?P<m>[TV])[JHxi]{{0,4}}{_TARGETS}(?=[JMi]?(?:[.,?]|$)|J{{0,4}}o?C)",
    ),
    # --- a correction of what was said before
    ("D", rf"(?P<c>c)[,xJi]{{0,2}}{_TARGETS}"),
    # --- tracked or reported elsewhere
    ("K", rf"(?P<m>K)[,xJiwe]{{0,3}}?{_TARGETS}"),
    ("K", r"(?P<m>K)x?(?P<p>O)"),
    ("K", rf"{_TARGETS}Vx?w?(?P<m>K)"),
    ("K", rf"{_TARGETS}[wJMHVo]{{0,4}}(?P<m>f)(?=[Tx])"),
    ("K", rf"(?P<m>A)[^RDFSLE?]{{0,5}}?{_TARGETS}"),
    ("K", rf"{_TARGETS}[^RDFSLE?]{{0,5}}?(?P<m>A)"),
)
_COMPILED = tuple((kind, re.compile(rule)) for kind, rule in _RULES)
_MARKERS = {"D": "DdZc", "F": "F", "S": "SsT", "K": "KAf"}


def find_markers(codes: str) -> list[Find]:
    """List the markers of a sentence in order; of overlapping readings the earlier rule wins."""
    found: list[Find] = []
    present = frozenset(codes)
    for kind, rule in _COMPILED:
        if present.isdisjoint(_MARKERS[kind]):
            continue
        for match in rule.finditer(codes):
            find = _find(kind, match)
            if not any(find.start < other.end and other.start < find.end for other in found):
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
    )


def _stretch(match: re.Match[str], group: str) -> tuple[int, int] | None:
    return match.span(group) if match.start(group) >= 0 else None


_DENIAL = re.compile(r"N(?!w{0,2}G)[^,.&CRBF]{0,6}$|[BN][,]?N[^,.&CR]{0,5}$")
_HEDGE = re.compile(r"[HI][^.&]{0,9}$")
_OF_A_FIX = re.compile(r"X[^.R,C]{0,3}$")
_IN_VAIN = re.compile(r"[NB][^.R]{0,4}G[^.R]{0,6}$|(?:I|o)J?G[^.R]{0,3}$")
_DIFFERENT = re.compile(r"[TRO][VJHx]{0,3}E(?=w?[oi]|[.,?&]|$)|Ei|E[owxbV]{0,2}[RTO]")
_AGREEMENT = re.compile(r"[,w]?[,y]{0,2}[JT]?Y")
_THANKS = re.compile(r"[,w]?[,]?J?[yY]")
_DISAGREEMENT = re.compile(r"[,w]?[,]?B")
_REOPENING = re.compile(r"(?:^|[,Y])[JTVH]{0,3}U(?!.*I)")


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
