from __future__ import annotations

import pytest

from gis_builder.detection import Rules, claim_tracker, decide
from gis_builder.detection.claim_tracker import track_claims
from gis_builder.detection.statements import read_marks
from gis_builder.store.records import Comment, Event, Thread, VerdictOutcome

from .detect_threads import DUPLICATE, call, decided, event, kind_of, ref, said, thread

NOT, UNCERTAIN = VerdictOutcome.NOT, VerdictOutcome.UNCERTAIN


@pytest.mark.parametrize(
    "comments",
    [
        (said("mia", "Closing as a duplicate of #1."),),
        (said("mia", "Closing in favour of #1, it has more details."),),
        (said("mia", "Same as #1."),),
        (said("mia", "Already tracked in #1."),),
        (said("mia", "I believe this is a dupe of #1."),),
        (said("bob", "Duplicate of #1", 20),),
        (said("max", "dup of #1", 100),),
        (said("max", "dup of #1", 2000),),
        (said("bob", "Possible duplicate of #1", 30),),
        (said("bob", "Possible duplicate of #1", 300), said("mia", "Looks like a dupe; thanks!")),
        (said("bob", "Duplicate of #1?", 300), said("mia", "yes, closing")),
        (said("bob", "Duplicate of #1?", 5), said("mia", "Yes, that's the one. Works in 2.0.")),
        (said("bob", "probably a dupe of #1", 3), said("ann", "Oh, I missed that. Sorry!", 2)),
        (said("bob", "cf. #1", 300), said("mia", "Yes, closing in favor of that issue.")),
        (said("bob", "I think it's #1 again", 300), said("mia", "dupe of ^---")),
        (said("mia", "Closing as a dupe.", 0.01), said("max", "That is, dup of #1", -0.1)),
        (said("bob", "dup of #2", 50), said("mia", "Not a dup of #2, but a duplicate of #1.")),
        (
            said("bob", "dup of #1", 50),
            said("ann", "It's a different bug", 40),
            said("mia", "No, it is a dup."),
        ),
        (said("mia", "Duplicate of #2"), said("mia", "Sorry, wrong tab. I meant #1.", -0.2)),
        (
            said("bob", "A dup, but I can't find of what", 30),
            said("ann", "Maybe #1?", 29),
            said("mia", "Yes."),
        ),
        (said("bob", "Seems a dupe of #1", 200), said("bob", "This can be closed then.", 1)),
        (said("bob", "Isn't this a duplicate of #1?", 900), said("max", "Looks like a duplicate, yes", 800)),
        (said("mia", "Closed by accident, but I think it's a dup of #1, so it stays closed.", -3000),),
        (
            said(
                "mia",
                "You want the other menu, left of the clock. It draws the same shadows, and more of them. "
                "The hint should say so, but there's already a bug open for that: #1",
                0.001,
            ),
        ),
        (said("mia", "Part of #1.", 0.001),),
        (said("mia", "This is just part of #1, so I'm closing it.", 0.4),),
        (said("helper", "/dup #1", 0.1, is_bot=True),),
        (said("helper", "Closing as duplicate of #1.", is_bot=True),),
    ],
)
def test_duplicates(comments: tuple[Comment, ...]) -> None:
    assert call(*comments) == (DUPLICATE, [1])


@pytest.mark.parametrize(
    "comments",
    [
        (),
        (said("mia", "Fixed by #1."),),
        (said("mia", "Similar to #1, but this one is by design."),),
        (said("mia", "#1 is a dup of #2."),),
        (said("mia", "Closed #1 as a duplicate of this."),),
        (said("mia", "Done. The new painter is tracked in #1."),),
        (said("mia", "By design."), said("mia", "(The wording of the hint is covered by #1.)", -0.1)),
        (said("mia", "Part of #1.", 500), said("bob", "Gone now?", 2), said("mia", "Yes, thanks!")),
        (said("bob", "dup of #1", 30), said("bob", "Er, not. Why does it blink?", 29)),
        (
            said("bob", "I think it's the same as #1", 60),
            said("ann", "It builds now.", 2),
            said("mia", "Thanks!"),
        ),
        (said("bob", "Subsumed by #1, probably", 60), said("mia", "Yeah, it works now.")),
        (said("mia", "I think it's the same as #1", 9), said("mia", "My own disk was full all the time.")),
        (
            said("bob", "It might be the same bug as #1.", 900),
            said(
                "mia",
                "Ok, so the old painter went away, the new one never had that menu, and what is left of "
                "the test fails as it should, which means that there is nothing more to do here.",
            ),
        ),
        (
            said("bob", "dup of #1", 300),
            said("ann", "> dup of #1\n\nNo it isn't.", 200),
            said("mia", "Right."),
        ),
        (said("bob", "dup of #1", 3), said("ann", "Not a dup, see my log.", 2)),
        (said("bob", "dup of #1", 300), said("mia", "This works fine on master now.")),
        (
            said("mia", "dup of #1", 90),
            said("max", "Reopening, not the whole story.", 80),
            said("mia", "Done"),
        ),
        (said("mia", "Duplicate of #100"),),
        (said("mia", "Duplicate of #555"),),
        (said("finder", "Possible duplicates: #1, #2", 200, is_bot=True),),
        (said("mia", "Duplicate of #"), said("bob", "spam")),
        (said("mia", "Closing as expected behaviour."), said("bob", "I'd call it a dup of #1", 300)),
    ],
)
def test_others(comments: tuple[Comment, ...]) -> None:
    comments = tuple(sorted(comments, key=lambda comment: comment.created_at))
    assert call(*comments)[0] in (NOT, UNCERTAIN)
    assert decided(*comments).reason not in ("target_missing",)


@pytest.mark.parametrize(
    ("comments", "reason"),
    [
        ((said("mia", "Duplicate of #777"),), "target_missing"),
        ((said("mia", "Duplicate of q/r#1"),), "cross_repository"),
        ((said("mia", "This is a duplicate. Thanks!"),), "no_target"),
        (
            (said("max", "Might be a dup of #1", 900), said("bob", "Here is a log.", 800)),
            "claim_not_acted_on",
        ),
        ((said("mia", "Possibly a dup of #1, there's no way to tell. Closing."),), "claim_not_acted_on"),
    ],
)
def test_weak_evidence_is_uncertain(comments: tuple[Comment, ...], reason: str) -> None:
    verdict = decided(*comments)
    assert (verdict.outcome, verdict.reason) == (UNCERTAIN, reason)


def test_an_open_issue_is_not() -> None:
    verdict = decided(said("mia", "Duplicate of #1"), state="open", closed_at=None, closed_by=None)
    assert (verdict.outcome, verdict.reason) == (NOT, "open")


def test_another_repository_when_it_is_allowed() -> None:
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
    pull = "https://github.com/o/n/pull/650"
    assert decided(said("mia", f"dup of {pull}")).reason == "target_is_pull"


def test_several_targets_and_the_last_word() -> None:
    assert call(said("mia", "Dup of #1 and #2")) == (DUPLICATE, [1, 2])
    assert call(said("mia", "Definitely a duplicate of #1, but not so sure about #2.")) == (DUPLICATE, [1])
    assert call(said("mia", "Dup of #1", 0.2), said("mia", "Also a duplicate of #2")) == (DUPLICATE, [1, 2])
    assert call(said("max", "Dup of #1", 9), said("mia", "Duplicate of #2")) == (DUPLICATE, [2])
    assert call(said("mia", "Dup of #555 and #1")) == (DUPLICATE, [1])


def test_a_plain_word_beats_a_likeness_in_the_same_comment() -> None:
    assert call(said("mia", "Same as #2 in a way. Closing as a dupe of #1.")) == (DUPLICATE, [1])


def test_a_bot_that_merges_did_not_close_for_an_old_guess() -> None:
    guess = said("bob", "Duplicate of #1", 30)
    assert call(guess, closed_by="merge-bot")[0] is UNCERTAIN
    assert call(said("max", "/dup #1", 0.1), closed_by="merge-bot") == (DUPLICATE, [1])


def test_closed_by_nobody_known() -> None:
    assert call(said(None, "Closing in favour of #1.", 0.001), closed_by=None) == (DUPLICATE, [1])


def test_a_late_protest_of_a_bystander_only_lowers_the_confidence() -> None:
    claim = said("mia", "Dup of #1")
    calm, disputed = decided(claim), decided(claim, said("bob", "Not a dup!", -500))
    assert disputed.outcome is DUPLICATE
    assert disputed.confidence < calm.confidence
    assert call(claim, said("max", "Not a dup after all.", -1))[0] is NOT


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
def test_a_mark_taken_back_voids_the_words_too(parts: tuple[Comment | Event, ...], reason: str) -> None:
    verdict = decided(*parts)
    assert (verdict.outcome, verdict.reason) == (NOT, reason)


def test_a_mark_on_a_pull_request_and_the_trackers_own_field() -> None:
    pull = event("marked_as_duplicate", 1, 650, target_is_pull=True)
    assert decided(pull, CLOSED).reason == "target_is_pull"
    assert decided(duplicate_of=ref(1)).reason == "duplicate_of"


class TestLabels:
    @pytest.mark.parametrize(
        "fields", [{"state_reason": "duplicate"}, {"labels": ("duplicate",)}, {"labels": ("kind/duplicate",)}]
    )
    def test_with_a_bare_number(self, fields: dict[str, object]) -> None:
        assert call(said("mia", "#1"), **fields) == (DUPLICATE, [1])
        assert call(said("mia", "Known, see #1."), **fields) == (DUPLICATE, [1])

    def test_with_nothing_named(self) -> None:
        assert decided(said("mia", "Known."), labels=("duplicate",)).reason == "no_target"

    def test_without_a_label_a_bare_number_is_nothing(self) -> None:
        assert call(said("mia", "#1"))[0] is NOT

    def test_a_label_that_only_contains_the_letters(self) -> None:
        assert call(said("mia", "#1"), labels=("deduplication",))[0] is NOT


class TestNotes:
    def test_in_the_title(self) -> None:
        assert call(title="(dup of #1) The window flickers") == (DUPLICATE, [1])
        assert call(title="[duplicate] It flickers", body="Ah, that's #1.") == (DUPLICATE, [1])
        assert call(title="dup(2) is called twice", body="see #1")[0] is NOT

    def test_in_the_body(self) -> None:
        assert call(body="It flickers.\n\nEDIT: duplicate of #1") == (DUPLICATE, [1])
        assert call(body="Is this a duplicate? I searched.", title="Duplicate tabs")[0] is NOT

    def test_a_guess_at_the_start_is_not_acted_on_by_itself(self) -> None:
        body = "This might be a duplicate of #1."
        assert decided(body=body).reason == "claim_not_acted_on"
        assert call(said("mia", "Yes, it is. Closing."), body=body) == (DUPLICATE, [1])


def test_every_verdict_says_whence() -> None:
    verdict = decided(said("mia", "Duplicate of #1"))
    (evidence,) = verdict.evidence
    assert (evidence.who, evidence.targets, evidence.said) == ("mia", (ref(1),), "Duplicate of #1")
    assert evidence.url.startswith("https://github.com/o/n/issues/100#issuecomment-")


def test_of_a_thread_beyond_what_is_read_no_statement_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = thread(said("mia", "Duplicate of #1"))  # weighs 2: a claim and what it names
    for most, read in ((2, 2), (1, 0)):  # the body, the comment
        monkeypatch.setattr(claim_tracker, "MAX_CLAIMS", most)
        tracker = track_claims(talk, read_marks(talk), kind_of, Rules())
        assert len(tracker.statements) == read


def test_silence_is_cheap_and_not() -> None:
    talk: Thread = thread(*(said("bob", "It flickers here too.", hours) for hours in range(50, 1, -1)))
    assert decide(talk, kind_of).reason == "no_claim"
