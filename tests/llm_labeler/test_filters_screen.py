from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_labeler.parsing.filters import Screened, screen
from llm_labeler.parsing.scripts import fold
from llm_labeler.records import AskKey, Item, Task, Text
from llm_labeler.settings import FilterSettings

TEXT = Text.of("A man plays a guitar.", 1)
DEFAULT = FilterSettings()
Answer = tuple[AskKey, list[Item]]


def answer(llm: str, task: Task, *items: str | Item, prompt: str = "p") -> Answer:
    key = AskKey(TEXT.text_id, llm, task, prompt, "0")
    return key, [item if isinstance(item, Item) else Item(item) for item in items]


def screened(*answers: Answer) -> Screened:
    return screen(TEXT, answers, DEFAULT)


def test_a_candidate_has_all_its_proposers() -> None:
    result = screened(
        answer("llama", "positive", "someone plays a guitar", prompt="q"),
        answer("chatgpt", "positive", "Someone plays a guitar."),
        answer("chatglm", "positive", Item("Sure!", "preamble"), "SOMEONE plays a guitar!"),
    )
    (candidate,) = result.candidates
    assert candidate.candidate == "SOMEONE plays a guitar!"  # spelling of chatglm, the first by name
    assert (candidate.llms, candidate.prompt_hashes) == (("chatglm", "chatgpt", "llama"), ("p", "q"))
    assert [proposal.reason for proposal in result.proposals] == ["preamble", None, None, None]


def test_repeats_of_one_llm_are_dropped() -> None:
    result = screened(
        answer("a", "positive", "Someone plays a guitar.", "someone plays a guitar"),
        answer("a", "positive", "Someone plays a guitar!", prompt="q"),
    )
    assert [proposal.reason for proposal in result.proposals] == [None, "repeated", "repeated"]
    assert [(c.llms, c.prompt_hashes) for c in result.candidates] == [(("a",), ("p", "q"))]


def test_sentences_of_both_polarities_are_dropped() -> None:
    strums, strums_too = "someone strums a guitar", "Someone strums a guitar!"
    result = screened(
        answer("a", "positive", "Someone strums a guitar.", "A guy plays a guitar."),
        answer("b", "negative", strums, strums_too, "Nobody plays a guitar."),
    )
    both = "both_polarities"
    assert [p.reason for p in result.proposals] == [both, None, both, both, None]
    kept = [("A guy plays a guitar.", "positive"), ("Nobody plays a guitar.", "negative")]
    assert [(c.candidate, c.polarity) for c in result.candidates] == kept


def test_a_dropped_negative_does_not_contest_a_positive() -> None:
    near = "The man played a guitar."
    result = screened(answer("a", "positive", near), answer("b", "negative", near))
    assert [proposal.reason for proposal in result.proposals] == [None, "near_copy"]
    assert [candidate.polarity for candidate in result.candidates] == ["positive"]


def test_answers_about_other_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="judge"):
        screen(TEXT, [answer("a", "judge", "same")], DEFAULT)
    with pytest.raises(ValueError, match=TEXT.text_id):
        screen(Text.of("Another.", 2), [answer("a", "positive", "One.")], DEFAULT)


sentence_texts = st.sampled_from(
    [
        TEXT.text,
        "a man plays a guitar",
        "Someone plays a guitar.",
        "someone plays a guitar!",
        "Nobody plays a guitar.",
        "The man played guitars.",
        "A man doesn't play.",
        "一个男人在弹吉他。",
        "No.",
        "123",
    ]
)
items = st.lists(
    st.builds(Item, sentence_texts, st.sampled_from([None, None, None, "preamble", "beyond_size"])),
    max_size=5,
)
keys = st.builds(
    AskKey,
    st.just(TEXT.text_id),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["positive", "negative"]),
    st.sampled_from(["p", "q"]),
    st.sampled_from(["0", "1"]),
)
answers = st.lists(st.tuples(keys, items), max_size=8)


@settings(max_examples=100)
@given(answers, st.randoms(use_true_random=False))
def test_screening_keeps_every_item_in_any_order(given_answers: list[Answer], chance: random.Random) -> None:
    result = screened(*given_answers)
    assert Counter((p.llm, p.polarity, p.prompt_hash, p.candidate) for p in result.proposals) == Counter(
        (key.llm, key.task, key.prompt_hash, item.text) for key, items_ in given_answers for item in items_
    )
    shuffled = list(given_answers)
    chance.shuffle(shuffled)
    assert screened(*shuffled) == result

    kept = [p for p in result.proposals if p.reason is None]
    # Each kept proposal belongs to one candidate.
    assert sorted((p.llm, p.polarity, fold(p.candidate)) for p in kept) == sorted(
        (llm, c.polarity, fold(c.candidate)) for c in result.candidates for llm in c.llms
    )
    positives = {fold(c.candidate) for c in result.candidates if c.polarity == "positive"}
    negatives = {fold(c.candidate) for c in result.candidates if c.polarity == "negative"}
    assert not positives & negatives
    assert len(positives) + len(negatives) == len(result.candidates)
    assert fold(TEXT.text) not in positives | negatives
    assert all(c.candidate in {p.candidate for p in kept} for c in result.candidates)
