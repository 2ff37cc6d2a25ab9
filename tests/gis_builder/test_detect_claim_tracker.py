"""How later statements change a claim: confirmed, completed, disputed, or explained otherwise."""

from tests.support.shorthand import each_line, parametrize, text_lines

from .detect_threads import check, decided, talk, talks

ASKED = "bob 200: Is this a dup of #1?"  # too early to count without an answer
GUESS = "max 100: Perhaps a dup of #1"
HM = "max 100: Let me see."
FAR = f"{HM} | max 99: Let me see."
WORDS_10, WORDS_29 = " ".join(["word"] * 10), " ".join(["word"] * 29)


@parametrize(
    "expected, lines",
    talks(f"""
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
        A bot's list of similar issues names none of them
            #1 bot 5: Possible duplicate: #1 (90%) | mia: Closing as a duplicate.
            no_target bot 5: Possible duplicates: #2 (90%), #1 (80%) | mia: Closing as a duplicate.
            #2 bot 5: Possible duplicates: #2 (90%), #1 (80%) | mia: Closing as a duplicate of #2.
            #2,#1 bot 5: Possible duplicates: #2 (90%), #1 (80%) | mia: A dupe of those. Closing.
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
        A link to a comment is a target only if there is no other
            #1 mia: Duplicate of https://github.com/o/n/issues/1#issuecomment-5
            #2 mia: Duplicate of #2 and https://github.com/o/n/issues/1#issuecomment-5
        Tracking a part of the issue is no reason to close it
            #1 mia: This is tracked in #1.
            no mia: This is partly tracked in #1.
            no mia: The other half is tracked in #1.
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
def test_claims(expected, lines):
    check(expected, lines)


def test_a_question_becomes_a_guess_if_its_speaker_repeats_it():
    # 0.88 x 0.86.
    assert decided(*talk(ASKED, "bob 1: It seems to be a dup.")).confidence == 0.757


@parametrize(
    "those", ["those", "them", "those two", "these two", "both", "both of them"]
)
def test_a_plural_means_all_issues_of_the_last_mention(those):
    earlier = ["bob 5: See #3.", "bob 4: It seems related to #1 and #2."]
    check("#1,#2", [*earlier, f"mia: This is a dupe of {those}. Closing."])
    check("#2", [*earlier, "mia: This is a dupe of that. Closing."])
    check("no", [*earlier, f"mia: I disagree that this is a dupe of {those}."])


UNSURE = "mia 5: This could be a dup of #1, but I want to look closer."
LONG = (
    "eve 3: A frame is only handed on once both halves were drawn, and the second half waits for the clock "
    "of the slower screen, so that nothing tears."
)
REASONS = text_lines("""
    Actually, this is a bug in the Cairo bindings.
    It's a problem with your `fontconfig`.
    That's an upstream bug, I told them.
    I reported it upstream.
    Turns out the menu draws twice.
    This is by design: frames are dropped below the fold.
    It works as intended.
    This is expected on two screens.
    We decided long ago that this isn't a bug.
    Not a bug, the docs say so.
    It was my own mistake, the file was empty.
    It turned out to be a misconfiguration.
    I misread the manual.
    Sorry, I forgot to call `flush`.
    User error.
    The actual cause was a stale cache.
    This is just because the buffer is shared.
    It's due to the compositor's clock.
    Updating the driver fixed it.
    It went away after upgrading to 2.1.
    I can't reproduce it any more.
    I could not reproduce this on main.
    It no longer happens here.
    It works fine with the new release.
""")


@parametrize("reason", REASONS)
def test_another_explanation_revokes_a_guess(reason):
    for who in ("mia", "ann"):
        check("no", [UNSURE, f"{who} 1: {reason}", "mia: Closing."])


@each_line("""
    comment
    I see it too, on two screens.
    Does it happen with one screen?
    Is this by design?
    Could it be an upstream bug?
    I don't think this is by design.
    Here is a smaller example. It takes three windows and a menu.
    If it turns out to be the menu I'll say so.
    It is caused by the same loop as #1.
    This is a bug in the loop that #1 speaks of.
    This is not a bug that we will have in 2.1.
    It never works as intended.
    Here is the log; the driver is 1.2, the system was updated in May.
    Thanks for the log!
""")
def test_other_comments_leave_a_guess_valid(comment):
    check("#1", [UNSURE, f"ann 1: {comment}", "mia: Closing."])


@parametrize(
    "expected, lines",
    talks(f"""
        Without an explanation the guess counts
            #1 {UNSURE} | mia: Closing.
        An assertion is not explained away
            #1 mia 5: This is a dup of #1. | ann 1: It's due to the compositor. | mia: Closing.
        An explicit yes confirms despite an explanation
            #1 {UNSURE} | ann 2: It turns out that the driver draws twice. | mia: +1, closing as dup.
            #1 {UNSURE} | ann 2: It turns out that the driver draws twice. | mia: Right, that's #1.
            #1 {UNSURE} | ann 2: It turns out that the driver draws twice. | mia: Thanks, it's #1 then.
            #1 bob 5: Is this a dup of #1? | mia: Yes. It's due to the driver drawing twice.
        A thread that was explained is a duplicate again if someone with authority says so
            #1 {UNSURE} | ann 2: It turns out that the driver draws twice. | ann 1: Yes, see #1.
            #1 {UNSURE} | ann 2: It turns out that the driver draws twice. | mia: Thanks! #1 has it.
            no {UNSURE} | ann 2: It turns out that the driver draws twice. | eve 1: Yes, see #1.
            no {UNSURE} | ann 2: It turns out that the driver draws twice. | mia: I have read #1.
            no {UNSURE} | ann 2: It turns out that the driver draws twice. | mia: Thanks for that!
        A yes answers the last explanation
            #1 bob 5: Maybe a dup of #1? | ann 0.5: That makes sense, thanks! Closing.
            #1 bob 5: Maybe a dup of #1? | ann 0.5: Yes, indeed.
            #1 bob 5: Maybe a dup of #1? | ann 0.5: Oh, thanks.
            no bob 5: Maybe a dup of #1? | eve 3: This is by design, see #1. | ann 0.5: That makes sense!
            no bob 5: Maybe a dup of #1? | eve 3: This is by design, see #1. | ann 0.5: Yes, indeed.
            no bob 5: Maybe a dup of #1? | eve 3: This is by design, see #1. | ann 0.5: Oh, thanks.
            no bob 5: Maybe a dup of #1? | eve 3: Builds for me as expected. | mia: Right, works.
        Makes sense accepts a long comment as explanation
            no {UNSURE} | {LONG} | mia: Ok, that makes sense. Closing.
            no {UNSURE} | {LONG} | mia: Thanks for the explanation, closing.
            #1 {UNSURE} | eve 3: Looks so. | mia: Ok, that makes sense. Closing.
            #1 {UNSURE} | {LONG} So it is what #1 describes. | mia: Ok, that makes sense. Closing.
        A bystander's explanation changes nothing
            #1 {UNSURE} | eve 1: This is by design. | mia: Closing.
        An explanation after the closing was not the reason
            #1 {UNSURE} | ann -5: It was my own mistake.
            no {UNSURE} | ann -0.005: It was my own mistake.
    """),
)
def test_guesses(expected, lines):
    check(expected, lines)


def test_an_authors_note_in_the_body_can_explain():
    body = "It flickers. Possibly this is a dup of #1.\n\nEdit: it was my own mistake."
    check("no", [], body=body, closed_by="ann")


def test_marks_outweigh_explanations():
    explained = [UNSURE, "mia 1: This is by design."]
    check("#1", explained, labels=("duplicate",))
    check("#1", [*explained, "!marked 0 #1"])
