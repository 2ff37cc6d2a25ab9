"""Explain a verdict in text: the evidence for and against a duplicate in order of time, and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from gis_builder.detection.claim_reader import Claim, Stance
from gis_builder.detection.claim_tracker import (
    ClaimTracker,
    TrackedClaim,
    track_claims,
)
from gis_builder.detection.claim_weight import weight
from gis_builder.detection.decision import decide, undecided
from gis_builder.detection.issue_references import comparable_thread
from gis_builder.detection.reading import TextReading
from gis_builder.detection.statements import (
    DEFAULT_RULES,
    Closing,
    KindOf,
    Rules,
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
    "thread_not_fetched": "its comments and events were not fetched, or not all of them, so it was not judged",
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


class _Line(NamedTuple):
    """A piece of evidence, and its time."""

    when: str
    text: str


def explained(
    thread: Thread,
    kind_of: KindOf,
    rules: Rules = DEFAULT_RULES,
    *,
    is_complete: bool = True,
) -> Explanation:
    """The verdict on a thread, with its explanation; only complete threads are judged."""
    verdict = undecided(thread.issue.ref, "thread_not_fetched")
    if is_complete:
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
    status = issue.state
    if issue.closed_at:
        status = f"closed {issue.closed_at} by {issue.closed_by or 'someone'} as {issue.state_reason or 'completed'}"
    if issue.labels:
        status += f", labels {', '.join(issue.labels)}"

    tracker = track_claims(thread, read_marks(thread, rules.site), kind_of, rules)
    evidence = [*_statement_lines(tracker), *_event_lines(thread.events)]
    evidence += _evidence_lines(verdict.evidence)
    evidence.sort(key=attrgetter("when"))  # equal times keep their order

    outcome = str(verdict.outcome)
    if verdict.outcome is VerdictOutcome.NOT:
        outcome = "not a duplicate"
    if verdict.targets:
        targets = [f"{ref} ({kind_of(ref)})" for ref in verdict.targets]
        outcome += f" of {', '.join(targets)}"
    lines = [
        f"{issue.ref} {issue.title}",
        status,
        "",
        *(f"{line.when}  {line.text}" for line in evidence),
        "",
        f"verdict: {outcome}, confidence {verdict.confidence:.2f}",
        f"because: {_because(verdict.reason)} [{verdict.reason}]",
    ]
    # A line break in a title could otherwise pretend to be a verdict.
    return "\n".join(" ".join(line.splitlines()) for line in lines)


def _because(reason: str) -> str:
    if reason in _REASONS:
        return _REASONS[reason]
    who, _, kind = reason.partition("_")
    speaker = _SPEAKERS.get(who, f"the {who}")
    return f"{speaker} {_KINDS.get(kind, 'makes a claim')}, and it was closed for that"


def _event_lines(events: tuple[Event, ...]) -> Iterator[_Line]:
    for event in events:
        target = f" {event.target}" if event.target else ""
        reason = f" as {event.state_reason}" if event.state_reason else ""
        text = f"{event.actor or 'someone'}: event {event.kind}{target}{reason}"
        yield _Line(event.created_at, text)


def _evidence_lines(evidence: Iterable[Evidence]) -> Iterator[_Line]:
    """The evidence that is neither an event nor a claim, such as a closing statement."""
    for item in evidence:
        if item.kind not in _MARKS and not item.kind.endswith("_comment"):
            kind = item.kind.replace("_", " ")
            said = f": “{item.said}”" if item.said else ""
            text = f"{item.who or 'someone'}: {kind} of {_refs(item.targets)}{said}"
            yield _Line(item.when, text)


def _statement_lines(tracker: ClaimTracker) -> Iterator[_Line]:
    closing = tracker.closing()
    for index, statement in enumerate(tracker.statements):
        reading = statement.reading
        added = {each.claim: each for each in tracker.claims if each.index == index}
        confirms = any(each.confirmed_by is statement for each in tracker.claims)
        texts = []
        for claim in reading.claims:
            if claim in added:
                texts.append(_tracked_claim(added[claim], closing))
            else:
                texts.append(_other_claim(claim, confirms=confirms))
        texts += _remarks(reading, confirms=confirms)

        for text in texts:
            speaker = f"{statement.who or 'someone'} ({statement.role})"
            yield _Line(statement.when, f"{speaker} {text}")


def _tracked_claim(tracked: TrackedClaim, closing: Closing) -> str:
    """A claim that the tracker added, with its weight, or why it is no longer valid."""
    claim = tracked.claim
    refs = _refs(tracked.targets)
    if tracked.is_inferred and tracked.targets:
        refs += " (inferred from another statement)"
    state = str(tracked.state)
    if tracked.is_valid:
        state = f"weight {weight(tracked, closing):.2f}"
    return f"{_STANCES[tracked.stance]} {claim.kind} of {refs}: “{claim.said}”; {state}"


def _other_claim(claim: Claim, *, confirms: bool) -> str:
    """A claim that the tracker didn't add: a denial, a confirmation, or one that doesn't count."""
    if claim.about_others:
        return f"refers to other issues: “{claim.said}”"
    if claim.stance is Stance.DENIED:
        return f"denies {claim.kind} of {_refs(claim.targets)}: “{claim.said}”"
    effect = "confirms the earlier claim" if confirms else "is ignored"
    return f"{effect}: “{claim.said}”"


def _remarks(reading: TextReading, *, confirms: bool) -> Iterator[str]:
    if reading.reopens:
        yield "reopens it"
    if reading.says_different:
        yield "distinguishes two issues"
    if reading.disagrees:
        yield "disagrees"
    if not all(claim.about_others for claim in reading.claims):
        return  # its claims say more
    if reading.agrees and not reading.disagrees:
        yield "agrees"
    elif confirms:
        yield "accepts the earlier claim"
    if reading.gives_other_reason:
        yield "gives another reason (fixed, works, expected)"
    elif reading.explains:
        yield "explains it otherwise (by design, another cause, a mistake)"


def _refs(refs: IssueRefs) -> str:
    return ", ".join(map(str, refs)) or "an unnamed issue"
