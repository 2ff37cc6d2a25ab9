"""Judged pairs on which a model must beat its backbone; otherwise the backbone's weights are saved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from aoe_train.data.examples import Say
from aoe_train.evaluation.gain import Gain, gain
from aoe_train.evaluation.overlap import digests, overlap
from aoe_train.evaluation.pair_metrics import binary, correlation
from aoe_train.evaluation.pair_task import PairSource, PairTask, pair_task
from aoe_train.evaluation.tasks import Encode, TaskVectors
from pairkit.base.errors import ConfigError, DataError
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.records import is_search

if TYPE_CHECKING:
    from aoe_train.evaluation.resample import Metrics
    from aoe_train.settings.train_settings import Similarity, TrainSettings

_RESAMPLES = 1000


@dataclass(frozen=True)
class JudgedPairs:
    """Judged pairs of a source, whose name is for messages."""

    name: str
    task: PairTask

    @classmethod
    def read(cls, source: Source, say: Say) -> JudgedPairs:
        """Read the pairs; their labels must differ."""
        pairs, name = PairSource(source, say=say), source_name(source)
        if is_search(frame := pairs.frame()):
            raise ConfigError(
                f"--accept-on {name}: has judged search results; expected judged pairs (compare models on"
                " search results with `aoe evaluate --against`)"
            )
        task = pair_task(pairs.name, frame)
        if len(set(task.labels.tolist())) < 2:
            raise DataError("all labels are equal; expected different labels", path=name)
        return cls(name, task)

    def __len__(self) -> int:
        return len(self.task.labels)

    @property
    def identity(self) -> str:
        """SHA-256 of the pairs, their labels and the labels' probabilities."""
        digest = hashlib.sha256()
        for text in self.task.texts:
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        for array in (self.task.labels, self.task.likely):
            digest.update(b"-" if array is None else np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def warning(self, training_texts: Iterable[str]) -> str | None:
        """A warning if training texts are among the judged texts."""
        shared = overlap(self.task, digests(training_texts))
        return (
            f"warning: {self.name}: the model is {shared}, so its score is too high" if shared.texts else None
        )

    def score(self, encode: Encode, similarity: Similarity) -> Metrics:
        """A model's scores of the pairs."""
        task = self.task
        similarities = task.similarities(TaskVectors(encode, [task.texts], similarity=similarity))
        if np.isin(task.labels, (0, 1)).all():
            return binary(similarities, task.labels, self.name, likely=task.likely)
        return correlation(similarities, task.labels, self.name)

    def gain(self, model: Metrics, backbone: Metrics, *, seed: int) -> Gain:
        """The model's gain over the backbone."""
        result = gain(model, backbone, resamples=_RESAMPLES, seed=seed)
        if result is None:
            raise DataError("its labels are too uncertain to compare models; use other pairs", path=self.name)
        return result


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
