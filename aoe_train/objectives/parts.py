"""The parts that an objective may have, a line each; torch is loaded with the parts that are wanted.

A further part is a file here with a function as `Make`, and its line in `PARTS`: it then has a weight, a
temperature, and is checked against the data, as the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from aoe_train.objectives.pairs import Pairs


@dataclass(frozen=True)
class TeacherSample:
    """Some texts' vectors by the model as it is before training, and by its teacher, to begin maps with."""

    own: Float[Tensor, "text dim"]
    teacher: Float[Tensor, "text teacher"]


@dataclass(frozen=True)
class Advisers:
    """What is known of a run's advisers before the first batch."""

    guide: bool = False
    teacher_dim: int | None = None
    scores: bool = False
    dot: bool = False
    sample: TeacherSample | None = None


NO_ADVISERS = Advisers()


Loss = Callable[["Pairs"], "Tensor"]
Make = Callable[[Any], Loss]  # of a `LossContext`
"""Gives the loss of labelled pairs, a scalar; an `nn.Module` where it has weights of its own."""


LearnsFrom = Literal["ranking", "batch", "teacher"]


class LossPart(NamedTuple):
    """A line of the table."""

    made_by: str
    learns_from: LearnsFrom
    tau: float | None
    about: str

    def make(self, context: Any) -> Loss:
        """The loss."""
        module, _, name = self.made_by.partition(".")
        make: Make = getattr(import_module(f"{__package__}.{module}"), name)
        return make(context)


PARTS: Mapping[str, LossPart] = {
    "cosine": LossPart("ranking.cosine_part", "ranking", 0.05, "the cosine ranking (CoSENT)"),
    "ibn": LossPart("contrastive.ibn_part", "batch", 0.05, "in-batch negatives"),
    # The reference library has a temperature of 0.05 since 2024.
    "angle": LossPart("ranking.angle_part", "ranking", 1.0, "the angle ranking"),
    "contrastive": LossPart("contrastive.contrastive_part", "batch", 0.05, "the contrastive loss"),
    "pearson": LossPart(
        "ranking.pearson_part", "ranking", None, "Pearson's correlation of cosines and labels"
    ),
    "sbert": LossPart("sbert.sbert_part", "ranking", None, "SBERT's softmax or regression"),
    "embed_distill": LossPart(
        "distillation.embed_distill_part", "teacher", None, "nearness to the teacher's vectors"
    ),
    "score_distill": LossPart(
        "distillation.score_distill_part", "teacher", 0.05, "the teacher's scores of pairs"
    ),
    "margin_mse": LossPart(
        "distillation.margin_mse_part",
        "teacher",
        None,
        "the teacher's margins between positive and negatives",
    ),
}


def _that_learn_from(what: LearnsFrom) -> frozenset[str]:
    return frozenset(name for name, part in PARTS.items() if part.learns_from == what)


RANKED, IN_BATCH, TAUGHT = (_that_learn_from(what) for what in ("ranking", "batch", "teacher"))
