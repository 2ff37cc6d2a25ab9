"""The log of losses by part, and the detection of divergence.

| problem | checked |
|---|---|
| the loss is NaN or infinite | at each log entry, evaluation and checkpoint |
| the gradient is NaN, infinite, or in three entries in a row far above the first ones | at each log entry |
| embeddings collapse: all cosines are 1 | at each evaluation and checkpoint, and at the end |

Nothing else notices a collapse: in batches, dropout makes equal vectors differ. So a few texts are embedded
without dropout and compared with their embeddings before training, since some models, which can be trained
nevertheless, have cosines near 1 from the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import torch

from aoe_train.model.similarity import unit
from aoe_train.training.processes import gather_objects
from pairkit.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from torch import Tensor


# Embeddings have collapsed if the mean of 1 - cosine is below _SMALL_SPREAD and _SHRUNK times smaller than
# before training, or _FAR_SHRUNK times smaller. It is measured on some texts of each dataset and dev set.
_SMALL_SPREAD = 1e-3
_SHRUNK = 4
_FAR_SHRUNK = 100
_TEXTS = 16

# A gradient explodes if the last entries' norms exceed _GROWTH times the first ones', and _LARGE_NORM.
_ENTRIES = 3
_GROWTH = 1e3
_LARGE_NORM = 1e4


class _Batch(NamedTuple):
    """The losses of a batch, and what to name if they aren't finite."""

    parts: dict[str, Tensor]
    rows: Sequence[int]
    step: int
    dataset: str | None


class LossLog:
    """The losses of the batches since the last log entry."""

    def __init__(self, lr: float) -> None:
        self._lr = lr
        self._batches: list[_Batch] = []

    def add(
        self,
        parts: dict[str, Tensor],
        rows: Sequence[int],
        step: int,
        dataset: str | None = None,
    ) -> None:
        """Add a batch."""
        detached = {name: part.detach() for name, part in parts.items()}
        self._batches.append(_Batch(detached, rows, step, dataset))

    def drain(self) -> dict[str, float]:
        """The mean of each part since the last call; with several datasets also by name: `nli.loss`.

        Raises as `check`.
        """
        by_name: dict[str, list[float]] = {}
        for batch, parts in zip(self._batches, self.check(), strict=True):
            for name, value in parts.items():
                if batch.dataset is None or name == "loss":
                    by_name.setdefault(name, []).append(value)
                if batch.dataset is not None:
                    by_name.setdefault(f"{batch.dataset}.{name}", []).append(value)
        self._batches = []
        return {
            name: math.fsum(values) / len(values)
            for name, values in sorted(by_name.items())
        }

    def pending(self) -> list[dict[str, Any]]:
        """The batches since the last log entry, for a checkpoint; they have been checked."""
        return [{**batch._asdict(), "rows": []} for batch in self._batches]

    def restore(self, pending: Sequence[dict[str, Any]], device: torch.device) -> None:
        """Add the batches of a checkpoint, so that the next log entry includes them."""
        for batch in pending:
            parts = {name: part.to(device) for name, part in batch["parts"].items()}
            self._batches.append(_Batch(**batch | {"parts": parts}))

    def check(self) -> list[dict[str, float]]:
        """The values of each batch's parts; raises Diverged (or DataError) if a loss is not finite."""
        if not self._batches:
            return []
        parts = [
            part.float() for batch in self._batches for part in batch.parts.values()
        ]
        # All losses are transferred at once, since each transfer waits for the device.
        numbers = iter(torch.stack(parts).tolist())
        values = []
        for batch in self._batches:
            losses = {name: next(numbers) for name in batch.parts}
            if not math.isfinite(losses["loss"]):
                self._fail(batch, losses["loss"])
            values.append(losses)
        return values

    def _fail(self, batch: _Batch, loss: float) -> NoReturn:
        """Raise an error that names the rows of a batch whose loss is not finite."""
        # All ranks have the same loss, so all of them call this.
        rows_by_rank = gather_objects([*batch.rows])
        rows = ", ".join(map(str, sorted(chain.from_iterable(rows_by_rank))))
        dataset = f" of {batch.dataset}" if batch.dataset else ""
        problem = (
            f"the loss became {loss} on a batch of rows {rows}{dataset} (counted from 0 in the training data;"
            " look at them, or use --precision fp32)"
        )
        if batch.step:
            raise Diverged.at(batch.step, problem, lr=self._lr)
        raise DataError(f"{problem}, before the first step")


class Diverged(ConfigError):  # noqa: N818 - names the event
    """Training diverged, mostly because of its learning rate."""

    @classmethod
    def at(cls, step: int, problem: str, *, lr: float) -> Diverged:
        """The error for a problem after this step."""
        return cls(
            f"training diverged at step {step:,}: {problem}; train again with a lower --lr (now {lr:g}) and"
            " --fresh"
        )


def sample_texts(collections: Iterable[Sequence[str]]) -> list[str]:
    """Distinct texts for a `CollapseCheck`, some of each collection."""
    sample: dict[str, None] = {}
    for texts in collections:
        step = max(1, len(texts) // _TEXTS)
        sample |= dict.fromkeys(texts[::step][:_TEXTS])
    return [*sample]


@dataclass(frozen=True)
class CollapseCheck:
    """Compares the spread of some texts' embeddings with that before training."""

    encode: Callable[[list[str]], np.ndarray]
    texts: list[str]
    before: float

    def spread(self) -> float:
        """The current spread of the embeddings."""
        return spread(self.encode(self.texts))

    def problem(self, now: float) -> str | None:
        """The problem that a spread shows, unless it existed before training."""
        if not math.isfinite(self.before):
            return None
        if not math.isfinite(now):
            return "embeddings are NaN or infinite"
        small = min(_SMALL_SPREAD, self.before / _SHRUNK)
        if now >= max(small, self.before / _FAR_SHRUNK):
            return None
        return (
            f"embeddings have collapsed (the mean cosine of {len(self.texts)} different texts is"
            f" {1 - now:.6f}, before training {1 - self.before:.6f})"
        )


def spread(vectors: np.ndarray) -> float:
    """The mean of 1 - cosine over all pairs of vectors (text, dim); NaN if undefined."""
    if len(vectors) < 2 or not np.isfinite(vectors).all():
        return math.nan
    units = unit(vectors)
    squares = np.square(units - units.mean(axis=0))
    return float(squares.sum() / (len(units) - 1))


def gradient_problem(norms: Sequence[float]) -> str | None:
    """The problem that the logged gradient norms show, if any."""
    if norms and not math.isfinite(norms[-1]):
        return f"the gradient became {norms[-1]}"
    first = max(norms[:_ENTRIES], default=0.0)
    last = min(norms[-_ENTRIES:], default=0.0)
    if len(norms) >= 2 * _ENTRIES and last > max(_GROWTH * first, _LARGE_NORM):
        return f"the norm of the gradient grew from {first:.3g} to {norms[-1]:.3g}"
    return None
