"""What one text claims: the grammar that turns sentences of lexicon codes into claims about duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gis_builder.store.records import IssueRef


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
