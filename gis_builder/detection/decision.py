"""Decide whether an issue was closed as a duplicate, of which issues, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from gis_builder.detection.claim_reader import Stance
from gis_builder.detection.claim_tracker import (
    DECIDING_ROLES,
    ClaimState,
    ClaimTracker,
    TrackedClaim,
    track_claims,
)
from gis_builder.detection.claim_weight import (
    A_DAY,
    BY_KIND,
    SAME_MOMENT,
    weight,
)
from gis_builder.detection.issue_references import comparable_thread
from gis_builder.detection.rules import ClaimKind, relation_of
from gis_builder.detection.statements import (
    DEFAULT_RULES,
    KindOf,
    Role,
    Rules,
    Statement,
    TrackerMarks,
    before_closing,
    read_marks,
)
from gis_builder.store import (
    Evidence,
    Issue,
    IssueRef,
    IssueRefs,
    Kind,
    Thread,
    Verdict,
    VerdictOutcome,
)

_UNSEEN = 0.9  # if no target was fetched
_STRONG = 0.8  # a claim of this weight decides even if an earlier one is stronger
# Confidence in the tracker's own records, and in the original that a statement beside its label names.
_FIELD = 0.995
_MARKED = 0.99
_LABEL_AND_CLAIM = 0.92
_LABEL_AND_REFERENCE = 0.85
_UNCERTAIN = 0.5
_REJECTED = 0.9
_NOT_CLAIMED = 0.99
_CLOSING_WORDS = 60  # maximum of a statement that can name the original beside a label


def decide(thread: Thread, kind_of: KindOf, rules: Rules = DEFAULT_RULES) -> Verdict:
    """Decide one thread."""
    thread = comparable_thread(thread)
    issue = thread.issue
    if issue.state != "closed":
        return Verdict(issue.ref, VerdictOutcome.NOT, (), 1.0, "open")
    marks = read_marks(thread, rules.site)
    verdict = _from_marks(issue, marks, rules.site)
    if verdict:
        pulls = {event.target for event in marks.marked if event.target_is_pull}
    else:
        tracker = track_claims(thread, marks, kind_of, rules)
        if tracker.over_limit:
            return undecided(issue.ref, tracker.over_limit)
        verdict = _from_claims(tracker, marks)
        pulls = {
            ref for statement in tracker.statements for ref in statement.reading.pulls
        }
    verdict = _check_targets(verdict, kind_of, pulls, rules)
    is_duplicate = verdict.outcome is VerdictOutcome.DUPLICATE
    if is_duplicate and verdict.confidence < rules.min_confidence:
        uncertain = VerdictOutcome.UNCERTAIN
        return replace(verdict, outcome=uncertain, reason="below_min_confidence")
    return verdict


def _from_marks(issue: Issue, marks: TrackerMarks, site: str) -> Verdict | None:
    """The verdict by a mark, which takes precedence over what people say; None without one."""
    page = issue.ref.page(site)
    confidence = _MARKED
    if issue.duplicate_of:
        targets = _targets_of_field(issue.duplicate_of, marks)
        evidence = Evidence(
            "duplicate_of", page, issue.closed_by, issue.closed_at or "", targets
        )
        confidence = _FIELD
    elif marks.marked:
        event = marks.marked[-1]
        targets = () if event.target is None else (event.target,)
        evidence = Evidence(
            "marked_event", page, event.actor, event.created_at, targets
        )
    elif marks.imported is not None and marks.imported.targets:
        evidence = marks.imported
    else:
        return None
    return Verdict(
        issue.ref,
        VerdictOutcome.DUPLICATE,
        evidence.targets,
        confidence,
        evidence.kind,
        (evidence,),
    )


def _targets_of_field(original: IssueRef, marks: TrackerMarks) -> IssueRefs:
    """A ticket can have several links at one time; of GitHub's marks only the last counts."""
    last_at = marks.marked[-1].created_at if marks.marked else None
    last = [event.target for event in marks.marked if event.created_at == last_at]
    if original not in last:
        return (original,)
    return tuple(dict.fromkeys(filter(None, last)))


def undecided(
    ref: IssueRef,
    reason: str,
    targets: IssueRefs = (),
    evidence: tuple[Evidence, ...] = (),
) -> Verdict:
    """An uncertain verdict, for this reason."""
    return Verdict(ref, VerdictOutcome.UNCERTAIN, targets, _UNCERTAIN, reason, evidence)


def _from_claims(tracker: ClaimTracker, marks: TrackerMarks) -> Verdict:
    weight_of = partial(weight, closing=tracker.closing())
    accepted = [
        tracked
        for tracked in tracker.claims
        if tracked.is_valid and tracked.targets and weight_of(tracked) > 0
    ]
    if not accepted:
        return _without_claim(tracker, marks)
    deciding = _deciding_claims(accepted, weight_of)
    first = deciding[0]
    return Verdict(
        ref=tracker.issue.ref,
        outcome=VerdictOutcome.DUPLICATE,
        targets=tuple(
            dict.fromkeys(ref for tracked in deciding for ref in tracked.targets)
        ),
        confidence=max(map(weight_of, deciding)),
        reason=_reason(first),
        evidence=tuple(map(_evidence, deciding)),
        relation=relation_of(first.claim.kind, first.claim.marker),
    )


def _deciding_claims(
    accepted: Sequence[TrackedClaim],
    weight_of: Callable[[TrackedClaim], float],
) -> list[TrackedClaim]:
    """The claims of the deciding statement: the last strong one, or else the strongest."""
    strong = [tracked for tracked in accepted if weight_of(tracked) >= _STRONG]
    chosen = strong[-1] if strong else max(accepted, key=weight_of)
    together = [tracked for tracked in accepted if tracked.index == chosen.index]
    kind = max((tracked.claim.kind for tracked in together), key=BY_KIND.__getitem__)

    claims = []
    is_asserted = False
    for tracked in together:
        if tracked.claim.kind is not kind:
            continue
        # "Dup of #1, perhaps also of #2": a guess after an assertion doesn't count.
        if tracked.stance is Stance.ASSERTED or not is_asserted:
            claims.append(tracked)
        is_asserted = is_asserted or tracked.stance is Stance.ASSERTED

    if any(tracked.claim.is_added for tracked in claims):
        earlier = [
            tracked
            for tracked in strong
            if tracked.index < chosen.index and tracked.claim.kind is kind
        ]
        claims = earlier[-1:] + claims
    return claims


def _reason(tracked: TrackedClaim) -> str:
    role = (tracked.confirmed_by or tracked.statement).role
    who = "note" if tracked.statement.is_note else str(role)
    return f"{who}_{tracked.claim.kind}"


def _evidence(tracked: TrackedClaim) -> Evidence:
    statement = tracked.statement
    role = "note" if statement.is_note else str(statement.role)
    said = tracked.claim.said
    return _naming(statement, tracked.targets, f"{role}_comment", said)


def _naming(
    statement: Statement, refs: IssueRefs, kind: str, said: str = ""
) -> Evidence:
    return Evidence(kind, statement.url, statement.who, statement.when, refs, said)


def _without_claim(tracker: ClaimTracker, marks: TrackerMarks) -> Verdict:
    """The verdict if no claim explains the closing: by a label, or not a duplicate, or uncertain."""
    ref = tracker.issue.ref
    evidence = tuple(map(_evidence, tracker.claims))
    if marks.says_duplicate:
        return _from_label(tracker, evidence)
    states = {tracked.state for tracked in tracker.claims}
    for state in (
        ClaimState.UNMARKED,
        ClaimState.REOPENED,
        ClaimState.DISPUTED,
        ClaimState.FIXED,
    ):
        if state in states:
            return Verdict(ref, VerdictOutcome.NOT, (), _REJECTED, str(state), evidence)
    kinds = (ClaimKind.DUPLICATE, ClaimKind.SAME)
    possible = [tracked for tracked in tracker.claims if tracked.claim.kind in kinds]
    for tracked in reversed(possible):
        if tracked.targets:
            return undecided(ref, "claim_not_acted_on", tracked.targets, evidence)
    if any(tracked.statement.role in DECIDING_ROLES for tracked in possible):
        return _without_original(tracker, evidence)
    confidence = _REJECTED if tracker.claims else _NOT_CLAIMED
    return Verdict(ref, VerdictOutcome.NOT, (), confidence, "no_claim", evidence)


def _from_label(tracker: ClaimTracker, evidence: tuple[Evidence, ...]) -> Verdict:
    """The verdict on an issue labelled as a duplicate: the label names no original, so a statement must."""
    reason = "label_and_claim"
    confidence = _LABEL_AND_CLAIM
    targets = _claimed_original(tracker)
    if not targets:
        subject = _subject_of_closing(tracker)
        if subject is None:
            return _without_original(tracker, evidence)
        reason = "label_and_reference"
        confidence = _LABEL_AND_REFERENCE
        targets = subject.targets
        evidence = (*evidence, subject)
    ref = tracker.issue.ref
    return Verdict(ref, VerdictOutcome.DUPLICATE, targets, confidence, reason, evidence)


def _without_original(tracker: ClaimTracker, evidence: tuple[Evidence, ...]) -> Verdict:
    """The verdict on an issue that is called a duplicate; it lists the issues that are only mentioned."""
    ref = tracker.issue.ref
    nearby = _named_nearby(tracker)
    if nearby is None:
        return undecided(ref, "no_target", (), evidence)
    return undecided(ref, "only_mentioned", nearby.targets, (*evidence, nearby))


def _claimed_original(tracker: ClaimTracker) -> IssueRefs:
    """The targets of the last claim that a label can confirm."""
    # A label outweighs another explanation of the issue, and a fix: that of the original also fixes this one.
    states = {ClaimState.VALID, ClaimState.EXPLAINED, ClaimState.FIXED}
    if tracker.issue.state_reason == "duplicate":
        states.add(ClaimState.REOPENED)  # it was closed as a duplicate again
    claimed: IssueRefs = ()
    for tracked in reversed(tracker.claims):
        is_named = tracked.claim.points_back or not tracked.is_inferred
        if tracked.state in states and tracked.targets and is_named:
            if tracked.claim.kind is ClaimKind.DUPLICATE:
                return tracked.targets
            claimed = claimed or tracked.targets
    return claimed


def _subject_of_closing(tracker: ClaimTracker) -> Evidence | None:
    """The only issue in a short closing statement, such as "Handled in #1" or "See #1"."""
    issue = tracker.issue
    # An unknown closer may be anyone.
    closers = DECIDING_ROLES if issue.closed_by else (*DECIDING_ROLES, Role.OTHER)
    for statement in reversed(tracker.statements):
        is_short = statement.reading.word_count <= _CLOSING_WORDS
        is_at_closing = abs(before_closing(issue, statement)) <= SAME_MOMENT
        if statement.role in closers and is_short and is_at_closing:
            refs = tracker.issues_pointed_at_by(statement)
            if len(refs) == 1:
                return _naming(statement, refs, "closing_statement")
    return None


def _named_nearby(tracker: ClaimTracker) -> Evidence | None:
    """The issues that the closer or a maintainer names near the closing, or the only one in the thread."""
    for role in DECIDING_ROLES:
        for statement in reversed(tracker.statements):
            refs = tracker.issues_named_by(statement)
            is_near = abs(before_closing(tracker.issue, statement)) <= A_DAY
            if statement.role is role and refs and is_near:
                return _naming(statement, refs, f"{role}_mention")
    named: dict[IssueRef, Statement] = {}
    for statement in tracker.statements:
        named |= dict.fromkeys(tracker.issues_named_by(statement), statement)
    if len(named) != 1:
        return None
    ((ref, statement),) = named.items()
    return _naming(statement, (ref,), "only_mention")


def _check_targets(
    verdict: Verdict,
    kind_of: KindOf,
    pulls: Collection[IssueRef | None],
    rules: Rules,
) -> Verdict:
    """Drop targets that can't be canonical; if none is left, the issue is not a duplicate, or uncertain.

    `pulls` are pull requests by the thread, which matters if they were not fetched.
    """
    if verdict.outcome is not VerdictOutcome.DUPLICATE:
        return verdict
    targets = [ref for ref in verdict.targets if ref != verdict.ref]
    home = {verdict.ref.repo, *rules.one_tracker}
    near = [ref for ref in targets if rules.allow_cross_repository or ref.repo in home]
    kinds = {ref: kind_of(ref) for ref in near}
    for ref, kind in kinds.items():
        if kind is Kind.UNKNOWN and ref in pulls:
            kinds[ref] = Kind.PULL
    possible = (Kind.ISSUE, Kind.UNKNOWN)
    usable = tuple(ref for ref in near if kinds[ref] in possible)
    if usable:
        confidence = verdict.confidence
        if Kind.ISSUE not in kinds.values():
            confidence = round(confidence * _UNSEEN, 3)
        return replace(verdict, targets=usable, confidence=confidence)

    outcome = VerdictOutcome.NOT
    reason = "target_is_pull" if targets else "self_reference"
    if targets and not near:
        outcome = VerdictOutcome.UNCERTAIN
        reason = "cross_repository"
    elif Kind.MISSING in kinds.values():
        outcome = VerdictOutcome.UNCERTAIN
        reason = "target_missing"
    return replace(
        verdict,
        outcome=outcome,
        targets=tuple(near or targets),
        confidence=_REJECTED,
        reason=reason,
    )
