"""Losses that tell a text's partner from the other texts of the batch.

Equal texts are known by their numbers, not by their vectors, which dropout may tell apart.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from aoe_train._objectives.guide import Guide
from aoe_train._objectives.pairs import Pairs
from aoe_train._objectives.parts import Given, Loss
from aoe_train._objectives.similarity import unit
from aoe_train._records import ABSENT


class Further(NamedTuple):
    """What the papers' candidates don't have; all of it together is GISTEmbed (Solatorio, 2024, Eq. 5 to 7).

    Attributes:
        anchors: Other first texts are candidates too, compared with the first text.
        positives: Other positives are also compared with the positive, and count among the candidates.
        guide: Leaves out candidates that may belong to the anchor.
    """

    anchors: bool = False
    positives: bool = False
    guide: Guide | None = None


NOTHING_FURTHER = Further()


def ibn_part(given: Given) -> Loss:
    """The part `ibn`."""
    tau = given.tau("ibn")
    if given.settings.ibn_form == "angle-emb":
        return lambda pairs: ibn_angle_emb(
            pairs.first, pairs.second, pairs.labels >= given.positive_from, tau
        )
    return lambda pairs: ibn_loss(*_candidates(pairs, given), tau, _further(pairs, given))


def contrastive_part(given: Given) -> Loss:
    """The part `contrastive`."""
    settings = given.settings
    return lambda pairs: contrastive_loss(
        *_candidates(pairs, given),
        given.tau("contrastive"),
        _further(pairs, given),
        hard_negatives=settings.hard_negatives,
        symmetric=settings.symmetric,
    )


def _candidates(
    pairs: Pairs, given: Given
) -> tuple[
    Float[Tensor, "anchor dim"],
    Float[Tensor, "candidate dim"],
    Int[Tensor, "candidate 2"],
    Bool[Tensor, " anchor"],
]:
    anchors = pairs.anchors
    return pairs.first[:anchors], pairs.second, pairs.texts, pairs.labels[:anchors] >= given.positive_from


def _further(pairs: Pairs, given: Given) -> Further:
    settings, guide = given.settings, None
    if pairs.guide is not None:
        first, second = pairs.guide.first[: pairs.anchors], pairs.guide.second
        guide = Guide(unit(first), unit(second), settings.guide_margin, settings.guide_margin_strategy)
    return Further(settings.contrast_anchors, settings.contrast_positives, guide)


def ibn_loss(
    first: Float[Tensor, "anchor dim"],
    second: Float[Tensor, "candidate dim"],
    texts: Int[Tensor, "candidate 2"],
    positive: Bool[Tensor, " anchor"],
    tau: float,
    further: Further = NOTHING_FURTHER,
) -> Float[Tensor, ""]:
    """In-batch negatives with identical-sentence detection: arXiv Eq. 2, as a mean over the positive pairs.

    The first text of a positive pair has to find its partner among the second texts of all pairs, whatever
    those pairs' labels. Texts that `no_negatives` finds are left out of the sum. So a repeated row leaves its
    own loss as it was; where its second text is a negative it counts twice, as in the equation. No positive
    pair gives 0 with gradient 0.

    Args:
        first: First texts of the pairs that may be positive, which come first.
        second: Second texts of all pairs.
        texts: All pairs' texts by number: equal numbers are equal texts, `ABSENT` is none.
        positive: Pairs whose texts belong together.
        tau: Temperature.
        further: What is not in the equation.
    """
    return contrastive_loss(first, second, texts, positive, tau, further)


def ibn_angle_emb(
    first: Float[Tensor, "pair dim"],
    second: Float[Tensor, "pair dim"],
    positive: Bool[Tensor, " pair"],
    tau: float,
) -> Float[Tensor, ""]:
    """In-batch negatives as the library angle-emb computes them, with which the authors tuned their weights.

    Each text u of a positive pair, first or second, has to find its partner v among the other 2B - 1 texts of
    the batch, first and second ones: - (1 / 2B) * sum of log(exp(cos(u, v) / tau) / sum over w != u of
    exp(cos(u, w) / tau)). Three things differ from `ibn_loss`: both directions; the mean is over all 2B
    texts, so a batch of few positives counts little; and a copy of a text elsewhere in the batch is a
    negative like any other, which is why angle-emb drops rows that repeat a text.

    Equal to angle-emb's `in_batch_negative_loss` for labels of 0 and 1. It cuts graded labels to integers,
    takes all from 1 on as positive, and then also takes for a partner any text whose label times its place in
    the batch is the partner's by chance; here `positive` says what is one.

    Args:
        first: First texts.
        second: Second texts.
        positive: Pairs whose texts belong together.
        tau: Temperature; angle-emb's `ibn_tau` is 1 / tau.
    """
    texts = unit(torch.cat([first, second]))
    logits = texts @ texts.T / tau
    to_partner = logits.diagonal(len(first)).repeat(2)
    itself = torch.eye(len(texts), dtype=torch.bool, device=texts.device)
    losses = logits.masked_fill(itself, -torch.inf).logsumexp(1) - to_partner
    return (losses * positive.repeat(2)).mean()


def contrastive_loss(
    first: Float[Tensor, "anchor dim"],
    second: Float[Tensor, "candidate dim"],
    texts: Int[Tensor, "candidate 2"],
    positive: Bool[Tensor, " anchor"],
    tau: float,
    further: Further = NOTHING_FURTHER,
    *,
    hard_negatives: bool = True,
    symmetric: bool = False,
) -> Float[Tensor, ""]:
    """Supervised InfoNCE: ACL Eq. 4, as a mean over the positive pairs; the loss of SimCSE.

    The ACL paper prints the same formula as arXiv Eq. 2, so with hard negatives and one direction this is
    `ibn_loss`.

    Args:
        first: First texts of the pairs that may be positive, which come first.
        second: Second texts of all pairs.
        texts: All pairs' texts by number: equal numbers are equal texts, `ABSENT` is none.
        positive: Pairs whose texts belong together.
        tau: Temperature.
        further: What is not in the equation; its anchors and positives join the first of two directions.
        hard_negatives: The second texts of negative pairs are candidates too, for every anchor.
        symmetric: Mean of this and the same from second texts to first, among the positive pairs.
    """
    anchors, guide = len(positive), further.guide
    one, other = unit(first), unit(second)
    left_out = no_negatives(texts, positive)
    if guide is not None:
        left_out = left_out | guide.too_near(guide.first, guide.second)
    partners, among_partners = other[:anchors], left_out[:, :anchors]
    forth = [(one @ other.T, left_out)]
    if not hard_negatives:
        forth = [(one @ partners.T, among_partners | ~positive)]
    if further.anchors:
        known = _same_side(texts, positive, 0) | no_negatives(texts[:anchors], positive).T
        if guide is not None:
            known = known | guide.too_near(guide.first, guide.first)
        forth.append((one @ one.T, known))
    if further.positives:
        known = _same_side(texts, positive, 1) | no_negatives(texts[:anchors], positive) | ~positive
        if guide is not None:
            known = known | guide.too_near(guide.second[:anchors], guide.second[:anchors])
        forth.append((partners @ partners.T, known))
    loss = _partner_loss(forth, positive, tau)
    if not symmetric:
        return loss
    unfit = no_negatives(texts[:anchors], positive).T | ~positive
    if guide is not None:
        unfit = unfit | guide.too_near(guide.second[:anchors], guide.first)
    return (loss + _partner_loss([(partners @ one.T, unfit)], positive, tau)) / 2


def no_negatives(
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
    """Mean of -log softmax of each positive pair's own candidate, among those not left out.

    Args:
        blocks: Cosines of anchors with candidates, and who is left out; the first one's diagonal is the
            partners, who never are.
        positive: Pairs whose texts belong together.
        tau: Temperature.
    """
    logits = torch.cat([cosines for cosines, _ in blocks], dim=1) / tau
    left_out = torch.cat([unfit for _, unfit in blocks], dim=1)
    own = torch.eye(*left_out.shape, dtype=torch.bool, device=positive.device)
    kept = logits.masked_fill(left_out & ~own, -torch.inf)
    losses = kept.logsumexp(1) - logits.diagonal()
    return (losses * positive).sum() / positive.sum().clamp_min(1)
