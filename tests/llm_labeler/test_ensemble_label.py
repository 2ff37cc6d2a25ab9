from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_labeler.judging.ensemble import label
from llm_labeler.judging.judges import Judge, Judges
from llm_labeler.records import POLARITIES, Candidate, JudgeVote, LabelledPair, Polarity, Vote
from llm_labeler.settings import EnsembleSettings

WORDS: dict[str, Vote] = {"s": "same", "o": "opposite", "u": "unrelated", "?": "unsure"}
ACCURACY = {"j0": 0.9, "j1": 0.7, "j2": 0.6, "j3": 0.2}
AGGREGATIONS = ("union", "vote", "weighted")


def candidate(polarity: Polarity = "positive", *llms: str, words: str = "words") -> Candidate:
    return Candidate("text", words, polarity, llms or ("ann",))


def cast(letters: str, of: Candidate) -> list[JudgeVote]:
    return [JudgeVote(of.candidate_id, f"j{n}", WORDS[letter]) for n, letter in enumerate(letters)]


def judges(prior: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3), **accuracy: float) -> Judges:
    known = {name: Judge(100, 0, share) for name, share in (accuracy or ACCURACY).items()}
    share = dict(zip(("same", "opposite", "unrelated"), prior, strict=True))
    return Judges(known, share, (), None, 100, "dawid-skene", None)  # type: ignore[arg-type]


def one(
    aggregation: str, polarity: Polarity, letters: str, fitted: Judges | None = None, **settings: object
) -> LabelledPair:
    of = candidate(polarity)
    chosen = EnsembleSettings.model_validate({"aggregation": aggregation, **settings})
    (pair,) = label([of], {of.candidate_id: cast(letters, of)}, chosen, fitted)
    assert pair.candidate is of
    return pair


def test_union_keeps_all() -> None:
    assert one("union", "positive", "ooo").reason is None
    assert one("union", "positive", "").label == 1
    assert one("union", "negative", "").label == 0


@pytest.mark.parametrize(
    ("polarity", "letters", "reason"),
    [
        ("positive", "s", None),
        ("positive", "sso", None),
        ("positive", "s??", None),
        ("positive", "so", "undecided"),
        ("positive", "sou", "undecided"),
        ("positive", "", "undecided"),
        ("positive", "??", "undecided"),
        ("positive", "u", "outvoted"),
        ("positive", "suu", "outvoted"),
        ("positive", "o", "outvoted"),
        ("positive", "ou", "undecided"),
        ("negative", "o", None),
        ("negative", "u", None),
        ("negative", "ou", None),  # neither is `same`
        ("negative", "os", "undecided"),
        ("negative", "oouss", None),
        ("negative", "ouss", "undecided"),
        ("negative", "s", "outvoted"),
        ("negative", "sso", "outvoted"),
    ],
)
def test_vote(polarity: Polarity, letters: str, reason: str | None) -> None:
    pair = one("vote", polarity, letters)
    assert pair.reason == reason
    assert pair.polarity == polarity
    assert pair.label == (1 if polarity == "positive" else 0)


@pytest.mark.parametrize(
    ("letters", "reason"), [("o", None), ("u", "outvoted"), ("ou", "undecided"), ("oou", None)]
)
def test_unrelated_does_not_confirm_a_negative_if_disabled(letters: str, reason: str | None) -> None:
    assert one("vote", "negative", letters, unrelated_is_negative=False).reason == reason


@pytest.mark.parametrize("aggregation", ["vote", "weighted"])
def test_reversed_pairs_are_swapped_on_request(aggregation: str) -> None:
    to_negative = one(aggregation, "positive", "ooo", judges(), reversed_pairs="swap")
    assert (to_negative.polarity, to_negative.reason) == ("negative", None)
    assert to_negative.label == pytest.approx(0, abs=0.05)
    to_positive = one(aggregation, "negative", "sss", judges(), reversed_pairs="swap")
    assert (to_positive.polarity, to_positive.reason) == ("positive", None)
    assert to_positive.label == pytest.approx(1, abs=0.05)
    assert one(aggregation, "positive", "uuu", judges(), reversed_pairs="swap").reason == "outvoted"
    assert one(aggregation, "positive", "ooo", judges()).reason == "outvoted"


def test_weighted_label_computed_by_hand() -> None:
    """Bayes: accuracy 0.8 for same, 0.6 for opposite, prior 1/2, 1/4, 1/4."""
    pair = one("weighted", "positive", "so", judges((0.5, 0.25, 0.25), j0=0.8, j1=0.6))
    same, opposite, unrelated = 0.5 * 0.8 * 0.2, 0.25 * 0.1 * 0.6, 0.25 * 0.1 * 0.2
    total = same + opposite + unrelated
    assert pair.label == pytest.approx(same / total)
    assert pair.reason is None


def test_weighted_below_the_confidence_is_unsure() -> None:
    fitted = judges(j0=0.6)  # one vote: 0.6
    assert one("weighted", "positive", "s", fitted, min_confidence=0.59).reason is None
    assert one("weighted", "positive", "s", fitted, min_confidence=0.61).reason == "unsure"
    # certainly not the same
    assert one("weighted", "negative", "ou", judges(j0=0.7, j1=0.7), min_confidence=0.8).reason is None


def test_weighted_without_votes_is_undecided() -> None:
    pair = one("weighted", "positive", "?", judges((0.2, 0.5, 0.3)))
    assert pair.reason == "undecided"
    assert pair.label == pytest.approx(0.2)


def test_a_judge_below_chance_counts_against_its_vote() -> None:
    assert one("weighted", "positive", "s", judges(j0=0.1)).label < 1 / 3


def test_an_unknown_judge_has_a_low_weight() -> None:
    assert one("weighted", "positive", "s", judges(other=0.9)).label == pytest.approx(0.5)


def test_weighted_falls_back_to_shares_of_votes() -> None:
    known = judges()
    majority = Judges(known.by_name, known.prior, (), None, 3, "majority", "too few")
    for fitted in (None, majority):
        pair = one("weighted", "positive", "ssou?", fitted, min_confidence=0.5)
        assert pair.label == pytest.approx(0.5)
        assert pair.reason is None
        assert one("weighted", "positive", "so", fitted, min_confidence=0.5).reason == "undecided"


CANDIDATES = st.lists(st.tuples(st.sampled_from(POLARITIES), st.text("sou?", max_size=4)), max_size=6)


@given(CANDIDATES, st.sampled_from(AGGREGATIONS), st.booleans(), st.randoms(use_true_random=False))
def test_labels_do_not_depend_on_order(
    drawn: list[tuple[Polarity, str]], aggregation: str, is_fitted: bool, order: random.Random
) -> None:
    settings, fitted = EnsembleSettings(aggregation=aggregation), judges() if is_fitted else None
    candidates = [candidate(polarity, words=str(n)) for n, (polarity, _) in enumerate(drawn)]
    votes = {c.candidate_id: cast(letters, c) for c, (_, letters) in zip(candidates, drawn, strict=True)}
    pairs = label(candidates, votes, settings, fitted)
    assert [pair.candidate for pair in pairs] == candidates
    assert all(0 <= pair.label <= 1 for pair in pairs)
    for sequence in (shuffled := [*candidates], *votes.values()):
        order.shuffle(sequence)
    again = {pair.candidate: pair for pair in label(shuffled, votes, settings, fitted)}
    assert [again[pair.candidate] for pair in pairs] == pairs
