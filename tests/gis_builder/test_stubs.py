"""Words that only introduce a removed reference are removed with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.pairing.text import clean


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("It fails (see also issue #12 and #13).", "It fails."),
        ("It fails (cf. #12), always.", "It fails, always."),
        ("It fails. (See #12.) Always.", "It fails. Always."),
        ("It fails ( #12 ) always.", "It fails always."),
        ("It fails. Possibly related to #12, #13. It is bad.", "It fails. It is bad."),
        ("It fails, see #12.", "It fails."),
        ("It fails.\n\nThis is related to https://github.com/a/b/issues/12", "It fails."),
        ("See #12 for details.", ""),
        ("The parser fails (see #12 for more details).", "The parser fails."),
        # The clause has other content: only the preposition is removed.
        ("This portion of #12.", "This portion."),
        ("It fails such as in issue #12.", "It fails."),
        ("We hit this bug #12.", "We hit this bug."),
        ("It fails. Spawned off of (#12).", "It fails."),
        ("It fails on start (#12).", "It fails on start."),
        # The sentence needs the reference.
        ("Since PR #12 the parser fails.", "Since another issue the parser fails."),
        ("#12 broke this, pull request #13 did not.", "Another issue broke this, another issue did not."),
        ("My patch fixes #12 and #13.", "My patch fixes another issue."),
        ("Unlike #12, it fails.", "Unlike another issue, it fails."),
        ("This and o/n#12 fail.", "This and another issue fail."),
        ("Bugs #12 and #13 were closed.", "Another issue were closed."),
        ("- #12 parser fails", "- parser fails"),
        ("It fails in #12 5 times. Fixing #12: 5 tests.", "It fails in 5 times. Fixing: 5 tests."),
        ("See [this comment](https://github.com/o/n/issues/1) for it.", "See this comment for it."),
        # Nothing introduces the reference.
        ("The parser #12 fails.", "The parser fails."),
        ("Do you see the window?", "Do you see the window?"),
        ("I can not see.", "I can not see."),
        ("What this is related to.", "What this is related to."),
    ],
)
def test_introductions_of_references_are_removed(text: str, left: str) -> None:
    assert clean(text) == left


@pytest.mark.parametrize("word", ["about", "by", "in", "of", "since", "via", "with"])
def test_a_preposition_before_a_reference_is_removed(word: str) -> None:
    assert clean(f"It crashes {word} #12.") == "It crashes."
    assert clean(f"It crashes. {word} #12.") == "It crashes."


@pytest.mark.parametrize(
    "word", ["blocked", "follow-up", "it's", "might", "part", "probably", "these", "tracking"]
)
def test_a_clause_that_only_introduces_a_reference_is_removed(word: str) -> None:
    assert clean(f"It crashes. {word} #12.") == "It crashes."


@pytest.mark.parametrize("word", ["cf", "ref", "refs", "re"])
def test_an_abbreviation_does_not_end_a_sentence(word: str) -> None:
    assert clean(f"It crashes ({word}. #12).") == "It crashes."


@given(
    st.lists(
        st.sampled_from(
            ["see", "cf.", "a/b#12", "related", "to", "(", ")", ".", ",", "\n", "crash", "of", " "]
        )
    ).map(" ".join)
)
def test_cleaning_is_idempotent_and_keeps_words(text: str) -> None:
    once = clean(text)
    assert once.count("crash") == text.count("crash")
    assert "#12" not in once
    assert clean(once) == once


def test_a_text_without_references_keeps_its_words() -> None:
    text = "See it (cf. the manual). Related to nothing, due to rain."
    assert clean(text) == text
