"""Curves out of run.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aoe_train._figures.curves import read_curves
from pairkit.errors import ConfigError, DataError

RUN: dict[str, Any] = {
    "made_by": "aoe 0.1.0",
    "origin": {"settings": {"objective": {"weights": {"cosine": 1.0, "ibn": 0.0, "angle": 2.0}}}},
    "result": {"dev_metric": "spearman", "dev_before": 0.5, "dev": 0.7},
    "history": [
        {"step": 10, "loss": 9.0, "cosine": 3.0, "angle": 3.0, "learning_rate": 1e-5, "epoch": 0.5},
        {"step": 20, "loss": 7.0, "cosine": 3.0, "angle": 2.0, "learning_rate": 0.0, "epoch": 1.0},
    ],
    "dev_history": [{"step": 15, "eval_dev": 0.7}, {"step": 20, "eval_dev": 0.6}],
    "best_step": 15,
}


def write(folder: Path, **changes: object) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps({**RUN, **changes}))
    return str(folder)


def test_the_loss_its_parts_and_the_dev_metric(tmp_path: Path) -> None:
    found = read_curves(write(tmp_path / "M"))
    assert (found.loss.x.tolist(), found.loss.y.tolist()) == ([10, 20], [9, 7])
    assert list(found.parts) == ["cosine", "angle"]  # ibn had no weight; the learning rate is no part
    assert found.parts["angle"].y.tolist() == [3, 2]
    assert found.dev is not None
    assert (found.dev.metric, found.dev.best_step) == ("spearman", 15)
    assert found.dev.curve.x.tolist() == [0, 15, 20]
    assert found.dev.curve.y.tolist() == [0.5, 0.7, 0.6]


def test_a_run_without_held_out_data(tmp_path: Path) -> None:
    result = {"dev_metric": None, "dev_before": None, "dev": None}
    assert read_curves(write(tmp_path / "M", result=result, dev_history=[], best_step=None)).dev is None


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    for model in (str(tmp_path), "minilm"):
        with pytest.raises(ConfigError, match=r"no folder with a run\.json of `aoe train`"):
            read_curves(model)


@pytest.mark.parametrize(
    "changes",
    [{"history": None}, {"history": [{"loss": 1}]}, {"history": [{"step": 1, "loss": "x"}]}, {"result": []}],
    ids=["none", "no-step", "words", "list"],
)
def test_a_history_that_can_not_be_read(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(DataError, match=r"run\.json: no history that can be read"):
        read_curves(write(tmp_path / "M", **changes))


def test_an_empty_history(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"run\.json: its history is empty"):
        read_curves(write(tmp_path / "M", history=[]))
