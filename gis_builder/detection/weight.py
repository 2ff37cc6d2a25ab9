"""How much a standing claim counts: who said it, how firmly, and how close to the closing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from gis_builder.detection.claims import ClaimKind, Stance
from gis_builder.detection.ledger import Standing
from gis_builder.detection.statements import ONE_CLICK, Role, Statement, instant
from gis_builder.store.records import Issue

_AT_CLOSING = timedelta(hours=1)
_SAME_MOMENT = timedelta(minutes=10)
_CLOSERS_PATIENCE = timedelta(days=3)
_A_DAY = timedelta(days=1)
_AFTERWARDS = timedelta(days=7)
# How long before the closing a claim of another than the closer may be what the issue was closed for.
_PATIENCE = {
    (ClaimKind.DUPLICATE, Stance.ASSERTED): timedelta(days=7),
    (ClaimKind.DUPLICATE, Stance.HEDGED): timedelta(days=3),
    (ClaimKind.DUPLICATE, Stance.ASKED): timedelta(days=1),
    (ClaimKind.FAVOUR, Stance.ASSERTED): timedelta(days=1),
    (ClaimKind.FAVOUR, Stance.HEDGED): timedelta(days=1),
    (ClaimKind.FAVOUR, Stance.ASKED): timedelta(days=1),
    (ClaimKind.SAME, Stance.ASSERTED): timedelta(days=1),
    (ClaimKind.SAME, Stance.HEDGED): timedelta(hours=2),
    (ClaimKind.TRACKED, Stance.ASSERTED): timedelta(hours=2),
}
_LAST_WORD_PATIENCE = timedelta(days=365)
_FIRMNESS = {Stance.ASSERTED: 1.0, Stance.HEDGED: 0.88, Stance.ASKED: 0.72}
_PLAINNESS = {ClaimKind.DUPLICATE: 1.0, ClaimKind.FAVOUR: 0.96, ClaimKind.SAME: 0.92, ClaimKind.TRACKED: 0.85}
_AUTHORITY = {Role.CLOSER: 0.98, Role.MAINTAINER: 0.93, Role.BOT: 0.93, Role.AUTHOR: 0.9, Role.OTHER: 0.86}
_INFERRED = 0.9
_LATE = 0.8
_DISPUTED_LATER = 0.85
_BOT_NAME = re.compile(r"^(?:bors|homu)\b|(?:^|[-_])(?:bot|robot)$", re.IGNORECASE)
_SHORT_REMARK = 12  # words
_NO_REMARK = 4  # words


@dataclass(frozen=True, slots=True)
class Closing:
    """How the issue was closed, as far as it bears on claims made before."""

    issue: Issue
    is_by_bot: bool  # a bot closes at once on command, or else because a change was merged
    remark: Statement | None  # the closer's words at the closing when they claim nothing and agree to nothing
    gives_other_reason: bool  # the closer called it fixed, or no bug, in the moment of closing
    last_words_at: str  # when the last words before the closing were said


def closing_of(issue: Issue, heard: list[Statement], standings: list[Standing]) -> Closing:
    """Read how the issue was closed from its statements."""
    confirming = {id(standing.confirmed_by) for standing in standings}
    remark, last_words_at, gives_other_reason = None, "", False
    for statement in heard:
        before = before_closing(issue, statement)
        if before >= timedelta(0) and statement.reading.words > 0:
            last_words_at = statement.when
        reading = statement.reading
        says_own = reading.agrees or reading.thanks or reading.speaks_of_duplicates or bool(reading.claims)
        is_at_closing = -ONE_CLICK <= before <= _AT_CLOSING
        if statement.role is Role.CLOSER and is_at_closing and not statement.is_note:
            remark = None if says_own or id(statement) in confirming else statement
            gives_other_reason = gives_other_reason or (remark is not None and reading.says_otherwise)
    bots = {statement.who for statement in heard if statement.role is Role.BOT}
    is_by_bot = issue.closed_by in bots or _BOT_NAME.search(issue.closed_by or "") is not None
    return Closing(issue, is_by_bot, remark, gives_other_reason, last_words_at)


def weight(standing: Standing, closing: Closing) -> float:
    """The confidence in [0, 1] that a claim was what the issue was closed for; 0 if it was not acted on."""
    doubt = _DISPUTED_LATER if standing.is_disputed_later else 1.0
    values = [_weight(standing, standing.statement, closing)]
    if standing.confirmed_by is not None:
        values.append(_weight(standing, standing.confirmed_by, closing))
    return round(max(values) * doubt, 3)


def _weight(standing: Standing, statement: Statement, closing: Closing) -> float:
    claim = standing.claim
    if standing.stance is Stance.OPEN:
        return 0.0
    value = _FIRMNESS[standing.stance] * _PLAINNESS[claim.kind] * _AUTHORITY[statement.role]
    value *= _INFERRED if standing.is_inferred else 1.0
    before = before_closing(closing.issue, statement)
    if statement.is_note and standing.stance is Stance.ASSERTED and claim.kind is ClaimKind.DUPLICATE:
        return value
    if claim.kind is ClaimKind.TRACKED and not _is_all_tracked(standing, statement, closing):
        return 0.0
    if statement.role is Role.CLOSER:
        if _is_closers_guess(standing) and _is_closed_for_else(standing, closing, _NO_REMARK):
            return 0.0
        return value if _is_closers(standing, before) else 0.0
    if _is_closed_for_else(standing, closing, _SHORT_REMARK) or (
        closing.is_by_bot and abs(before) > _AT_CLOSING
    ):
        return 0.0
    if before < timedelta(0):
        patience = _SAME_MOMENT if statement.role is Role.OTHER else _A_DAY
        is_accepted = before >= -patience and standing.stance is Stance.ASSERTED
        return value if is_accepted else 0.0
    if before <= _PATIENCE.get((claim.kind, standing.stance), timedelta(0)):
        return value
    return value * _LATE if _is_last_word(standing, statement, closing) else 0.0


def before_closing(issue: Issue, statement: Statement) -> timedelta:
    """How long before the closing something was said; negative for what was said after it."""
    return instant(issue.closed_at or issue.updated_at) - instant(statement.when)


def _is_closers(standing: Standing, before: timedelta) -> bool:
    kind = standing.claim.kind
    if kind is ClaimKind.TRACKED:
        return abs(before) <= _AT_CLOSING
    if standing.stance is Stance.ASKED:
        return abs(before) <= _SAME_MOMENT
    if -_AFTERWARDS <= before <= _CLOSERS_PATIENCE:
        return True
    return kind is ClaimKind.DUPLICATE and (standing.stance is Stance.ASSERTED or standing.claim.is_closing)


def _is_closers_guess(standing: Standing) -> bool:
    """Whether the closer only saw a likeness, which other words at the closing make no reason to close."""
    return standing.claim.kind in (ClaimKind.SAME, ClaimKind.TRACKED)


def _is_all_tracked(standing: Standing, statement: Statement, closing: Closing) -> bool:
    """Whether "tracked in #1" speaks of the whole issue, and is what it was closed for.

    "Done. The rest is tracked in #1", "by design (the message is covered by #1)" say something else first.
    """
    claim, reading = standing.claim, statement.reading
    if claim.is_partial or (reading.says_otherwise and not claim.is_closing):
        return False
    if closing.gives_other_reason and not claim.is_closing:
        return False
    if claim.is_part and not reading.is_closing:
        return abs(before_closing(closing.issue, statement)) <= ONE_CLICK
    if claim.is_closing or claim.about_this or reading.words <= _SHORT_REMARK * 2:
        return True
    return statement.role is Role.CLOSER and abs(before_closing(closing.issue, statement)) <= ONE_CLICK


def _is_closed_for_else(standing: Standing, closing: Closing, most_words: int) -> bool:
    """Whether the closer gave other words at the closing, and not few, that don't mention the target."""
    remark = closing.remark
    if remark is None or remark.when < standing.statement.when:
        return False
    if standing.statement.role is Role.CLOSER and not _is_closers_guess(standing):
        return False
    return remark.reading.words > most_words and set(standing.targets).isdisjoint(remark.reading.mentions)


def _is_last_word(standing: Standing, statement: Statement, closing: Closing) -> bool:
    """Whether nothing was said between a firm claim and a closing much later."""
    is_firm = standing.claim.kind is ClaimKind.DUPLICATE and standing.stance is Stance.ASSERTED
    is_last = statement.when >= closing.last_words_at
    return is_firm and is_last and before_closing(closing.issue, statement) <= _LAST_WORD_PATIENCE
