"""The split of each text, for any texts and candidates."""

from collections import Counter, defaultdict

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_labeler.runs import assemble as _split
from llm_labeler.settings import TextSplitSettings
from pairkit.similarity.terms import first_of_same
from tests.support.shorthand import table

EVEN = TextSplitSettings(validation=0.3, test=0.3)
LETTERS = "abcdefghij"
# Few characters, so that texts are often equal or similar, or share candidates.
SENTENCES = st.text(st.sampled_from("ab AＡß."), min_size=1, max_size=4)
WORLDS = st.lists(st.tuples(SENTENCES, st.lists(SENTENCES, max_size=3)), max_size=60)


def split_texts(texts, candidates, settings, seed):
    """The split of each text by id."""
    ids = sorted(texts)
    sentences = [
        *map(texts.__getitem__, ids),
        *(sentence for _, sentence in candidates),
    ]
    owners = [*range(len(ids)), *(ids.index(text_id) for text_id, _ in candidates)]
    series = pl.Series(sentences, dtype=pl.String)
    splits = _split.split_texts(ids, series, np.array(owners, np.int32), settings, seed)
    return dict(zip(ids, splits, strict=True))


def words(number):
    """A sentence without words of other numbers' sentences."""
    return " ".join(f"{letter}{number}" for letter in LETTERS)


def unrelated(count):
    return {f"t{number:05}": words(number) for number in range(count)}


def world(drawn):
    texts = {f"t{number:03}": text for number, (text, _) in enumerate(drawn)}
    return texts, [
        (f"t{number:03}", each)
        for number, (_, words) in enumerate(drawn)
        for each in words
    ]


@given(WORLDS, st.integers(0, 5))
def test_no_sentence_is_in_two_splits(drawn, seed):
    texts, candidates = world(drawn)
    split_of = split_texts(texts, candidates, EVEN, seed)
    sentences = [*texts.items(), *candidates]
    seen = defaultdict(set)
    for (text_id, _), same in zip(
        sentences, first_of_same([text for _, text in sentences]), strict=True
    ):
        seen[same].add(split_of[text_id])
    assert {*map(len, seen.values())} <= {1}


@settings(max_examples=40)
@given(WORLDS, st.randoms(use_true_random=False))
def test_the_order_of_input_does_not_matter(drawn, random):
    texts, candidates = world(drawn)
    before = split_texts(texts, candidates, EVEN, 1)
    shuffled = list(texts.items())
    random.shuffle(shuffled)
    random.shuffle(candidates)
    assert split_texts(dict(shuffled), candidates, EVEN, 1) == before


def test_near_identical_texts_are_in_one_split():
    long = " ".join(words(number) for number in range(5))
    texts = {"a": long, "b": long + " indeed", "c": words(9)}
    for seed in range(40):
        split_of = split_texts(texts, [], EVEN, seed)
        assert split_of["a"] == split_of["b"]


def test_shares_are_met_on_average():
    texts = unrelated(2000)
    shares = TextSplitSettings(validation=0.1, test=0.2)
    counts = Counter(split_texts(texts, [], shares, 3).values())
    # Four standard deviations of the draws: sqrt(2000 * 0.1 * 0.9) is 13.4, sqrt(2000 * 0.2 * 0.8) 17.9.
    assert abs(counts["validation"] - 200) < 54
    assert abs(counts["test"] - 400) < 72
    of_seeds = [split_texts(texts, [], shares, seed) for seed in (3, 4)]
    assert of_seeds[0] != of_seeds[1]


def test_added_texts_change_no_split():
    before = split_texts(unrelated(400), [], TextSplitSettings(), 42)
    after = split_texts(unrelated(700), [], TextSplitSettings(), 42)
    assert {text_id: after[text_id] for text_id in before} == before
    assert set(before.values()) == {"train", "validation", "test"}


@settings(max_examples=40)
@given(
    st.integers(20, 45), st.sampled_from([0.0, 0.01, 0.05, 0.3, 0.49]), st.sampled_from([0.0, 0.01, 0.5]),
    st.integers(0, 1000), st.integers(1, 12),
)  # fmt: skip
def test_no_requested_split_is_empty_with_twenty_groups(
    groups, validation, test, seed, size
):
    texts = unrelated(groups * size)
    # Texts of a group share a candidate.
    candidates = [
        (text_id, f"shared by {position % groups}")
        for position, text_id in enumerate(texts)
    ]
    shares = TextSplitSettings(validation=validation, test=test)
    result = set(split_texts(texts, candidates, shares, seed).values())
    wanted = {"train", validation and "validation", test and "test"}
    assert result == wanted - {0.0}


@given(st.integers(1, 19), st.integers(0, 1000))
def test_train_is_never_empty(count, seed):
    shares = TextSplitSettings(validation=0.49, test=0.5)
    assert "train" in split_texts(unrelated(count), [], shares, seed).values()


@table("""
    size, possible
    10 | {'train', 'validation', 'test'}
    11 | {'train'}
""")
def test_groups_of_more_than_ten_texts_are_in_train(size, possible):
    texts = unrelated(100)
    shared = [(text_id, "Not at all.") for text_id in list(texts)[:size]]
    chosen = set[str]()
    for seed in range(20):
        split_of = split_texts(texts, shared, EVEN, seed)
        (split,) = {split_of[text_id] for text_id, _ in shared}
        chosen.add(split)
    assert chosen == possible
