"""Phrases that call an issue a duplicate without the usual words, and phrases that only look similar."""

from __future__ import annotations

import pytest

from .detect_threads import cases, check


@pytest.mark.parametrize(
    ("expected", "lines"),
    cases(r"""
        Duplicates
            #1 mia: This got several dupes already (see #1), so I'm closing it.
            #1 mia: It has a couple of duplicates, e.g. #1. Closing.
            #1 mia: Really similar to #1, so let me close this.
            #1 mia: Closed, as it's almost the same as #1.
            #1 mia: The backtrace is quite similar to #1. Closing this one.
            #1 mia: We're tracking this under #1 already.
            #1 mia: Already tracking it at https://github.com/o/n/issues/1.
            #1 mia: There's already https://github.com/o/n/issues/1, thanks!
            #1 mia: There is already #1 about the flicker.
            #1 mia: Sorry, there was already an older report: #1
            #1 mia: Let's move the discussion to #1.
            #1 mia: Let's hop over to #1.
            #1 mia: Let's keep the conversation in #1, please.
            #1 mia: Let's use #1 for the shadows.
            #1 mia: Please follow #1 instead.
            #1 mia: It flickers exactly like in #1.
            #1 mia: #1 is probably a better description of this problem.
            #1 mia: #1 should replace this.
            #1 mia: I opened #1 to cover this.
            #1 mia: https://github.com/o/n/issues/1 と重複しているようです
            #1 mia: 重複です。#1 を参照してください。
            #1 mia: #1 と同じ問題です。
            #1 mia: 与#1重复，关闭
            #1 mia: 跟 #1 是一样的问题
            #1 mia: 已经有 #1 了
            #1 mia: #1과 중복됩니다
            #1 mia: Dup of #1, no need to keep this open.
            #1 mia: Closing as a dup of #1; rather than leaving this open, follow that one.
            #1 mia: Dup of #1. Let's keep it open there and close it here.
        The issue stays open
            no mia: It would count as a dupe of #1, but I'd like to leave this open for the docs.
            no mia: A duplicate of #1, strictly speaking. I'm keeping it open for its test case.
            no mia: Dup of #1 I guess, though let's not close it before the release.
            no mia: This is a dup of #1 but it remains open until somebody checks the fonts.
        Jokes
            no mia: Right, and the weather is a duplicate of #1 /s
            no mia: Sure, everything is a dup of #1.
            no mia: Obviously a duplicate of #1 🙄
            no mia: dup of #1 (only joking, mine was about sound)
        Other meanings
            no mia: Fixed.\n\n<details><summary>bot</summary>\n\nClosing as a duplicate of #1.\n</details>
            no mia: I get the duplicate of #1 key constraint error as well.
            no mia: The insert ends with duplicate #1 entry, works in 2.0.
            no mia: The same root cause as #1, but the symptom is another.
            no mia: It has the same underlying problem as #1, though it needs a separate fix.
            no mia: #1 has many duplicates.
            no mia: Fixed on main. It was very similar to #1.
            no mia: How does this differ from #1?
        A claim about another person's problem is ignored
            no bob 2: Mine flickers too. | mia 1: @bob your problem is a dup of #1 | mia: Done.
            no bob 2: Mine flickers too. | mia 1: @bob Your crash looks like a duplicate of #1 | mia: Done.
            no bob 2: Mine flickers too. | mia 1: @bob what you describe is a dupe of #1 | mia: Done.
            no bob 2: Mine flickers too. | mia 1: What @bob sees is a dup of #1. | mia: Done.
            no bob 2: Mine flickers too. | mia 1: @bob's issue is the same as #1 | mia: Done.
            no bob 2: Mine flickers too. | mia 1: Yours is a duplicate of #1. | mia: Done.
        A claim addressed to the author counts
            #1 mia: @Ann your problem is a dup of #1
            #1 max 5: I see it too. | mia: Your bug is a dup of #1
            #1 bob 5: +1 | mia: @ann yours is a dup of #1
            #1 bob 5: +1 | mia: Thanks for your report this is a dup of #1
            #1 bob 5: +1 | mia: Your bug is a dup of #1, closing
        A claim addressed to a newcomer after the closing is ignored
            no mia: The new driver fixes it. | bob -1: I have it again! | mia -2: @bob that's a dup of #1
            #1 mia -0.01: @bob as you say, a dup of #1
        A doubted second target does not count
            #1 mia: Dup of #1. Perhaps also a dup of #2.
            #1,#2 mia: Duplicate of #1 and of #2.
            #1 mia: Duplicate of #1, possibly of #2 too
        Same answers a question for the difference
            #1 bob 3: How does this differ from #1? | ann 2: Same issue, will close.
            no bob 3: How does this differ from #1? | ann 2: It's the menu, not the window.
            #1 bob 3: What's the difference to #1? | mia: Ah, same bug. Closing.
        A known issue may be named in the next sentence
            #1 mia: Known issue; see #1.
            #1 mia: It's a known problem. See #1.
            no bob 30: Known issue; see #1.
            no mia: It's no known issue; see #1 for the talk.
            no mia: Fixed; see #1.
    """),
)
def test_phrases(expected: str, lines: list[str]) -> None:
    check(expected, lines)


@pytest.mark.parametrize("those", ["those", "them", "those two", "these two", "both", "both of them"])
def test_a_plural_means_all_issues_of_the_last_mention(those: str) -> None:
    earlier = ["bob 5: See #3.", "bob 4: It seems related to #1 and #2."]
    check("#1,#2", [*earlier, f"mia: This is a dupe of {those}. Closing."])
    check("#2", [*earlier, "mia: This is a dupe of that. Closing."])
    check("no", [*earlier, f"mia: I disagree that this is a dupe of {those}."])
