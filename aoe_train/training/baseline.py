"""The comparison of a trained model with its backbone: dev data, judged pairs, and spread of vectors."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from aoe_train.evaluation.dev import DevScores, dev_scores, own_metric
from aoe_train.training import checkpoints
from aoe_train.training.loss_log import CollapseCheck, sample_texts, spread
from aoe_train.training.processes import (
    copy_weights,
    is_main,
    on_main,
    trained_weights,
)
from aoe_train.training.training_arguments import evaluation_precision

if TYPE_CHECKING:
    import numpy as np

    from aoe_train.evaluation.gain import Gain
    from aoe_train.training.build import Built
    from pairkit.base.cli.progress import Progress


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
        texts = sample_texts(rows.texts for rows in examples)
        before = on_main(lambda: spread(self._encode(texts)))
        self.collapse = CollapseCheck(self._encode, texts, before)
        if self._judged is not None and is_main():
            self._judged_before = self._judged.score(self._encode, self._similarity)
            self._weights = copy_weights(trained_weights(built.model))

    def dev_gain(self) -> dict[str, Any] | None:
        """The model's gain on the deciding dev set; None without one, and of sharded models."""
        settings = self._built.loaded.settings
        score = self.score
        before = self.dev
        if score is None or before is None or settings.run.shard:
            return None
        if before.gain_set is None:
            return None
        return on_main(lambda: score().gain_over(before, seed=settings.seed))

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
