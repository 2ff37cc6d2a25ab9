"""The weight of a claim: how likely the issue was closed for it, by stance, kind, speaker and time."""

from __future__ import annotations

from datetime import timedelta

from gis_builder.detection.claim_reader import Claim, Stance
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
    value = _weight(tracked, tracked.statement, closing)
    if tracked.confirmed_by:
        value = max(value, _weight(tracked, tracked.confirmed_by, closing))
    if tracked.is_disputed_later:
        value *= _DISPUTED_LATER
    return round(value, 3)


def _weight(tracked: TrackedClaim, statement: Statement, closing: Closing) -> float:
    """The confidence by stance, kind and role if a statement can be the reason to close."""
    if tracked.stance is Stance.OPEN:
        return 0.0
    kind = tracked.claim.kind
    value = _BY_STANCE[tracked.stance] * BY_KIND[kind] * _BY_ROLE[statement.role]
    if tracked.is_inferred:
        value *= _INFERRED
    if statement.is_note and tracked.asserts_duplicate:
        return value
    if kind is ClaimKind.TRACKED and not _is_all_tracked(tracked, statement, closing):
        return 0.0
    if statement.role is Role.CLOSER:
        return value if _is_closers_reason(tracked, statement, closing) else 0.0
    return value * _timeliness(tracked, statement, closing)


def _timeliness(tracked: TrackedClaim, statement: Statement, closing: Closing) -> float:
    """1 if the claim of another person than the closer was in time, less if late, 0 if it isn't a reason."""
    if _has_other_reason(tracked, closing, _SHORT_REMARK):
        return 0.0
    before = before_closing(closing.issue, statement)
    # A maintainer's claim holds even if a bot closes the issue much later.
    is_firm = tracked.asserts_duplicate and statement.role is Role.MAINTAINER
    if closing.is_by_bot and abs(before) > AT_CLOSING and not is_firm:
        return 0.0
    if before < timedelta(0):
        max_delay = SAME_MOMENT if statement.role is Role.OTHER else A_DAY
        is_accepted = before >= -max_delay and tracked.stance is Stance.ASSERTED
        return float(is_accepted)
    max_delay = _MAX_DELAY.get((tracked.claim.kind, tracked.stance), timedelta(0))
    if before <= max_delay:
        return 1.0
    return _LATE if _is_last_word(tracked, statement, closing) else 0.0


def _is_closers_reason(
    tracked: TrackedClaim, statement: Statement, closing: Closing
) -> bool:
    """Whether the closer's claim is near enough to the closing, without another remark, to be its reason."""
    if _is_likeness(tracked.claim) and _has_other_reason(tracked, closing, _NO_REMARK):
        return False
    before = before_closing(closing.issue, statement)
    kind = tracked.claim.kind
    if kind is ClaimKind.TRACKED:
        return abs(before) <= AT_CLOSING
    if tracked.stance is Stance.ASKED:
        return abs(before) <= SAME_MOMENT
    if -_CLOSER_AFTER <= before <= _CLOSER_BEFORE:
        return True
    is_firm = tracked.stance is Stance.ASSERTED or tracked.claim.is_closing
    return kind is ClaimKind.DUPLICATE and is_firm


def _is_likeness(claim: Claim) -> bool:
    """Whether a claim only names a similar issue, so that other words at the closing outweigh it."""
    return claim.kind in (ClaimKind.SAME, ClaimKind.TRACKED)


def _is_all_tracked(
    tracked: TrackedClaim, statement: Statement, closing: Closing
) -> bool:
    """Whether "tracked in #1" is about the whole issue and was the reason to close it."""
    claim = tracked.claim
    reading = statement.reading
    has_other_reason = reading.gives_other_reason or closing.gives_other_reason
    is_at_closing = abs(before_closing(closing.issue, statement)) <= ONE_CLICK
    if claim.is_partial or (has_other_reason and not claim.is_closing):
        return False
    if claim.is_part and not reading.is_closing:
        return is_at_closing
    if claim.is_closing or claim.about_this or reading.word_count <= _SHORT_REMARK * 2:
        return True
    return statement.role is Role.CLOSER and is_at_closing


def _has_other_reason(tracked: TrackedClaim, closing: Closing, min_words: int) -> bool:
    """Whether the closer's remark at the closing is longer than that and doesn't mention the target."""
    remark = closing.remark
    if remark is None or remark.when < tracked.statement.when:
        return False
    if tracked.statement.role is Role.CLOSER and not _is_likeness(tracked.claim):
        return False
    is_long = remark.reading.word_count > min_words
    return is_long and not tracked.names_any(remark.reading.mentions)


def _is_last_word(
    tracked: TrackedClaim, statement: Statement, closing: Closing
) -> bool:
    """Whether nothing was said between an asserted duplicate and a much later closing."""
    is_last = statement.when >= closing.last_words_at
    is_in_time = before_closing(closing.issue, statement) <= _MAX_DELAY_OF_LAST_WORD
    return tracked.asserts_duplicate and is_last and is_in_time
