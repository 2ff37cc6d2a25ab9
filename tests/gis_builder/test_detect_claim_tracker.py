"""How later statements change a claim: who may confirm, complete or dispute it, and how soon after."""

from __future__ import annotations

import pytest

from gis_builder.detection import decide
from gis_builder.store.records import Comment

from .detect_threads import DUPLICATE, call, decided, kind_of, said, thread

ASKED = said("bob", "Is this a dup of #1?", 200)  # too early to count by itself
HM = "Let me see."


def reason(*comments: Comment) -> str:
    return decided(*comments).reason


def words(count: int) -> str:
    return " ".join(["word"] * count)


def test_a_yes_answers_one_of_the_two_comments_before_it() -> None:
    yes = said("mia", "Yes.")
    assert call(ASKED, yes) == (DUPLICATE, [1])
    assert call(ASKED, said("max", HM, 100), yes) == (DUPLICATE, [1])
    assert call(ASKED, said("max", HM, 100), said("max", HM, 99), yes)[0] is not DUPLICATE


def test_a_bystanders_answer_must_be_next_and_short() -> None:
    assert call(ASKED, said("eve", "Yes.", 1)) == (DUPLICATE, [1])
    assert call(ASKED, said("max", HM, 100), said("eve", "Yes.", 1))[0] is not DUPLICATE
    assert call(ASKED, said("eve", f"Yes. {words(29)}", 1)) == (DUPLICATE, [1])
    assert call(ASKED, said("eve", f"Yes. {words(30)}", 1))[0] is not DUPLICATE


def test_yes_it_works_now_does_not_confirm_a_likeness() -> None:
    fixed = said("mia", "Yes, it works now.")
    assert call(said("bob", "Is this the same as #1?", 5), fixed)[0] is not DUPLICATE
    assert call(said("bob", "Is this a dup of #1?", 5), fixed) == (DUPLICATE, [1])


@pytest.mark.parametrize("who", ["mia", "max", "ann"])
def test_thanks_of_someone_with_authority_accept_a_claim(who: str) -> None:
    assert call(ASKED, said(who, "Oh, thanks!", 0.5)) == (DUPLICATE, [1])
    assert call(ASKED, said("eve", "Oh, thanks!", 0.5))[0] is not DUPLICATE


def test_accepting_thanks_are_short_or_name_the_issue_and_not_for_a_fix() -> None:
    assert call(ASKED, said("ann", f"Thanks. {words(29)}", 0.5)) == (DUPLICATE, [1])
    assert call(ASKED, said("ann", f"Thanks. {words(30)}", 0.5))[0] is not DUPLICATE
    assert call(ASKED, said("ann", f"Thanks. {words(30)} #1", 0.5)) == (DUPLICATE, [1])
    assert call(ASKED, said("max", "It is fixed.", 100), said("ann", "Oh, thanks!", 0.5))[0] is not DUPLICATE
    far = (ASKED, said("max", HM, 100), said("max", HM, 99))
    assert call(*far, said("ann", "Thanks!", 0.5))[0] is not DUPLICATE


def test_the_claimant_may_confirm_by_asking_to_close() -> None:
    claim = said("bob", "Perhaps a dup of #1", 200)
    assert call(claim, said("bob", f"Please close. {words(10)}", 0.5)) == (DUPLICATE, [1])
    assert call(claim, said("bob", f"Please close. {words(11)}", 0.5))[0] is not DUPLICATE
    assert call(claim, said("eve", "Please close.", 0.5))[0] is not DUPLICATE
    same = said("bob", "Perhaps the same as #1", 200)
    assert call(same, said("bob", "Please close.", 0.5))[0] is not DUPLICATE


def test_a_short_answer_fills_in_the_target() -> None:
    open_end = said("bob", "A dup, but I can't find of what.", 30)
    yes = said("mia", "Yes.")
    assert call(open_end, said("eve", "#1", 29), yes) == (DUPLICATE, [1])
    assert call(open_end, said("eve", "#1 or #2", 29), yes)[0] is not DUPLICATE
    assert call(open_end, said("eve", f"#1 {words(29)}", 29), yes) == (DUPLICATE, [1])
    assert call(open_end, said("eve", f"#1 {words(30)}", 29))[0] is not DUPLICATE


def test_a_claim_without_a_number_means_the_last_issue_that_was_not_denied() -> None:
    dup = said("mia", "Closing as a duplicate.")
    assert call(said("bob", "See #2 and #1", 5), dup) == (DUPLICATE, [1])
    denied = (said("bob", "See #1", 6), said("bob", "A dup of #2", 5), said("ann", "Not a dup of #2", 4))
    assert call(*denied, said("eve", "It is a duplicate.", 1)) == (DUPLICATE, [1])
    assert call(said("bob", "#100, or #1", 5), dup) == (DUPLICATE, [1])
    assert call(said("bob", "#1, or #550", 5), dup) == (DUPLICATE, [1])  # a pull request


def test_a_no_disputes_a_recent_claim() -> None:
    claim = said("bob", "dup of #1", 5)
    assert reason(claim, said("ann", "No, it's not.", 4)) == "disputed"
    assert reason(claim, said("ann", "That's a different bug.", 4)) == "disputed"
    assert call(claim, said("ann", HM, 4), said("ann", HM, 3), said("ann", "No.", 2)) == (DUPLICATE, [1])
    far = (claim, said("ann", HM, 4), said("ann", HM, 3))
    assert call(*far, said("ann", "#1 is a different bug.", 2))[0] is not DUPLICATE
    assert call(*far, said("ann", "That's a different bug.", 2)) == (DUPLICATE, [1])


def test_after_the_closing_only_those_with_authority_dispute() -> None:
    claim = said("mia", "dup of #1", 1)
    for who in ("mia", "max"):
        assert reason(claim, said(who, "This is not a dup of #1.", -1)) == "disputed"
    assert call(claim, said("eve", "This is not a dup of #1.", -1)) == (DUPLICATE, [1])
    assert reason(claim, said("eve", "This is not a dup of #1.", 0)) == "disputed"


def test_the_closers_fix_before_the_closing_revokes_a_claim() -> None:
    claim = said("bob", "dup of #1", 5)
    assert reason(claim, said("mia", "Fixed.", 0.5)) == "fixed"
    assert call(claim, said("max", "Fixed.", 0.5)) == (DUPLICATE, [1])
    assert call(claim, said("mia", "Fixed.", -0.5)) == (DUPLICATE, [1])


def test_only_closer_and_maintainers_restore_a_disputed_claim() -> None:
    disputed = (said("bob", "dup of #1", 5), said("ann", "It's a different bug", 4))
    assert call(*disputed, said("mia", "It is a dup.")) == (DUPLICATE, [1])
    assert call(*disputed, said("max", "It is a dup.")) == (DUPLICATE, [1])
    assert call(*disputed, said("eve", "It is a dup."))[0] is not DUPLICATE


def test_a_bots_claim_must_be_a_command_or_a_closing() -> None:
    assert call(said("bot", "Possible duplicate of #1", is_bot=True))[0] is not DUPLICATE
    assert call(said("bot", "Perhaps closing as a duplicate of #1", is_bot=True))[0] is not DUPLICATE
    assert call(said("bot", "Closed as the same as #1", is_bot=True))[0] is not DUPLICATE
    assert call(said("bot", "Closing as a duplicate of #1", is_bot=True)) == (DUPLICATE, [1])
    assert call(said("bot", "/dup #1", 0.1, is_bot=True)) == (DUPLICATE, [1])
    assert call(ASKED, said("bot", "Yes.", is_bot=True))[0] is not DUPLICATE


def test_a_correction_needs_something_to_correct() -> None:
    assert call(said("mia", "dup of #2", 1), said("mia", "I meant #1")) == (DUPLICATE, [1])
    assert call(said("max", "dup of #2", 1), said("mia", "I meant #1")) == (DUPLICATE, [2])
    assert call(said("mia", "I meant #1"))[0] is not DUPLICATE


def test_another_speakers_guess_makes_a_guess_firm() -> None:
    guess = said("max", "Perhaps a dup of #1", 100)
    assert call(guess, said("eve", "It seems to be a dup.", 1)) == (DUPLICATE, [1])
    assert call(guess, said("max", "It seems to be a dup.", 80))[0] is not DUPLICATE


def test_only_the_closer_can_claim_a_part_of_another_issue() -> None:
    assert call(said("mia", "This is part of #1.", 0)) == (DUPLICATE, [1])
    assert call(said("max", "This is part of #1.", 0))[0] is not DUPLICATE


def test_a_question_becomes_a_guess_if_its_speaker_repeats_it() -> None:
    verdict = decide(thread(ASKED, said("bob", "It seems to be a dup.", 1)), kind_of)
    assert verdict.confidence == 0.757  # 0.88 x 0.86


def test_issues_of_the_same_repository_are_preferred() -> None:
    dup = said("mia", "Closing as a duplicate.")
    assert call(said("bob", "See #1 and a/b#5.", 5), dup) == (DUPLICATE, [1])
    assert reason(said("bob", "See a/b#5.", 5), dup) == "cross_repository"


def test_your_problem_means_the_last_bystanders() -> None:
    bob, ann = said("bob", "It flickers here.", 9), said("ann", "I see.", 8)
    eve, yours = said("eve", "Mine crashes.", 7), said("mia", "Your problem is a dup of #1.")
    assert call(bob, ann, eve, yours)[0] is not DUPLICATE
    assert call(ann, eve, yours)[0] is not DUPLICATE
    assert call(bob, eve, ann, yours) == (DUPLICATE, [1])  # the author's is this issue
