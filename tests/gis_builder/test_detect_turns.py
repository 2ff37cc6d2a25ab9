"""Phrases that call an issue a duplicate without the usual words, and phrases that only look similar."""

from __future__ import annotations

import pytest

from .detect_threads import DUPLICATE, call, said


@pytest.mark.parametrize(
    "closing",
    [
        "This got several dupes already (see #1), so I'm closing it.",
        "It has a couple of duplicates, e.g. #1. Closing.",
        "Really similar to #1, so let me close this.",
        "Closed, as it's almost the same as #1.",
        "The backtrace is quite similar to #1. Closing this one.",
        "We're tracking this under #1 already.",
        "Already tracking it at https://github.com/o/n/issues/1.",
        "There's already https://github.com/o/n/issues/1, thanks!",
        "There is already #1 about the flicker.",
        "Sorry, there was already an older report: #1",
        "Let's move the discussion to #1.",
        "Let's hop over to #1.",
        "Let's keep the conversation in #1, please.",
        "Let's use #1 for the shadows.",
        "Please follow #1 instead.",
        "It flickers exactly like in #1.",
        "#1 is probably a better description of this problem.",
        "#1 should replace this.",
        "I opened #1 to cover this.",
        "A dup of (or rather, a consequence of) #1.",
        "https://github.com/o/n/issues/1 と重複しているようです",
        "重複です。#1 を参照してください。",
        "#1 と同じ問題です。",
        "与#1重复，关闭",
        "跟 #1 是一样的问题",
        "已经有 #1 了",
        "#1과 중복됩니다",
        "Dup of #1, no need to keep this open.",
        "Closing as a dup of #1; rather than leaving this open, follow that one.",
        "Dup of #1. Let's keep it open there and close it here.",
    ],
)
def test_duplicates(closing: str) -> None:
    assert call(said("mia", closing)) == (DUPLICATE, [1])


@pytest.mark.parametrize(
    "words",
    [
        "It would count as a dupe of #1, but I'd like to leave this open for the docs.",
        "A duplicate of #1, strictly speaking. I'm keeping it open for its test case.",
        "Dup of #1 I guess, though let's not close it before the release.",
        "This is a dup of #1 but it remains open until somebody checks the fonts.",
        "Right, and the weather is a duplicate of #1 /s",
        "Sure, everything is a dup of #1.",
        "Obviously a duplicate of #1 🙄",
        "dup of #1 (only joking, mine was about sound)",
        "Fixed.\n\n<details><summary>from the bot</summary>\n\nClosing as a duplicate of #1.\n</details>",
        "I get the duplicate of #1 key constraint error as well.",
        "The insert ends with duplicate #1 entry, works in 2.0.",
        "The same root cause as #1, but the symptom is another.",
        "It has the same underlying problem as #1, though it needs a separate fix.",
        "#1 has many duplicates.",
        "Fixed on main. It was very similar to #1.",
        "How does this differ from #1?",
        "There's already support for it.",
        "Let's move on.",
    ],
)
def test_others(words: str) -> None:
    assert call(said("mia", words))[0] is not DUPLICATE


@pytest.mark.parametrize(
    "aside",
    [
        "@bob your problem is a dup of #1",
        "@bob Your crash looks like a duplicate of #1, mine is about shadows.",
        "@bob what you describe is a dupe of #1",
        "What @bob sees is a dup of #1.",
        "@bob's issue is the same as #1",
        "Yours is a duplicate of #1.",
    ],
)
def test_a_claim_about_another_persons_problem_is_ignored(aside: str) -> None:
    came_along = said("bob", "Mine flickers too, but only in the menu.", 2)
    assert call(came_along, said("mia", aside, 1), said("mia", "The new driver is out."))[0] is not DUPLICATE


def test_a_claim_addressed_to_the_author_counts() -> None:
    assert call(said("mia", "@Ann your problem is a dup of #1")) == (DUPLICATE, [1])
    assert call(said("max", "I see it too.", 5), said("mia", "Your bug is a dup of #1")) == (DUPLICATE, [1])
    for closing in (
        "@ann yours is a dup of #1",
        "Thanks for your report this is a dup of #1",
        "Your bug is a dup of #1, closing",
    ):
        assert call(said("bob", "+1", 5), said("mia", closing)) == (DUPLICATE, [1])


def test_a_claim_addressed_to_a_newcomer_after_the_closing_is_ignored() -> None:
    reason = said("mia", "The new driver fixes it.", 0.01)
    newcomer = said("bob", "I have it again with two screens!", -1)
    assert call(reason, newcomer, said("mia", "@bob that's a dup of #1", -2))[0] is not DUPLICATE
    assert call(said("mia", "@bob as you say, a dup of #1", -0.01)) == (DUPLICATE, [1])


def test_a_second_target_that_is_doubted_does_not_count() -> None:
    assert call(said("mia", "Dup of #1. Perhaps also a dup of #2.")) == (DUPLICATE, [1])
    assert call(said("mia", "Duplicate of #1 and of #2.")) == (DUPLICATE, [1, 2])
    assert call(said("mia", "Duplicate of #1, possibly of #2 too")) == (DUPLICATE, [1])


def test_same_answers_how_does_it_differ() -> None:
    asked = said("bob", "How does this differ from #1?", 3)
    assert call(asked, said("ann", "Same issue, will close.", 2)) == (DUPLICATE, [1])
    assert call(asked, said("ann", "It's the menu, not the window.", 2))[0] is not DUPLICATE
    asked = said("bob", "What's the difference to #1?", 3)
    assert call(asked, said("mia", "Ah, same bug. Closing.")) == (DUPLICATE, [1])


@pytest.mark.parametrize("those", ["those", "them", "those two", "these two", "both", "both of them"])
def test_a_plural_means_all_issues_of_the_last_mention(those: str) -> None:
    named = (said("bob", "See #3.", 5), said("bob", "It seems related to #1 and #2.", 4))
    assert call(*named, said("mia", f"This is a dupe of {those}. Closing.")) == (DUPLICATE, [1, 2])
    assert call(*named, said("mia", "This is a dupe of that. Closing.")) == (DUPLICATE, [2])
    assert call(*named, said("mia", f"I disagree that this is a dupe of {those}."))[0] is not DUPLICATE


def test_a_known_issue_may_be_named_in_the_next_sentence() -> None:
    for known in (
        "Known issue; see #1.",
        "Thanks! It's a known bug; see #1",
        "It's a known problem. See #1.",
    ):
        assert call(said("mia", known)) == (DUPLICATE, [1])
    assert call(said("bob", "Known issue; see #1.", 30))[0] is not DUPLICATE
    assert call(said("mia", "It's no known issue; see #1 for the talk."))[0] is not DUPLICATE
    assert call(said("mia", "Fixed; see #1."))[0] is not DUPLICATE
