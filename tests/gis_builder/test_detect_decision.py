from __future__ import annotations

import pytest

from gis_builder.detection import Rules, claim_tracker, decide
from gis_builder.detection.claim_tracker import track_claims
from gis_builder.detection.statements import read_marks
from gis_builder.store.issue_records import Comment, Event, Thread, VerdictOutcome

from .detect_threads import DUPLICATE, call, decided, event, kind_of, ref, said, thread

NOT, UNCERTAIN = VerdictOutcome.NOT, VerdictOutcome.UNCERTAIN


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
