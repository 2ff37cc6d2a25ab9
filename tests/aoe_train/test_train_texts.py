"""Runs on texts without labels."""

import pytest

import aoe_train
from tests.aoe_train.test_train_teachers import sentences
from tests.aoe_train.tiny import save_bert

TEXTS = list(dict.fromkeys(sentences(80)))
FEW = {"preset": "domain", "top_layers": 1, "lr": 1e-2, "progress": False, "seed": 3}


@pytest.mark.parametrize(
    ("arguments", "smoothing"),
    [({}, 0.25), ({"purpose": "group"}, 1), ({"settings": {"teacher.smoothing": 0.5}}, 0.5)],
)
def test_plain_texts_become_a_model(shallow, tmp_path, arguments, smoothing):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    run = aoe_train.train(tmp_path / "texts.txt", backbone=shallow, out=tmp_path / "m", **FEW, **arguments)
    planned = aoe_train.plan(TEXTS, backbone=shallow, **FEW, **arguments)
    assert run.steps == planned.record["steps"] == (150 if "purpose" in arguments else 75)
    settings = run.record["origin"]["settings"]
    assert (settings["teacher"]["smoothing"], settings["objective"]["score_form"]) == (smoothing, "kl")
    assert run.history[-1]["score_distill"] < run.history[0]["score_distill"]
    card = (tmp_path / "m" / "README.md").read_text()
    assert f"Smoothing {smoothing:g} over 8 mutual neighbours" in card
    assert [command[1] for _, command in run.next_steps()] == ["sample-pairs", "review", "evaluate"]


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


def test_an_unchanged_model_has_no_next_steps(shallow, tmp_path):
    run = aoe_train.train(TEXTS, backbone=shallow, out=tmp_path / "m", **FEW, interpolate=0)
    assert run.next_steps() == []
