"""Claims about duplicates, as data, and which issues may be their targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from gis_builder.store.records import GITHUB, IssueRef, Kind, Verdict, VerdictOutcome


class ClaimKind(StrEnum):
    """How a claim says that two issues are one."""

    DUPLICATE = "duplicate"  # "dup of #1"
    FAVOUR = "favour"  # "in favour of #1", "superseded by #1"
    SAME = "same"  # "same issue as #1", "this is #1"
    TRACKED = "tracked"  # "already reported in #1", "tracked in #1"


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


@dataclass(frozen=True, slots=True)
class TextReading:
    """Everything in one text that bears on duplicates."""

    claims: tuple[Claim, ...] = ()
    mentions: tuple[IssueRef, ...] = ()  # every reference, in order of place
    pulls: frozenset[IssueRef] = frozenset()  # mentions that the text shows to be pull requests
    agrees: bool = False  # begins with "yes", "indeed", "you're right"
    thanks: bool = False  # "thanks", "oh", "sorry": takes the last statement for right
    disagrees: bool = False  # begins with "no,"
    says_different: bool = False  # "this is not the same", "different cause"
    says_otherwise: bool = False  # gives another reason to close: fixed, works now, expected
    explains: bool = False  # gives another reason for what was reported: by design, another's bug, a mistake
    accepts_explanation: bool = False  # "makes sense", "thanks for explaining"
    speaks_of_duplicates: bool = False
    reopens: bool = False
    is_closing: bool = False
    words: int = 0


KindOf = Callable[[IssueRef], Kind]

_UNSEEN = 0.9  # factor on the confidence when nobody has looked at what the target is
_REJECTED = 0.9


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as a duplicate beyond the thread's own words.

    `former_names` are what the thread's repository was called before, as owner/name. `site` is the root
    of the tracker's pages, for the links of the evidence.
    """

    allow_cross_repository: bool = False
    former_names: frozenset[str] = frozenset()
    site: str = GITHUB


DEFAULT_RULES = Rules()


def could_be_target(kind: Kind) -> bool:
    """Whether something of that kind may be a canonical issue, as far as is known."""
    return kind in (Kind.ISSUE, Kind.UNKNOWN)


def could_be_meant(ref: IssueRef, home: str, kind: Kind, *, is_called_pull: bool) -> bool:
    """Whether "a dup of that" may mean what was named as `ref`: anything but a pull request.

    What turned out to be missing was meant all the same, and so was an issue of another repository, whatever
    is known of it: were they passed over, an older reference would be taken for what was meant.
    """
    if ref.repo != home:
        return not is_called_pull
    return kind is Kind.ISSUE or (kind is not Kind.PULL and not is_called_pull)


def with_known_pulls(kind_of: KindOf, pulls: frozenset[IssueRef]) -> KindOf:
    """`kind_of` with what the thread itself shows of pull requests that were not fetched."""

    def known(ref: IssueRef) -> Kind:
        kind = kind_of(ref)
        return Kind.PULL if kind is Kind.UNKNOWN and ref in pulls else kind

    return known


def check_targets(verdict: Verdict, kind_of: KindOf, rules: Rules) -> Verdict:
    """Drop targets that can't be canonical; a duplicate of nothing that is left is not one, or uncertain."""
    if verdict.outcome is not VerdictOutcome.DUPLICATE:
        return verdict
    others = [ref for ref in verdict.targets if ref != verdict.ref]
    if not others:
        return _rejected(verdict, VerdictOutcome.NOT, "self_reference", ())
    near = [ref for ref in others if rules.allow_cross_repository or ref.repo == verdict.ref.repo]
    if not near:
        return _rejected(verdict, VerdictOutcome.UNCERTAIN, "cross_repository", others)
    kinds = {ref: kind_of(ref) for ref in near}
    usable = [ref for ref in near if could_be_target(kinds[ref])]
    if not usable:
        if Kind.MISSING in kinds.values():
            return _rejected(verdict, VerdictOutcome.UNCERTAIN, "target_missing", near)
        return _rejected(verdict, VerdictOutcome.NOT, "target_is_pull", near)
    is_seen = any(kinds[ref] is Kind.ISSUE for ref in usable)
    confidence = verdict.confidence if is_seen else round(verdict.confidence * _UNSEEN, 3)
    return replace(verdict, targets=tuple(usable), confidence=confidence)


def _rejected(verdict: Verdict, outcome: VerdictOutcome, reason: str, targets: Iterable[IssueRef]) -> Verdict:
    return replace(verdict, outcome=outcome, targets=tuple(targets), confidence=_REJECTED, reason=reason)
