"""Losses that tell a text's partner from the other texts of the batch.

Equal texts are known by their numbers, not by their vectors, which dropout may tell apart.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from aoe_train._objectives.pairs import Pairs
from aoe_train._objectives.parts import Given, Loss
from aoe_train._objectives.similarity import unit
from aoe_train._records import ABSENT


def ibn_part(given: Given) -> Loss:
    """The part `ibn`."""
    tau = given.tau("ibn")
    if given.settings.ibn_form == "angle-emb":
        return lambda pairs: ibn_angle_emb(
            pairs.first, pairs.second, pairs.labels >= given.positive_from, tau
        )
    return lambda pairs: ibn_loss(*_candidates(pairs, given), tau)


def contrastive_part(given: Given) -> Loss:
    """The part `contrastive`."""
    settings = given.settings
    return lambda pairs: contrastive_loss(
        *_candidates(pairs, given),
        given.tau("contrastive"),
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


def ibn_loss(
    first: Float[Tensor, "anchor dim"],
    second: Float[Tensor, "candidate dim"],
    texts: Int[Tensor, "candidate 2"],
    positive: Bool[Tensor, " anchor"],
    tau: float,
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
    """
    return _partner_loss(first, second, no_negatives(texts, positive), positive, tau)


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
        hard_negatives: The second texts of negative pairs are candidates too, for every anchor.
        symmetric: Mean of this and the same from second texts to first, among the positive pairs.
    """
    left_out = no_negatives(texts, positive)
    partners, among_partners = second[: len(positive)], left_out[:, : len(positive)]
    if hard_negatives:
        forth = _partner_loss(first, second, left_out, positive, tau)
    else:
        forth = _partner_loss(first, partners, among_partners | ~positive, positive, tau)
    if not symmetric:
        return forth
    back = _partner_loss(partners, first, among_partners.T | ~positive, positive, tau)
    return (forth + back) / 2


def no_negatives(
    texts: Int[Tensor, "candidate 2"], positive: Bool[Tensor, " anchor"]
) -> Bool[Tensor, "anchor candidate"]:
    """[i, j]: the second text of pair j must not be a negative of the first text of pair i.

    So it is if both are one text, or if a positive pair of the batch, in either order, holds the two. This
    covers copies of i's partner as well as i's text with another partner. It is also if there is no such
    text. The diagonal is left to the caller.
    """
    pairs, candidates = texts[: len(positive)].contiguous(), texts[:, 1].contiguous()
    known = pairs.flatten().sort().values  # torch.unique would wait to learn how many there are
    first, second = torch.searchsorted(known, pairs).unbind(1)
    alike = torch.eye(len(known), dtype=torch.bool, device=texts.device)
    # Negative pairs mark that a text is like itself, as picking out the others would wait for the device.
    alike[first * positive, second * positive] = True
    places = torch.searchsorted(known, candidates).clamp_max(len(known) - 1)
    is_known = known[places] == candidates  # a row's own negative may stand in no pair that may be positive
    return ((alike | alike.T)[first][:, places] & is_known) | (candidates == ABSENT)


def _partner_loss(
    anchors: Float[Tensor, "anchor dim"],
    candidates: Float[Tensor, "candidate dim"],
    left_out: Bool[Tensor, "anchor candidate"],
    positive: Bool[Tensor, " anchor"],
    tau: float,
) -> Float[Tensor, ""]:
    """Mean of -log softmax of each positive pair's own candidate, among those not left out."""
    own = torch.eye(*left_out.shape, dtype=torch.bool, device=positive.device)
    logits = unit(anchors) @ unit(candidates).T / tau
    kept = logits.masked_fill(left_out & ~own, -torch.inf)
    losses = kept.logsumexp(1) - logits.diagonal()
    return (losses * positive).sum() / positive.sum().clamp_min(1)
