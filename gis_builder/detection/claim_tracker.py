"""The claims of a thread over time: later statements confirm, replace, dispute or revoke earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from msgspec import Struct

from gis_builder.detection.claim_reader import Claim, Stance
from gis_builder.detection.reading import MAX_CLAIMS
from gis_builder.detection.rules import ClaimKind
from gis_builder.detection.statements import (
    MAX_CHARACTERS,
    ONE_CLICK,
    SAME_SITTING,
    Closing,
    KindOf,
    Role,
    Rules,
    Statement,
    TrackerMarks,
    before_closing,
    closing_of,
    instant,
    read_statements,
)
from gis_builder.store import Issue, IssueRef, IssueRefs, Kind, Thread

# A bare "yes" or "no" can answer a claim up to this many comments earlier.
_ANSWER_REACH = 2
# Another person's mention up to this many statements earlier can be the target of a claim.
_MENTION_REACH = 3
_ANSWER_WORDS = 30
_FEW_WORDS = 12
DECIDING_ROLES = (Role.CLOSER, Role.MAINTAINER)


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


_RESTORABLE = (ClaimState.DISPUTED, ClaimState.FIXED, ClaimState.EXPLAINED)


class ClaimTracker(Struct):
    """Reads statements in order of time and keeps the claims with their states."""

    issue: Issue
    kind_of: KindOf  # called only if a claim doesn't name its target
    claims: list[TrackedClaim] = []
    statements: list[Statement] = []
    over_limit: str | None = None  # reason code if the thread is too long to be read
    _was_reopened: bool = False  # shortly before the last closing
    _mentions: dict[int, IssueRefs] = {}  # by id() of the statement

    @property
    def closed_at(self) -> str:
        """The time of the closing."""
        return self.issue.closed_at or self.issue.updated_at

    def closing(self) -> Closing:
        """How the issue was closed."""
        confirming = [tracked.confirmed_by for tracked in self.claims]
        return closing_of(self.issue, self.statements, confirming)

    def add(self, statement: Statement) -> None:
        """Update the claims with the next statement."""
        if statement.reading.reopens:
            until_closing = before_closing(self.issue, statement)
            if timedelta(0) <= until_closing <= SAME_SITTING:
                # It was closed again within minutes, as people do to edit its fields.
                self._was_reopened = True
            else:
                self.revoke(ClaimState.REOPENED)
        claims = [
            claim
            for claim in statement.reading.claims
            if self._counts(claim, statement)
        ]
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

    def revoke(self, state: ClaimState, targets: IssueRefs = ()) -> None:
        """Revoke every valid claim, or only those on one of `targets`."""
        for tracked in self.claims:
            is_meant = not targets or tracked.names_any(targets)
            if tracked.is_valid and is_meant:
                tracked.state = state

    def _dispute(self, statement: Statement, targets: IssueRefs) -> None:
        """Revoke the disputed claims; after the closing only the closer and maintainers can do so."""
        if statement.when <= self.closed_at or statement.role in DECIDING_ROLES:
            self.revoke(ClaimState.DISPUTED, targets)
            return
        for tracked in self.claims:
            if not targets or tracked.names_any(targets):
                tracked.is_disputed_later = True

    def last_valid(self) -> TrackedClaim | None:
        """The newest valid claim with a target."""
        for tracked in reversed(self.claims):
            if tracked.is_valid and tracked.targets:
                return tracked
        return None

    def _add_claim(self, claim: Claim, statement: Statement) -> None:
        if (
            not claim.targets
            and not claim.points_back
            and claim.stance is not Stance.ASKED
        ):
            earlier = self.last_valid() or self._restore(statement)
            if earlier:
                stance = claim.stance
                is_second_voice = statement.who != earlier.statement.who
                if is_second_voice and stance is Stance.HEDGED:
                    stance = Stance.ASSERTED
                earlier.confirm(statement, stance)
                return
        tracked = TrackedClaim(
            claim=claim,
            targets=claim.targets or self._inferred_targets(claim, statement),
            statement=statement,
            index=len(self.statements),
            stance=claim.stance,
            is_inferred=not claim.targets,
        )
        self.claims.append(tracked)

    def _restore(self, statement: Statement) -> TrackedClaim | None:
        """Restore the last revoked claim if the closer or a maintainer repeats it without a target."""
        if statement.role not in DECIDING_ROLES:
            return None
        for tracked in reversed(self.claims):
            if tracked.state in _RESTORABLE and tracked.targets:
                tracked.state = ClaimState.VALID
                return tracked
        return None

    def _inferred_targets(self, claim: Claim, claiming: Statement) -> IssueRefs:
        """The issue (or for "those", issues) named last by this person, or lately by another."""
        rejected: set[IssueRef] = set()
        for tracked in self.claims:
            if not tracked.is_valid:
                rejected.update(tracked.targets)
        for back, statement in enumerate(reversed(self.statements)):
            # "Related to #1" names the original only for "a dup of that", for a "this is a dup" of the next
            # speaker, and if its own speaker closes or marks the issue as a duplicate.
            if statement.who == claiming.who:
                is_taken_up = claim.is_closing or claiming.is_note
            elif back < _MENTION_REACH:
                is_taken_up = claim.about_this and back == 0
            else:
                continue
            if claim.points_back or is_taken_up:
                named = self.issues_named_by(statement)
            else:
                named = self.issues_pointed_at_by(statement)
            refs = tuple(ref for ref in named if ref not in rejected)
            # A bot's list of similar issues doesn't name one of them.
            is_bots_list = statement.role is Role.BOT and len(refs) > 1
            if refs and (claim.is_plural or not is_bots_list):
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
            mentions = statement.reading.mentions
            possible = tuple(
                ref for ref in mentions if self._could_be_meant(ref, statement)
            )
            local = tuple(ref for ref in possible if ref.repo == self.issue.repo)
            self._mentions[id(statement)] = local or possible
        return self._mentions[id(statement)]

    def issues_pointed_at_by(self, statement: Statement) -> IssueRefs:
        """Those of `issues_named_by` that a sentence of the statement is about."""
        pointed_at = statement.reading.pointed_at
        return tuple(
            ref for ref in self.issues_named_by(statement) if ref in pointed_at
        )

    def _could_be_meant(self, ref: IssueRef, statement: Statement) -> bool:
        """Whether "a dup of that" may mean `ref`: anything but a pull request, even if it wasn't fetched."""
        if ref == self.issue.ref:
            return False
        kind = self.kind_of(ref)
        if ref.repo == self.issue.repo:
            if kind is Kind.ISSUE:
                return True
            if kind is Kind.PULL:
                return False
        return ref not in statement.reading.pulls

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
        reading = statement.reading
        is_closers = statement.role is Role.CLOSER and statement.when <= self.closed_at
        if reading.gives_other_reason and is_closers:
            for tracked in self.claims:
                is_earlier = self._was_reopened or not _is_same_breath(
                    tracked, statement
                )
                if tracked.is_valid and is_earlier:
                    tracked.state = ClaimState.FIXED
        elif reading.explains and self._has_authority_by_closing(statement):
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
        if not accepts or not self._has_authority_by_closing(statement):
            return False
        if last.names_any(reading.mentions):
            return False
        since = [
            earlier.reading
            for earlier in self.statements[last.index + 1 :]
            if earlier.who != statement.who
        ]
        if any(earlier.explains for earlier in since):
            return True
        if not since or not reading.accepts_explanation:
            return False
        before = since[-1]
        if before.speaks_of_duplicates or last.names_any(before.mentions):
            return False
        return before.word_count > _FEW_WORDS

    def _has_authority_by_closing(self, statement: Statement) -> bool:
        """Whether a statement of someone with authority was made before or at the closing."""
        is_by_closing = before_closing(self.issue, statement) >= -ONE_CLICK
        return _has_authority(statement) and is_by_closing

    def _restore_explained(self, statement: Statement) -> TrackedClaim | None:
        """Restore the last claim that was explained away if its target is named with a "yes" or "thanks"."""
        reading = statement.reading
        accepts = (reading.agrees or reading.thanks) and not reading.explains
        if not accepts or not _has_authority(statement):
            return None
        for tracked in reversed(self.claims):
            is_named = tracked.names_any(reading.mentions)
            if tracked.state is ClaimState.EXPLAINED and is_named:
                tracked.state = ClaimState.VALID
                return tracked
        return None

    def _accepts_claim(
        self, statement: Statement, last: TrackedClaim, *, is_named: bool
    ) -> bool:
        """Whether a statement accepts the last claim by thanks, or by its own speaker asking to close."""
        reading = statement.reading
        if reading.thanks and _has_authority(statement) and self._is_near(last):
            before = self.statements[-1]
            is_for_a_fix = (
                before.reading.gives_other_reason and before is not last.statement
            )
            return is_named or (
                reading.word_count <= _ANSWER_WORDS and not is_for_a_fix
            )
        if statement.role is Role.CLOSER or last.claim.kind is not ClaimKind.DUPLICATE:
            return False
        is_same_speaker = statement.who == last.statement.who
        is_request = reading.is_closing and reading.word_count <= _FEW_WORDS
        return is_same_speaker and is_request and statement.when <= self.closed_at

    def _is_near(self, tracked: TrackedClaim) -> bool:
        return len(self.statements) - tracked.index <= _ANSWER_REACH

    def _is_answer(self, statement: Statement, last: TrackedClaim) -> bool:
        """Whether a "yes" answers the claim; a bystander's must be short and come next."""
        if statement.reading.gives_other_reason:  # "yes, it works now"
            before = self.statements[-1]
            answers_fix = (
                before is not last.statement and before.reading.gives_other_reason
            )
            if answers_fix or last.claim.kind is not ClaimKind.DUPLICATE:
                return False
        if _has_authority(statement):
            return self._is_near(last)
        is_next = last.index == len(self.statements) - 1
        return is_next and statement.reading.word_count <= _ANSWER_WORDS

    def _counts(self, claim: Claim, statement: Statement) -> bool:
        """Whether a claim is about this issue and comes from someone whose claims count."""
        is_remote_part = claim.is_part and statement.role is not Role.CLOSER
        if claim.about_others or self._is_aside(claim, statement) or is_remote_part:
            return False
        if claim.corrects:
            return any(
                tracked.statement.who == statement.who for tracked in self.claims
            )
        if statement.role is not Role.BOT:
            return True
        is_action = claim.is_command or (
            statement.reading.is_closing and claim.stance is Stance.ASSERTED
        )
        return claim.kind is ClaimKind.DUPLICATE and is_action

    def _is_aside(self, claim: Claim, statement: Statement) -> bool:
        """Whether a claim is about another commenter's problem: "@bob yours is a dup of #2"."""
        others = [
            earlier
            for earlier in self.statements
            if earlier.who not in (None, statement.who) and not earlier.is_note
        ]
        last = others[-1] if others else None
        addressee = claim.addressee
        if not addressee and claim.is_theirs and last and last.role is Role.OTHER:
            addressee = last.who
        author = self.issue.author or ""
        is_to_author = addressee and addressee.lower() == author.lower()
        if not addressee or claim.is_closing or is_to_author:
            return False
        if claim.is_theirs:
            return True
        late = {
            str(earlier.who).lower()
            for earlier in others
            if earlier.when > self.closed_at
        }
        return statement.when > self.closed_at and addressee.lower() in late


def _is_same_breath(tracked: TrackedClaim, statement: Statement) -> bool:
    """Whether the speaker asserted a duplicate minutes before: "dup of #1", then "closing as wontfix"."""
    is_same_speaker = tracked.statement.who == statement.who
    since = instant(statement.when) - instant(tracked.statement.when)
    return tracked.asserts_duplicate and is_same_speaker and since <= SAME_SITTING


def _has_authority(statement: Statement) -> bool:
    """Whether the speaker is the author, a maintainer, the closer or a bot, not a bystander."""
    return statement.role is not Role.OTHER


def track_claims(
    thread: Thread,
    marks: TrackerMarks,
    kind_of: KindOf,
    rules: Rules,
) -> ClaimTracker:
    """Follow a thread's claims through its statements, reopenings and removed marks."""
    issue = thread.issue
    tracker = ClaimTracker(issue, kind_of)
    texts = [issue.title, issue.body, *(comment.body for comment in thread.comments)]
    if sum(map(len, texts)) > MAX_CHARACTERS:
        tracker.over_limit = "too_much_text"
        return tracker
    statements = read_statements(thread, rules, must_read=marks.says_duplicate)
    claims = [claim for statement in statements for claim in statement.reading.claims]
    if len(claims) + sum(len(claim.targets) for claim in claims) > MAX_CLAIMS:
        tracker.over_limit = "too_many_claims"
        return tracker
    for statement in statements:
        tracker.add(statement)
    for tracked in tracker.claims:
        when = (tracked.confirmed_by or tracked.statement).when
        if when < marks.reopened_at:
            tracked.state = ClaimState.REOPENED
        for event in marks.unmarked:
            is_meant = event.target is None or event.target in tracked.targets
            if is_meant and when <= event.created_at:
                tracked.state = ClaimState.UNMARKED
    return tracker
