"""Means by part between two entries, and which rows made a loss that is no number."""

from __future__ import annotations

import pytest
import torch

from aoe_train.training.trainer.divergence import Diverged
from aoe_train.training.trainer.loss_log import LossLog
from pairkit.app.errors import DataError


def parts(loss: float, ibn: float = 0.0) -> dict[str, torch.Tensor]:
    return {"loss": torch.tensor(loss), "ibn": torch.tensor(ibn)}


def test_means_since_the_last_entry() -> None:
    ledger = LossLog(0.5)
    ledger.add(parts(1, 10), [0, 1], 0)
    ledger.add(parts(2, 30), [2, 3], 0)
    assert ledger.drain() == {"loss": 1.5, "ibn": 20.0}
    ledger.add(parts(5, 7), [4], 1)
    assert ledger.drain() == {"loss": 5.0, "ibn": 7.0}
    assert ledger.drain() == {}


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("step", "error", "words"),
    [(0, DataError, "before the first step"), (7, Diverged, r"at step 7: .*lower --lr \(now 0.5\)")],
)
def test_names_the_rows_of_the_first_bad_batch(
    loss: float, step: int, error: type[Exception], words: str
) -> None:
    ledger = LossLog(0.5)
    ledger.add(parts(1), [0, 1], 0)
    ledger.add(parts(loss), [9, 2], step)
    ledger.add(parts(loss), [3, 4], step + 1)
    with pytest.raises(error, match=words) as caught:
        ledger.drain()
    assert f"the loss became {loss} on a batch of rows 2, 9 " in str(caught.value)


def test_a_part_of_weight_zero_may_be_anything() -> None:
    ledger = LossLog(0.5)
    ledger.add(parts(1, float("inf")), [0], 0)
    assert ledger.drain()["loss"] == 1


def test_keeps_no_graph() -> None:
    ledger = LossLog(0.5)
    weight = torch.ones((), requires_grad=True)
    ledger.add({"loss": weight * 2}, [0], 0)
    assert not ledger._batches[0].parts["loss"].requires_grad
