"""A guess that is followed by another explanation before the closing."""

from __future__ import annotations

import pytest

from .detect_threads import cases, check

GUESS = "mia 5: This could be a dup of #1, but I want to look closer."
LONG = (
    "eve 3: A frame is only handed on once both halves were drawn, and the second half waits for the clock "
    "of the slower screen, so that nothing tears."
)
REASONS = [
    *("Actually, this is a bug in the Cairo bindings.", "It's a problem with your `fontconfig`."),
    *("That's an upstream bug, I told them.", "I reported it upstream.", "Turns out the menu draws twice."),
    *("This is by design: frames are dropped below the fold.", "It works as intended."),
    *("This is expected on two screens.", "We decided long ago that this isn't a bug."),
    *("Not a bug, the docs say so.", "It was my own mistake, the file was empty."),
    *("It turned out to be a misconfiguration.", "I misread the manual.", "Sorry, I forgot to call `flush`."),
    *("User error.", "The actual cause was a stale cache.", "This is just because the buffer is shared."),
    *("It's due to the compositor's clock.", "Updating the driver fixed it."),
    *("It went away after upgrading to 2.1.", "I can't reproduce it any more."),
    *("I could not reproduce this on main.", "It no longer happens here."),
    "It works fine with the new release.",
]


@pytest.mark.parametrize("reason", REASONS)
def test_another_explanation_revokes_a_guess(reason: str) -> None:
    for who in ("mia", "ann"):
        check("no", [GUESS, f"{who} 1: {reason}", "mia: Closing."])


@pytest.mark.parametrize(
    "comment",
    [
        *("I see it too, on two screens.", "Does it happen with one screen?", "Is this by design?"),
        *("Could it be an upstream bug?", "I don't think this is by design."),
        "Here is a smaller example. It takes three windows and a menu.",
        *("If it turns out to be the menu I'll say so.", "It is caused by the same loop as #1."),
        *("This is a bug in the loop that #1 speaks of.", "This is not a bug that we will have in 2.1."),
        "It never works as intended.",
        *("Here is the log; the driver is 1.2, the system was updated in May.", "Thanks for the log!"),
    ],
)
def test_other_comments_leave_a_guess_valid(comment: str) -> None:
    check("#1", [GUESS, f"ann 1: {comment}", "mia: Closing."])


@pytest.mark.parametrize(
    ("expected", "lines"),
    cases(f"""
        Without an explanation the guess counts
            #1 {GUESS} | mia: Closing.
        An assertion is not explained away
            #1 mia 5: This is a dup of #1. | ann 1: It's due to the compositor. | mia: Closing.
        An explicit yes confirms despite an explanation
            #1 {GUESS} | ann 2: It turns out that the driver draws twice. | mia: +1, closing as dup.
            #1 {GUESS} | ann 2: It turns out that the driver draws twice. | mia: Right, that's #1.
            #1 {GUESS} | ann 2: It turns out that the driver draws twice. | mia: Thanks, it's #1 then.
            #1 bob 5: Is this a dup of #1? | mia: Yes. It's due to the driver drawing twice.
        A yes answers the last explanation
            #1 bob 5: Maybe a dup of #1? | ann 0.5: That makes sense, thanks! Closing.
            #1 bob 5: Maybe a dup of #1? | ann 0.5: Yes, indeed.
            #1 bob 5: Maybe a dup of #1? | ann 0.5: Oh, thanks.
            no bob 5: Maybe a dup of #1? | eve 3: This is by design, see #1. | ann 0.5: That makes sense!
            no bob 5: Maybe a dup of #1? | eve 3: This is by design, see #1. | ann 0.5: Yes, indeed.
            no bob 5: Maybe a dup of #1? | eve 3: This is by design, see #1. | ann 0.5: Oh, thanks.
            no bob 5: Maybe a dup of #1? | eve 3: Builds for me as expected. | mia: Right, works.
        Makes sense accepts a long comment as explanation
            no {GUESS} | {LONG} | mia: Ok, that makes sense. Closing.
            no {GUESS} | {LONG} | mia: Thanks for the explanation, closing.
            #1 {GUESS} | eve 3: Looks so. | mia: Ok, that makes sense. Closing.
            #1 {GUESS} | {LONG} So it is what #1 describes. | mia: Ok, that makes sense. Closing.
        A bystander's explanation changes nothing
            #1 {GUESS} | eve 1: This is by design. | mia: Closing.
        An explanation after the closing was not the reason
            #1 {GUESS} | ann -5: It was my own mistake.
            no {GUESS} | ann -0.005: It was my own mistake.
    """),
)
def test_guesses(expected: str, lines: list[str]) -> None:
    check(expected, lines)


def test_an_authors_note_in_the_body_can_explain() -> None:
    body = "It flickers. Possibly this is a dup of #1.\n\nEdit: it was my own mistake."
    check("no", [], body=body, closed_by="ann")


def test_marks_outweigh_explanations() -> None:
    explained = [GUESS, "mia 1: This is by design."]
    check("#1", explained, labels=("duplicate",))
    check("#1", [*explained, "!marked 0 #1"])
