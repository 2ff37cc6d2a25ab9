"""What is trained: a text model and its objective in one module, so that wrappers see the loss being made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from aoe_train.model.packing.compiling import only_callees_compiled, uncompiled
from aoe_train.objectives.pairs import Advice
from aoe_train.records import ABSENT
from aoe_train.training.trainer.gather import gather_rows

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from aoe_train.model.text_model import TextModel


class PairModel(nn.Module):
    """Packed texts in, the loss and its parts out.

    The loss is computed inside `forward`: DistributedDataParallel synchronises gradients only for what went
    through the module that it wraps.
    """

    def __init__(
        self,
        text_model: TextModel,
        objective: nn.Module,
        *,
        chunk: int | None = None,
        dim: int | None = None,
        layers: tuple[int, ...] = (),
    ) -> None:
        super().__init__()
        self.text_model = text_model
        self.objective = objective
        self.chunk = chunk
        self.dim = dim
        self.layers = layers

    @only_callees_compiled
    def forward(
        self,
        input_ids: Int[Tensor, " token"],
        lengths: Int[np.ndarray, " piece"],
        pieces: Int[np.ndarray, " text"],
        rows: Int[Tensor, "row column"],
        texts: Int[Tensor, " text"],
        labels: Float[Tensor, " row"] | None = None,
        prompt_lengths: Int[np.ndarray, " piece"] | None = None,
        guide: Float[Tensor, "row column guide"] | None = None,
        teacher: Float[Tensor, "row column teacher"] | None = None,
        scores: Float[Tensor, "row other"] | None = None,
        dataset: int | None = None,
    ) -> dict[str, Tensor]:
        """The objective's parts over the rows of all ranks, `loss` among them; see `records.Batch`."""
        numbers = texts[rows].masked_fill(rows == ABSENT, ABSENT)  # whose vector is any
        left_out = () if prompt_lengths is None else (prompt_lengths,)
        vectors = self.embed(input_ids, lengths, pieces, *left_out)[..., : self.dim]
        return self._loss(vectors[rows], labels, numbers, Advice(guide, teacher, scores), dataset)

    @uncompiled  # little work, which differs with the batch and between processes
    def _loss(
        self,
        vectors: Tensor,
        labels: Tensor | None,
        texts: Tensor,
        advice: Advice,
        dataset: int | None,
    ) -> dict[str, Tensor]:
        objective = self.objective if dataset is None else cast("nn.ModuleList", self.objective)[dataset]
        return objective(  # type: ignore[no-any-return]
            gather_rows(vectors),
            None if labels is None else gather_rows(labels),
            gather_rows(texts),
            advice.each(gather_rows),
        )

    def embed(
        self,
        input_ids: Int[Tensor, " token"],
        lengths: Int[np.ndarray, " piece"],
        pieces: Int[np.ndarray, " text"],
        *left_out: Int[np.ndarray, " piece"],
    ) -> Float[Tensor, "text *layer dim"]:
        """One vector a text, or one for each layer, chunk by chunk where a chunk is set."""
        wanted: dict[str, Any] = {"layers": self.layers} if self.layers else {}
        if self.chunk is None or len(pieces) <= self.chunk:
            return self.text_model(input_ids, lengths, pieces, *left_out, **wanted)  # type: ignore[no-any-return]
        return torch.cat(
            [
                checkpoint(self.text_model, *part, use_reentrant=False, **wanted)
                for part in split_texts(input_ids, lengths, pieces, self.chunk, *left_out)
            ]
        )


def split_texts(
    input_ids: Int[Tensor, " token"],
    lengths: Int[np.ndarray, " piece"],
    pieces: Int[np.ndarray, " text"],
    size: int,
    *by_piece: Int[np.ndarray, " piece"],
) -> Iterator[tuple[Any, ...]]:
    """Cut a batch of packed texts into batches of `size` texts; the last may be smaller."""
    token = piece = 0
    for first in range(0, len(pieces), size):
        counts = pieces[first : first + size]
        own = slice(piece, piece + counts.sum())
        sizes = lengths[own]
        yield input_ids[token : token + sizes.sum()], sizes, counts, *(numbers[own] for numbers in by_piece)
        token, piece = token + sizes.sum(), piece + counts.sum()
