"""What all ways of training are given, and how they stand where a pair's objective would."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from aoe_train._objectives.ways import WAYS
from aoe_train._packing.compiling import only_callees_compiled
from aoe_train._trainer.pair_model import PairModel

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from aoe_train._encoder import Encoder
    from aoe_train._records import Examples, Kind
    from aoe_train._text_model import TextModel


class Texts(NamedTuple):
    """A batch's distinct texts, packed, in ascending order of their lengths; see `records.Batch`."""

    input_ids: Int[Tensor, " token"]
    lengths: Int[np.ndarray, " text"]
    prompt_lengths: Int[np.ndarray, " text"] | None = None

    def vectors(self, model: TextModel) -> Float[Tensor, "text dim"]:
        """By a model."""
        found: Tensor = model(self.input_ids, self.lengths, np.ones_like(self.lengths), self.prompt_lengths)
        return found

    def sequences(self) -> list[Int[Tensor, " token"]]:
        """Each text's tokens, special ones included."""
        return list(torch.split(self.input_ids, self.lengths.tolist()))


class TrainedOn(NamedTuple):
    """What is known of the rows before training.

    Attributes:
        kind: One of `Way.kinds`.
        prompts: The prompt of all texts, or of each.
        generator: A masked language model's folder or Hub id, for who edits texts.
    """

    kind: Kind = "single"
    prompts: str | Sequence[str] = ""
    generator: str | None = None


TEXTS = TrainedOn()


class TrainingWay(nn.Module, ABC):
    """A way of training: weights of its own learn with the model, and are thrown away after it.

    Randomness comes from torch's generator, so that a resumed run draws what it would have drawn.
    """

    def __init__(self, encoder: Encoder, given: TrainedOn = TEXTS) -> None:
        """Get ready to train a model.

        Args:
            encoder: Has the model as it is before training, and its tokenizer; neither is kept.
            given: What it is to be trained on.

        Raises:
            ConfigError: The model can't be trained this way, or not with these prompts.
        """
        super().__init__()
        del encoder, given

    @abstractmethod
    def forward(
        self, model: TextModel, texts: Texts, numbers: Int[Tensor, " text"], more: Rows
    ) -> dict[str, Tensor]:
        """The loss to minimise as "loss", and what it is made of.

        Args:
            model: The model that is trained.
            texts: The batch's.
            numbers: Of the texts: equal ones are equal texts.
            more: The rows over them.
        """


class Rows(NamedTuple):
    """Rows of a batch.

    Attributes:
        places: Which texts they have.
        labels: None where rows are single texts.
    """

    places: Int[Tensor, "row column"]
    labels: Float[Tensor, " row"] | None


class WayModel(PairModel):
    """Packed texts in, a way's loss out; its `objective` is the way."""

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
        packed = Texts(input_ids, lengths, prompt_lengths)
        found: dict[str, Tensor] = self.objective(self.text_model, packed, texts, Rows(rows, labels))
        return found


def make_way(name: str, encoder: Encoder, examples: Examples, generator: str | None = None) -> TrainingWay:
    """The way of this name, for a model and the rows that it is to learn from.

    Raises:
        ConfigError: The model can't be trained this way.
    """
    module, _, name = WAYS[name].made_by.partition(".")
    made_by = getattr(import_module(f"{__package__}.{module}"), name)
    with torch.random.fork_rng():  # what it draws to begin with leaves the run's dropout as it would be
        made: TrainingWay = made_by(encoder, TrainedOn(examples.kind, examples.prompts, generator))
    return made.to(encoder.device).train()
