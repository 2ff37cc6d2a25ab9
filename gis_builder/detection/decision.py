"""Decide from a thread whether its issue was closed as a duplicate, of what, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from gis_builder.detection.claim_tracker import (
    DEFAULT_RULES,
    ClaimState,
    ClaimTracker,
    KindOf,
    Rules,
    TrackedClaim,
    track_claims,
)
from gis_builder.detection.reader import Claim, Stance
from gis_builder.detection.rules import ClaimKind
from gis_builder.detection.statements import (
    ONE_CLICK,
    ImportedMark,
    Role,
    Statement,
    TrackerMarks,
    instant,
    read_marks,
)
from gis_builder.store.records import (
    Evidence,
    Issue,
    IssueRef,
    Kind,
    Relation,
    Thread,
    Verdict,
    VerdictOutcome,
)

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


def closing_of(issue: Issue, statements: list[Statement], claims: list[TrackedClaim]) -> Closing:
    """Read how the issue was closed from its statements."""
    confirming = {id(tracked.confirmed_by) for tracked in claims}
    remark, last_words_at, gives_other_reason = None, "", False
    for statement in statements:
        before = before_closing(issue, statement)
        if before >= timedelta(0) and statement.reading.words > 0:
            last_words_at = statement.when
        reading = statement.reading
        says_own = reading.agrees or reading.thanks or reading.speaks_of_duplicates or bool(reading.claims)
        is_at_closing = -ONE_CLICK <= before <= _AT_CLOSING
        if statement.role is Role.CLOSER and is_at_closing and not statement.is_note:
            remark = None if says_own or id(statement) in confirming else statement
            gives_other_reason = gives_other_reason or (remark is not None and reading.says_otherwise)
    bots = {statement.who for statement in statements if statement.role is Role.BOT}
    is_by_bot = issue.closed_by in bots or _BOT_NAME.search(issue.closed_by or "") is not None
    return Closing(issue, is_by_bot, remark, gives_other_reason, last_words_at)


def weight(tracked: TrackedClaim, closing: Closing) -> float:
    """The confidence in [0, 1] that a claim was what the issue was closed for; 0 if it was not acted on."""
    doubt = _DISPUTED_LATER if tracked.is_disputed_later else 1.0
    values = [_weight(tracked, tracked.statement, closing)]
    if tracked.confirmed_by is not None:
        values.append(_weight(tracked, tracked.confirmed_by, closing))
    return round(max(values) * doubt, 3)


def _weight(tracked: TrackedClaim, statement: Statement, closing: Closing) -> float:
    claim = tracked.claim
    if tracked.stance is Stance.OPEN:
        return 0.0
    value = _FIRMNESS[tracked.stance] * _PLAINNESS[claim.kind] * _AUTHORITY[statement.role]
    value *= _INFERRED if tracked.is_inferred else 1.0
    before = before_closing(closing.issue, statement)
    if statement.is_note and tracked.stance is Stance.ASSERTED and claim.kind is ClaimKind.DUPLICATE:
        return value
    if claim.kind is ClaimKind.TRACKED and not _is_all_tracked(tracked, statement, closing):
        return 0.0
    if statement.role is Role.CLOSER:
        if _is_closers_guess(tracked) and _is_closed_for_else(tracked, closing, _NO_REMARK):
            return 0.0
        return value if _is_closers(tracked, before) else 0.0
    if _is_closed_for_else(tracked, closing, _SHORT_REMARK):
        return 0.0
    if closing.is_by_bot and abs(before) > _AT_CLOSING and not _is_firm(tracked, statement):
        return 0.0
    if before < timedelta(0):
        patience = _SAME_MOMENT if statement.role is Role.OTHER else _A_DAY
        is_accepted = before >= -patience and tracked.stance is Stance.ASSERTED
        return value if is_accepted else 0.0
    if before <= _PATIENCE.get((claim.kind, tracked.stance), timedelta(0)):
        return value
    return value * _LATE if _is_last_word(tracked, statement, closing) else 0.0


def _is_firm(tracked: TrackedClaim, statement: Statement) -> bool:
    """Whether a maintainer says "duplicate of #1" outright: a change that a bot merges later closes both."""
    is_plain = tracked.claim.kind is ClaimKind.DUPLICATE and tracked.stance is Stance.ASSERTED
    return is_plain and statement.role is Role.MAINTAINER


def before_closing(issue: Issue, statement: Statement) -> timedelta:
    """How long before the closing something was said; negative for what was said after it."""
    return instant(issue.closed_at or issue.updated_at) - instant(statement.when)


def _is_closers(tracked: TrackedClaim, before: timedelta) -> bool:
    kind = tracked.claim.kind
    if kind is ClaimKind.TRACKED:
        return abs(before) <= _AT_CLOSING
    if tracked.stance is Stance.ASKED:
        return abs(before) <= _SAME_MOMENT
    if -_AFTERWARDS <= before <= _CLOSERS_PATIENCE:
        return True
    return kind is ClaimKind.DUPLICATE and (tracked.stance is Stance.ASSERTED or tracked.claim.is_closing)


def _is_closers_guess(tracked: TrackedClaim) -> bool:
    """Whether the closer only saw a likeness, which other words at the closing make no reason to close."""
    return tracked.claim.kind in (ClaimKind.SAME, ClaimKind.TRACKED)


def _is_all_tracked(tracked: TrackedClaim, statement: Statement, closing: Closing) -> bool:
    """Whether "tracked in #1" speaks of the whole issue, and is what it was closed for."""
    claim, reading = tracked.claim, statement.reading
    if claim.is_partial or (reading.says_otherwise and not claim.is_closing):
        return False
    if closing.gives_other_reason and not claim.is_closing:
        return False
    if claim.is_part and not reading.is_closing:
        return abs(before_closing(closing.issue, statement)) <= ONE_CLICK
    if claim.is_closing or claim.about_this or reading.words <= _SHORT_REMARK * 2:
        return True
    return statement.role is Role.CLOSER and abs(before_closing(closing.issue, statement)) <= ONE_CLICK


def _is_closed_for_else(tracked: TrackedClaim, closing: Closing, most_words: int) -> bool:
    """Whether the closer gave other words at the closing, and not few, that don't mention the target."""
    remark = closing.remark
    if remark is None or remark.when < tracked.statement.when:
        return False
    if tracked.statement.role is Role.CLOSER and not _is_closers_guess(tracked):
        return False
    return remark.reading.words > most_words and set(tracked.targets).isdisjoint(remark.reading.mentions)


def _is_last_word(tracked: TrackedClaim, statement: Statement, closing: Closing) -> bool:
    """Whether nothing was said between a firm claim and a closing much later."""
    is_firm = tracked.claim.kind is ClaimKind.DUPLICATE and tracked.stance is Stance.ASSERTED
    is_last = statement.when >= closing.last_words_at
    return is_firm and is_last and before_closing(closing.issue, statement) <= _LAST_WORD_PATIENCE


_PART = re.compile(
    r"part|portion|piece|aspect|sub-?section|sub-?issue|sub-?bug|sub-?case|subset|special case|\bcase of"
    r"|variant of"
)
_SUPERSEDED = re.compile(r"super[cs]ee?d|subsum")
_REPORTED = re.compile(
    r"report|filed|\bopen|exist|known|request|raised|submitted|logged|noted|recorded|registered|mentioned"
    r"|discussed|described|already an? |on file|there\S* (?:is |was )?(?:also )?already|^already$"
)


def relation_of(claim: Claim) -> Relation:
    """The relation that a claim states."""
    if claim.kind is ClaimKind.DUPLICATE:
        return Relation.DUPLICATE
    if claim.kind is ClaimKind.FAVOUR or _SUPERSEDED.search(claim.marker):
        return Relation.SUPERSEDED
    if _PART.search(claim.marker):
        return Relation.PART_OF
    if claim.kind is ClaimKind.SAME:
        return Relation.SAME
    return Relation.REPORTED if _REPORTED.search(claim.marker) else Relation.TRACKED


_STRONG = 0.8
_FIELD, _MARKED, _LABELLED = 0.995, 0.99, 0.9
_NEAR_CLOSING = timedelta(days=1)
_BY_KIND = (ClaimKind.DUPLICATE, ClaimKind.FAVOUR, ClaimKind.SAME, ClaimKind.TRACKED)


def decide(thread: Thread, kind_of: KindOf, rules: Rules = DEFAULT_RULES) -> Verdict:
    """Decide one thread."""
    issue = thread.issue
    if issue.state != "closed":
        return Verdict(issue.ref, VerdictOutcome.NOT, (), 1.0, "open")
    marks = read_marks(thread)
    marked = _from_marks(issue, marks, rules.site)
    if marked is not None:
        pulls = frozenset(e.target for e in marks.marked if e.target is not None and e.target_is_pull)
        return _check_targets(marked, _with_known_pulls(kind_of, pulls), rules)
    tracker = track_claims(thread, marks, kind_of, rules)
    if tracker.over_limit is not None:
        return Verdict(issue.ref, VerdictOutcome.UNCERTAIN, (), 0.5, tracker.over_limit)
    pulls = frozenset(ref for statement in tracker.statements for ref in statement.reading.pulls)
    return _check_targets(_from_claims(issue, tracker, marks), _with_known_pulls(kind_of, pulls), rules)


def _from_marks(issue: Issue, marks: TrackerMarks, site: str) -> Verdict | None:
    page = issue.ref.page(site)
    if issue.duplicate_of is not None:
        # A ticket may be linked to several at once; of GitHub's marks, which come singly, the last counts.
        last = {
            event.target: None for event in marks.marked if event.created_at == marks.marked[-1].created_at
        }
        targets = tuple(filter(None, last)) if issue.duplicate_of in last else (issue.duplicate_of,)
        evidence = Evidence("duplicate_of", page, issue.closed_by, issue.closed_at or "", targets)
        return Verdict(issue.ref, VerdictOutcome.DUPLICATE, targets, _FIELD, "duplicate_of", (evidence,))
    if not marks.marked and marks.imported is not None and marks.imported.targets:
        return _from_import(issue, marks.imported, page)
    if not marks.marked:
        return None
    event = marks.marked[-1]
    marked = (event.target,) if event.target is not None else ()
    evidence = Evidence("marked_event", page, event.actor, event.created_at, marked)
    return Verdict(issue.ref, VerdictOutcome.DUPLICATE, marked, _MARKED, "marked_event", (evidence,))


def _from_import(issue: Issue, mark: ImportedMark, page: str) -> Verdict:
    comment = mark.comment
    url = f"{page}#issuecomment-{comment.id}"
    evidence = Evidence("imported_mark", url, comment.author, comment.created_at, mark.targets, mark.line)
    return Verdict(issue.ref, VerdictOutcome.DUPLICATE, mark.targets, _MARKED, "imported_mark", (evidence,))


def _from_claims(issue: Issue, tracker: ClaimTracker, marks: TrackerMarks) -> Verdict:
    closing = closing_of(issue, tracker.statements, tracker.claims)
    weighed = [(tracked, weight(tracked, closing)) for tracked in tracker.claims if tracked.is_valid]
    accepted = [(tracked, value) for tracked, value in weighed if value > 0 and tracked.targets]
    if accepted:
        chosen, confidence = _chosen(accepted)
        targets = tuple(dict.fromkeys(ref for tracked in chosen for ref in tracked.targets))
        evidence = tuple(_evidence(tracked) for tracked in chosen)
        return Verdict(
            *(issue.ref, VerdictOutcome.DUPLICATE, targets, confidence, _reason(chosen[0]), evidence),
            relation_of(chosen[0].claim),
        )
    return _without_claim(issue, tracker, marks)


def _chosen(accepted: Sequence[tuple[TrackedClaim, float]]) -> tuple[list[TrackedClaim], float]:
    """The claims of the deciding statement: of strong ones the last, else the strongest."""
    strong = [(tracked, value) for tracked, value in accepted if value >= _STRONG]
    deciding, _ = strong[-1] if strong else max(accepted, key=lambda pair: pair[1])
    together = [s for s, _ in accepted if s.place == deciding.place]
    kind = next(kind for kind in _BY_KIND if any(s.claim.kind is kind for s in together))
    chosen = [s for s in together if s.claim.kind is kind]
    firm = next((i for i, s in enumerate(chosen) if s.stance is Stance.ASSERTED), len(chosen))
    # "Dup of #1, perhaps also of #2": what is doubted after a firm word doesn't count.
    chosen = [s for i, s in enumerate(chosen) if i <= firm or s.stance is Stance.ASSERTED]
    if any(s.claim.is_added for s in chosen):
        earlier = [
            s for s, v in accepted if s.place < deciding.place and v >= _STRONG and s.claim.kind is kind
        ]
        chosen = [*earlier[-1:], *chosen]
    return chosen, max(v for s, v in accepted if any(s is taken for taken in chosen))


def _reason(tracked: TrackedClaim) -> str:
    role = (tracked.confirmed_by or tracked.statement).role
    who = "note" if tracked.statement.is_note else str(role)
    return f"{who}_{tracked.claim.kind}"


def _evidence(tracked: TrackedClaim) -> Evidence:
    statement = tracked.statement
    role = "note" if statement.is_note else str(statement.role)
    return Evidence(
        f"{role}_comment", statement.url, statement.who, statement.when, tracked.targets, tracked.claim.said
    )


def _without_claim(issue: Issue, tracker: ClaimTracker, marks: TrackerMarks) -> Verdict:
    evidence = tuple(_evidence(tracked) for tracked in tracker.claims)
    if marks.says_duplicate:
        return _from_label(issue, tracker, evidence)
    states = {tracked.state for tracked in tracker.claims}
    for state in (ClaimState.UNMARKED, ClaimState.REOPENED, ClaimState.DISPUTED, ClaimState.FIXED):
        if state in states:
            return Verdict(issue.ref, VerdictOutcome.NOT, (), 0.9, str(state), evidence)
    doubtful = [s for s in tracker.claims if s.claim.kind in (ClaimKind.DUPLICATE, ClaimKind.SAME)]
    if any(tracked.targets for tracked in doubtful):
        targets = next(tracked.targets for tracked in reversed(doubtful) if tracked.targets)
        return Verdict(issue.ref, VerdictOutcome.UNCERTAIN, targets, 0.5, "claim_not_acted_on", evidence)
    if any(tracked.statement.role in (Role.CLOSER, Role.MAINTAINER) for tracked in doubtful):
        return Verdict(issue.ref, VerdictOutcome.UNCERTAIN, (), 0.5, "no_target", evidence)
    return Verdict(issue.ref, VerdictOutcome.NOT, (), 0.9 if tracker.claims else 0.99, "no_claim", evidence)


def _from_label(issue: Issue, tracker: ClaimTracker, evidence: tuple[Evidence, ...]) -> Verdict:
    """The tracker calls it a duplicate: of what a claim names, else of what was named at the closing."""
    # The mark is firmer than any talk about the issue's cause.
    states = (ClaimState.VALID, ClaimState.EXPLAINED)
    claimed = next((s.targets for s in reversed(tracker.claims) if s.state in states and s.targets), ())
    if claimed:
        return Verdict(issue.ref, VerdictOutcome.DUPLICATE, claimed, _LABELLED, "label_and_claim", evidence)
    named = _named_at_closing(issue, tracker)
    if named is None:
        return Verdict(issue.ref, VerdictOutcome.UNCERTAIN, (), 0.5, "no_target", evidence)
    return Verdict(
        issue.ref,
        VerdictOutcome.DUPLICATE,
        named.targets,
        _LABELLED,
        "label_and_reference",
        (*evidence, named),
    )


def _named_at_closing(issue: Issue, tracker: ClaimTracker) -> Evidence | None:
    """The issue that the closer or a maintainer names near the closing, else the only one named at all."""
    for role in (Role.CLOSER, Role.MAINTAINER):
        for statement in reversed(tracker.statements):
            mentions = tracker.issues_named_by(statement)
            is_near = abs(before_closing(issue, statement)) <= _NEAR_CLOSING
            if statement.role is role and mentions and is_near:
                kind = f"{role}_reference"
                return Evidence(kind, statement.url, statement.who, statement.when, mentions[:1])
    named = {ref: statement for statement in tracker.statements for ref in tracker.issues_named_by(statement)}
    if len(named) != 1:
        return None
    (ref, statement), *_ = named.items()
    return Evidence("only_reference", statement.url, statement.who, statement.when, (ref,))


_UNSEEN = 0.9  # factor on the confidence when nobody has looked at what the target is
_REJECTED = 0.9


def _could_be_target(kind: Kind) -> bool:
    """Whether something of that kind may be a canonical issue, as far as is known."""
    return kind in (Kind.ISSUE, Kind.UNKNOWN)


def _with_known_pulls(kind_of: KindOf, pulls: frozenset[IssueRef]) -> KindOf:
    """`kind_of` with what the thread itself shows of pull requests that were not fetched."""

    def known(ref: IssueRef) -> Kind:
        kind = kind_of(ref)
        return Kind.PULL if kind is Kind.UNKNOWN and ref in pulls else kind

    return known


def _check_targets(verdict: Verdict, kind_of: KindOf, rules: Rules) -> Verdict:
    """Drop targets that can't be canonical; a duplicate of nothing that is left is not one, or uncertain."""
    if verdict.outcome is not VerdictOutcome.DUPLICATE:
        return verdict
    others = [ref for ref in verdict.targets if ref != verdict.ref]
    if not others:
        return _rejected(verdict, VerdictOutcome.NOT, "self_reference", ())
    near = [ref for ref in others if rules.allow_cross_repository or ref.repo == verdict.ref.repo]
    if not near:
        return _rejected(verdict, VerdictOutcome.UNCERTAIN, "cross_repository", others)
    kinds = {ref: kind_of(ref) for ref in near}
    usable = [ref for ref in near if _could_be_target(kinds[ref])]
    if not usable:
        if Kind.MISSING in kinds.values():
            return _rejected(verdict, VerdictOutcome.UNCERTAIN, "target_missing", near)
        return _rejected(verdict, VerdictOutcome.NOT, "target_is_pull", near)
    is_seen = any(kinds[ref] is Kind.ISSUE for ref in usable)
    confidence = verdict.confidence if is_seen else round(verdict.confidence * _UNSEEN, 3)
    return replace(verdict, targets=tuple(usable), confidence=confidence)


def _rejected(verdict: Verdict, outcome: VerdictOutcome, reason: str, targets: Iterable[IssueRef]) -> Verdict:
    return replace(verdict, outcome=outcome, targets=tuple(targets), confidence=_REJECTED, reason=reason)
