"""The loss and its parts between two log entries, kept on the device so that no step waits for a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from aoe_train._trainer.divergence import Diverged
from aoe_train._trainer.gather import gather_numbers
from pairkit.errors import DataError

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Ledger:
    """What the batches since the last log entry cost.

    Args:
        lr: The run's learning rate, for messages.
    """

    def __init__(self, lr: float) -> None:
        self._lr = lr
        self._steps: list[dict[str, Tensor]] = []
        self._where: list[tuple[int, Sequence[int]]] = []

    def add(self, parts: dict[str, Tensor], rows: Sequence[int], step: int) -> None:
        """Note a batch: its loss by parts, the numbers of its rows, and the steps taken before it."""
        self._steps.append({name: part.detach() for name, part in parts.items()})
        self._where.append((step, rows))

    def drain(self) -> dict[str, float]:
        """The mean of each part over the steps noted since the last call; nothing where there are none.

        Raises:
            DataError, Diverged: see `check`.
        """
        if not self._steps:
            return {}
        names = sorted(self._steps[0])
        means = self.check().mean(0).tolist()
        self._steps, self._where = [], []
        return dict(zip(names, means, strict=True))

    def check(self) -> Float[Tensor, "step part"]:
        """The noted parts on the host, by names in order.

        Raises:
            DataError: a loss is not finite before the first step; names the rows of that batch.
            Diverged: a loss is not finite later on.
        """
        if not self._steps:
            return torch.empty(0, 0)
        names = sorted(self._steps[0])
        table = torch.stack([torch.stack([step[name].float() for name in names]) for step in self._steps])
        table = table.double().cpu()
        losses = table[:, names.index("loss")]
        if not losses.isfinite().all():
            first = int((~losses.isfinite()).nonzero()[0])
            # The loss is that of all ranks, so all of them come here.
            step, own = self._where[first]
            rows = ", ".join(str(row) for row in sorted(gather_numbers(own)))
            found = (
                f"the loss became {losses[first].item()} on a batch of rows {rows} (counted from 0 in the "
                "training data; look at them, or use --precision fp32)"
            )
            if step:
                raise Diverged(found, step=step, lr=self._lr)
            raise DataError(f"{found}, before the first step was taken")
        return table
