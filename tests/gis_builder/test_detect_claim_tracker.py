"""How later statements change a claim: who may confirm, complete or dispute it, and how soon after."""

from __future__ import annotations

import pytest

from .detect_threads import cases, check, decided, talk

ASKED = "bob 200: Is this a dup of #1?"  # too early to count without an answer
GUESS = "max 100: Perhaps a dup of #1"
HM = "max 100: Let me see."
FAR = f"{HM} | max 99: Let me see."
WORDS_10, WORDS_29 = " ".join(["word"] * 10), " ".join(["word"] * 29)


@pytest.mark.parametrize(
    ("expected", "lines"),
    cases(f"""
        A yes answers one of the two comments before it
            #1 {ASKED} | mia: Yes.
            #1 {ASKED} | {HM} | mia: Yes.
            no {ASKED} | {FAR} | mia: Yes.
        A bystander's answer must be next and short
            #1 {ASKED} | eve 1: Yes.
            no {ASKED} | {HM} | eve 1: Yes.
            #1 {ASKED} | eve 1: Yes. {WORDS_29}
            no {ASKED} | eve 1: Yes. {WORDS_29} word
        Yes, it works now: no confirmation of a likeness
            no bob 5: Is this the same as #1? | mia: Yes, it works now.
            #1 bob 5: Is this a dup of #1? | mia: Yes, it works now.
        Thanks of someone with authority accept a claim
            #1 {ASKED} | mia 0.5: Oh, thanks!
            #1 {ASKED} | max 0.5: Oh, thanks!
            #1 {ASKED} | ann 0.5: Oh, thanks!
            no {ASKED} | eve 0.5: Oh, thanks!
        Such thanks are near, short or name the issue, and not for a fix
            #1 {ASKED} | ann 0.5: Thanks. {WORDS_29}
            no {ASKED} | ann 0.5: Thanks. {WORDS_29} word
            #1 {ASKED} | ann 0.5: Thanks. {WORDS_29} word #1
            no {ASKED} | max 100: It is fixed. | ann 0.5: Oh, thanks!
            no {ASKED} | {FAR} | ann 0.5: Thanks!
        The claimant may confirm by asking to close
            #1 bob 200: Perhaps a dup of #1 | bob 0.5: Please close. {WORDS_10}
            no bob 200: Perhaps a dup of #1 | bob 0.5: Please close. {WORDS_10} word
            no bob 200: Perhaps a dup of #1 | eve 0.5: Please close.
            no bob 200: Perhaps the same as #1 | bob 0.5: Please close.
        A short answer fills in the target
            #1 bob 30: A dup, but I can't find of what. | eve 29: #1 | mia: Yes.
            no bob 30: A dup, but I can't find of what. | eve 29: #1 or #2 | mia: Yes.
            #1 bob 30: A dup, but I can't find of what. | eve 29: #1 {WORDS_29} | mia: Yes.
            no bob 30: A dup, but I can't find of what. | eve 29: #1 {WORDS_29} word
        A claim without a number means the last issue that was not denied
            #1 bob 5: See #2 and #1 | mia: Closing as a duplicate.
            #1 bob 6: See #1 | bob 5: A dup of #2 | ann 4: Not a dup of #2 | eve 1: It is a duplicate.
            #1 bob 5: #100, or #1 | mia: Closing as a duplicate.
            #1 bob 5: #1, or #550 | mia: Closing as a duplicate.
        Issues of the same repository are preferred
            #1 bob 5: See #1 and a/b#5. | mia: Closing as a duplicate.
            cross_repository bob 5: See a/b#5. | mia: Closing as a duplicate.
        A no disputes a recent claim
            disputed bob 5: dup of #1 | ann 4: No, it's not.
            disputed bob 5: dup of #1 | ann 4: That's a different bug.
            #1 bob 5: dup of #1 | ann 4: Let me see. | ann 3: Let me see. | ann 2: No.
            no bob 5: dup of #1 | ann 4: Let me see. | ann 3: Let me see. | ann 2: #1 is a different bug.
            #1 bob 5: dup of #1 | ann 4: Let me see. | ann 3: Let me see. | ann 2: That's a different bug.
        After the closing only the closer and maintainers can dispute
            disputed mia 1: dup of #1 | mia -1: This is not a dup of #1.
            disputed mia 1: dup of #1 | max -1: This is not a dup of #1.
            #1 mia 1: dup of #1 | eve -1: This is not a dup of #1.
            disputed mia 1: dup of #1 | eve 0.0: This is not a dup of #1.
        The closer's fix before the closing revokes a claim
            fixed bob 5: dup of #1 | mia 0.5: Fixed.
            #1 bob 5: dup of #1 | max 0.5: Fixed.
            #1 bob 5: dup of #1 | mia -0.5: Fixed.
        Only closer and maintainers restore a disputed claim
            #1 bob 5: dup of #1 | ann 4: It's a different bug | mia: It is a dup.
            #1 bob 5: dup of #1 | ann 4: It's a different bug | max: It is a dup.
            no bob 5: dup of #1 | ann 4: It's a different bug | eve: It is a dup.
        A bot's claim must be a command or a closing
            no bot: Possible duplicate of #1
            no bot: Perhaps closing as a duplicate of #1
            no bot: Closed as the same as #1
            #1 bot: Closing as a duplicate of #1
            #1 bot 0.1: /dup #1
            no {ASKED} | bot: Yes.
        A correction needs an earlier claim of its speaker
            #1 mia 1: dup of #2 | mia: I meant #1
            #2 max 1: dup of #2 | mia: I meant #1
            no mia: I meant #1
        Another speaker's guess makes a guess firm
            #1 {GUESS} | eve 1: It seems to be a dup.
            no {GUESS} | max 80: It seems to be a dup.
        Only the closer can claim a part of another issue
            #1 mia 0.0: This is part of #1.
            no max 0.0: This is part of #1.
        Your problem means the last bystander's
            no bob 9: Me too. | ann 8: I see. | eve 7: Mine crashes. | mia: Your problem is a dup of #1.
            no ann 8: I see. | eve 7: Mine crashes. | mia: Your problem is a dup of #1.
            #1 bob 9: Me too. | eve 8: Mine crashes. | ann 7: I see. | mia: Your problem is a dup of #1.
    """),
)
def test_claims(expected: str, lines: list[str]) -> None:
    check(expected, lines)


def test_a_question_becomes_a_guess_if_its_speaker_repeats_it() -> None:
    assert decided(*talk(ASKED, "bob 1: It seems to be a dup.")).confidence == 0.757  # 0.88 x 0.86


@pytest.mark.parametrize("those", ["those", "them", "those two", "these two", "both", "both of them"])
def test_a_plural_means_all_issues_of_the_last_mention(those: str) -> None:
    earlier = ["bob 5: See #3.", "bob 4: It seems related to #1 and #2."]
    check("#1,#2", [*earlier, f"mia: This is a dupe of {those}. Closing."])
    check("#2", [*earlier, "mia: This is a dupe of that. Closing."])
    check("no", [*earlier, f"mia: I disagree that this is a dupe of {those}."])
