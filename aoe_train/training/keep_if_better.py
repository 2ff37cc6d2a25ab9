"""Judged pairs on which a model must beat its backbone; otherwise the backbone's weights are saved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from aoe_train.data.examples import Say
from aoe_train.evaluation.gain import Gain, gain
from aoe_train.evaluation.overlap import digests, overlap
from aoe_train.evaluation.pair_metrics import binary, correlation
from aoe_train.evaluation.pair_task import read_pair_task
from aoe_train.evaluation.tasks import Encode, TaskVectors
from aoe_train.training.checkpoints import restore_weights, trained_weights
from pairkit.base.errors import ConfigError, DataError
from pairkit.dataset.reading.in_memory import Source, source_name

if TYPE_CHECKING:
    from torch import Tensor, nn

    from aoe_train.evaluation.resample import Metrics
    from aoe_train.settings.train_settings import Similarity, TrainSettings

RESAMPLES = 1000


class JudgedPairs:
    """Judged pairs, and the backbone's scores on them."""

    def __init__(self, source: Source, say: Say) -> None:
        self._task = read_pair_task(source, say=say)
        self._source = source_name(source)
        if len(set(self._task.labels.tolist())) < 2:
            raise DataError("all labels are equal; expected different labels", path=self._source)
        self._before: Metrics | None = None
        self._weights: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return len(self._task.labels)

    @property
    def identity(self) -> str:
        """SHA-256 of the pairs, their labels and the labels' probabilities."""
        digest = hashlib.sha256()
        for text in self._task.texts:
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        for array in (self._task.labels, self._task.likely):
            digest.update(b"-" if array is None else np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def warn(self, training_texts: Iterable[str], say: Say) -> None:
        """Warn if training texts are among the judged texts."""
        found = overlap(self._task, digests(training_texts))
        if found.texts:
            say(f"warning: {self._source}: the model is {found}, so its score is too high")

    def remember(self, model: nn.Module, encode: Encode, similarity: Similarity) -> None:
        """Score the backbone, and copy the weights to train into host memory."""
        self._before = self._score(encode, similarity)
        self._weights = {name: weight.cpu().clone() for name, weight in trained_weights(model).items()}

    def gain(self, encode: Encode, similarity: Similarity, *, seed: int) -> Gain:
        """The model's gain over the backbone."""
        if self._before is None:
            raise RuntimeError("the backbone was not scored")
        found = gain(self._score(encode, similarity), self._before, resamples=RESAMPLES, seed=seed)
        if found is None:
            raise DataError(
                "its labels are too uncertain to compare models; use other pairs", path=self._source
            )
        return found

    def restore(self, model: nn.Module) -> None:
        """Copy the backbone's weights back into the model."""
        restore_weights(model, self._weights, self._source)

    def _score(self, encode: Encode, similarity: Similarity) -> Metrics:
        task = self._task
        similarities = task.similarities(TaskVectors(encode, [task.texts], similarity=similarity))
        if np.isin(task.labels, (0, 1)).all():
            return binary(similarities, task.labels, self._source, likely=task.likely)
        return correlation(similarities, task.labels, self._source)


def check_judged(source: Source | None, settings: TrainSettings) -> None:
    """Refuse settings with which the backbone can't be scored or restored."""
    if source is None:
        if "if_not_better" in settings.optim.model_fields_set:
            raise ConfigError(
                "--if-not-better without --accept-on has no effect; give --accept-on PAIRS, or leave it out"
            )
        return
    reason = ""
    if settings.run.shard:
        reason = "run.shard: no process has the whole model"
    elif settings.encoder.dense:
        reason = "encoder.dense: randomly initialised layers have no backbone to compare with"
    if reason:
        raise ConfigError(
            f"--accept-on with {reason}; leave it out, and compare afterwards with `aoe evaluate --against`"
        )
