"""What is trained: a text model with its objective in one module, or an objective that runs the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from aoe_train.model.device import only_callees_compiled, uncompiled
from aoe_train.model.text_model import TextBatch
from aoe_train.objectives.objective import check_own_objective
from aoe_train.objectives.pairs import Advice
from aoe_train.records import ABSENT
from aoe_train.training.processes import gather_rows
from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int

    from aoe_train.data.run_data import Sources
    from aoe_train.model.encoder import Encoder
    from aoe_train.model.text_model import TextModel
    from aoe_train.records import Kind
    from aoe_train.settings.training import TrainSettings


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


class TextObjective(nn.Module, ABC):
    """An objective for `train(objective=...)` that reads the texts of a batch itself.

    It may show the model other tokens, run it twice, or put a decoder behind it. Its own weights learn with
    the model. Randomness has to come from torch's generator, so that a resumed run draws the same numbers. It
    trains on one dataset, without a guide, a teacher, `dims`, `layers`, `run.chunk`, `run.shard` and texts in
    chunks.
    """

    def begin(self, encoder: Encoder, kind: Kind) -> None:
        """Get ready to train `encoder` on rows of a kind: binary, graded, positive, triplet or single."""

    @abstractmethod
    def forward(self, model: TextModel, batch: TextBatch) -> Tensor | dict[str, Tensor]:
        """The loss, or the loss as "loss" with its parts, detached, which the log then has too."""

    def save(self, folder: Path) -> None:
        """Write what the vectors need besides the model into its folder."""


class TextObjectiveModel(PairModel):
    """Packed texts in, the objective's loss out."""

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
        """The loss and its parts over this rank's rows, of which DistributedDataParallel takes the mean."""
        del pieces, guide, teacher, scores, dataset  # one piece a text, and nothing else
        batch = TextBatch(input_ids, lengths, prompt_lengths, texts, rows, labels)
        found: Tensor | dict[str, Tensor] = self.objective(self.text_model, batch)
        return {"loss": found} if isinstance(found, Tensor) else found


def prepare_objective(objective: TextObjective, encoder: Encoder, kind: Kind, seed: int) -> TextObjective:
    """The objective, ready to train an encoder."""
    with torch.random.fork_rng():  # the weights that it draws leave the run's dropout as it would be
        torch.manual_seed(seed)
        objective.begin(encoder, kind)
    return objective.to(encoder.device).train()


def check_own_objectives(
    own: Mapping[str, Callable[..., Tensor]], sources: Sources, settings: TrainSettings
) -> None:
    """Refuse what is no loss, and what no `TextObjective` goes with, before anything is read or loaded."""
    for one in own.values():
        if not isinstance(one, TextObjective):
            check_own_objective(one)
    if not any(isinstance(one, TextObjective) for one in own.values()):
        return
    beside = {
        "several datasets": sources.several,
        "a guide or teacher": bool(settings.guide.model or settings.teacher.model or settings.teacher.scores),
        "dims and layers": bool(settings.objective.dims or settings.objective.layers),
        "run.chunk": settings.run.chunk is not None,
        "run.shard": settings.run.shard,
        "encoder.long_text=chunks": settings.encoder.long_text == "chunks",
    }
    for what, asked in beside.items():
        if asked:
            raise ConfigError(f"objective: a TextObjective does not go with {what}; leave one of them out")
