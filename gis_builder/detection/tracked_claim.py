"""A claim of a thread, its targets, and whether later statements or events left it valid."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gis_builder.detection.claim_reader import Claim, Stance
from gis_builder.detection.rules import ClaimKind
from gis_builder.detection.statements import Statement
from gis_builder.store import IssueRefs


class ClaimState(StrEnum):
    """Whether a claim is still valid, and if not, why."""

    VALID = "valid"
    DISPUTED = "disputed"  # "not a dup", "a different bug"
    REOPENED = "reopened"
    UNMARKED = "unmarked"  # the tracker's mark was removed
    FIXED = "fixed"  # the issue was then closed as fixed or as not a bug
    # The claim was only a guess, and another explanation followed.
    EXPLAINED = "explained"


@dataclass(slots=True)
class TrackedClaim:
    """A claim with its resolved targets and its current state."""

    claim: Claim
    targets: IssueRefs
    statement: Statement
    index: int  # of the statement in the thread
    stance: Stance
    # Whether the text has no reference, so that another statement names the target.
    is_inferred: bool = False
    confirmed_by: Statement | None = None
    state: ClaimState = ClaimState.VALID
    is_disputed_later: bool = False  # by a bystander, after the closing

    @property
    def is_valid(self) -> bool:
        """Whether no later statement or event revoked the claim."""
        return self.state is ClaimState.VALID

    @property
    def asserts_duplicate(self) -> bool:
        """Whether it is an asserted duplicate, the firmest kind of claim."""
        return self.claim.kind is ClaimKind.DUPLICATE and self.stance is Stance.ASSERTED

    def names_any(self, refs: IssueRefs) -> bool:
        """Whether one of these issues is a target of the claim."""
        return not set(self.targets).isdisjoint(refs)

    def confirm(self, statement: Statement, stance: Stance = Stance.ASSERTED) -> None:
        """Record that a later statement supports the claim."""
        self.confirmed_by = statement
        if stance is Stance.ASSERTED or self.stance is Stance.ASKED:
            self.stance = stance
