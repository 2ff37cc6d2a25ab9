"""The claims of a thread over time: later statements confirm, replace, dispute or revoke earlier ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from gis_builder.detection.claim_reader import Claim, Stance
from gis_builder.detection.reading import MAX_CLAIMS
from gis_builder.detection.rules import ClaimKind
from gis_builder.detection.statements import (
    MAX_CHARACTERS,
    ONE_CLICK,
    SAME_SITTING,
    Role,
    Statement,
    TrackerMarks,
    instant,
    read_statements,
)
from gis_builder.store.issue_records import GITHUB, IssueRef, IssueRefs, Kind, Thread

KindOf = Callable[[IssueRef], Kind]

_ANSWER_REACH = 2  # a bare "yes" or "no" can answer a claim up to this many comments earlier
_MENTION_REACH = 3  # statements back in which another person's mention can be a claim's target
_ANSWER_WORDS = 30
_FEW_WORDS = 12


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings of one repository that change its verdicts."""

    allow_cross_repository: bool = False
    one_tracker: frozenset[str] = (
        frozenset()
    )  # other repositories whose issues always count as targets
    former_names: frozenset[str] = frozenset()
    site: str = GITHUB


DEFAULT_RULES = Rules()


class ClaimState(StrEnum):
    """Whether a claim is still valid, and if not, why."""

    VALID = "valid"
    DISPUTED = "disputed"  # "not a dup", "a different bug"
    REOPENED = "reopened"
    UNMARKED = "unmarked"  # the tracker's mark was removed
    FIXED = "fixed"  # the issue was then closed as fixed or as not a bug
    EXPLAINED = "explained"  # the claim was only a guess, and another explanation followed


_RESTORABLE = (ClaimState.DISPUTED, ClaimState.FIXED, ClaimState.EXPLAINED)


@dataclass(slots=True)
class TrackedClaim:
    """A claim with its resolved targets and its current state."""

    claim: Claim
    targets: IssueRefs
    statement: Statement
    index: int  # of the statement in the thread
    stance: Stance
    is_inferred: bool = False  # the text has no reference; another statement names the target
    confirmed_by: Statement | None = None
    state: ClaimState = ClaimState.VALID
    is_disputed_later: bool = False  # by a bystander, after the closing

    @property
    def is_valid(self) -> bool:
        """Whether no later statement or event revoked the claim."""
        return self.state is ClaimState.VALID

    def confirm(self, statement: Statement, stance: Stance = Stance.ASSERTED) -> None:
        """Record that a later statement supports the claim."""
        self.confirmed_by = statement
        if stance is Stance.ASSERTED or self.stance is Stance.ASKED:
            self.stance = stance


@dataclass(slots=True)
class ClaimTracker:
    """Reads statements in order of time and keeps the claims with their states."""

    issue: IssueRef
    closed_at: str
    kind_of: KindOf  # called only if a claim doesn't name its target
    author: str | None = None  # of the issue
    claims: list[TrackedClaim] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    over_limit: str | None = None  # reason code if the thread is too long to be read
    _was_reopened: bool = False  # shortly before the last closing
    _mentions: dict[int, IssueRefs] = field(default_factory=dict)  # by id() of the statement

    def add(self, statement: Statement) -> None:
        """Update the claims with the next statement."""
        if statement.reading.reopens:
            if self._is_same_sitting(statement):
                self._was_reopened = True
            else:
                self.revoke(ClaimState.REOPENED)
        claims = [claim for claim in statement.reading.claims if self._counts(claim, statement)]
        for claim in claims:
            if claim.stance is Stance.DENIED:
                self._dispute(statement, claim.targets)
        if statement.role is not Role.BOT and not claims:
            self._fill_in_target(statement)
            self._apply_answer(statement)
        for claim in claims:
            if claim.stance is not Stance.DENIED:
                self._add_claim(claim, statement)
        self.statements.append(statement)

    def _is_same_sitting(self, statement: Statement) -> bool:
        """Whether the issue was closed again within minutes, after a reopening to edit its fields."""
        return timedelta(0) <= instant(self.closed_at) - instant(statement.when) <= SAME_SITTING

    def revoke(self, state: ClaimState, targets: IssueRefs = ()) -> None:
        """Revoke every valid claim, or only those on one of `targets`."""
        for tracked in self.claims:
            if tracked.is_valid and (not targets or set(targets) & set(tracked.targets)):
                tracked.state = state

    def _dispute(self, statement: Statement, targets: IssueRefs) -> None:
        """Revoke the disputed claims; after the closing only the closer and maintainers can do so."""
        if statement.when <= self.closed_at or statement.role in (Role.CLOSER, Role.MAINTAINER):
            self.revoke(ClaimState.DISPUTED, targets)
            return
        for tracked in self.claims:
            if not targets or set(targets) & set(tracked.targets):
                tracked.is_disputed_later = True

    def last_valid(self) -> TrackedClaim | None:
        """The newest valid claim with a target."""
        return next((s for s in reversed(self.claims) if s.is_valid and s.targets), None)

    def _add_claim(self, claim: Claim, statement: Statement) -> None:
        if not claim.targets and not claim.points_back and claim.stance is not Stance.ASKED:
            earlier = self.last_valid() or self._restore(statement)
            if earlier is not None:
                is_second_voice = (
                    claim.stance is Stance.HEDGED and statement.who != earlier.statement.who
                )
                earlier.confirm(statement, Stance.ASSERTED if is_second_voice else claim.stance)
                return
        targets = claim.targets or self._inferred_targets(claim, statement)
        self.claims.append(
            TrackedClaim(
                claim,
                targets,
                statement,
                len(self.statements),
                claim.stance,
                is_inferred=not claim.targets,
            )
        )

    def _restore(self, statement: Statement) -> TrackedClaim | None:
        """Restore the last revoked claim if the closer or a maintainer repeats it without a target."""
        if statement.role not in (Role.CLOSER, Role.MAINTAINER):
            return None
        for tracked in reversed(self.claims):
            if tracked.state in _RESTORABLE and tracked.targets:
                tracked.state = ClaimState.VALID
                return tracked
        return None

    def _inferred_targets(self, claim: Claim, claiming: Statement) -> IssueRefs:
        """The issue (or for "those", issues) named last by this person, or lately by another."""
        rejected = {
            ref for tracked in self.claims if not tracked.is_valid for ref in tracked.targets
        }
        for back, statement in enumerate(reversed(self.statements)):
            is_own = statement.who == claiming.who
            if back >= _MENTION_REACH and not is_own:
                continue
            # "Related to #1" names the original only for "a dup of that", for a "this is a dup" of the next
            # speaker, and if its own speaker closes or marks the issue as a duplicate.
            is_taken_up = (
                (claim.is_closing or claiming.is_note)
                if is_own
                else (claim.about_this and back == 0)
            )
            is_meant = claim.points_back or is_taken_up
            named = (
                self.issues_named_by(statement)
                if is_meant
                else self.issues_pointed_at_by(statement)
            )
            refs = tuple(ref for ref in named if ref not in rejected)
            if refs:
                return refs if claim.is_plural else refs[-1:]
        return ()

    def _fill_in_target(self, statement: Statement) -> None:
        """Use the only issue in a short reply as the target of a claim that lacks one."""
        last = self.claims[-1] if self.claims else None
        if last is None or last.targets or statement.reading.word_count > _ANSWER_WORDS:
            return
        refs = self.issues_named_by(statement)
        if len(refs) == 1 and last.is_valid and self._is_near(last):
            last.targets = refs
            last.is_inferred = True

    def issues_named_by(self, statement: Statement) -> IssueRefs:
        """The possible targets in a statement: those in the thread's own repository if there are any."""
        if id(statement) not in self._mentions:
            possible = [
                ref for ref in statement.reading.mentions if self._could_be_meant(ref, statement)
            ]
            local = tuple(ref for ref in possible if ref.repo == self.issue.repo)
            self._mentions[id(statement)] = local or tuple(possible)
        return self._mentions[id(statement)]

    def issues_pointed_at_by(self, statement: Statement) -> IssueRefs:
        """Those of `issues_named_by` that a sentence of the statement is about."""
        pointed_at = statement.reading.pointed_at
        return tuple(ref for ref in self.issues_named_by(statement) if ref in pointed_at)

    def _could_be_meant(self, ref: IssueRef, statement: Statement) -> bool:
        """Whether "a dup of that" may mean `ref`: anything but a pull request, even if it wasn't fetched."""
        if ref == self.issue:
            return False
        kind = self.kind_of(ref)
        is_called_pull = ref in statement.reading.pulls
        if ref.repo != self.issue.repo:
            return not is_called_pull
        return kind is Kind.ISSUE or (kind is not Kind.PULL and not is_called_pull)

    def _apply_answer(self, statement: Statement) -> None:
        """Apply a statement without a claim: it may answer the last claim or give another reason."""
        reading = statement.reading
        last = self._restore_explained(statement) or self.last_valid()
        if last is None:
            return
        is_near = self._is_near(last)
        named = tuple(ref for ref in reading.mentions if ref in last.targets)
        differs = reading.says_different and (is_near or named)
        if ((reading.disagrees and is_near) or differs) and not reading.agrees:
            self._dispute(statement, named)
        elif self._accepts_explanation(statement, last):
            self._explain_away()
        elif reading.agrees and self._is_answer(statement, last):
            last.confirm(statement)
        elif reading.gives_other_reason or reading.explains:
            self._apply_reason(statement)
        elif self._accepts_claim(statement, last, is_named=bool(named)):
            last.confirm(statement)

    def _apply_reason(self, statement: Statement) -> None:
        """Apply another reason to close: the closer's revokes every claim, other people's only guesses."""
        is_closers = statement.role is Role.CLOSER and statement.when <= self.closed_at
        if statement.reading.gives_other_reason and is_closers:
            for tracked in self.claims:
                if tracked.is_valid and (
                    self._was_reopened or not _is_same_breath(tracked, statement)
                ):
                    tracked.state = ClaimState.FIXED
        elif (
            statement.reading.explains
            and _has_authority(statement)
            and self._is_by_closing(statement)
        ):
            self._explain_away()

    def _explain_away(self) -> None:
        """Revoke guesses and questions, because the issue has another explanation."""
        for tracked in self.claims:
            if tracked.is_valid and tracked.stance in (Stance.HEDGED, Stance.ASKED):
                tracked.state = ClaimState.EXPLAINED

    def _accepts_explanation(self, statement: Statement, last: TrackedClaim) -> bool:
        """Whether someone with authority accepts an explanation given since: "makes sense, thanks"."""
        reading = statement.reading
        accepts = reading.agrees or reading.thanks or reading.accepts_explanation
        if not accepts or not _has_authority(statement) or not self._is_by_closing(statement):
            return False
        if not set(last.targets).isdisjoint(reading.mentions):
            return False
        since = [
            earlier for earlier in self.statements[last.index + 1 :] if earlier.who != statement.who
        ]
        if any(earlier.reading.explains for earlier in since):
            return True
        return reading.accepts_explanation and any(
            earlier.reading.word_count > _FEW_WORDS
            and not earlier.reading.speaks_of_duplicates
            and set(last.targets).isdisjoint(earlier.reading.mentions)
            for earlier in since[-1:]
        )

    def _is_by_closing(self, statement: Statement) -> bool:
        return instant(statement.when) <= instant(self.closed_at) + ONE_CLICK

    def _restore_explained(self, statement: Statement) -> TrackedClaim | None:
        """Restore the last claim that was explained away if its target is named with a "yes" or "thanks"."""
        reading = statement.reading
        if (
            not _has_authority(statement)
            or not (reading.agrees or reading.thanks)
            or reading.explains
        ):
            return None
        for tracked in reversed(self.claims):
            is_named = not set(tracked.targets).isdisjoint(reading.mentions)
            if tracked.state is ClaimState.EXPLAINED and is_named:
                tracked.state = ClaimState.VALID
                return tracked
        return None

    def _accepts_claim(self, statement: Statement, last: TrackedClaim, *, is_named: bool) -> bool:
        """Whether a statement accepts the last claim by thanks, or by its own speaker asking to close."""
        reading = statement.reading
        if reading.thanks and _has_authority(statement) and self._is_near(last):
            before = self.statements[-1]
            is_for_a_fix = before.reading.gives_other_reason and before is not last.statement
            return is_named or (reading.word_count <= _ANSWER_WORDS and not is_for_a_fix)
        is_same_speaker = statement.role is not Role.CLOSER and statement.who == last.statement.who
        is_request = reading.is_closing and reading.word_count <= _FEW_WORDS
        is_in_time = statement.when <= self.closed_at
        return (
            is_same_speaker and is_request and is_in_time and last.claim.kind is ClaimKind.DUPLICATE
        )

    def _is_near(self, tracked: TrackedClaim) -> bool:
        return len(self.statements) - tracked.index <= _ANSWER_REACH

    def _is_answer(self, statement: Statement, last: TrackedClaim) -> bool:
        """Whether a "yes" answers the claim; a bystander's must be short and come next."""
        if statement.reading.gives_other_reason:  # "yes, it works now"
            before = self.statements[-1]
            answers_fix = before is not last.statement and before.reading.gives_other_reason
            if answers_fix or last.claim.kind is not ClaimKind.DUPLICATE:
                return False
        if _has_authority(statement):
            return self._is_near(last)
        return (
            len(self.statements) - last.index == 1 and statement.reading.word_count <= _ANSWER_WORDS
        )

    def _counts(self, claim: Claim, statement: Statement) -> bool:
        """Whether a claim is about this issue and comes from someone whose claims count."""
        is_remote_part = claim.is_part and statement.role is not Role.CLOSER
        if claim.about_others or self._is_aside(claim, statement) or is_remote_part:
            return False
        if claim.corrects:
            return any(tracked.statement.who == statement.who for tracked in self.claims)
        if statement.role is not Role.BOT:
            return True
        is_action = claim.is_command or (claim.is_closing and claim.stance is Stance.ASSERTED)
        return claim.kind is ClaimKind.DUPLICATE and is_action

    def _is_aside(self, claim: Claim, statement: Statement) -> bool:
        """Whether a claim is about another commenter's problem: "@bob yours is a dup of #2"."""
        replies = [
            earlier
            for earlier in self.statements
            if earlier.who not in (None, statement.who) and not earlier.is_note
        ]
        is_to_last = claim.is_theirs and replies and replies[-1].role is Role.OTHER
        addressee = claim.addressee or (replies[-1].who if is_to_last else None)
        if addressee is None or claim.is_closing or _is_same(addressee, self.author):
            return False
        late = (earlier.who for earlier in replies if earlier.when > self.closed_at)
        is_reply = statement.when > self.closed_at and any(_is_same(addressee, who) for who in late)
        return claim.is_theirs or is_reply


def _is_same_breath(tracked: TrackedClaim, statement: Statement) -> bool:
    """Whether the speaker asserted a duplicate minutes before: "dup of #1", then "closing as wontfix"."""
    is_asserted = tracked.claim.kind is ClaimKind.DUPLICATE and tracked.stance is Stance.ASSERTED
    since = instant(statement.when) - instant(tracked.statement.when)
    return is_asserted and tracked.statement.who == statement.who and since <= SAME_SITTING


def _is_same(first: str, second: str | None) -> bool:
    return second is not None and first.lower() == second.lower()


def _has_authority(statement: Statement) -> bool:
    """Whether the speaker is the author, a maintainer, the closer or a bot, not a bystander."""
    return statement.role is not Role.OTHER


def track_claims(
    thread: Thread, marks: TrackerMarks, kind_of: KindOf, rules: Rules
) -> ClaimTracker:
    """Follow a thread's claims through its statements, reopenings and removed marks."""
    issue = thread.issue
    tracker = ClaimTracker(issue.ref, issue.closed_at or issue.updated_at, kind_of, issue.author)
    length = (
        len(issue.title) + len(issue.body) + sum(len(comment.body) for comment in thread.comments)
    )
    if length > MAX_CHARACTERS:
        tracker.over_limit = "too_much_text"
        return tracker
    statements = read_statements(
        thread, rules.former_names, site=rules.site, must_read=marks.says_duplicate
    )
    claims = [claim for statement in statements for claim in statement.reading.claims]
    if len(claims) + sum(len(claim.targets) for claim in claims) > MAX_CLAIMS:
        tracker.over_limit = "too_many_claims"
        return tracker
    for statement in statements:
        tracker.add(statement)
    for tracked in tracker.claims:
        when = (tracked.confirmed_by or tracked.statement).when
        if marks.reopened_at is not None and when < marks.reopened_at:
            tracked.state = ClaimState.REOPENED
        for event in marks.unmarked:
            if (
                event.target is None or event.target in tracked.targets
            ) and when <= event.created_at:
                tracked.state = ClaimState.UNMARKED
    return tracker
