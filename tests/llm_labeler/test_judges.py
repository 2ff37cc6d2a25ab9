"""The judges' estimated accuracies, and labels from votes weighted by them."""

import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from llm_labeler.judging import ensemble
from llm_labeler.judging.ensemble import (
    CLASSES,
    Judge,
    Judges,
    collect,
    fit,
    fit_judges,
    label,
    votes_by_judge,
)
from llm_labeler.records import VOTES, Candidate, JudgeVote
from llm_labeler.settings import EnsembleSettings
from tests.support.linear import assert_linear
from tests.support.shorthand import approx, parametrize

SETTINGS = EnsembleSettings(min_items=50)
SKILLS = {"ann": 0.9, "bob": 0.75, "eve": 0.55}
PRIOR = (0.5, 0.3, 0.2)
WORDS = {"s": "same", "o": "opposite", "u": "unrelated", "?": "unsure"}


def votes_of(*votes):
    """Votes from one string per candidate and one letter per judge; `-`: not asked."""
    return [
        JudgeVote(f"c{position}", f"j{number}", WORDS[letter])
        for position, letters in enumerate(votes)
        for number, letter in enumerate(letters)
        if letter != "-"
    ]


JUDGED = (
    st.integers(0, 6).map(str),
    st.sampled_from(["ann", "bob", "eve", "max"]),
    st.sampled_from(VOTES),
)
ANY_VOTES = st.lists(st.builds(JudgeVote, *JUDGED), max_size=60)


def test_contradictory_votes_abstain():
    twice = [
        JudgeVote("c", "ann", "same"),
        JudgeVote("c", "ann", "opposite"),
        JudgeVote("c", "bob", "same"),
    ]
    assert votes_by_judge(twice) == {"bob": "same"}
    assert collect(twice).unsure.tolist() == [1, 0]
    assert votes_by_judge([twice[0], twice[0]]) == {"ann": "same"}


FIVE = SKILLS | {"max": 0.8, "zoe": 0.4}


def test_accuracies_equal_those_of_crowdkit(monkeypatch):
    monkeypatch.setattr(ensemble, "SMOOTHING", 0.0)
    ballots = collect(
        judgements(classes(100, PRIOR, 3), FIVE, 3, unsure=0.1, leave_out=True)
    )
    result = fit(ballots).accuracy.tolist()
    crowdkits = {
        "ann": 0.8743,
        "bob": 0.6913,
        "eve": 0.5737,
        "max": 0.8617,
        "zoe": 0.6107,
    }
    assert dict(zip(ballots.names, result, strict=True)) == approx(crowdkits, abs=2e-4)


@parametrize("leave_out", [False, True])
def test_accuracies_of_simulated_judges_are_recovered(leave_out):
    truth = classes(6000, PRIOR, 5)
    judges = fit_judges(
        judgements(truth, SKILLS, 5, unsure=0.1, leave_out=leave_out), SETTINGS
    )
    assert judges.method == "dawid-skene"
    assert judges.reason is None
    assert {name: judge.accuracy for name, judge in judges.by_name.items()} == approx(
        SKILLS, abs=0.03
    )
    assert [judges.prior[name] for name in CLASSES] == approx(PRIOR, abs=0.03)


@settings(max_examples=40)
@given(ANY_VOTES, st.randoms(use_true_random=False))
def test_estimates_ignore_order_and_stay_in_range(votes, order):
    settings = EnsembleSettings(min_items=1)
    shuffled = list(votes)
    order.shuffle(shuffled)
    judges = fit_judges(votes, settings)
    assert judges == fit_judges(shuffled, settings)
    assert all(0 <= (judge.accuracy or 0) <= 1 for judge in judges.by_name.values())
    assert sum(judges.prior.values()) == approx(1)
    assert all(0 <= agreement.share <= 1 for agreement in judges.agreements)
    assert judges.alpha is None or judges.alpha <= 1
    judged = {
        name: len({v.candidate_id for v in votes if v.judge == name})
        for name in judges.by_name
    }
    assert {name: judge.judged for name, judge in judges.by_name.items()} == judged
    json.dumps(judges.to_dict())


@parametrize(
    "votes, words",
    [
        ([], "0 judges"),
        (votes_of(*["ss"] * 60), "2 judges"),
        (votes_of(*["ss?"] * 60), "2 judges"),
        (votes_of(*["sss"] * 49), "on 49 candidates; ensemble.min_items is 50"),
        # Single votes are not compared.
        (
            votes_of(*["sss"] * 49, *["s--"] * 50),
            "on 49 candidates",
        ),
    ],
)
def test_few_votes_fall_back_to_the_majority(votes, words):
    judges = fit_judges(votes, SETTINGS)
    assert judges.method == "majority"
    assert judges.reason is not None
    assert words in judges.reason


def test_an_unconverged_estimate_falls_back_to_the_majority(monkeypatch):
    monkeypatch.setattr("llm_labeler.judging.ensemble._MAX_ROUNDS", 1)
    judges = fit_judges(judgements(classes(100, PRIOR, 1), SKILLS, 1), SETTINGS)
    assert judges.method == "majority"
    assert judges.reason == "the estimate of accuracies did not converge"


def test_majority_figures_computed_by_hand():
    judges = fit_judges(votes_of("sss", "sso", "u??", "-oo"), SETTINGS)
    assert judges.compared == 3
    assert judges.by_name["j0"].judged == 3
    assert judges.by_name["j1"].unsure == 1
    assert {judge.accuracy for judge in judges.by_name.values()} == {None}
    assert judges.prior["same"] == approx((5 + 1) / (9 + 3))
    shares = {(a.one, a.other): (a.candidates, a.share) for a in judges.agreements}
    assert shares == {
        ("j0", "j1"): (2, 1.0),
        ("j0", "j2"): (2, 0.5),
        ("j1", "j2"): (3, approx(2 / 3)),
    }


def _judgements_of(items):
    return judgements(classes(items, PRIOR, 4), SKILLS | {"max": 0.7}, 4, unsure=0.05)


def test_fitting_takes_linear_time():
    assert fit_judges(_judgements_of(10_000), SETTINGS).method == "dawid-skene"
    assert_linear(
        lambda votes: fit_judges(iter(votes), SETTINGS), _judgements_of, 10_000
    )


def classes(n, prior, seed):
    """Draw the true classes of n candidates."""
    chance = random.Random(seed)
    return {f"{k:016x}": chance.choices(CLASSES, prior)[0] for k in range(n)}


def judgements(truth, accuracy, seed, *, unsure=0.0, leave_out=False):
    """Simulate votes; with `leave_out`, each judge in turn has proposed a candidate and doesn't judge it."""
    chance = random.Random(seed)
    votes = []
    for position, (id_, right) in enumerate(truth.items()):
        for number, (judge, skill) in enumerate(accuracy.items()):
            wrong = [name for name in CLASSES if name != right]
            vote = right if chance.random() < skill else chance.choice(wrong)
            if leave_out and position % len(accuracy) == number:
                continue
            votes.append(
                JudgeVote(id_, judge, "unsure" if chance.random() < unsure else vote)
            )
    return votes


def weighted(
    polarity, letters, prior=(1 / 3, 1 / 3, 1 / 3), *, min_confidence=0.6, **accuracy
):
    """A candidate labelled by judges of these accuracies, with a vote of each."""
    candidate = Candidate("text", "words", polarity, ("ann",))
    votes = [
        JudgeVote("", f"j{number}", WORDS[letter])
        for number, letter in enumerate(letters)
    ]
    known = {name: Judge(100, 0, share) for name, share in accuracy.items()}
    shares = dict(zip(CLASSES, prior, strict=True))
    fitted = Judges(known, shares, (), None, 100, "dawid-skene", None)
    chosen = EnsembleSettings(aggregation="weighted", min_confidence=min_confidence)
    (pair,) = label([candidate], {candidate.candidate_id: votes}, chosen, fitted)
    return pair


def test_weighted_label_computed_by_hand():
    pair = weighted("positive", "so", (0.5, 0.25, 0.25), j0=0.8, j1=0.6)
    # Bayes.
    same, opposite, unrelated = 0.5 * 0.8 * 0.2, 0.25 * 0.1 * 0.6, 0.25 * 0.1 * 0.2
    assert pair.label == approx(same / (same + opposite + unrelated))
    assert pair.reason is None
    # Below the confidence, it is unsure.
    assert weighted("positive", "s", j0=0.6, min_confidence=0.59).reason is None
    assert weighted("positive", "s", j0=0.6, min_confidence=0.61).reason == "unsure"
    # certainly not the same
    assert weighted("negative", "ou", j0=0.7, j1=0.7, min_confidence=0.8).reason is None


@parametrize(
    "letters, prior, accuracy, expected",
    [
        ("?", (0.2, 0.5, 0.3), {"j0": 0.9}, 0.2),  # no vote
        # A judge below chance counts against its vote.
        (
            "s",
            (1 / 3, 1 / 3, 1 / 3),
            {"j0": 0.1},
            0.1,
        ),
        # An unknown judge has a low weight.
        ("s", (1 / 3, 1 / 3, 1 / 3), {"other": 0.9}, 0.5),
    ],
)
def test_weights_of_unusual_judges(letters, prior, accuracy, expected):
    assert weighted("positive", letters, prior, **accuracy).label == approx(expected)
