"""The loss and its parts between two log entries, kept on the device so that no step waits for a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from aoe_train._trainer.gather import gather_numbers
from pairkit.errors import DataError

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Ledger:
    """What the steps since the last log entry cost."""

    def __init__(self) -> None:
        self._steps: list[dict[str, Tensor]] = []
        self._where: list[Sequence[int]] = []

    def add(self, parts: dict[str, Tensor], rows: Sequence[int]) -> None:
        """Note a batch: its loss by parts, and the numbers of its rows."""
        self._steps.append({name: part.detach() for name, part in parts.items()})
        self._where.append(rows)

    def newest_loss(self) -> float | None:
        """The loss of the last step that was noted; a GPU is waited for."""
        return self._steps[-1]["loss"].item() if self._steps else None

    def drain(self) -> dict[str, float]:
        """The mean of each part over the steps noted since the last call; nothing where there are none.

        Raises:
            DataError: see `check`.
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
            DataError: a loss is not finite; names the rows of the first such batch.
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
            rows = ", ".join(str(row) for row in sorted(gather_numbers(self._where[first])))
            raise DataError(
                f"the loss became {losses[first].item()} on a batch of rows {rows} (counted from 0 in the "
                "training data); look at these rows, lower --lr, or use --precision fp32"
            )
        return table
