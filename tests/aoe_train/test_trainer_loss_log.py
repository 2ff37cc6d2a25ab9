"""Means by part between two entries, and which rows made a loss that is no number."""

from __future__ import annotations

import pytest
import torch

from aoe_train.training.loss_log import Diverged, LossLog
from pairkit.app.errors import DataError


def parts(loss: float, ibn: float = 0.0) -> dict[str, torch.Tensor]:
    return {"loss": torch.tensor(loss), "ibn": torch.tensor(ibn)}


def test_means_since_the_last_entry() -> None:
    log = LossLog(0.5)
    log.add(parts(1, 10), [0, 1], 0)
    log.add(parts(2, 30), [2, 3], 0)
    assert log.drain() == {"loss": 1.5, "ibn": 20.0}
    log.add(parts(5, 7), [4], 1)
    assert log.drain() == {"loss": 5.0, "ibn": 7.0}
    assert log.drain() == {}


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("step", "error", "words"),
    [(0, DataError, "before the first step"), (7, Diverged, r"at step 7: .*lower --lr \(now 0.5\)")],
)
def test_names_the_rows_of_the_first_bad_batch(
    loss: float, step: int, error: type[Exception], words: str
) -> None:
    log = LossLog(0.5)
    log.add(parts(1), [0, 1], 0)
    log.add(parts(loss), [9, 2], step)
    log.add(parts(loss), [3, 4], step + 1)
    with pytest.raises(error, match=words) as caught:
        log.drain()
    assert f"the loss became {loss} on a batch of rows 2, 9 " in str(caught.value)


def test_keeps_no_graph_and_looks_at_the_loss_alone() -> None:
    log, weight = LossLog(0.5), torch.ones((), requires_grad=True)
    log.add({"loss": weight * 2, "ibn": torch.tensor(float("inf"))}, [0], 0)
    assert not log._batches[0].parts["loss"].requires_grad
    assert log.drain()["loss"] == 2
