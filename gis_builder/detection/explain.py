"""Say in lines of text what a thread holds for and against a duplicate, and why the verdict is what it is."""

from __future__ import annotations

from collections.abc import Iterator

from gis_builder.detection.claim_tracker import (
    DEFAULT_RULES,
    ClaimTracker,
    KindOf,
    Rules,
    TrackedClaim,
    track_claims,
)
from gis_builder.detection.decision import closing_of, weight
from gis_builder.detection.reader import Claim, Stance
from gis_builder.detection.reading import TextReading
from gis_builder.detection.statements import Statement, read_marks
from gis_builder.store.records import Event, IssueRef, Thread, Verdict, VerdictOutcome

_REASONS = {
    "open": "the issue is open",
    "duplicate_of": "the tracker itself names the canonical issue",
    "marked_event": "it was marked as a duplicate and the mark stands",
    "imported_mark": "the tracker that it was moved from recorded it as a duplicate",
    "label_and_claim": "the closing reason or a label says duplicate, and a statement says of what",
    "label_and_reference": "the closing reason or a label says duplicate; the closing names of what",
    "no_claim": "nobody claims that it is a duplicate",
    "no_target": "it is called a duplicate, and nothing says of what",
    "claim_not_acted_on": "it was called a duplicate, but nothing shows that it was closed for that",
    "disputed": "the claim was disputed, and not taken up again",
    "fixed": "it was closed as fixed, or as no bug",
    "reopened": "it was reopened after the claim",
    "unmarked": "the mark as a duplicate was taken back",
    "self_reference": "the only issue named is itself",
    "target_is_pull": "what it is said to duplicate is a pull request",
    "target_missing": "what it is said to duplicate doesn't exist",
    "too_much_text": "body and comments are longer than any talk of people; it was not read",
    "too_many_claims": "more is claimed in it than people claim; it was not judged",
    "below_min_confidence": "it seems a duplicate, with less confidence than was asked for",
    "cross_repository": "what it is said to duplicate is in another repository",
}
_SPOKEN_KINDS = {
    "duplicate": "calls it a duplicate",
    "favour": "closes it in favour of another",
    "same": "says that it is the same as another",
    "tracked": "says that it is tracked elsewhere",
}
_STANCES = {
    Stance.ASSERTED: "says",
    Stance.HEDGED: "supposes",
    Stance.ASKED: "asks",
    Stance.OPEN: "leaves open",
    Stance.DENIED: "denies",
}


def explain(thread: Thread, verdict: Verdict, kind_of: KindOf, rules: Rules = DEFAULT_RULES) -> str:
    """Explain a verdict: the evidence in order of time, what each piece counts for, and the reason."""
    issue = thread.issue
    marks = read_marks(thread)
    tracker = track_claims(thread, marks, kind_of, rules)
    labels = f", labels {', '.join(issue.labels)}" if issue.labels else ""
    closed = (
        f"closed {issue.closed_at} by {issue.closed_by or 'somebody'} as {issue.state_reason or 'completed'}"
    )
    lines = [f"{issue.ref} {issue.title}", f"{closed if issue.closed_at else issue.state}{labels}", ""]
    lines += [text for _, text in sorted([*_of_events(thread.events), *_of_statements(thread, tracker)])]
    return "\n".join([*lines, "", _conclusion(verdict, kind_of)])


def _conclusion(verdict: Verdict, kind_of: KindOf) -> str:
    outcome = "not a duplicate" if verdict.outcome is VerdictOutcome.NOT else str(verdict.outcome)
    targets = ", ".join(f"{ref} ({kind_of(ref)})" for ref in verdict.targets)
    of = f" of {targets}" if targets else ""
    return (
        f"verdict: {outcome}{of}, confidence {verdict.confidence:.2f}\n"
        f"because: {_because(verdict.reason)} [{verdict.reason}]"
    )


def _because(reason: str) -> str:
    if reason in _REASONS:
        return _REASONS[reason]
    who, _, kind = reason.partition("_")
    speaker = {"note": "a note in title or body", "other": "a bystander"}.get(who, f"the {who}")
    return f"{speaker} {_SPOKEN_KINDS.get(kind, 'claims something')}, and it was closed for that"


def _of_events(events: tuple[Event, ...]) -> Iterator[tuple[str, str]]:
    for event in events:
        target = f" {event.target}" if event.target else ""
        reason = f" as {event.state_reason}" if event.state_reason else ""
        yield (
            event.created_at,
            f"{event.created_at}  {event.actor or 'somebody'}: event {event.kind}{target}{reason}",
        )


def _of_statements(thread: Thread, tracker: ClaimTracker) -> Iterator[tuple[str, str]]:
    closing = closing_of(thread.issue, tracker.statements, tracker.claims)
    for place, statement in enumerate(tracker.statements):
        head = f"{statement.when}  {statement.who or 'somebody'} ({statement.role})"
        claims = [tracked for tracked in tracker.claims if tracked.place == place]
        for tracked in claims:
            counts = f"counts {weight(tracked, closing):.2f}" if tracked.is_valid else str(tracked.state)
            yield statement.when, f"{head} {_STANCES[tracked.stance]} {_claimed(tracked)}; {counts}"
        taken = [tracked.claim for tracked in claims]
        for claim in statement.reading.claims:
            if claim not in taken:
                yield statement.when, f"{head} {_not_taken(claim, statement, tracker)}"
        for remark in _remarks(statement.reading):
            yield statement.when, f"{head} {remark}"


def _claimed(tracked: TrackedClaim) -> str:
    how = " (by what was named before)" if tracked.is_inferred else ""
    return f"{tracked.claim.kind} of {_refs(tracked.targets)}{how}: “{tracked.claim.said}”"


def _not_taken(claim: Claim, statement: Statement, tracker: ClaimTracker) -> str:
    if claim.about_others:
        return f"speaks of other issues: “{claim.said}”"
    if claim.stance is Stance.DENIED:
        return f"denies {claim.kind} of {_refs(claim.targets)}: “{claim.said}”"
    confirmed = any(tracked.confirmed_by is statement for tracked in tracker.claims)
    return f"{'confirms the claim before' if confirmed else 'is not heard'}: “{claim.said}”"


def _remarks(reading: TextReading) -> Iterator[str]:
    if reading.reopens:
        yield "reopens it"
    if reading.says_different:
        yield "tells two issues apart"
    if reading.disagrees:
        yield "disagrees"
    elif reading.agrees and not reading.claims:
        yield "agrees"
    if reading.says_otherwise and not reading.claims:
        yield "gives another reason (fixed, works, expected)"


def _refs(refs: tuple[IssueRef, ...]) -> str:
    return ", ".join(map(str, refs)) or "no issue that is named"
