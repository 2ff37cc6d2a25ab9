"""The loss by parts between two log entries, and the signs that a run has diverged.

| problem | looked for |
|---|---|
| a loss that is not a number (NaN, infinity) | with each log entry, evaluation and checkpoint |
| a gradient that is not a number, or far beyond the first ones three entries in a row | with each log entry |
| a collapse: all cosines are 1 | with each evaluation and checkpoint, and at the end |

The collapse raises no error anywhere else. Dropout hides it from the batches: their texts differ by noise
alone. So a few texts are embedded as they would be after training, and compared with what they were before
it: the cosines of some models are all near 1 from the start, and such a model may well be trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import torch

from aoe_train.training.processes import gather_numbers
from pairkit.app.errors import ConfigError, DataError

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

    def pending(self) -> list[dict[str, Any]]:
        """The noted batches, as a checkpoint keeps them."""
        return [
            {
                "step": batch.step,
                "dataset": batch.dataset,
                "parts": dict(zip(batch.parts, values, strict=True)),
            }
            for batch, values in zip(self._batches, self.check(), strict=True)
        ]

    def restore(self, pending: Sequence[dict[str, Any]], device: torch.device) -> None:
        """Note the batches of a checkpoint, so that the first entry after it counts them too."""
        for batch in pending:
            parts = {name: torch.tensor(value, device=device) for name, value in batch["parts"].items()}
            self.add(parts, [], batch["step"], batch["dataset"])

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


# Texts are told apart no longer where 1 - cosine is on average below _NEAR and _NEARER times less than before
# training, or, whatever it is, _FAR_NEARER times less.
_NEAR, _NEARER, _FAR_NEARER = 1e-3, 4, 100
_TINY = 1e-30  # a vector of zeros stays one
_TEXTS = 16  # of the training data, and as many of the held-out data
_ENTRIES = 3
_GROWN, _LARGE = 1e3, 1e4  # times the first entries' gradients, and at least


class Diverged(ConfigError):  # noqa: N818 - what happened
    """A run whose settings, above all the learning rate, lead nowhere."""

    def __init__(self, found: str, *, step: int, lr: float) -> None:
        super().__init__(
            f"training diverged at step {step:,}: {found}; train again with a lower --lr (now {lr:g}) and"
            " --fresh"
        )


class CollapseCheck:
    """Some texts, and how far apart they were before training."""

    def __init__(self, encode: Callable[[list[str]], np.ndarray], *collections: Sequence[str]) -> None:
        chosen = [text for texts in collections for text in _some(texts)]
        self._encode, self._texts = encode, list(dict.fromkeys(chosen))
        self.before = math.nan

    def spread(self) -> float:
        """How far apart they are now."""
        return spread(self._encode(self._texts))

    def problem(self, now: float) -> str | None:
        """What is wrong with a spread; None where nothing is, or was already before training."""
        if not math.isfinite(self.before):
            return None
        if not math.isfinite(now):
            return "the model gives texts vectors that are not numbers (NaN, infinity)"
        if now >= max(min(_NEAR, self.before / _NEARER), self.before / _FAR_NEARER):
            return None
        return (
            f"the model tells texts apart no longer (the cosines of {len(self._texts)} different texts are "
            f"{1 - now:.6f} on average, and were {1 - self.before:.6f} before training)"
        )


def spread(vectors: np.ndarray) -> float:
    """The mean of 1 - cosine over all pairs of vectors (text, dim).

    NaN where one holds what is no number, or there is no pair.
    """
    if len(vectors) < 2 or not np.isfinite(vectors).all():
        return math.nan
    exact = vectors.astype(np.float64)
    units = exact / np.maximum(np.linalg.norm(exact, axis=1, keepdims=True), _TINY)
    return float(np.square(units - units.mean(axis=0)).sum() / (len(units) - 1))


def gradient_problem(norms: Sequence[float]) -> str | None:
    """What is wrong with the gradient; None where nothing is."""
    if norms and not math.isfinite(norms[-1]):
        return f"the gradient became {norms[-1]}"
    first, last = max(norms[:_ENTRIES], default=0.0), min(norms[-_ENTRIES:], default=0.0)
    if len(norms) >= 2 * _ENTRIES and last > max(_GROWN * first, _LARGE):
        return f"the norm of the gradient grew from {first:.3g} to {norms[-1]:.3g}"
    return None


def _some(texts: Sequence[str]) -> Sequence[str]:
    return texts[:: max(1, len(texts) // _TEXTS)][:_TEXTS]
