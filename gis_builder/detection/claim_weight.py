"""The weight of a claim: how likely the issue was closed for it, by stance, kind, speaker and time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from gis_builder.detection.claim_reader import Stance
from gis_builder.detection.claim_tracker import TrackedClaim
from gis_builder.detection.rules import ClaimKind
from gis_builder.detection.statements import (
    AT_CLOSING,
    ONE_CLICK,
    Closing,
    Role,
    Statement,
    before_closing,
)

SAME_MOMENT = timedelta(minutes=10)
A_DAY = timedelta(days=1)
_CLOSER_BEFORE = timedelta(days=3)
_CLOSER_AFTER = timedelta(days=7)
# Maximum time from a claim to the closing that it explains, unless the closer made it.
_MAX_DELAY = {
    (ClaimKind.DUPLICATE, Stance.ASSERTED): timedelta(days=7),
    (ClaimKind.DUPLICATE, Stance.HEDGED): timedelta(days=3),
    (ClaimKind.DUPLICATE, Stance.ASKED): A_DAY,
    (ClaimKind.FAVOUR, Stance.ASSERTED): A_DAY,
    (ClaimKind.FAVOUR, Stance.HEDGED): A_DAY,
    (ClaimKind.FAVOUR, Stance.ASKED): A_DAY,
    (ClaimKind.SAME, Stance.ASSERTED): A_DAY,
    (ClaimKind.SAME, Stance.HEDGED): timedelta(hours=2),
    (ClaimKind.TRACKED, Stance.ASSERTED): timedelta(hours=2),
}
# They only name a similar issue, so that other words at the closing outweigh them.
_LIKENESSES = (ClaimKind.SAME, ClaimKind.TRACKED)
_MAX_DELAY_OF_LAST_WORD = timedelta(days=365)
# Factors of the confidence.
_BY_STANCE = {
    Stance.ASSERTED: 1.0,
    Stance.HEDGED: 0.88,
    Stance.ASKED: 0.72,
}
BY_KIND = {
    ClaimKind.DUPLICATE: 1.0,
    ClaimKind.FAVOUR: 0.96,
    ClaimKind.SAME: 0.92,
    ClaimKind.TRACKED: 0.85,
}
_BY_ROLE = {
    Role.CLOSER: 0.98,
    Role.MAINTAINER: 0.93,
    Role.BOT: 0.93,
    Role.AUTHOR: 0.9,
    Role.OTHER: 0.86,
}
_INFERRED = 0.9
_LATE = 0.8
_DISPUTED_LATER = 0.85
# Numbers of words
_SHORT_REMARK = 12
_NO_REMARK = 4


def weight(tracked: TrackedClaim, closing: Closing) -> float:
    """The confidence in [0, 1] that the issue was closed for a claim; 0 if nothing indicates it."""
    statements = filter(None, (tracked.statement, tracked.confirmed_by))
    value = max(_Reason(tracked, said, closing).weight() for said in statements)
    if tracked.is_disputed_later:
        value *= _DISPUTED_LATER
    return round(value, 3)


@dataclass(frozen=True)
class _Reason:
    """A claim, as made or confirmed by a statement, that may be the reason of the closing."""

    tracked: TrackedClaim
    statement: Statement
    closing: Closing

    @cached_property
    def before(self) -> timedelta:
        """Time from the statement to the closing; negative for a later statement."""
        return before_closing(self.closing.issue, self.statement)

    def weight(self) -> float:
        """The confidence by stance, kind and role; 0 if the statement can't be the reason."""
        tracked = self.tracked
        if tracked.stance is Stance.OPEN:
            return 0.0
        kind = tracked.claim.kind
        role = self.statement.role
        value = _BY_STANCE[tracked.stance] * BY_KIND[kind] * _BY_ROLE[role]
        if tracked.is_inferred:
            value *= _INFERRED
        if self.statement.is_note and tracked.asserts_duplicate:
            return value
        if kind is ClaimKind.TRACKED and not self._is_all_tracked():
            return 0.0
        if role is Role.CLOSER:
            return value if self._is_closers() else 0.0
        return value * self._timeliness()

    def _timeliness(self) -> float:
        """1 if the claim of another person than the closer was in time, less if late, 0 if it isn't a reason."""
        if self._is_outweighed(_SHORT_REMARK):
            return 0.0
        tracked = self.tracked
        role = self.statement.role
        # A maintainer's claim holds even if a bot closes the issue much later.
        is_firm = tracked.asserts_duplicate and role is Role.MAINTAINER
        if self.closing.is_by_bot and abs(self.before) > AT_CLOSING and not is_firm:
            return 0.0
        if self.before < timedelta(0):
            grace = SAME_MOMENT if role is Role.OTHER else A_DAY
            is_accepted = self.before >= -grace and tracked.stance is Stance.ASSERTED
            return 1.0 if is_accepted else 0.0
        max_delay = _MAX_DELAY.get((tracked.claim.kind, tracked.stance), timedelta(0))
        if self.before <= max_delay:
            return 1.0
        return _LATE if self._is_last_word() else 0.0

    def _is_closers(self) -> bool:
        """Whether the closer's claim is near enough to the closing, without another remark, to be its reason."""
        tracked = self.tracked
        kind = tracked.claim.kind
        if kind in _LIKENESSES and self._is_outweighed(_NO_REMARK):
            return False
        if kind is ClaimKind.TRACKED:
            return abs(self.before) <= AT_CLOSING
        if tracked.stance is Stance.ASKED:
            return abs(self.before) <= SAME_MOMENT
        if -_CLOSER_AFTER <= self.before <= _CLOSER_BEFORE:
            return True
        is_firm = tracked.stance is Stance.ASSERTED or tracked.claim.is_closing
        return kind is ClaimKind.DUPLICATE and is_firm

    def _is_all_tracked(self) -> bool:
        """Whether "tracked in #1" is about the whole issue and was the reason to close it."""
        claim = self.tracked.claim
        reading = self.statement.reading
        has_other = reading.gives_other_reason or self.closing.gives_other_reason
        if claim.is_partial or (has_other and not claim.is_closing):
            return False
        is_at_closing = abs(self.before) <= ONE_CLICK
        if claim.is_part and not reading.is_closing:
            return is_at_closing
        is_short = reading.word_count <= _SHORT_REMARK * 2
        if claim.is_closing or claim.about_this or is_short:
            return True
        return self.statement.role is Role.CLOSER and is_at_closing

    def _is_outweighed(self, max_words: int) -> bool:
        """Whether the closer's remark at the closing has more words than that and doesn't mention the target."""
        tracked = self.tracked
        claiming = tracked.statement
        remark = self.closing.remark
        if remark is None or remark.when < claiming.when:
            return False
        if claiming.role is Role.CLOSER and tracked.claim.kind not in _LIKENESSES:
            return False
        is_long = remark.reading.word_count > max_words
        return is_long and not tracked.names_any(remark.reading.mentions)

    def _is_last_word(self) -> bool:
        """Whether nothing was said between an asserted duplicate and a much later closing."""
        is_last = self.statement.when >= self.closing.last_words_at
        is_in_time = self.before <= _MAX_DELAY_OF_LAST_WORD
        return self.tracked.asserts_duplicate and is_last and is_in_time
