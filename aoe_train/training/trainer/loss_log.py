"""The loss and its parts between two log entries, kept on the device so that no step waits for a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import torch

from aoe_train.training.trainer.divergence import Diverged
from aoe_train.training.trainer.gather import gather_numbers
from pairkit.app.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor


class _Batch(NamedTuple):
    parts: dict[str, Tensor]
    rows: Sequence[int]
    step: int
    dataset: str | None


class LossLog:
    """What the batches since the last log entry cost."""

    def __init__(self, lr: float) -> None:
        self._lr = lr
        self._batches: list[_Batch] = []

    def add(
        self, parts: dict[str, Tensor], rows: Sequence[int], step: int, dataset: str | None = None
    ) -> None:
        """Note a batch."""
        self._batches.append(
            _Batch({name: part.detach() for name, part in parts.items()}, rows, step, dataset)
        )

    def drain(self) -> dict[str, float]:
        """The mean of each part over the batches noted since the last call; nothing where there are none.

        With several datasets that of the loss is over all, and each has its own under its name: `nli.loss`,
        `nli.cosine`.
        """
        found: dict[str, list[float]] = {}
        for batch, values in zip(self._batches, self.check(), strict=True):
            for name, value in zip(batch.parts, values, strict=True):
                if batch.dataset is None or name == "loss":
                    found.setdefault(name, []).append(value)
                if batch.dataset is not None:
                    found.setdefault(f"{batch.dataset}.{name}", []).append(value)
        self._batches = []
        return {name: math.fsum(values) / len(values) for name, values in sorted(found.items())}

    def check(self) -> list[list[float]]:
        """The parts of each noted batch."""
        if not self._batches:
            return []
        parts = [part.float() for batch in self._batches for part in batch.parts.values()]
        numbers = iter(torch.stack(parts).tolist())  # in one go, as a GPU has to be waited for
        found = [[next(numbers) for _ in batch.parts] for batch in self._batches]
        for batch, values in zip(self._batches, found, strict=True):
            loss = dict(zip(batch.parts, values, strict=True))["loss"]
            if not math.isfinite(loss):
                self._refuse(batch, loss)
        return found

    def _refuse(self, batch: _Batch, loss: float) -> NoReturn:
        # The loss is that of all ranks, so all of them come here.
        rows = ", ".join(str(row) for row in sorted(gather_numbers(batch.rows)))
        whose = f" of {batch.dataset}" if batch.dataset else ""
        found = (
            f"the loss became {loss} on a batch of rows {rows}{whose} (counted from 0 in the training data;"
            " look at them, or use --precision fp32)"
        )
        if batch.step:
            raise Diverged(found, step=batch.step, lr=self._lr)
        raise DataError(f"{found}, before the first step was taken")
