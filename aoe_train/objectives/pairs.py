"""Rows as pairs with labels, which is all that the losses see, and their cosines."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from aoe_train.records import ABSENT


class Advice(NamedTuple):
    """Vectors and scores of guide and teacher for a batch; vector sizes differ from the model's."""

    guide: Float[Tensor, "row column guide"] | None = None
    teacher: Float[Tensor, "row column teacher"] | None = None
    scores: Float[Tensor, "row other"] | None = None

    def each(self, change: Callable[[Tensor], Tensor]) -> Advice:
        """The same, with what there is changed."""
        return Advice(*(None if told is None else change(told) for told in self))


NO_ADVICE = Advice()


class Sides(NamedTuple):
    """An adviser's vectors of first and second texts, in the order of `Pairs`."""

    first: Float[Tensor, "pair adviser"]
    second: Float[Tensor, "pair adviser"]


class Pairs(NamedTuple):
    """Vectors of first and second texts, with the pairs' labels and the texts' numbers."""

    first: Float[Tensor, "pair dim"]
    second: Float[Tensor, "pair dim"]
    labels: Float[Tensor, " pair"]
    texts: Int[Tensor, "pair 2"]
    anchors: int
    guide: Sides | None = None
    teacher: Sides | None = None
    scores: Float[Tensor, " pair"] | None = None

    @property
    def present(self) -> Bool[Tensor, " pair"]:
        """Pairs that there are: a row may have fewer negatives than others. Vectors of the rest mean nothing.

        It is a mask, since leaving them out would wait for the device.
        """
        return self.texts[:, 1] != ABSENT


def as_pairs(
    vectors: Float[Tensor, "row column dim"],
    labels: Float[Tensor, " row"] | None,
    texts: Int[Tensor, "row column"],
    advice: Advice = NO_ADVICE,
) -> Pairs:
    """Cut (anchor, positive, negatives) into (anchor, positive) labelled 1 and (anchor, negative) labelled 0.

    The positives come first, then each row's first negative, then each row's second one, and so on. Pairs
    without labels are all labelled 1.
    """
    rows, columns, _ = vectors.shape
    pairs = rows * (columns - 1)
    numbers = torch.stack([texts[:, 0].repeat(columns - 1), texts[:, 1:].T.flatten()], dim=1)
    if labels is None:
        labels = (torch.arange(pairs, device=vectors.device) < rows).to(vectors.dtype)
    guide, teacher = (None if told is None else _sides(told) for told in (advice.guide, advice.teacher))
    scores = None if advice.scores is None else advice.scores.T.flatten()
    return Pairs(*_sides(vectors), labels, numbers, rows, guide, teacher, scores)


def _sides(vectors: Float[Tensor, "row column dim"]) -> Sides:
    others = vectors.shape[1] - 1
    return Sides(vectors[:, 0].repeat(others, 1), vectors[:, 1:].transpose(0, 1).flatten(0, 1))


TINY = 1e-6  # lengths below it count as zero: dividing by them would only blow up rounding errors


def wide(values: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """In float32, or in float64 where that is what they are: half precision is too coarse for a loss."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def unit(vectors: Float[Tensor, "*n dim"]) -> Float[Tensor, "*n dim"]:
    """Vectors of length 1, in the direction of `vectors`."""
    return vectors / _divisor(torch.linalg.vector_norm(vectors, dim=-1, keepdim=True))


def cosine(first: Float[Tensor, "pair dim"], second: Float[Tensor, "pair dim"]) -> Float[Tensor, " pair"]:
    """Cosine of each pair, in [-1, 1]."""
    return (unit(first) * unit(second)).sum(-1)


def _divisor(lengths: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    return torch.where(lengths < TINY, torch.ones_like(lengths), lengths)
