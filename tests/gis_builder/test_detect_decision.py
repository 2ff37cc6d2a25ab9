from __future__ import annotations

import pytest

from gis_builder.detection import Rules, claim_tracker, decide
from gis_builder.detection.claim_tracker import track_claims
from gis_builder.detection.statements import read_marks
from gis_builder.store.issue_records import Comment, Event, Thread, VerdictOutcome

from .detect_threads import DUPLICATE, call, cases, check, decided, event, kind_of, ref, said, thread

NOT, UNCERTAIN = VerdictOutcome.NOT, VerdictOutcome.UNCERTAIN


@pytest.mark.parametrize(
    ("expected", "lines"),
    cases(r"""
        Duplicates
            #1 bob 300: Possible duplicate of #1 | mia: Looks like a dupe; thanks!
            #1 bob 300: Duplicate of #1? | mia: yes, closing
            #1 bob 5: Duplicate of #1? | mia: Yes, that's the one. Works in 2.0.
            #1 bob 3: probably a dupe of #1 | ann 2: Oh, I missed that. Sorry!
            #1 bob 300: cf. #1 | mia: Yes, closing in favor of that issue.
            #1 bob 300: I think it's #1 again | mia: dupe of ^---
            #1 mia: Closing as a dupe. | max -0.1: That is, dup of #1
            #1 bob 50: dup of #2 | mia: Not a dup of #2, but a duplicate of #1.
            #1 bob 50: dup of #1 | ann 40: It's a different bug | mia: No, it is a dup.
            #1 mia: Duplicate of #2 | mia -0.2: Sorry, wrong tab. I meant #1.
            #1 bob 30: A dup, but I can't find of what | ann 29: Maybe #1? | mia: Yes.
            #1 bob 200: Seems a dupe of #1 | bob 1: This can be closed then.
            #1 bob 900: Isn't this a duplicate of #1? | max 800: Looks like a duplicate, yes
            #1 mia -3000: Closed by accident, but I think it's a dup of #1, so it stays closed.
            #1 mia 0.001: You want the other menu. It draws more shadows. There's already a bug for that: #1
            #1 mia 0.001: Part of #1.
            #1 mia 0.4: This is just part of #1, so I'm closing it.
        Several targets, and the last claim
            #1,#2 mia: Dup of #1 and #2
            #1 mia: Definitely a duplicate of #1, but not so sure about #2.
            #1,#2 mia 0.2: Dup of #1 | mia: Also a duplicate of #2
            #2 max 9: Dup of #1 | mia: Duplicate of #2
            #1 mia: Dup of #555 and #1
            #1 mia: Same as #2 in a way. Closing as a dupe of #1.
        Other reasons
            no mia: Similar to #1, but this one is by design.
            no mia: #1 is a dup of #2.
            no mia: Done. The new painter is tracked in #1.
            no mia: By design. | mia -0.1: (The wording of the hint is covered by #1.)
            no mia 500: Part of #1. | bob 2: Gone now? | mia: Yes, thanks!
            no bob 30: dup of #1 | bob 29: Er, not. Why does it blink?
            no bob 60: I think it's the same as #1 | ann 2: It builds now. | mia: Thanks!
            no bob 60: Subsumed by #1, probably | mia: Yeah, it works now.
            no mia 9: I think it's the same as #1 | mia: My own disk was full all the time.
            no bob 900: It might be the same bug as #1. | mia: The old painter went away, so it is done here.
            no bob 300: dup of #1 | ann 200: > dup of #1\n\nNo it isn't. | mia: Right.
            no mia 90: dup of #1 | max 80: Reopening, not the whole story. | mia: Done
            no mia: Duplicate of # | bob: spam
            no bob 300: I'd call it a dup of #1 | mia: Closing as expected behaviour.
        Impossible targets
            self_reference mia: Duplicate of #100
            target_is_pull mia: Duplicate of #555
            target_is_pull mia: dup of https://github.com/o/n/pull/650
            target_missing mia: Duplicate of #777
            cross_repository mia: Duplicate of q/r#1
        Weak evidence
            no_target mia: This is a duplicate. Thanks!
            claim_not_acted_on max 900: Might be a dup of #1 | bob 800: Here is a log.
            claim_not_acted_on mia: Possibly a dup of #1, there's no way to tell. Closing.
    """),
)
def test_verdicts(expected: str, lines: list[str]) -> None:
    check(expected, lines)


def test_another_repository_if_allowed() -> None:
    verdict = decide(thread(said("mia", "Duplicate of q/r#1")), kind_of, Rules(allow_cross_repository=True))
    assert (verdict.outcome, verdict.targets) == (DUPLICATE, (ref(1, "q/r"),))


def test_a_former_name_of_the_repository() -> None:
    url = "https://github.com/was/else/issues/1"
    verdict = decide(
        thread(said("mia", f"Duplicate of {url}")), kind_of, Rules(former_names=frozenset({"was/else"}))
    )
    assert verdict.targets == (ref(1),)


def test_a_target_that_was_not_fetched_counts_less() -> None:
    seen, unseen = decided(said("mia", "dup of #1")), decided(said("mia", "dup of #650"))
    assert unseen.outcome is DUPLICATE
    assert unseen.confidence < seen.confidence


def test_an_unknown_closer() -> None:
    assert call(said(None, "Closing in favour of #1.", 0.001), closed_by=None) == (DUPLICATE, [1])


MARKED, CLOSED = event("marked_as_duplicate", 3, 1), event("closed", 0)
REOPENED = (
    *(said("mia", "Duplicate of #1", 50), event("marked_as_duplicate", 50, 1), event("closed", 50)),
    *(event("reopened", 20), CLOSED),
)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((MARKED, CLOSED), "marked_event"),
        ((MARKED, said("bob", "dup of #2", 2), CLOSED), "marked_event"),  # a mark beats words
        ((event("marked_as_duplicate", 4, 2), MARKED, CLOSED), "marked_event"),  # the last mark stands
        ((event("closed", 0, 1, state_reason="duplicate"),), None),
        ((said("mia", "Duplicate of #1", 0.2), event("closed", 0.2), event("reopened", 0.1), CLOSED), None),
        ((*REOPENED, said("mia", "Dup of #1 after all, closing.")), None),
    ],
)
def test_marks(parts: tuple[Comment | Event, ...], reason: str | None) -> None:
    assert call(*parts) == (DUPLICATE, [1])
    assert reason in (None, decided(*parts).reason)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (
            (said("mia", "Duplicate of #1", 3), MARKED, event("unmarked_as_duplicate", 2, 1), CLOSED),
            "unmarked",
        ),
        (REOPENED, "reopened"),
    ],
)
def test_removing_a_mark_revokes_earlier_claims(parts: tuple[Comment | Event, ...], reason: str) -> None:
    verdict = decided(*parts)
    assert (verdict.outcome, verdict.reason) == (NOT, reason)


def test_a_mark_on_a_pull_request_and_the_trackers_own_field() -> None:
    pull = event("marked_as_duplicate", 1, 650, target_is_pull=True)
    assert decided(pull, CLOSED).reason == "target_is_pull"
    assert decided(duplicate_of=ref(1)).reason == "duplicate_of"


@pytest.mark.parametrize(
    "fields", [{"state_reason": "duplicate"}, {"labels": ("duplicate",)}, {"labels": ("kind/duplicate",)}]
)
def test_a_duplicate_label(fields: dict[str, object]) -> None:
    assert call(said("mia", "#1"), **fields) == (DUPLICATE, [1])
    assert call(said("mia", "Known, see #1."), **fields) == (DUPLICATE, [1])
    assert decided(said("mia", "Known."), **fields).reason == "no_target"


@pytest.mark.parametrize("labels", [(), ("deduplication",)])
def test_a_number_without_a_duplicate_label(labels: tuple[str, ...]) -> None:
    assert call(said("mia", "#1"), labels=labels)[0] is NOT


def test_notes_in_the_title() -> None:
    assert call(title="(dup of #1) The window flickers") == (DUPLICATE, [1])
    assert call(title="[duplicate] It flickers", body="Ah, that's #1.") == (DUPLICATE, [1])
    assert call(title="dup(2) is called twice", body="see #1")[0] is NOT


def test_notes_and_guesses_in_the_body() -> None:
    assert call(body="It flickers.\n\nEDIT: duplicate of #1") == (DUPLICATE, [1])
    assert call(body="Is this a duplicate? I searched.", title="Duplicate tabs")[0] is NOT
    guess = "This might be a duplicate of #1."
    assert decided(body=guess).reason == "claim_not_acted_on"
    assert call(said("mia", "Yes, it is. Closing."), body=guess) == (DUPLICATE, [1])


def test_evidence_of_a_verdict() -> None:
    verdict = decided(said("mia", "Duplicate of #1"))
    (evidence,) = verdict.evidence
    assert (evidence.who, evidence.targets, evidence.said) == ("mia", (ref(1),), "Duplicate of #1")
    assert evidence.url.startswith("https://github.com/o/n/issues/100#issuecomment-")


def test_no_statement_of_a_thread_over_the_limit_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    two = thread(said("mia", "Duplicate of #1"))  # counts as 2: a claim and its target
    for limit, read in ((2, 2), (1, 0)):  # the body, the comment
        monkeypatch.setattr(claim_tracker, "MAX_CLAIMS", limit)
        tracker = track_claims(two, read_marks(two), kind_of, Rules())
        assert len(tracker.statements) == read


def test_a_thread_without_claims() -> None:
    silent: Thread = thread(*(said("bob", "It flickers here too.", hours) for hours in range(50, 1, -1)))
    assert decide(silent, kind_of).reason == "no_claim"
