"""A thread's claims: later statements confirm, replace, dispute or revoke earlier ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from gis_builder.detection.reader import Claim, Stance
from gis_builder.detection.rules import ClaimKind
from gis_builder.detection.statements import (
    ONE_CLICK,
    Role,
    Statement,
    TrackerMarks,
    claims_over_limit,
    instant,
    read_statements,
    text_over_limit,
)
from gis_builder.store.records import GITHUB, IssueRef, Kind, Thread

KindOf = Callable[[IssueRef], Kind]


_ANSWER_REACH = 2  # comments after a claim within which a bare "yes" or "no" answers it
_ANSWER_WORDS = 30
_FEW_WORDS = 12


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as a duplicate beyond the thread's own words."""

    allow_cross_repository: bool = False
    former_names: frozenset[str] = frozenset()
    site: str = GITHUB


DEFAULT_RULES = Rules()


class ClaimState(StrEnum):
    """What became of a claim."""

    VALID = "valid"
    DISPUTED = "disputed"  # "not a dup", "a different bug"
    REOPENED = "reopened"
    UNMARKED = "unmarked"  # the mark was taken back
    FIXED = "fixed"  # the issue was then closed as fixed, or as no bug
    EXPLAINED = "explained"  # it was only supposed, and then the issue was explained otherwise


_REVIVABLE = (ClaimState.DISPUTED, ClaimState.FIXED, ClaimState.EXPLAINED)


@dataclass(slots=True)
class TrackedClaim:
    """A claim in its thread, with the issues it was found to mean and what became of it."""

    claim: Claim
    targets: tuple[IssueRef, ...]
    statement: Statement
    place: int
    stance: Stance
    is_inferred: bool = False  # the text names no issue; the nearest earlier one is meant
    confirmed_by: Statement | None = None
    state: ClaimState = ClaimState.VALID
    is_disputed_later: bool = False  # by a bystander, when the issue was closed already

    @property
    def is_valid(self) -> bool:
        """Whether nothing later took the claim back."""
        return self.state is ClaimState.VALID

    def confirm(self, statement: Statement, stance: Stance = Stance.ASSERTED) -> None:
        """Somebody else, or the speaker again, holds the claim to be true."""
        self.confirmed_by = statement
        if stance is Stance.ASSERTED or self.stance is Stance.ASKED:
            self.stance = stance


@dataclass(slots=True)
class ClaimTracker:
    """Takes a thread's statements in order of time and keeps the claims."""

    issue: IssueRef
    closed_at: str
    kind_of: KindOf  # of what is mentioned; asked only where a claim leaves open what it means
    author: str | None = None  # of the issue
    claims: list[TrackedClaim] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    over_limit: str | None = None  # the reason code if the thread is too long: then nothing is read
    _named_by: dict[int, tuple[IssueRef, ...]] = field(default_factory=dict)  # by identity of the statement

    def add(self, statement: Statement) -> None:
        """Take in the next statement."""
        if statement.reading.reopens:
            self.revoke(ClaimState.REOPENED)
        own = [claim for claim in statement.reading.claims if self._counts(claim, statement)]
        made = [claim for claim in own if claim.stance is not Stance.DENIED]
        for claim in own:
            if claim.stance is Stance.DENIED:
                self._dispute(statement, claim.targets)
        if statement.role is not Role.BOT and not own:
            self._fill_in_target(statement)
            self._apply_answer(statement)
        for claim in made:
            self._add_claim(claim, statement)
        self.statements.append(statement)

    def revoke(self, state: ClaimState, targets: tuple[IssueRef, ...] = ()) -> None:
        """Take back every valid claim, or only those on one of `targets`."""
        for tracked in self.claims:
            if tracked.is_valid and (not targets or set(targets) & set(tracked.targets)):
                tracked.state = state

    def _dispute(self, statement: Statement, targets: tuple[IssueRef, ...]) -> None:
        """Revoke the disputed claims; once the issue is closed, only those with authority can do that."""
        if statement.when <= self.closed_at or statement.role in (Role.CLOSER, Role.MAINTAINER):
            self.revoke(ClaimState.DISPUTED, targets)
            return
        for tracked in self.claims:
            if not targets or set(targets) & set(tracked.targets):
                tracked.is_disputed_later = True

    def last_valid(self) -> TrackedClaim | None:
        """The newest valid claim that names an issue."""
        return next((s for s in reversed(self.claims) if s.is_valid and s.targets), None)

    def _add_claim(self, claim: Claim, statement: Statement) -> None:
        if not claim.targets and not claim.points_back and claim.stance is not Stance.ASKED:
            earlier = self.last_valid() or self._revive(statement)
            if earlier is not None:
                is_second_voice = claim.stance is Stance.HEDGED and statement.who != earlier.statement.who
                earlier.confirm(statement, Stance.ASSERTED if is_second_voice else claim.stance)
                return
        targets = claim.targets or self._inferred_targets(claim)
        self.claims.append(
            TrackedClaim(
                claim, targets, statement, len(self.statements), claim.stance, is_inferred=not claim.targets
            )
        )

    def _revive(self, statement: Statement) -> TrackedClaim | None:
        """The last claim that was disputed or gave way to another reason, when the closer takes it up."""
        if statement.role not in (Role.CLOSER, Role.MAINTAINER):
            return None
        for tracked in reversed(self.claims):
            if tracked.state in _REVIVABLE and tracked.targets:
                tracked.state = ClaimState.VALID
                return tracked
        return None

    def _inferred_targets(self, claim: Claim) -> tuple[IssueRef, ...]:
        """What a claim without a number means: what was named last before it, one issue or all."""
        rejected = {ref for tracked in self.claims if not tracked.is_valid for ref in tracked.targets}
        for statement in reversed(self.statements):
            named = tuple(ref for ref in self.issues_named_by(statement) if ref not in rejected)
            if named:
                return named if claim.is_plural else named[-1:]
        return ()

    def _fill_in_target(self, statement: Statement) -> None:
        """Take a short answer that names one issue for what "a dup, but I can't find of what" looked for."""
        last = self.claims[-1] if self.claims else None
        if last is None or last.targets or statement.reading.words > _ANSWER_WORDS:
            return
        named = self.issues_named_by(statement)
        if len(named) == 1 and last.is_valid and self._is_near(last):
            last.targets, last.is_inferred = named, True

    def issues_named_by(self, statement: Statement) -> tuple[IssueRef, ...]:
        """The other issues that a statement names: those of the thread's own repository, if there are any."""
        if id(statement) not in self._named_by:
            meant = [ref for ref in statement.reading.mentions if self._could_be_meant(ref, statement)]
            at_home = tuple(ref for ref in meant if ref.repo == self.issue.repo)
            self._named_by[id(statement)] = at_home or tuple(meant)
        return self._named_by[id(statement)]

    def _could_be_meant(self, ref: IssueRef, statement: Statement) -> bool:
        """Whether "a dup of that" may mean `ref`: all but pull requests, even if missing or elsewhere."""
        if ref == self.issue:
            return False
        kind, is_called_pull = self.kind_of(ref), ref in statement.reading.pulls
        if ref.repo != self.issue.repo:
            return not is_called_pull
        return kind is Kind.ISSUE or (kind is not Kind.PULL and not is_called_pull)

    def _apply_answer(self, statement: Statement) -> None:
        """Apply a statement that claims nothing: it may answer the last claim or give another reason."""
        reading = statement.reading
        last = self._named_again(statement) or self.last_valid()
        if last is None:
            return
        is_near = self._is_near(last)
        named = tuple(ref for ref in reading.mentions if ref in last.targets)
        differs = reading.says_different and (is_near or named)
        if ((reading.disagrees and is_near) or differs) and not reading.agrees:
            self._dispute(statement, named)
        elif self._takes_explanation(statement, last):
            self._explain_away()
        elif reading.agrees and self._is_answer(statement, last):
            last.confirm(statement)
        elif reading.says_otherwise or reading.explains:
            self._apply_reason(statement)
        elif self._accepts(statement, last, is_named=bool(named)):
            last.confirm(statement)

    def _apply_reason(self, statement: Statement) -> None:
        """Apply another reason to close: the closer's revokes every claim, others' what was supposed."""
        is_closers = statement.role is Role.CLOSER and statement.when <= self.closed_at
        if statement.reading.says_otherwise and is_closers:
            self.revoke(ClaimState.FIXED)
        elif statement.reading.explains and _is_principal(statement) and self._is_by_closing(statement):
            self._explain_away()

    def _explain_away(self) -> None:
        """Revoke what was only supposed or asked: the issue was explained otherwise."""
        for tracked in self.claims:
            if tracked.is_valid and tracked.stance in (Stance.HEDGED, Stance.ASKED):
                tracked.state = ClaimState.EXPLAINED

    def _takes_explanation(self, statement: Statement, last: TrackedClaim) -> bool:
        """Whether somebody with a say takes what another explained since the claim: "makes sense, thanks"."""
        reading = statement.reading
        takes = reading.agrees or reading.thanks or reading.accepts_explanation
        if not takes or not _is_principal(statement) or not self._is_by_closing(statement):
            return False
        if not set(last.targets).isdisjoint(reading.mentions):
            return False
        since = [earlier for earlier in self.statements[last.place + 1 :] if earlier.who != statement.who]
        if any(earlier.reading.explains for earlier in since):
            return True
        return reading.accepts_explanation and any(
            earlier.reading.words > _FEW_WORDS
            and not earlier.reading.speaks_of_duplicates
            and set(last.targets).isdisjoint(earlier.reading.mentions)
            for earlier in since[-1:]
        )

    def _is_by_closing(self, statement: Statement) -> bool:
        return instant(statement.when) <= instant(self.closed_at) + ONE_CLICK

    def _named_again(self, statement: Statement) -> TrackedClaim | None:
        """The last claim that was explained otherwise, when it is named again with a "yes" or "thanks"."""
        reading = statement.reading
        if not _is_principal(statement) or not (reading.agrees or reading.thanks) or reading.explains:
            return None
        for tracked in reversed(self.claims):
            if tracked.state is ClaimState.EXPLAINED and not set(tracked.targets).isdisjoint(
                reading.mentions
            ):
                tracked.state = ClaimState.VALID
                return tracked
        return None

    def _accepts(self, statement: Statement, last: TrackedClaim, *, is_named: bool) -> bool:
        """Whether a statement takes the last claim for true without saying so."""
        reading = statement.reading
        if reading.thanks and _is_principal(statement) and self._is_near(last):
            is_for_a_fix = (
                self.statements[-1].reading.says_otherwise and self.statements[-1] is not last.statement
            )
            return is_named or (reading.words <= _ANSWER_WORDS and not is_for_a_fix)
        is_same_speaker = statement.role is not Role.CLOSER and statement.who == last.statement.who
        is_request = reading.is_closing and reading.words <= _FEW_WORDS and statement.when <= self.closed_at
        return is_same_speaker and is_request and last.claim.kind is ClaimKind.DUPLICATE

    def _is_near(self, tracked: TrackedClaim) -> bool:
        return len(self.statements) - tracked.place <= _ANSWER_REACH

    def _is_answer(self, statement: Statement, last: TrackedClaim) -> bool:
        """Whether a "yes" answers the claim; a bystander's does so at once, and is short."""
        if statement.reading.says_otherwise:  # "yes, it works now"
            before = self.statements[-1]
            is_of_that = before is not last.statement and before.reading.says_otherwise
            if is_of_that or last.claim.kind is not ClaimKind.DUPLICATE:
                return False
        if _is_principal(statement):
            return self._is_near(last)
        return len(self.statements) - last.place == 1 and statement.reading.words <= _ANSWER_WORDS

    def _counts(self, claim: Claim, statement: Statement) -> bool:
        """Whether a claim is about this issue, and somebody's."""
        if (
            claim.about_others
            or self._is_aside(claim, statement)
            or (claim.is_part and statement.role is not Role.CLOSER)
        ):
            return False
        if claim.corrects:
            return any(tracked.statement.who == statement.who for tracked in self.claims)
        if statement.role is not Role.BOT:
            return True
        is_action = claim.is_command or (claim.is_closing and claim.stance is Stance.ASSERTED)
        return claim.kind is ClaimKind.DUPLICATE and is_action

    def _is_aside(self, claim: Claim, statement: Statement) -> bool:
        """Whether a claim is about the problem of somebody who came along: "@bob yours is a dup of #2"."""
        others = [
            earlier
            for earlier in self.statements
            if earlier.who not in (None, statement.who) and not earlier.is_note
        ]
        is_to_last = claim.is_theirs and others and others[-1].role is Role.OTHER
        spoke_last = others[-1].who if is_to_last else None
        to = claim.addressee or spoke_last
        if to is None or claim.is_closing or _is_same(to, self.author):
            return False
        return claim.is_theirs or (
            statement.when > self.closed_at
            and any(_is_same(to, earlier.who) and earlier.when > self.closed_at for earlier in others)
        )


def _is_same(login: str, other: str | None) -> bool:
    return other is not None and login.lower() == other.lower()


def _is_principal(statement: Statement) -> bool:
    """Whether the speaker has a say in the issue: its author, a maintainer, or whoever closed it."""
    return statement.role is not Role.OTHER


def track_claims(thread: Thread, marks: TrackerMarks, kind_of: KindOf, rules: Rules) -> ClaimTracker:
    """Follow a thread's claims through its statements, reopenings and marks that were taken back."""
    tracker = ClaimTracker(
        thread.issue.ref, thread.issue.closed_at or thread.issue.updated_at, kind_of, thread.issue.author
    )
    tracker.over_limit = text_over_limit(thread)
    if tracker.over_limit is not None:
        return tracker
    found = read_statements(thread, rules.former_names, site=rules.site, must_read=marks.says_duplicate)
    tracker.over_limit = claims_over_limit(found)
    if tracker.over_limit is not None:
        return tracker
    for statement in found:
        tracker.add(statement)
    for tracked in tracker.claims:
        when = (tracked.confirmed_by or tracked.statement).when
        if marks.reopened_at is not None and when < marks.reopened_at:
            tracked.state = ClaimState.REOPENED
        for event in marks.unmarked:
            if (event.target is None or event.target in tracked.targets) and when <= event.created_at:
                tracked.state = ClaimState.UNMARKED
    return tracker
