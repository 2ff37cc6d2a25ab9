"""The parts that an objective may have, a line each; torch is loaded with the parts that are wanted.

A further part is a file here with a function as `Make`, and its line in `PARTS`: it then has a weight, a
temperature, and is checked against the data, as the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

    from aoe_train._objectives.pairs import Pairs
    from aoe_train._objectives.settings import ObjectiveSettings
    from aoe_train._records import Kind


@dataclass(frozen=True)
class Given:
    """What a part is made for.

    Attributes:
        settings: The objective's.
        dim: Size of the embeddings.
        kind: What a row of the data means.
        label_range: The lowest and highest label of the scale; (0, 1) where labels are not graded.
        margin: By how much scores shall differ for each unit of the labels.
        positive_from: The lowest label whose pair counts as positive.
    """

    settings: ObjectiveSettings
    dim: int
    kind: Kind
    label_range: tuple[float, float]
    margin: float
    positive_from: float

    def tau(self, part: str) -> float:
        """A part's temperature."""
        return float(getattr(self.settings.tau, part))


Loss = Callable[["Pairs"], "Tensor"]
Make = Callable[[Given], Loss]
"""Gives the loss of labelled pairs, a scalar; an `nn.Module` where it has weights of its own."""


class Part(NamedTuple):
    """A line of the table.

    Attributes:
        made_by: Module and function in this room.
        ranks: Whether it learns from one pair being more alike than another; else it tells a text's partner
            from the other texts of the batch.
        tau: Its temperature unless set; None if it has none.
        about: What it does, in a few words for the settings.
    """

    made_by: str
    ranks: bool
    tau: float | None
    about: str

    def make(self, given: Given) -> Loss:
        """The loss."""
        module, _, name = self.made_by.partition(".")
        make: Make = getattr(import_module(f"{__package__}.{module}"), name)
        return make(given)


PARTS: Mapping[str, Part] = {
    "cosine": Part("ranking.cosine_part", ranks=True, tau=0.05, about="the cosine ranking (CoSENT)"),
    "ibn": Part("contrastive.ibn_part", ranks=False, tau=0.05, about="in-batch negatives"),
    # The reference library has a temperature of 0.05 since 2024.
    "angle": Part("ranking.angle_part", ranks=True, tau=1.0, about="the angle ranking"),
    "contrastive": Part("contrastive.contrastive_part", ranks=False, tau=0.05, about="the contrastive loss"),
    "sbert": Part("sbert.sbert_part", ranks=True, tau=None, about="SBERT's softmax or regression"),
}
RANKED = frozenset(name for name, part in PARTS.items() if part.ranks)
IN_BATCH = PARTS.keys() - RANKED
