"""Runs on texts without labels."""

import pytest

import aoe_train
from tests.aoe_train.test_train_teachers import sentences
from tests.aoe_train.tiny import save_bert

TEXTS = list(dict.fromkeys(sentences(80)))
FEW = {"preset": "domain", "top_layers": 1, "lr": 1e-2, "progress": False, "seed": 3}


@pytest.mark.parametrize(
    ("arguments", "smoothing"),
    [({}, 0.25), ({"purpose": "group"}, 1), ({"purpose": "match"}, 0),
     ({"purpose": "match", "settings": {"teacher.smoothing": 0.5}}, 0.5)],
)  # fmt: skip
def test_plain_texts_become_a_model(shallow, tmp_path, arguments, smoothing):
    run = aoe_train.train(TEXTS, backbone=shallow, out=tmp_path / "model", **FEW, **arguments)
    assert run.steps == (150 if arguments.get("purpose") == "group" else 75)
    assert run.record["origin"]["settings"]["teacher"]["smoothing"] == smoothing
    assert run.record["origin"]["settings"]["objective"]["score_form"] == "kl"
    first, last = run.history[0]["score_distill"], run.history[-1]["score_distill"]
    assert last < first
    card = (tmp_path / "model" / "README.md").read_text()
    assert f"Smoothing {smoothing:g} over 8 mutual neighbours" in card


def test_another_teacher_is_smoothed_the_same_way(shallow, tmp_path):
    save_bert(tmp_path / "teacher", dim=16, layers=1, seed=7)
    run = aoe_train.train(
        TEXTS, backbone=shallow, out=tmp_path / "model", teacher=tmp_path / "teacher", **FEW
    )
    assert run.record["advisers"]["teacher"]["dim"] == 16
    assert run.record["origin"]["settings"]["teacher"]["smoothing"] == 0.25


def test_plain_texts_need_no_preset(tmp_path):
    """With enough layers the preset domain is the default; below that, SimCSE."""
    for layers, preset in ((3, "domain"), (2, "auto")):
        backbone = save_bert(tmp_path / f"bert{layers}", layers=layers)
        run = aoe_train.train(TEXTS, backbone=backbone, out=tmp_path / f"out{layers}", progress=False)
        assert run.record["origin"]["settings"]["preset"] == preset
        assert ("score_distill" in run.history[-1]) == (preset == "domain")


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [({}, ["sample-pairs", "review", "evaluate"]), ({"interpolate": 0}, [])],
)
def test_steps_to_judge_follow_only_a_changed_model(shallow, tmp_path, arguments, steps):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    run = aoe_train.train(tmp_path / "texts.txt", backbone=shallow, out=tmp_path / "m", **FEW, **arguments)
    commands = [command for _, command in run.next_steps()]
    assert [command[1] for command in commands] == steps
    assert all(str(tmp_path / "texts.txt") in command for command in commands[:1])


def test_a_dry_run_plans_75_steps(shallow, tmp_path):
    planned = aoe_train.plan(TEXTS, backbone=shallow, out=tmp_path / "model", preset="domain", top_layers=1,
                             progress=False)  # fmt: skip
    assert planned.record["steps"] == 75
