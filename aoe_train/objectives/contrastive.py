"""Contrastive losses with in-batch negatives (arXiv Eq. 2, ACL Eq. 4), optionally filtered by a guide.

Equal texts are recognised by their ids, since dropout makes their vectors differ. In-batch negatives are
random, so some are false negatives. A guide is a model that filters them (GISTEmbed, Solatorio, 2024, arXiv
2402.16829): a candidate that is closer to the anchor than its positive, by the guide, is not a negative.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from jaxtyping import Bool, Float, Int
from torch import Tensor

from aoe_train.objectives.labelled_pairs import Pairs, Scalar, Sides, unit
from aoe_train.objectives.objective_checks import LossContext
from aoe_train.objectives.objective_settings import Loss
from aoe_train.objectives.training_rows import ABSENT

Duplicates = Literal["exclude", "positive", "negative"]
PairTexts = Int[Tensor, "candidate 2"]
IsPositive = Bool[Tensor, " anchor"]
Mask = Bool[Tensor, "anchor other"]


class Guide(NamedTuple):
    """A guide's unit vectors of a batch; candidates nearer to an anchor than `limit` aren't its negatives."""

    first: Float[Tensor, "anchor guide"]
    second: Float[Tensor, "candidate guide"]
    limit: Float[Tensor, " anchor"]


def make_guide(
    vectors: Sides,
    anchors: int,
    margin: float,
    strategy: Literal["absolute", "relative"],
) -> Guide:
    """The guide whose limits are the anchors' cosines with their positives, minus the margin."""
    first = unit(vectors.first[:anchors])
    second = unit(vectors.second)
    positive = (first * second[:anchors]).sum(-1)
    if strategy == "relative":
        return Guide(first, second, positive - positive.abs() * margin)
    return Guide(first, second, positive - margin)


def _part(context: LossContext, name: str) -> Loss:
    """The part `in_batch` or `contrastive`; only the latter has all options."""
    settings = context.settings
    is_contrastive = name == "contrastive"
    tau = context.tau(name)
    positive_from = context.positive_from

    def loss(pairs: Pairs) -> Tensor:
        count = pairs.anchors
        guide = None
        if pairs.guide is not None:
            margin = settings.guide_margin
            guide = make_guide(
                pairs.guide, count, margin, settings.guide_margin_strategy
            )
        return contrastive_loss(
            pairs.first[:count],
            pairs.second,
            pairs.texts,
            pairs.labels[:count] >= positive_from,
            tau,
            guide,
            contrast_anchors=settings.contrast_anchors,
            contrast_positives=settings.contrast_positives,
            hard_negatives=settings.hard_negatives or not is_contrastive,
            symmetric=settings.symmetric and is_contrastive,
            duplicates=settings.duplicates,
        )

    return loss


in_batch_part = partial(_part, name="in_batch")
contrastive_part = partial(_part, name="contrastive")


def contrastive_loss(
    first: Float[Tensor, "anchor dim"],
    second: Float[Tensor, "candidate dim"],
    texts: PairTexts,
    positive: IsPositive,
    tau: float,
    guide: Guide | None = None,
    *,
    contrast_anchors: bool = False,
    contrast_positives: bool = False,
    hard_negatives: bool = True,
    symmetric: bool = False,
    duplicates: Duplicates = "exclude",
) -> Scalar:
    """Supervised InfoNCE: arXiv Eq. 2 and ACL Eq. 4, which are the same, as a mean over the positive pairs.

    The candidates of a positive pair's first text are the second texts of all pairs, whatever their labels.
    Its `false_negatives` are left out, or are positives or negatives, by `duplicates`. A repeated row doesn't
    change its own loss, but its second text counts twice as a negative of others, as in the equations.
    Without positive pairs, loss and gradient are 0.
    """
    rows = len(positive)
    unguided = first[:0]
    anchors = _Side(unit(first), unguided if guide is None else guide.first)
    candidates = _Side(unit(second), unguided if guide is None else guide.second)
    partners = _Side(*(vectors[:rows] for vectors in candidates))
    copies = false_negatives(texts, positive)
    partner_copies = copies[:, :rows]

    excluded = copies
    absent = texts[:, 1] == ABSENT
    if duplicates != "exclude":
        excluded = absent.expand_as(copies)
    if hard_negatives:
        blocks = [_block(anchors, candidates, excluded, guide)]
    else:  # the partners of positive pairs only
        excluded = excluded[:, :rows] | ~positive
        blocks = [_block(anchors, partners, excluded, guide)]
    if contrast_anchors:
        similar = _known_similar(texts, positive, texts[:rows, 0], texts[:rows, 0])
        blocks.append(_block(anchors, anchors, similar | partner_copies.T, guide))
    if contrast_positives:
        similar = _known_similar(texts, positive, texts[:rows, 1], texts[:rows, 1])
        excluded = similar | partner_copies | ~positive
        blocks.append(_block(partners, partners, excluded, guide))

    also_positive = None
    if duplicates == "positive":
        also_positive = copies & ~absent
        if not hard_negatives:
            also_positive = also_positive[:, :rows] & positive
    loss = _partner_loss(blocks, positive, tau, also_positive)
    if symmetric:
        reverse = _block(partners, anchors, partner_copies.T | ~positive, guide)
        loss = (loss + _partner_loss([reverse], positive, tau)) / 2
    return loss


class _Side(NamedTuple):
    """Unit vectors of some texts, by the model and by the guide; empty without a guide."""

    vectors: Float[Tensor, "text dim"]
    by_guide: Float[Tensor, "text guide"]


class _Block(NamedTuple):
    """Cosines of some texts with others, and a mask of those that are not negatives."""

    cosines: Float[Tensor, "anchor other"]
    excluded: Mask


def _block(rows: _Side, columns: _Side, excluded: Mask, guide: Guide | None) -> _Block:
    """Two sides; the guide excludes further candidates."""
    if guide is not None:
        cosines = rows.by_guide @ columns.by_guide.T
        excluded = excluded | (cosines > guide.limit[:, None])
    return _Block(rows.vectors @ columns.vectors.T, excluded)


def false_negatives(texts: PairTexts, positive: IsPositive) -> Mask:
    """[i, j]: the second text of pair j must not be a negative of the first text of pair i.

    That is the case if both are the same text, if they form a positive pair of the batch in either order, or
    if the second text is absent. Callers handle the diagonal.
    """
    anchors = texts[: len(positive), 0]
    others = texts[:, 1]
    return _known_similar(texts, positive, anchors, others) | (others == ABSENT)


def _known_similar(
    texts: PairTexts,
    positive: IsPositive,
    pair_texts: Int[Tensor, " anchor"],
    others: Int[Tensor, " other"],
) -> Mask:
    """[i, j]: text i and other j are the same, or a positive pair of the batch."""
    pairs = texts[: len(positive)].contiguous()
    known = pairs.flatten().sort().values  # torch.unique would wait for the device
    first, second = torch.searchsorted(known, pairs).unbind(1)
    similar = torch.eye(len(known), dtype=torch.bool, device=texts.device)
    # Negative pairs set (0, 0), which is true anyway: selecting the positive pairs would wait for the device,
    # as would assigning True, a value of the host.
    similar.index_put_((first * positive, second * positive), torch.ones_like(positive))
    similar = similar | similar.T

    rows = torch.searchsorted(known, pair_texts.contiguous())
    columns = torch.searchsorted(known, others.contiguous()).clamp_max(len(known) - 1)
    is_known = known[columns] == others  # a negative may occur in no positive pair
    return similar[rows][:, columns] & is_known


def _partner_loss(
    blocks: list[_Block],
    positive: IsPositive,
    tau: float,
    also_positive: Mask | None = None,
) -> Scalar:
    """Mean of -log softmax of each positive pair's partner among the candidates that aren't excluded."""
    logits = torch.cat([block.cosines for block in blocks], dim=1) / tau
    excluded = torch.cat([block.excluded for block in blocks], dim=1)
    targets = torch.eye(*excluded.shape, dtype=torch.bool, device=positive.device)
    if also_positive is not None:
        missing = excluded.shape[1] - also_positive.shape[1]
        targets = targets | F.pad(also_positive, (0, missing))

    counts = targets.sum(1)
    normalisers = logits.masked_fill(excluded & ~targets, -torch.inf).logsumexp(1)
    losses = counts * normalisers - (targets * logits).sum(1)
    return (losses * positive).sum() / (counts * positive).sum().clamp_min(1)
