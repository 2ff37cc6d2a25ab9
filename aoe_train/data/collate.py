"""From row numbers to the tensors of a training step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch

from aoe_train.model.tokens.tokens import TokenStore
from aoe_train.records import ABSENT, NO_ADVICE, AdviceStore, Batch, Examples


class Collate:
    """Makes the batch of given rows: its texts from short to long, so that like lengths lie together.

    A text that occurs several times is encoded once, unless `dedup` is off. Where a text is its own positive
    (kind `single`) both columns hold it and it is encoded twice, as only dropout tells the two apart.
    """

    def __init__(
        self,
        examples: Examples,
        store: TokenStore,
        *,
        dedup: bool = True,
        views: bool = True,
        advice: AdviceStore = NO_ADVICE,
    ) -> None:
        """Collate rows of `examples`, whose texts are those of `store` in the same order."""
        self._examples, self._store, self._advice = examples, store, advice
        self._dedup = not views if examples.kind == "single" else dedup

    def __call__(self, rows: Sequence[int]) -> Batch:
        """The batch of these rows, in their order."""
        chosen = np.asarray(rows, dtype=np.int64)
        columns = self._examples.rows[chosen]
        if self._examples.kind == "single":
            columns = np.repeat(columns, 2, axis=1)
        there = columns != ABSENT
        texts = columns[there]
        places = np.arange(len(texts))
        if self._dedup:
            texts, places = np.unique(texts, return_inverse=True)
        order = np.argsort(self._store.lengths[texts], kind="stable")
        moved = np.empty_like(order)
        moved[order] = np.arange(len(order))
        texts = texts[order]
        numbered = np.full_like(columns, ABSENT)
        numbered[there] = moved[places]
        tokens = self._store.batch(texts)
        batch = Batch(
            input_ids=tokens["input_ids"],
            lengths=tokens["lengths"],
            pieces=tokens["pieces"],
            rows=torch.from_numpy(numbered),
            texts=torch.from_numpy(texts if self._examples.said is None else self._examples.said[texts]),
        )
        if "prompt_lengths" in tokens:
            batch["prompt_lengths"] = tokens["prompt_lengths"]
        if self._examples.labels is not None:
            batch["labels"] = torch.from_numpy(self._examples.labels[chosen])
        return cast("Batch", {**batch, **self._advice.batch(chosen)})
