"""A checkpoint is whole or absent, and the newest is enough."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from aoe_train.training.checkpoints import (
    checkpoint_folder,
    newest_checkpoint,
    restore_weights,
    trained_weights,
    write_extras,
)
from pairkit.app.errors import DataError

Weights = dict[str, torch.Tensor]


def write(work: Path, step: int, best: Weights | None = None, average: Weights | None = None) -> None:
    with checkpoint_folder(work, step, main=True) as folder:
        write_extras(folder, best, average, seconds=1.5 * step)


def test_the_mean_of_the_weights_is_kept_where_there_is_one(tmp_path: Path) -> None:
    write(tmp_path, 3)
    found = newest_checkpoint(tmp_path)
    assert found is not None
    assert (found.best(), found.average()) == (None, None)
    write(tmp_path, 4, average={"w": torch.arange(3.0)})
    found = newest_checkpoint(tmp_path)
    assert found is not None
    assert found.best() is None
    assert torch.equal((found.average() or {})["w"], torch.arange(3.0))


def test_only_the_newest_stays(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path) is None
    write(tmp_path, 90)
    write(tmp_path, 100, {"w": torch.arange(3.0)})
    found = newest_checkpoint(tmp_path)
    assert found is not None
    assert [path.name for path in tmp_path.iterdir()] == ["step-100"]
    assert (found.step, found.seconds()) == (100, 150)
    assert found.trainer_folder == tmp_path / "step-100" / "checkpoint-100"
    assert torch.equal((found.best() or {})["w"], torch.arange(3.0))


def test_one_that_was_cut_short_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, 9)

    class Killed(BaseException):
        pass

    def cut_short() -> None:
        with checkpoint_folder(tmp_path, 10, main=True) as folder:
            (folder / "half").write_text("x")
            raise Killed

    with pytest.raises(Killed):
        cut_short()
    (tmp_path / ".step-11.partial").mkdir()  # what SIGKILL leaves
    found = newest_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 9
    assert found.best() is None


def test_weights_that_learn() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].requires_grad_(requires_grad=False)
    weights = {name: weight + 1 for name, weight in trained_weights(model).items()}
    assert list(weights) == ["1.weight", "1.bias"]
    restore_weights(model, weights, "there")
    assert torch.equal(model[1].bias, weights["1.bias"])


def test_weights_of_another_model_are_refused() -> None:
    with pytest.raises(DataError, match="there: weights of another model"):
        restore_weights(nn.Linear(2, 1), trained_weights(nn.Linear(3, 1)), "there")
