"""Decide from a thread whether its issue was closed as a duplicate, of what, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from gis_builder.detection.claims import Claim, ClaimKind, Stance
from gis_builder.detection.ledger import Fate, Ledger, Standing
from gis_builder.detection.statements import (
    Marks,
    Role,
    beyond_by_claims,
    beyond_by_texts,
    marks,
    statements,
)
from gis_builder.detection.targets import DEFAULT_RULES, KindOf, Rules, check_targets, knowing
from gis_builder.detection.weight import before_closing, closing_of, weight
from gis_builder.store.records import Evidence, Issue, Outcome, Relation, Thread, Verdict

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
        return Verdict(issue.ref, Outcome.NOT, (), 1.0, "open")
    tracker = marks(thread)
    marked = _from_marks(issue, tracker, rules.site)
    if marked is not None:
        pulls = frozenset(e.target for e in tracker.marked if e.target is not None and e.target_is_pull)
        return check_targets(marked, knowing(kind_of, pulls), rules)
    ledger = hear_thread(thread, tracker, kind_of, rules)
    if ledger.beyond is not None:
        return Verdict(issue.ref, Outcome.UNCERTAIN, (), 0.5, ledger.beyond)
    pulls = frozenset(ref for statement in ledger.heard for ref in statement.reading.pulls)
    return check_targets(_from_claims(issue, ledger, tracker), knowing(kind_of, pulls), rules)


def _from_marks(issue: Issue, tracker: Marks, site: str) -> Verdict | None:
    page = issue.ref.page(site)
    if issue.duplicate_of is not None:
        targets = (issue.duplicate_of,)
        evidence = Evidence("duplicate_of", page, issue.closed_by, issue.closed_at or "", targets)
        return Verdict(issue.ref, Outcome.DUPLICATE, targets, _FIELD, "duplicate_of", (evidence,))
    if not tracker.marked:
        return None
    event = tracker.marked[-1]
    marked = (event.target,) if event.target is not None else ()
    evidence = Evidence("marked_event", page, event.actor, event.created_at, marked)
    return Verdict(issue.ref, Outcome.DUPLICATE, marked, _MARKED, "marked_event", (evidence,))


def hear_thread(thread: Thread, tracker: Marks, kind_of: KindOf, rules: Rules) -> Ledger:
    """Hear every statement of a thread, and void what a reopening or the taking back of a mark voids.

    Of a thread beyond what is read nothing is heard.
    """
    ledger = Ledger(
        thread.issue.ref, thread.issue.closed_at or thread.issue.updated_at, kind_of, thread.issue.author
    )
    ledger.beyond = beyond_by_texts(thread)
    if ledger.beyond is not None:
        return ledger
    found = statements(thread, rules.former_names, site=rules.site, must_read=tracker.says_duplicate)
    ledger.beyond = beyond_by_claims(found)
    if ledger.beyond is not None:
        return ledger
    for statement in found:
        ledger.hear(statement)
    for standing in ledger.standings:
        when = (standing.confirmed_by or standing.statement).when
        if tracker.reopened_at is not None and when < tracker.reopened_at:
            standing.fate = Fate.REOPENED
        for event in tracker.unmarked:
            if (event.target is None or event.target in standing.targets) and when <= event.created_at:
                standing.fate = Fate.UNMARKED
    return ledger


def _from_claims(issue: Issue, ledger: Ledger, tracker: Marks) -> Verdict:
    closing = closing_of(issue, ledger.heard, ledger.standings)
    weighed = [(standing, weight(standing, closing)) for standing in ledger.standings if standing.stands]
    accepted = [(standing, value) for standing, value in weighed if value > 0 and standing.targets]
    if accepted:
        chosen, confidence = _chosen(accepted)
        targets = tuple(dict.fromkeys(ref for standing in chosen for ref in standing.targets))
        evidence = tuple(_evidence(standing) for standing in chosen)
        return Verdict(
            *(issue.ref, Outcome.DUPLICATE, targets, confidence, _reason(chosen[0]), evidence),
            relation_of(chosen[0].claim),
        )
    return _without_claim(issue, ledger, tracker)


def _chosen(accepted: Sequence[tuple[Standing, float]]) -> tuple[list[Standing], float]:
    """The claims of the deciding statement: of strong ones the last, else the strongest."""
    strong = [(standing, value) for standing, value in accepted if value >= _STRONG]
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


def _reason(standing: Standing) -> str:
    role = (standing.confirmed_by or standing.statement).role
    who = "note" if standing.statement.is_note else str(role)
    return f"{who}_{standing.claim.kind}"


def _evidence(standing: Standing) -> Evidence:
    statement = standing.statement
    role = "note" if statement.is_note else str(statement.role)
    return Evidence(
        f"{role}_comment", statement.url, statement.who, statement.when, standing.targets, standing.claim.said
    )


def _without_claim(issue: Issue, ledger: Ledger, tracker: Marks) -> Verdict:
    evidence = tuple(_evidence(standing) for standing in ledger.standings)
    if tracker.says_duplicate:
        return _from_label(issue, ledger, evidence)
    fates = {standing.fate for standing in ledger.standings}
    for fate in (Fate.UNMARKED, Fate.REOPENED, Fate.DISPUTED, Fate.FIXED):
        if fate in fates:
            return Verdict(issue.ref, Outcome.NOT, (), 0.9, str(fate), evidence)
    doubtful = [s for s in ledger.standings if s.claim.kind in (ClaimKind.DUPLICATE, ClaimKind.SAME)]
    if any(standing.targets for standing in doubtful):
        targets = next(standing.targets for standing in reversed(doubtful) if standing.targets)
        return Verdict(issue.ref, Outcome.UNCERTAIN, targets, 0.5, "claim_not_acted_on", evidence)
    if any(standing.statement.role in (Role.CLOSER, Role.MAINTAINER) for standing in doubtful):
        return Verdict(issue.ref, Outcome.UNCERTAIN, (), 0.5, "no_target", evidence)
    return Verdict(issue.ref, Outcome.NOT, (), 0.9 if ledger.standings else 0.99, "no_claim", evidence)


def _from_label(issue: Issue, ledger: Ledger, evidence: tuple[Evidence, ...]) -> Verdict:
    """The tracker calls it a duplicate: of what a claim names, else of what was named at the closing."""
    # The mark is firmer than any talk about the issue's cause.
    fates = (Fate.STANDS, Fate.EXPLAINED)
    claimed = next((s.targets for s in reversed(ledger.standings) if s.fate in fates and s.targets), ())
    if claimed:
        return Verdict(issue.ref, Outcome.DUPLICATE, claimed, _LABELLED, "label_and_claim", evidence)
    named = _named_at_closing(issue, ledger)
    if named is None:
        return Verdict(issue.ref, Outcome.UNCERTAIN, (), 0.5, "no_target", evidence)
    return Verdict(
        issue.ref, Outcome.DUPLICATE, named.targets, _LABELLED, "label_and_reference", (*evidence, named)
    )


def _named_at_closing(issue: Issue, ledger: Ledger) -> Evidence | None:
    """The issue that the closer or a maintainer names near the closing, else the only one named at all."""
    for role in (Role.CLOSER, Role.MAINTAINER):
        for statement in reversed(ledger.heard):
            mentions = ledger.meant_by(statement)
            is_near = abs(before_closing(issue, statement)) <= _NEAR_CLOSING
            if statement.role is role and mentions and is_near:
                kind = f"{role}_reference"
                return Evidence(kind, statement.url, statement.who, statement.when, mentions[:1])
    named = {ref: statement for statement in ledger.heard for ref in ledger.meant_by(statement)}
    if len(named) != 1:
        return None
    (ref, statement), *_ = named.items()
    return Evidence("only_reference", statement.url, statement.who, statement.when, (ref,))
