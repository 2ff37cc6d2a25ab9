"""A guess that is followed by another explanation before the closing."""

from __future__ import annotations

import pytest

from gis_builder.detection import decide
from gis_builder.detection.page import PreparedText
from gis_builder.detection.reading import accepts_explanation, explains

from .detect_threads import DUPLICATE, call, event, kind_of, ref, said, thread

GUESS = said("mia", "This could be a dup of #1, but I want to look closer.", 5)
DONE = said("mia", "Closing.")
REASONS = [
    "Actually, this is a bug in the Cairo bindings.",
    "It's a problem with your `fontconfig`.",
    "That's an upstream bug, I told them.",
    "I reported it upstream.",
    "Turns out the menu draws twice.",
    "This is by design: frames are dropped below the fold.",
    "It works as intended.",
    "This is expected on two screens.",
    "We decided long ago that this isn't a bug.",
    "Not a bug, the docs say so.",
    "It was my own mistake, the file was empty.",
    "It turned out to be a misconfiguration.",
    "I misread the manual.",
    "Sorry, I forgot to call `flush`.",
    "User error.",
    "The actual cause was a stale cache.",
    "This is just because the buffer is shared.",
    "It's due to the compositor's clock.",
    "Updating the driver fixed it.",
    "It went away after upgrading to 2.1.",
    "I can't reproduce it any more.",
    "I could not reproduce this on main.",
    "It no longer happens here.",
    "It works fine with the new release.",
]


def page(text: str) -> PreparedText:
    return PreparedText(text, ref(100), ())


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("who", ["mia", "ann"])
def test_another_explanation_revokes_a_guess(reason: str, who: str) -> None:
    assert call(GUESS, DONE) == (DUPLICATE, [1])
    assert call(GUESS, said(who, reason, 1), DONE)[0] is not DUPLICATE
    assert explains(page(reason))


@pytest.mark.parametrize(
    "chatter",
    [
        "I see it too, on two screens.",
        "Does it happen with one screen?",
        "Is this by design?",
        "Could it be an upstream bug?",
        "I don't think this is by design.",
        "Here is a smaller example. It takes three windows and a menu.",
        "If it turns out to be the menu I'll say so.",
        "It is caused by the same loop as #1.",
        "This is a bug in the loop that #1 speaks of.",
        "This is not a bug that we will have in 2.1.",
        "It never works as intended.",
        "Here is the log; the driver is 1.2, the system was updated in May.",
        "Thanks for the log!",
    ],
)
def test_other_comments_leave_a_guess_valid(chatter: str) -> None:
    assert call(GUESS, said("ann", chatter, 1), DONE) == (DUPLICATE, [1])
    assert not explains(page(chatter))


def test_an_assertion_is_not_explained_away() -> None:
    firm = said("mia", "This is a dup of #1.", 5)
    assert call(firm, said("ann", "It's due to the compositor.", 1), DONE) == (DUPLICATE, [1])


def test_an_explicit_yes_confirms_despite_an_explanation() -> None:
    reason = said("ann", "It turns out that the driver draws twice.", 2)
    assert call(GUESS, reason, said("mia", "+1, closing as dup.")) == (DUPLICATE, [1])
    assert call(GUESS, reason, said("mia", "Right, that's #1.")) == (DUPLICATE, [1])
    assert call(GUESS, reason, said("mia", "Thanks, I'll put it down to #1 then.")) == (DUPLICATE, [1])
    asked = said("bob", "Is this a dup of #1?", 5)
    assert call(asked, said("mia", "Yes. It's due to the driver drawing twice.")) == (DUPLICATE, [1])


def test_a_yes_answers_the_last_explanation() -> None:
    asked = said("bob", "Maybe a dup of #1?", 5)
    design = said("eve", "I think this is by design, see the talk in #1.", 3)
    for answer in ("That makes sense, thanks! Closing.", "Yes, indeed.", "Oh, thanks."):
        assert call(asked, said("ann", answer, 0.5)) == (DUPLICATE, [1])
        assert call(asked, design, said("ann", answer, 0.5))[0] is not DUPLICATE
    fixed = said("eve", "Builds for me as expected, is it gone?", 3)
    assert call(asked, fixed, said("mia", "Right, works."))[0] is not DUPLICATE


def test_makes_sense_accepts_a_long_comment_as_explanation() -> None:
    long = said(
        "eve",
        "A frame is only handed on once both halves were drawn, and the second half waits for the clock "
        "of the slower screen, so that nothing tears.",
        3,
    )
    makes_sense = said("mia", "Ok, that makes sense. Closing.")
    assert call(GUESS, long, makes_sense)[0] is not DUPLICATE
    assert call(GUESS, said("eve", "Looks so.", 3), makes_sense) == (DUPLICATE, [1])
    also = said("eve", f"{long.body} So it is what #1 describes.", 3)
    assert call(GUESS, also, makes_sense) == (DUPLICATE, [1])
    assert accepts_explanation(page("Thanks for the explanation"))


def test_a_bystanders_explanation_changes_nothing() -> None:
    assert call(GUESS, said("eve", "This is by design.", 1), DONE) == (DUPLICATE, [1])


def test_an_explanation_after_the_closing_was_not_the_reason() -> None:
    assert call(GUESS, said("ann", "It was my own mistake.", -5)) == (DUPLICATE, [1])
    assert call(GUESS, said("ann", "It was my own mistake.", -0.005))[0] is not DUPLICATE


def test_an_authors_note_in_the_body_can_explain() -> None:
    body = "It flickers. Possibly this is a dup of #1.\n\nEdit: it was my own mistake."
    assert decide(thread(body=body, closed_by="ann"), kind_of).outcome is not DUPLICATE


def test_marks_outweigh_explanations() -> None:
    explained = said("mia", "This is by design.", 1)
    labelled = thread(GUESS, explained, labels=("duplicate",))
    assert decide(labelled, kind_of).outcome is DUPLICATE
    marked = thread(GUESS, explained, event("marked_as_duplicate", 0, 1))
    assert decide(marked, kind_of).outcome is DUPLICATE
