"""Contrastive losses with in-batch negatives, optionally filtered by a guide.

In-batch negatives: arXiv Eq. 2 and ACL Eq. 4. Equal texts are known by their numbers, not by their vectors,
which dropout may tell apart. A guide is a model whose similarities filter likely false negatives: GISTEmbed
(Solatorio, 2024, arXiv 2402.16829). In-batch negatives are chosen by chance, so some of them mean what the
anchor means. A candidate that the guide finds nearer to the anchor than its positive is not a negative.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from aoe_train.objectives.kinds import LossContext
from aoe_train.objectives.pairs import Pairs, unit
from aoe_train.objectives.settings import Loss
from aoe_train.records import ABSENT


class Guide(NamedTuple):
    """What a guide says of a batch."""

    first: Float[Tensor, "anchor guide"]
    second: Float[Tensor, "candidate guide"]
    margin: float
    strategy: Literal["absolute", "relative"]

    def too_near(
        self, own: Float[Tensor, "anchor guide"], others: Float[Tensor, "other guide"]
    ) -> Bool[Tensor, "anchor other"]:
        """[i, j]: j is nearer to i than i's anchor to its positive, less the margin."""
        positive = (self.first * self.second[: len(self.first)]).sum(-1)
        slack = positive.abs() * self.margin if self.strategy == "relative" else self.margin
        near: Tensor = own @ others.T > (positive - slack)[:, None]
        return near


class ExtraCandidates(NamedTuple):
    """Additions to the papers' candidates; all together are GISTEmbed (Solatorio, 2024, Eq. 5 to 7)."""

    anchors: bool = False
    positives: bool = False
    guide: Guide | None = None


NO_EXTRA_CANDIDATES = ExtraCandidates()


def ibn_part(context: LossContext) -> Loss:
    """The part `ibn`."""
    tau = context.tau("ibn")
    return lambda pairs: ibn_loss(*_candidates(pairs, context), tau, _further(pairs, context))


def contrastive_part(context: LossContext) -> Loss:
    """The part `contrastive`."""
    settings = context.settings
    return lambda pairs: contrastive_loss(
        *_candidates(pairs, context),
        context.tau("contrastive"),
        _further(pairs, context),
        hard_negatives=settings.hard_negatives,
        symmetric=settings.symmetric,
    )


def _candidates(
    pairs: Pairs, context: LossContext
) -> tuple[
    Float[Tensor, "anchor dim"],
    Float[Tensor, "candidate dim"],
    Int[Tensor, "candidate 2"],
    Bool[Tensor, " anchor"],
]:
    anchors = pairs.anchors
    return pairs.first[:anchors], pairs.second, pairs.texts, pairs.labels[:anchors] >= context.positive_from


def _further(pairs: Pairs, context: LossContext) -> ExtraCandidates:
    settings, guide = context.settings, None
    if pairs.guide is not None:
        first, second = pairs.guide.first[: pairs.anchors], pairs.guide.second
        guide = Guide(unit(first), unit(second), settings.guide_margin, settings.guide_margin_strategy)
    return ExtraCandidates(settings.contrast_anchors, settings.contrast_positives, guide)


def ibn_loss(
    first: Float[Tensor, "anchor dim"],
    second: Float[Tensor, "candidate dim"],
    texts: Int[Tensor, "candidate 2"],
    positive: Bool[Tensor, " anchor"],
    tau: float,
    further: ExtraCandidates = NO_EXTRA_CANDIDATES,
) -> Float[Tensor, ""]:
    """In-batch negatives with identical-sentence detection: arXiv Eq. 2, as a mean over the positive pairs.

    The first text of a positive pair has to find its partner among the second texts of all pairs, whatever
    those pairs' labels. Texts that `false_negatives` finds are left out of the sum. So a repeated row
    leaves its own loss as it was; where its second text is a negative it counts twice, as in the equation.
    No positive pair gives 0 with gradient 0.
    """
    return contrastive_loss(first, second, texts, positive, tau, further)


def contrastive_loss(
    first: Float[Tensor, "anchor dim"],
    second: Float[Tensor, "candidate dim"],
    texts: Int[Tensor, "candidate 2"],
    positive: Bool[Tensor, " anchor"],
    tau: float,
    further: ExtraCandidates = NO_EXTRA_CANDIDATES,
    *,
    hard_negatives: bool = True,
    symmetric: bool = False,
) -> Float[Tensor, ""]:
    """Supervised InfoNCE: ACL Eq. 4, as a mean over the positive pairs; the loss of SimCSE.

    The ACL paper prints the same formula as arXiv Eq. 2, so with hard negatives and one direction this is
    `ibn_loss`.
    """
    anchors, guide = len(positive), further.guide
    one, other = unit(first), unit(second)
    left_out = false_negatives(texts, positive)
    if guide is not None:
        left_out = left_out | guide.too_near(guide.first, guide.second)
    partners, among_partners = other[:anchors], left_out[:, :anchors]
    forth = [(one @ other.T, left_out)]
    if not hard_negatives:
        forth = [(one @ partners.T, among_partners | ~positive)]
    if further.anchors:
        known = _same_side(texts, positive, 0) | false_negatives(texts[:anchors], positive).T
        if guide is not None:
            known = known | guide.too_near(guide.first, guide.first)
        forth.append((one @ one.T, known))
    if further.positives:
        known = _same_side(texts, positive, 1) | false_negatives(texts[:anchors], positive) | ~positive
        if guide is not None:
            known = known | guide.too_near(guide.second[:anchors], guide.second[:anchors])
        forth.append((partners @ partners.T, known))
    loss = _partner_loss(forth, positive, tau)
    if not symmetric:
        return loss
    unfit = false_negatives(texts[:anchors], positive).T | ~positive
    if guide is not None:
        unfit = unfit | guide.too_near(guide.second[:anchors], guide.first)
    return (loss + _partner_loss([(partners @ one.T, unfit)], positive, tau)) / 2


def false_negatives(
    texts: Int[Tensor, "candidate 2"], positive: Bool[Tensor, " anchor"]
) -> Bool[Tensor, "anchor candidate"]:
    """[i, j]: the second text of pair j must not be a negative of the first text of pair i.

    So it is if both are one text, or if a positive pair of the batch, in either order, holds the two. This
    covers copies of i's partner as well as i's text with another partner. It is also if there is no such
    text. The diagonal is left to the caller.
    """
    return _known_alike(texts, positive, texts[: len(positive), 0], texts[:, 1]) | (texts[:, 1] == ABSENT)


def _same_side(
    texts: Int[Tensor, "candidate 2"], positive: Bool[Tensor, " anchor"], side: int
) -> Bool[Tensor, "anchor anchor"]:
    """[i, j]: the texts of pairs i and j on this side are one text, or a positive pair."""
    own = texts[: len(positive), side]
    return _known_alike(texts, positive, own, own)


def _known_alike(
    texts: Int[Tensor, "candidate 2"],
    positive: Bool[Tensor, " anchor"],
    own: Int[Tensor, " anchor"],
    others: Int[Tensor, " other"],
) -> Bool[Tensor, "anchor other"]:
    """[i, j]: text i and other j are one text, or a positive pair of the batch; `own` stand in pairs."""
    pairs = texts[: len(positive)].contiguous()
    known = pairs.flatten().sort().values  # torch.unique would wait to learn how many there are
    first, second = torch.searchsorted(known, pairs).unbind(1)
    alike = torch.eye(len(known), dtype=torch.bool, device=texts.device)
    # Negative pairs mark that a text is like itself, as picking out the others would wait for the device.
    alike[first * positive, second * positive] = True
    places = torch.searchsorted(known, others.contiguous()).clamp_max(len(known) - 1)
    is_known = known[places] == others  # a row's own negative may stand in no pair that may be positive
    return (alike | alike.T)[torch.searchsorted(known, own.contiguous())][:, places] & is_known


def _partner_loss(
    blocks: list[tuple[Float[Tensor, "anchor _"], Bool[Tensor, "anchor _"]]],
    positive: Bool[Tensor, " anchor"],
    tau: float,
) -> Float[Tensor, ""]:
    """Mean of -log softmax of each positive pair's own candidate, among those not left out."""
    logits = torch.cat([cosines for cosines, _ in blocks], dim=1) / tau
    left_out = torch.cat([unfit for _, unfit in blocks], dim=1)
    own = torch.eye(*left_out.shape, dtype=torch.bool, device=positive.device)
    kept = logits.masked_fill(left_out & ~own, -torch.inf)
    losses = kept.logsumexp(1) - logits.diagonal()
    return (losses * positive).sum() / positive.sum().clamp_min(1)
