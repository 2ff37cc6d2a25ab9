"""Conversion of rows to labelled pairs, the only input of the losses; lengths and cosines of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from aoe_train.objectives.training_rows import ABSENT

# Shorter vectors aren't normalised, which would only amplify rounding errors.
TINY = 1e-6

PairVectors = Float[Tensor, "pair dim"]
PairValues = Float[Tensor, " pair"]
PairMask = Bool[Tensor, " pair"]
Scalar = Float[Tensor, ""]


class BatchTeachers(NamedTuple):
    """Vectors and scores of guide and teacher for a batch."""

    guide: Float[Tensor, "row column guide"] | None = None
    teacher: Float[Tensor, "row column teacher"] | None = None
    scores: Float[Tensor, "row other"] | None = None

    def map(self, function: Callable[[Tensor], Tensor]) -> BatchTeachers:
        """Apply a function to each tensor."""
        return BatchTeachers(
            *(output if output is None else function(output) for output in self)
        )


NO_BATCH_TEACHERS = BatchTeachers()


class Sides(NamedTuple):
    """A guide's or teacher's vectors of first and second texts, in the order of `Pairs`."""

    first: Float[Tensor, "pair teacher"]
    second: Float[Tensor, "pair teacher"]


class Pairs(NamedTuple):
    """Vectors of first and second texts, with the pairs' labels and the texts' content ids.

    Attributes:
        present: Mask of pairs without absent negatives; selecting these pairs would wait for the device.
        anchors: Number of rows, whose positives are the first pairs.
    """

    first: PairVectors
    second: PairVectors
    labels: PairValues
    texts: Int[Tensor, "pair 2"]
    present: PairMask
    anchors: int
    guide: Sides | None
    teacher: Sides | None
    scores: PairValues | None


def as_pairs(
    vectors: Float[Tensor, "row column dim"],
    labels: Float[Tensor, " row"] | None,
    texts: Int[Tensor, "row column"],
    batch_teachers: BatchTeachers = NO_BATCH_TEACHERS,
) -> Pairs:
    """Split rows into pairs: (anchor, positive) is labelled 1 and (anchor, negative) 0.

    All positives come first, then the first negative of each row, then the second, and so on. Pairs without
    labels are labelled 1.
    """
    rows = len(texts)
    first, second = _sides(vectors)
    second_texts = texts[:, 1:].T.flatten()
    first_texts = texts[:, 0].repeat(texts.shape[1] - 1)

    if labels is None:
        is_positive = torch.arange(len(first), device=vectors.device) < rows
        labels = is_positive.to(vectors.dtype)

    guide, teacher, scores = batch_teachers
    return Pairs(
        first,
        second,
        labels,
        texts=torch.stack([first_texts, second_texts], dim=1),
        present=second_texts != ABSENT,
        anchors=rows,
        guide=None if guide is None else _sides(guide),
        teacher=None if teacher is None else _sides(teacher),
        scores=None if scores is None else scores.T.flatten(),
    )


def _sides(vectors: Float[Tensor, "row column dim"]) -> Sides:
    """Pair the first vector of each row with each of its others, column by column."""
    others = vectors.shape[1] - 1
    first = vectors[:, 0].repeat(others, 1)
    second = vectors[:, 1:].transpose(0, 1).flatten(0, 1)
    return Sides(first, second)


def wide(values: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """The values in float32 or wider: half precision is too coarse for a loss."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def unit(vectors: Float[Tensor, "*n dim"]) -> Float[Tensor, "*n dim"]:
    """Vectors scaled to length 1."""
    lengths = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    divisors = torch.where(lengths < TINY, torch.ones_like(lengths), lengths)
    return vectors / divisors


def cosine(first: PairVectors, second: PairVectors) -> PairValues:
    """Cosine of each pair."""
    return (unit(first) * unit(second)).sum(-1)
