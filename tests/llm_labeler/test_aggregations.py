"""The label of a candidate by its judges' votes: a run of all cases, and further aggregations of it."""

import json

import polars as pl
import pytest

import llm_labeler
from tests.support.shorthand import approx, config_error, module_fixture, values

WORDS = {"s": "same", "o": "opposite", "u": "unrelated", "?": "unsure"}
JUDGES = 5
# Polarity, a letter per judge (the others are unsure), and why `vote` drops the candidate.
VOTED = values("""
    positive | s | None
    positive | sso | None
    positive | s?? | None
    positive | so | undecided
    positive | sou | undecided
    positive | ?? | undecided
    positive | u | outvoted
    positive | suu | outvoted
    positive | o | outvoted
    positive | ou | undecided
    negative | o | None
    negative | u | None
    # neither is `same`
    negative | ou | None
    negative | os | undecided
    negative | oouss | None
    negative | ouss | undecided
    negative | s | outvoted
    negative | sso | outvoted
    negative | oou | None
""")


def sentence(polarity, letters):
    return f"Case {letters.replace('?', 'x')} {polarity}."


def proposing(prompt):
    """Proposes a sentence if it is asked for the polarity of the case."""
    text = json.loads(prompt.rpartition("Sentence: ")[2])
    polarity = "negative" if "say the opposite" in prompt else "positive"
    return f"1. Then {text}" if polarity in text else "None"


def judging(number):
    def judge(prompt):
        data = json.loads(prompt[prompt.index('{"text"') :])
        letters = data["text"].split()[1].replace("x", "?").ljust(JUDGES, "?")
        return json.dumps(dict.fromkeys(data["sentences"], WORDS[letters[number]]))

    return judge


@module_fixture
def work(tmp_path_factory):
    texts = [sentence(polarity, letters) for polarity, letters, _ in VOTED]
    judges = {f"j{number}": judging(number) for number in range(JUDGES)}
    result = llm_labeler.generate(
        texts,
        llm={"ann": proposing},
        judges=judges,
        aggregation="vote",
        out=tmp_path_factory.mktemp("votes") / "out",
        settings={"filters.min_length_ratio": 0},
    )
    assert result.problem is None
    return result.work


@pytest.fixture
def aggregate(work, tmp_path):
    """By case: polarity and label of its pair, or why there is none."""

    def by_case(aggregation, **ensemble):
        settings = {f"ensemble.{name}": value for name, value in ensemble.items()}
        given = {"aggregation": aggregation, "settings": settings, "fresh": True}
        result = llm_labeler.parse(work, out=tmp_path / "out", **given)
        run = json.loads((result.out / "run.json").read_text())
        assert ("judge" in run["prompts"]) == (aggregation != "union")
        found = result.pairs.rows
        assert found["label"].dtype == (
            pl.Float32 if aggregation == "weighted" else pl.Int64
        )
        pairs = found.select("text1", "polarity", "label").rows()
        kept = {text: (polarity, label) for text, polarity, label in pairs}
        reasons = dict(
            pl.read_parquet(work / "candidates.parquet")
            .select("text", "reason")
            .iter_rows()
        )
        return {
            (polarity, letters): kept.get(text) or reasons[text]
            for polarity, letters, _ in VOTED
            if (text := sentence(polarity, letters))
        }

    return by_case


def as_proposed(polarity):
    return polarity, float(polarity == "positive")


def test_union_keeps_all_and_vote_the_confirmed_ones(aggregate):
    assert aggregate("union") == {
        (p, letters): as_proposed(p) for p, letters, _ in VOTED
    }
    assert aggregate("vote") == {
        (p, letters): reason or as_proposed(p) for p, letters, reason in VOTED
    }


def test_unrelated_does_not_confirm_a_negative_if_disabled(aggregate):
    result = aggregate("vote", unrelated_is_negative=False)
    changed = {
        "u": "outvoted",
        "ou": "undecided",
        "oouss": "undecided",
        "ouss": "outvoted",
    }
    assert {letters: result["negative", letters] for letters in changed} == changed
    assert result["negative", "oou"] == ("negative", 0.0)


def test_reversed_pairs_are_swapped_on_request(aggregate):
    result = aggregate("vote", reversed_pairs="swap")
    assert result["positive", "o"] == ("negative", 0.0)
    assert result["negative", "s"] == result["negative", "sso"] == ("positive", 1.0)
    assert result["positive", "u"] == "outvoted"


def test_weighted_falls_back_to_shares_of_few_votes(aggregate):
    result = aggregate("weighted", min_confidence=0.6)
    assert result["positive", "sso"] == ("positive", approx(2 / 3))
    assert result["negative", "oouss"] == ("negative", approx(2 / 5))
    assert (result["positive", "so"], result["positive", "??"]) == (
        "unsure",
        "undecided",
    )
    assert aggregate("weighted", min_confidence=0.5)["positive", "so"] == "undecided"
    assert aggregate("weighted", min_confidence=0.61)["negative", "oouss"] == "unsure"
    swapped = aggregate("weighted", reversed_pairs="swap")
    assert swapped["positive", "o"] == ("negative", 0.0)


def test_votes_count_under_another_seed_and_other_filters(tmp_path):
    proposals = "1. Someone plays.\n2. He strums.\n3. A man out there plays it all day."

    def judge(prompt):
        numbered = json.loads(prompt[prompt.index('{"text"') :])["sentences"]
        return json.dumps(dict.fromkeys(numbered, "same"))

    given = {"polarity": "positive", "aggregation": "vote", "judges": {"j": judge}}
    asked = llm_labeler.generate(
        ["A man plays."], llm={"p": lambda _: proposals}, out=tmp_path / "o", **given
    )
    shorter = {"filters.max_length_ratio": 1.5}
    parsed = llm_labeler.parse(asked.work, out=tmp_path / "p", seed=7, settings=shorter)
    assert (asked.positives, parsed.positives) == (3, 2)
    with config_error("input, llm and judge"):
        llm_labeler.parse(asked.work, out=tmp_path / "q", settings={"input.limit": 1})
