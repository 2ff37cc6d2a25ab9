"""Explain a verdict in text: the evidence for and against a duplicate in order of time, and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gis_builder.detection.claim_reader import Claim, Stance
from gis_builder.detection.claim_tracker import ClaimTracker, track_claims
from gis_builder.detection.claim_weight import weight
from gis_builder.detection.decision import decide
from gis_builder.detection.issue_references import comparable_thread
from gis_builder.detection.reading import TextReading
from gis_builder.detection.statements import (
    DEFAULT_RULES,
    KindOf,
    Rules,
    Statement,
    read_marks,
)
from gis_builder.store import (
    Event,
    Evidence,
    IssueRefs,
    Thread,
    Verdict,
    VerdictOutcome,
)
from pairkit.base.cli.terminal import CommandResult

_REASONS = {
    "open": "the issue is open",
    "duplicate_of": "the tracker records the canonical issue",
    "marked_event": "it was marked as a duplicate and the mark was not removed",
    "imported_mark": "the tracker it was imported from recorded a duplicate",
    "label_and_claim": "the closing reason or a label is duplicate, and a statement names the original",
    "label_and_reference": "the closing reason or a label is duplicate, and the closing statement is about "
    "the other issue",
    "only_mentioned": "it is called a duplicate, but the other issue is only mentioned, not named as the "
    "original",
    "no_claim": "no one claims that it is a duplicate",
    "no_target": "it is called a duplicate, but the other issue is not named",
    "claim_not_acted_on": "it was called a duplicate, but nothing shows that it was closed for that",
    "disputed": "the claim was disputed and not repeated",
    "fixed": "it was closed as fixed or not a bug",
    "reopened": "it was reopened after the claim",
    "unmarked": "the mark as a duplicate was removed",
    "self_reference": "the only issue named is itself",
    "target_is_pull": "the claimed original is a pull request",
    "target_missing": "the claimed original doesn't exist",
    "too_much_text": "the thread is too long; it was not read",
    "too_many_claims": "the thread has too many claims; it was not judged",
    "below_min_confidence": "it is probably a duplicate, but below the minimum confidence",
    "cross_repository": "the claimed original is in another repository",
}
_KINDS = {
    "duplicate": "calls it a duplicate",
    "favour": "closes it in favour of another",
    "same": "says that it is the same as another",
    "tracked": "says that it is tracked elsewhere",
}
_MARKS = ("duplicate_of", "marked_event")  # evidence that events show
_SPEAKERS = {"note": "a note in title or body", "other": "a bystander"}
_STANCES = {
    Stance.ASSERTED: "asserts",
    Stance.HEDGED: "suspects",
    Stance.ASKED: "asks about",
    Stance.OPEN: "is undecided about",
    Stance.DENIED: "denies",
}


@dataclass(frozen=True, repr=False)
class Explanation(CommandResult):
    """Why an issue is or is not a duplicate.

    Attributes:
        issue: `owner/name#number`.
        outcome: `duplicate`, `not` or `uncertain`.
        targets: The canonical issues, or the likely ones if the outcome is `uncertain`.
        confidence: The detector's score in [0, 1]: a rank, not a probability.
        reason: A short code, as counted in statistics.json.
        text: The evidence with its weights in order of time, and the verdict.
    """

    issue: str
    outcome: str
    targets: tuple[str, ...]
    confidence: float
    reason: str
    text: str

    def tables(self) -> list[str]:
        """The evidence and the verdict."""
        return [self.text]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object: all fields."""
        return {**vars(self), "targets": list(self.targets)}

    def __repr__(self) -> str:
        return self.text


def explained(
    thread: Thread, kind_of: KindOf, rules: Rules = DEFAULT_RULES
) -> Explanation:
    """The verdict on a thread, with its explanation."""
    verdict = decide(thread, kind_of, rules)
    return Explanation(
        issue=str(verdict.ref),
        outcome=str(verdict.outcome),
        targets=tuple(map(str, verdict.targets)),
        confidence=verdict.confidence,
        reason=verdict.reason,
        text=_explanation(comparable_thread(thread), verdict, kind_of, rules),
    )


def _explanation(
    thread: Thread, verdict: Verdict, kind_of: KindOf, rules: Rules
) -> str:
    """Each piece of evidence with its weight, in order of time, and the reason."""
    issue = thread.issue
    tracker = track_claims(thread, read_marks(thread, rules.site), kind_of, rules)
    labels = f", labels {', '.join(issue.labels)}" if issue.labels else ""
    closed = f"closed {issue.closed_at} by {issue.closed_by or 'someone'} as {issue.state_reason or 'completed'}"
    lines = [
        f"{issue.ref} {issue.title}",
        f"{closed if issue.closed_at else issue.state}{labels}",
        "",
    ]
    dated_lines = [
        *_event_lines(thread.events),
        *_statement_lines(tracker),
        *_evidence_lines(verdict.evidence),
    ]
    lines += [text for _, text in sorted(dated_lines)]
    is_negative = verdict.outcome is VerdictOutcome.NOT
    outcome = "not a duplicate" if is_negative else str(verdict.outcome)
    targets = ", ".join(f"{ref} ({kind_of(ref)})" for ref in verdict.targets)
    of_targets = f" of {targets}" if targets else ""
    lines += [
        "",
        f"verdict: {outcome}{of_targets}, confidence {verdict.confidence:.2f}",
        f"because: {_because(verdict.reason)} [{verdict.reason}]",
    ]
    return "\n".join(lines)


def _because(reason: str) -> str:
    if reason in _REASONS:
        return _REASONS[reason]
    who, _, kind = reason.partition("_")
    speaker = _SPEAKERS.get(who, f"the {who}")
    return f"{speaker} {_KINDS.get(kind, 'makes a claim')}, and it was closed for that"


def _event_lines(events: tuple[Event, ...]) -> Iterator[tuple[str, str]]:
    for event in events:
        target = f" {event.target}" if event.target else ""
        reason = f" as {event.state_reason}" if event.state_reason else ""
        text = f"{event.created_at}  {event.actor or 'someone'}: event {event.kind}{target}{reason}"
        yield event.created_at, text


def _evidence_lines(evidence: Iterable[Evidence]) -> Iterator[tuple[str, str]]:
    """The evidence that is neither an event nor a claim, such as a closing statement."""
    for item in evidence:
        if item.kind not in _MARKS and not item.kind.endswith("_comment"):
            kind = item.kind.replace("_", " ")
            said = f": “{item.said}”" if item.said else ""
            text = f"{item.when}  {item.who or 'someone'}: {kind} of {_refs(item.targets)}{said}"
            yield item.when, text


def _statement_lines(tracker: ClaimTracker) -> Iterator[tuple[str, str]]:
    closing = tracker.closing()
    for index, statement in enumerate(tracker.statements):
        head = f"{statement.when}  {statement.who or 'someone'} ({statement.role})"
        claims = [tracked for tracked in tracker.claims if tracked.index == index]
        for tracked in claims:
            state = str(tracked.state)
            if tracked.is_valid:
                state = f"weight {weight(tracked, closing):.2f}"
            origin = ""
            if tracked.is_inferred and tracked.targets:
                origin = " (inferred from another statement)"
            claim = tracked.claim
            targets = f"{_refs(tracked.targets)}{origin}"
            text = f"{_STANCES[tracked.stance]} {claim.kind} of {targets}: “{claim.said}”; {state}"
            yield statement.when, f"{head} {text}"
        counted = [tracked.claim for tracked in claims]
        for claim in statement.reading.claims:
            if claim not in counted:
                text = _other_claim(claim, statement, tracker)
                yield statement.when, f"{head} {text}"
        for remark in _remarks(statement.reading):
            yield statement.when, f"{head} {remark}"


def _other_claim(claim: Claim, statement: Statement, tracker: ClaimTracker) -> str:
    """A claim that the tracker didn't add: a denial, a confirmation, or one that doesn't count."""
    if claim.about_others:
        return f"refers to other issues: “{claim.said}”"
    if claim.stance is Stance.DENIED:
        return f"denies {claim.kind} of {_refs(claim.targets)}: “{claim.said}”"
    confirms = any(tracked.confirmed_by is statement for tracked in tracker.claims)
    effect = "confirms the earlier claim" if confirms else "is ignored"
    return f"{effect}: “{claim.said}”"


def _remarks(reading: TextReading) -> Iterator[str]:
    if reading.reopens:
        yield "reopens it"
    if reading.says_different:
        yield "distinguishes two issues"
    if reading.disagrees:
        yield "disagrees"
    elif reading.agrees and not reading.claims:
        yield "agrees"
    if reading.gives_other_reason and not reading.claims:
        yield "gives another reason (fixed, works, expected)"


def _refs(refs: IssueRefs) -> str:
    return ", ".join(map(str, refs)) or "an unnamed issue"
