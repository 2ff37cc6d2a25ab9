"""Means by part between two entries, and which rows made a loss that is no number."""

from __future__ import annotations

import pytest
import torch

from aoe_train._trainer.ledger import Ledger
from pairkit.errors import DataError


def parts(loss: float, ibn: float = 0.0) -> dict[str, torch.Tensor]:
    return {"loss": torch.tensor(loss), "ibn": torch.tensor(ibn)}


def test_means_since_the_last_entry() -> None:
    ledger = Ledger()
    ledger.add(parts(1, 10), [0, 1])
    ledger.add(parts(2, 30), [2, 3])
    assert ledger.drain() == {"loss": 1.5, "ibn": 20.0}
    ledger.add(parts(5, 7), [4])
    assert ledger.drain() == {"loss": 5.0, "ibn": 7.0}
    assert ledger.drain() == {}


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_names_the_rows_of_the_first_bad_batch(loss: float) -> None:
    ledger = Ledger()
    ledger.add(parts(1), [0, 1])
    ledger.add(parts(loss), [9, 2])
    ledger.add(parts(loss), [3, 4])
    with pytest.raises(DataError, match="batch of rows 2, 9 "):
        ledger.drain()


def test_a_part_of_weight_zero_may_be_anything() -> None:
    ledger = Ledger()
    ledger.add(parts(1, float("inf")), [0])
    assert ledger.drain()["loss"] == 1


def test_keeps_no_graph() -> None:
    ledger = Ledger()
    weight = torch.ones((), requires_grad=True)
    ledger.add({"loss": weight * 2}, [0])
    assert not ledger.check().requires_grad
