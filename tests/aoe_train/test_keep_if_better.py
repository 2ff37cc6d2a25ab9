"""Comparison with the backbone on judged pairs (--accept-on)."""

import random

import numpy as np

from aoe_train import evaluate, plan, train
from aoe_train.evaluation.dev import JudgedPairs
from aoe_train.evaluation.pair_task import PairTask
from tests.aoe_train.shorthand import stderr
from tests.aoe_train.tiny import WORDS, card_of, same_weights, save_bert
from tests.support.shorthand import approx, config_error, module_fixture, pair

TOPICS, OTHERS = WORDS[:8], WORDS[8:40]


def judged_rows(seed, pairs=120):
    """Pairs labelled 1 if they share a topic word; other shared words are misleading."""
    draw = random.Random(seed)
    rows = []
    for place in range(pairs):
        topics = draw.sample(TOPICS, 2)
        shared = draw.sample(OTHERS, 1 + place % 2)
        one, other = (draw.sample(OTHERS, 2) + shared for _ in range(2))
        about = [topics[0], topics[place % 2]]
        texts = [
            " ".join(draw.sample([about[side], *words], len(words) + 1))
            for side, words in enumerate((one, other))
        ]
        rows.append(pair(*texts, 1 - place % 2))
    return rows


@module_fixture
def bert(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("guard") / "bert", seed=3)


FEW = judged_rows(7, 96)


def test_pairs_with_other_limits_of_texts_have_another_identity():
    found = set()
    for text1, text2 in (("a", "b\0c"), ("a\0b", "c")):
        task = PairTask("task", [text1], [text2], np.ones(1), {})
        found.add(JudgedPairs(task).identity)
    assert len(found) == 2


def run(data, bert, out, **more):
    how = {"epochs": 6, "batch_size": 16, "lr": 2e-3, "preset": "cosent"}
    return train(data, backbone=bert, out=out, **how | more)


def shuffled():
    """The few texts with inverted labels."""
    return [{**row, "label": 1 - row["label"]} for row in FEW]


def test_better_model_is_saved(bert, out):
    how = {"accept_on": judged_rows(1), "epochs": 4, "lr": 4e-3}
    found = run(judged_rows(7, 320), bert, out, **how)
    assert (found.kept, found.gain.word, found.gain.pairs) == ("model", "better", 120)
    assert not same_weights(out, bert)
    how = {"data": judged_rows(1), "against": bert, "resamples": 100}
    (again,) = evaluate(out, **how).gains.values()
    assert again.after == approx(found.gain.after, abs=1e-3)
    assert again.before == approx(found.gain.before, abs=1e-3)
    card = " ".join(card_of(out).split())
    assert "The weights are the model's." in card
    assert "backbone's own weights" not in card


def test_backbone_is_saved_if_the_model_is_worse(bert, out):
    more = {"accept_on": judged_rows(1), "dev_data": judged_rows(2, 24), "epochs": 1}
    found = run(shuffled(), bert, out, **more)
    assert found.gain.word != "better"
    assert found.kept == "backbone"
    assert same_weights(out, bert)
    assert found.dev == found.dev_before
    assert found.record["best_step"] is None
    assert not (out / "training_texts.npy").exists()  # it has seen none of them
    card = " ".join(card_of(out).split())
    assert "**These are the backbone's own weights.**" in card
    assert "The weights are the backbone's." in card
    assert found.to_dict()["judged"]["verdict"] == found.gain.word
    assert "kept: backbone" in repr(found)
    again = run(shuffled(), bert, out, **more)  # is finished already
    assert (again.kept, str(again.gain)) == ("backbone", str(found.gain))


def test_a_model_that_is_not_better_is_saved_on_request(bert, out):
    judged = {"accept_on": judged_rows(1), "if_not_better": "model"}
    found = run(shuffled(), bert, out, epochs=1, **judged)
    told = " ".join(found.notes())
    assert "judged pairs: AUC " in told
    assert "kept the backbone" not in told
    assert not same_weights(out, bert)
    planned = plan(shuffled(), backbone=bert, **judged)
    assert planned.to_dict()["judged_pairs"] == 120


def test_changed_judged_pairs_are_refused(bert, out, tmp_path, capsys):
    rows = judged_rows(1)
    run(FEW, bert, out, epochs=1, accept_on=rows)
    doubted = [
        {**row, "judged": "", "votes": [], "probability": 0.1 + 0.8 * row["label"]}
        for row in rows
    ]
    for other in (judged_rows(2), doubted):
        with config_error("judged"):
            run(FEW, bert, out, epochs=1, accept_on=other)
    capsys.readouterr()
    same = run(rows, bert, tmp_path / "n", epochs=0.2, accept_on=rows)
    assert same.gain.word == "not judged"
    assert str(same.gain) == "trained on 120 of 120 rows"
    assert same.kept == "backbone"
    assert "warning: the list given: the model is trained on 120 of its 120" in stderr(
        capsys
    )


def test_notes_on_rows_and_missing_comparison(bert, out, tmp_path, capsys):
    found = run(FEW, bert, out, epochs=0.3)
    assert "32 of 96 binary rows: cosent" in stderr(capsys)
    steps, comparison, *_ = found.notes()
    assert steps.startswith("2 steps over 32 of 96 rows in ")
    assert comparison.startswith("not shown to be better than its backbone; give ")
    judged = run(FEW, bert, tmp_path / "judged", epochs=0.3, accept_on=judged_rows(1))
    assert not any(note.startswith("not shown to be better") for note in judged.notes())
