"""The guard of a run: judged pairs on which a model has to beat its backbone, or the backbone is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from aoe_train.data.examples import Say
from aoe_train.evaluation.gain import Gain, gain
from aoe_train.evaluation.overlap import digests, overlap
from aoe_train.evaluation.pair_metrics import binary, correlation
from aoe_train.evaluation.pairs import read_pair_task
from aoe_train.evaluation.tasks import Encode, TaskVectors
from aoe_train.training.checkpoints import restore_weights, trained_weights
from pairkit.app.errors import ConfigError, DataError
from pairkit.dataset.in_memory import Source, source_name

if TYPE_CHECKING:
    from torch import Tensor, nn

    from aoe_train.evaluation.resample import Metrics
    from aoe_train.settings.training import Similarity, TrainSettings

RESAMPLES = 1000


class JudgedPairs:
    """Pairs with labels of judges or of people, and what the backbone makes of them."""

    def __init__(self, source: Source, say: Say) -> None:
        self._task = read_pair_task(source, say=say)
        self._source = source_name(source)
        if len(set(self._task.labels.tolist())) < 2:
            raise DataError("all labels are alike; a model can't be judged by them", path=self._source)
        self._before: Metrics | None = None
        self._weights: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return len(self._task.labels)

    @property
    def identity(self) -> str:
        """SHA-256 of the pairs, their labels and how likely these are."""
        digest = hashlib.sha256()
        for text in self._task.texts:
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        for array in (self._task.labels, self._task.likely):
            digest.update(b"-" if array is None else np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def warn(self, trained: Iterable[str], say: Say) -> None:
        """Say so if texts to train on are among those that judge."""
        found = overlap(self._task, digests(trained))
        if found.texts:
            say(f"warning: {self._source}: the model is {found}, which flatters it")

    def remember(self, model: nn.Module, encode: Encode, similarity: Similarity) -> None:
        """Judge the backbone, and keep its weights that will learn, in host memory."""
        self._before = self._judged(encode, similarity)
        self._weights = {name: weight.cpu().clone() for name, weight in trained_weights(model).items()}

    def gain(self, encode: Encode, similarity: Similarity, *, seed: int) -> Gain:
        """How far the model is ahead of the backbone."""
        if self._before is None:
            raise RuntimeError("the backbone was not judged")
        found = gain(self._judged(encode, similarity), self._before, resamples=RESAMPLES, seed=seed)
        if found is None:
            raise DataError("its judges are sure of nothing; ask others", path=self._source)
        return found

    def restore(self, model: nn.Module) -> None:
        """Give a model the backbone's weights back."""
        restore_weights(model, self._weights, self._source)

    def _judged(self, encode: Encode, similarity: Similarity) -> Metrics:
        task = self._task
        cosines = task.similarities(TaskVectors(encode, [task.texts], similarity=similarity))
        if np.isin(task.labels, (0, 1)).all():
            return binary(cosines, task.labels, self._source, likely=task.likely)
        return correlation(cosines, task.labels, self._source)


def check_judged(source: Source | None, settings: TrainSettings) -> None:
    """Refuse runs whose backbone can't be judged or restored, and a choice that no pairs can decide."""
    if source is None:
        if "if_not_better" in settings.optim.model_fields_set:
            raise ConfigError(
                "--if-not-better without --accept-on: there are no pairs to compare the model with its"
                " backbone on; give --accept-on PAIRS, or leave --if-not-better out"
            )
        return
    if settings.run.shard:
        raise ConfigError(
            "--accept-on with run.shard: no process has the whole model; leave it out, and compare afterwards"
            " by aoe evaluate --against"
        )
    if settings.encoder.dense:
        raise ConfigError(
            "--accept-on with encoder.dense: layers that begin at random leave no backbone to compare with;"
            " leave it out, and compare afterwards by aoe evaluate --against"
        )
