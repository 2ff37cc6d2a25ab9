"""Runs from rows to a model folder: resuming, finished runs, and refused settings."""

import math
import shutil
import sys
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from transformers import TrainerCallback
from transformers.integrations import integration_utils

import aoe_train
from aoe_train import Encoder, evaluate, train
from tests.aoe_train.shorthand import figures, stderr
from tests.aoe_train.tiny import (
    WORDS,
    edit,
    read_json,
    refusal,
    save_bert,
    weights,
    write_pairs,
)
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    module_fixture,
    pair,
    table,
)

ROWS = 90


@module_fixture
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    return {
        "data": write_pairs(folder / "train.tsv", ROWS, 1),
        "dev_data": write_pairs(folder / "dev.tsv", 30, 2),
    }


PAPERS = {"optim.lr": 1e-3, "optim.batch_size": 16, "log.steps": 2}


def how(**flags):
    """Arguments of `train`; `optim__lr` is the setting `optim.lr`."""
    given = {name.replace("__", "."): value for name, value in flags.items()}
    return {"settings": {"preset": "angle-paper", **PAPERS, **given}}


def run(sources, backbone, out, fresh=False, callbacks=(), progress=False, **flags):
    """The record of a run with the papers' settings."""
    more = {"fresh": fresh, "callbacks": callbacks, "progress": progress}
    return train(backbone=backbone, out=out, **sources, **how(**flags), **more).record


def score(model, held_out):
    """The model's Spearman correlation on these pairs."""
    return figures(evaluate(model, data=held_out, resamples=0))["spearman"]


class Watch(TrainerCallback):
    """Calls a function with the trained model at an event."""

    def __init__(self, event, see):
        setattr(self, event, lambda *_, model, **__: see(model))


@module_fixture
def finished(data, shallow, tmp_path_factory):
    """A finished run of two epochs; don't change it."""
    folder = tmp_path_factory.mktemp("finished")
    run(data, shallow, folder / "m", optim__epochs=2)
    return folder / "m"


def test_finished_model_loads_and_is_not_trained_again(data, shallow, finished):
    record = read_json(finished / "run.json")
    result = record["result"]
    assert (result["steps"], result["pairs"]) == (12, 2 * ROWS)
    assert result["dev"] == max(entry["eval_dev"] for entry in record["dev_history"])
    assert {"loss", "cosent", "in_batch", "angle"} <= record["history"][0].keys()
    assert [entry["step"] for entry in record["history"]] == [1, 2, 4, 6, 8, 10, 12]
    assert [path.name for path in finished.parent.iterdir()] == ["m"]
    saved = finished / "model.safetensors"
    stamp = saved.stat().st_mtime_ns
    # Settings of the log don't matter.
    assert run(data, shallow, finished, optim__epochs=2, log__steps=7) == record
    assert saved.stat().st_mtime_ns == stamp


def test_other_settings_or_inputs_are_refused(data, shallow, finished, tmp_path):
    def refused(match, given=data, backbone=shallow, **flags):
        with config_error(match):
            run(given, backbone, finished, **{"optim__epochs": 2, **flags})

    refused(r"settings\.seed \(42 there, 7 now\).*fresh=True", seed=7)
    refused("dev_data", {**data, "dev_data": data["data"]})
    refused("backbone", backbone=save_bert(tmp_path / "heavier", seed=3))
    other = shutil.copytree(shallow, tmp_path / "other")
    normalizer = read_json(other / "tokenizer.json")["normalizer"]
    assert normalizer["lowercase"]
    edit(other / "tokenizer.json", normalizer=normalizer | {"lowercase": False})
    refused("other settings: tokenizer ", backbone=other)
    Encoder.load(shallow, max_length=16).save(tmp_path / "shorter")
    longest = r"other settings: encoder\.max_length \(\d+ there, 16 now"
    refused(longest, backbone=tmp_path / "shorter")
    assert not finished.with_name("m.work").exists()


def test_best_weights_are_saved(data, shallow, out):
    # This learning rate is too high.
    record = run(data, shallow, out, optim__lr=0.01, optim__epochs=3, optim__warmup=0)
    scores = {entry["step"]: entry["eval_dev"] for entry in record["dev_history"]}
    assert record["best_step"] == max(scores, key=scores.get) != max(scores)
    assert score(out, data["dev_data"]) == approx(record["result"]["dev"], abs=1e-4)


def test_custom_metric_and_callbacks(data, shallow, tmp_path):
    steps, calls = [], []

    def fewest(encoder):
        """Falls with each evaluation."""
        calls.append(encoder.encode(["a text"]).shape)
        return -float(len(calls))

    watch = Watch("on_step_end", steps.append)
    given = {"backbone": shallow, "callbacks": [watch, TrainerCallback], "epochs": 2}
    found = train(data["data"], out=tmp_path / "m", dev_metric=fewest, **given)
    assert {*calls} == {(1, found.encoder.dim)}
    evaluations = [entry["eval_dev"] for entry in found.history if "eval_dev" in entry]
    assert evaluations == [-float(call) for call in range(2, len(calls) + 1)]
    assert (found.dev_metric, found.dev_before) == ("fewest", -1)
    assert found.dev == evaluations[0]
    assert len(steps) == found.steps
    for value, shown in (
        (math.nan, "nan"),
        (np.array([0.1, 0.2]), r"array\(\[0.1, 0.2"),
    ):
        with refusal(f"dev_metric: found {shown}.*; expected a finite number"):
            train(
                data["data"],
                out=tmp_path / "n",
                dev_metric=lambda _, value=value: value,
                **given,
            )


def test_average_of_weights_is_scored_and_saved(data, shallow, out):
    passed = []

    def see(model):
        passed.append(deepcopy(model.text_model.backbone.state_dict()))

    flags = {"optim__average": 0.5, "optim__evaluations": 1}
    record = run(data, shallow, out, callbacks=[Watch("on_step_end", see)], **flags)
    found = weights(out)
    assert len(passed) == 6
    mean = {
        name: torch.stack([step[name] for step in passed[3:]]).mean(0) for name in found
    }
    torch.testing.assert_close(found, mean, atol=1e-6, rtol=1e-5)
    assert not torch.equal(
        found["embeddings.LayerNorm.weight"], passed[-1]["embeddings.LayerNorm.weight"]
    )
    assert score(out, data["dev_data"]) == approx(record["result"]["dev"], abs=1e-4)


@table(
    """
    owner, method, error
    STEP | backward | CUDA
    MODEL | load | CPU
    """,
    STEP=torch.Tensor,
    MODEL=Encoder,
    CUDA=torch.OutOfMemoryError("CUDA out of memory."),
    CPU=RuntimeError("could not create a memory object"),
)
def test_out_of_memory_advice(data, shallow, out, monkeypatch, owner, method, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(owner, method, refuse)
    message = r"out of memory: lower batch_size= \(now 16\) or max_length="
    for call in (train, aoe_train.plan):
        with config_error(message):
            call(**data, backbone=shallow, out=out, **how())


def test_an_accumulated_gradient_is_the_mean_of_its_batches(data, tmp_path):
    backbone = save_bert(tmp_path / "bert", dropout=0.0, layers=1)
    rows, flags = {"data": data["data"]}, {"optim__lr": 1e-12, "log__steps": 1}
    alone = run(rows, backbone, tmp_path / "a", **flags)
    together = run(rows, backbone, tmp_path / "b", optim__accumulation=6, **flags)
    norms, (found,) = (
        [entry["grad_norm"] for entry in record["history"]]
        for record in (alone, together)
    )
    assert len(norms) == 6
    # The norm of a mean is at most the mean of the norms.
    assert found <= 1.001 * np.mean(norms)


def test_foreign_folder_is_never_replaced(data, shallow, out):
    out.mkdir()
    (out / "thesis.tex").write_text("years")
    with config_error("other files than a model of `aoe train`"):
        run(data, shallow, out, fresh=True)
    assert (out / "thesis.tex").exists()


def test_early_stopping(data, shallow, out):
    flags = {"optim__lr": 0.01, "optim__patience": 2, "optim__warmup": 0}
    result = run(data, shallow, out, optim__epochs=5, **flags)["result"]
    assert result["steps"] < 30
    assert result["pairs"] < 5 * ROWS


def test_tensorboard_continues_after_a_kill(
    data, shallow, tmp_path, monkeypatch, kill_at
):
    opened, scalars = [], []

    class SummaryWriter:
        def __init__(self, log_dir, purge_step):
            Path(log_dir).mkdir(parents=True, exist_ok=True)
            opened.append((log_dir, purge_step))

        def add_scalar(self, name, _, step):
            scalars.append((name, step))

        def __getattr__(self, _):
            return lambda *_, **__: None

    monkeypatch.delenv("TENSORBOARD_LOGGING_DIR", raising=False)
    monkeypatch.setattr(integration_utils, "is_tensorboard_available", lambda: True)
    stand_in = SimpleNamespace(SummaryWriter=SummaryWriter)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", stand_in)
    flags = {"log__report_to": ["tensorboard"], "log__checkpoint_steps": 2}
    record = kill_at(5, lambda: run(data, shallow, tmp_path / "m", **flags))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "m.runs"]
    (folder,) = (tmp_path / "m.runs").iterdir()
    assert opened == [(str(folder), None), (str(folder), 5)]
    assert ("train/loss", 1) in scalars
    assert [entry["step"] for entry in record["history"]] == [1, 2, 4, 6]


@table(
    r"""
    lines, words
    'text\na\nthe\na\nthe\na\nthe\n' | single texts
    ALIKE | '3'
    """,
    ALIKE="sentence1\tsentence2\tscore\n" + "a\tdog\t3\n" * 9,
)
def test_unusable_dev_rows(data, shallow, out, tmp_path, capsys, lines, words):
    shutil.copy(data["data"], tmp_path / "train.tsv")
    held_out = tmp_path / "validation.tsv"
    held_out.write_text(lines)
    found = train(tmp_path, backbone=shallow, out=out, epochs=0.2, max_length=8)
    assert found.dev is None
    told = stderr(capsys)
    assert "validation split is left out" in told
    assert "texts are truncated to 8 tokens" in told
    assert words in told
    with data_error(f"{words}.*dev_data="):
        train(data["data"], dev_data=held_out, backbone=shallow, out=tmp_path / "n")


@table(
    """
    flags, top, line, lr
    {} | 1 | AUC of {} on 32 training pairs before training: 100.00; there is little to learn | 5e-6
    {'prompts': {'query': 'a man '}} | 1 | AUC of {} on 32 training pairs before training: | 5e-5
    # given, or graded
    {'lr': 1e-4} | 1 | '' | 1e-4
    {} | 0.5 | '' | 5e-5
    """,
)
def test_learning_rate_depends_on_the_backbones_auc(
    flags, top, line, lr, shallow, out, capsys
):
    rows = [
        pair(f"{one} man", f"{other} man", label * top)
        for place, one in enumerate(WORDS[:16])
        for label, other in ((1, one), (0, WORDS[20 + place]))
    ]
    given = {"batch_size": 32, "dev_data": rows[:8]} | flags
    found = train(rows, backbone=shallow, out=out, **given)
    told = stderr(capsys)
    assert "warning: 8 of the 8 dev rows of data-1 have only training texts" in told
    assert line.format(shallow) in told
    assert ("AUC of" in told) == bool(line)
    assert found.record["origin"]["settings"]["optim"]["lr"] == lr


def test_dev_gain_has_an_interval(data, shallow, out):
    held_out = [
        {
            "anchor": f"a {word} man",
            "positive": f"the {word} dog",
            "negative": f"no {other}",
        }
        for word, other in pairwise(WORDS * 2)
    ]
    given = {"dev_data": held_out[:60], "lr": 1e-9, "epochs": 0.2}
    found = train(data["data"], backbone=shallow, out=out, **given)
    _, told, no_better = found.notes()
    gain = "1.0000, before 1.0000 (+0.0000 [0.0000, 0.0000], "
    assert f"triplet_accuracy on dev data: {gain}" in told
    assert told.endswith(" 60 rows)")
    assert "better" in no_better
    assert found.to_dict()["dev_gain"]["ci95"] == [0, 0]
