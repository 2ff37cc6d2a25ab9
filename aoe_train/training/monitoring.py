"""What is measured beside the training: losses by part, divergence, and the backbone's scores for comparison.

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
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import torch

from aoe_train.evaluation.dev import DevScores, dev_scores, own_metric
from aoe_train.model.similarity import unit
from aoe_train.training import checkpoints
from aoe_train.training.processes import (
    copy_weights,
    gather_objects,
    is_main,
    on_main,
    trained_weights,
)
from aoe_train.training.training_arguments import evaluation_precision
from pairkit.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from torch import Tensor

    from aoe_train.evaluation.gain import Gain
    from aoe_train.training.build import Built
    from pairkit.base.cli.progress import Progress


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
        by_name = defaultdict[str, list[float]](list)
        for batch, parts in zip(self._batches, self.check(), strict=True):
            for name, value in parts.items():
                if batch.dataset is None or name == "loss":
                    by_name[name].append(value)
                if batch.dataset is not None:
                    by_name[f"{batch.dataset}.{name}"].append(value)
        self._batches = []
        return {
            name: math.fsum(values) / len(values)
            for name, values in sorted(by_name.items())
        }

    def pending(self) -> list[dict[str, object]]:
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
    """Distinct texts for the detection of collapse, some of each collection."""
    sample: dict[str, None] = {}
    for texts in collections:
        step = max(1, len(texts) // _TEXTS)
        sample |= dict.fromkeys(texts[::step][:_TEXTS])
    return [*sample]


def collapse_problem(before: float, now: float, texts: int) -> str | None:
    """The problem that the spread of `texts` embeddings shows, unless it existed before training."""
    if not math.isfinite(before):
        return None
    if not math.isfinite(now):
        return "embeddings are NaN or infinite"
    small = min(_SMALL_SPREAD, before / _SHRUNK)
    if now >= max(small, before / _FAR_SHRUNK):
        return None
    return (
        f"embeddings have collapsed (the mean cosine of {texts} different texts is"
        f" {1 - now:.6f}, before training {1 - before:.6f})"
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


class Baseline:
    """The backbone's scores, with which those of the trained model are compared."""

    def __init__(self, built: Built) -> None:
        """Score the backbone on the dev data and the judged pairs."""
        self._built = built
        self._judged = built.loaded.judged
        self._similarity = built.encoder.settings.similarity_fn_name
        has_metric = built.loaded.sources.dev_metric is not None
        # Is called on rank 0, or on all ranks if the model is sharded.
        self.score = self._score_dev if built.data.dev or has_metric else None
        self.dev = None if self.score is None else on_main(self.score)
        examples = [*built.data.train.values(), *built.data.dev.values()]
        self.sample = sample_texts(rows.texts for rows in examples)
        self.spread_before = on_main(self.spread)
        if self._judged is not None and is_main():
            self._judged_before = self._judged.score(self._encode, self._similarity)
            self._weights = copy_weights(trained_weights(built.model))

    def spread(self) -> float:
        """The current spread of the sample's embeddings."""
        return spread(self._encode(self.sample))

    def dev_gain(self) -> dict[str, object] | None:
        """The model's gain on the deciding dev set; None without one, and of sharded models."""
        settings = self._built.loaded.settings
        before = self.dev
        if before is None or before.gain_set is None or settings.run.shard:
            return None
        return on_main(lambda: self._score_dev().gain_over(before, seed=settings.seed))

    def judged_gain(self) -> Gain | None:
        """The model's gain on the judged pairs; None without any."""
        judged = self._judged
        if judged is None:
            return None
        return on_main(
            lambda: judged.gain(
                judged.score(self._encode, self._similarity),
                self._judged_before,
                self._built.data.train.values(),
                seed=self._built.loaded.settings.seed,
            )
        )

    def restore_weights(self) -> None:
        """Give the model of rank 0 the backbone's weights again."""
        if is_main():
            checkpoints.restore_weights(self._built.model, self._weights)

    def _encode(self, texts: list[str], **options: Any) -> np.ndarray:
        """Vectors in the precision of evaluation."""
        # Processes of a sharded model must run the same batches, so none may halve one after an error.
        halve = not self._built.loaded.settings.run.shard
        with evaluation_precision(self._built.args):
            return self._built.encoder.encode(texts, halve=halve, **options)

    def _score_dev(self) -> DevScores:
        """The current model's scores on the dev data, or by the user's own metric."""
        built = self._built
        metric = built.loaded.sources.dev_metric
        if metric is not None:
            with evaluation_precision(built.args):
                return DevScores({"dev": own_metric(metric, built.encoder)})

        def progress(at: Progress) -> None:
            built.loaded.process.show(replace(at, stage="evaluate on dev data"))

        return dev_scores(
            partial(self._encode, progress=progress),
            built.data.dev,
            self._similarity,
            chosen=built.loaded.settings.mix.dev,
        )
