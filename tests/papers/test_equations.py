"""Each statement of `papers/equations.md`, from the printed formulas in plain loops."""

from __future__ import annotations

import math
import re

import torch
from torch.testing import assert_close

from aoe_train.objectives.contrastive import contrastive_loss
from aoe_train.objectives.labelled_pairs import (
    angle_reference,
    cosine,
    ranking_loss,
    unit,
)
from aoe_train.objectives.objective import Objective
from aoe_train.objectives.objective_settings import ObjectiveSettings
from tests.aoe_train.tiny import seeded
from tests.support.shorthand import ROOT, approx

PAGE = (ROOT / "papers" / "equations.md").read_text(encoding="utf-8")
TAU = 0.05


def pairs(count=6, dim=8):
    generator = seeded(3)
    first, second = torch.randn(2, count, dim, generator=generator, dtype=torch.float64)
    return first, second


def halves(first, second):
    """a, b, c, d of arXiv Eq. 3 and ACL Eq. 1."""
    return *first.chunk(2, dim=-1), *second.chunk(2, dim=-1)


def ranked(scores, labels, sign):
    """log(1 + sum over label_i > label_j of exp(sign * (score_i - score_j) / TAU))."""
    total = 1.0
    for i, high in enumerate(labels):
        for j, low in enumerate(labels):
            if high > low:
                total += math.exp(sign * float(scores[i] - scores[j]) / TAU)
    return math.log(total)


def printed_contrast(first, second, targets):
    """arXiv Eq. 2 and ACL Eq. 4: a sum over the positives `targets` of each first text."""
    cosines = unit(first) @ unit(second).T / TAU
    total = 0.0
    for row, own in zip(cosines, targets, strict=True):
        total += float((row.logsumexp(0) - row[own]).sum())
    return total


def ours(first, second, texts, **options):
    positive = torch.ones(len(first), dtype=torch.bool)
    return contrastive_loss(
        first, second, torch.tensor(texts), positive, TAU, **options
    ).item()


def test_equation_6_is_1_for_every_input():
    a, b, c, d = halves(*pairs())
    quotient = torch.complex(a * c + b * d, b * c - a * d)
    lengths = ((c**2 + d**2) * (a**2 + b**2)).sqrt()
    assert_close(quotient.abs() / lengths, torch.ones_like(a))
    assert angle_reference(*pairs()).std() > 0.1


def test_the_angle_is_a_similarity_of_the_whole_vectors():
    first, second = pairs()
    a, b, c, d = halves(first, second)
    lengths = first.norm(dim=-1) * second.norm(dim=-1)
    printed = ((a * c + b * d) + (b * c - a * d)).sum(-1) / lengths
    found = angle_reference(first, second)
    assert_close(found, printed.abs())
    rotated = torch.cat([c - d, c + d], dim=-1)  # by 45 degrees, times the root of 2
    assert_close(found, math.sqrt(2) * cosine(first, rotated).abs())
    assert_close(angle_reference(first, first), torch.ones_like(found))
    largest = torch.full_like(found, math.sqrt(2))
    assert_close(angle_reference(rotated, second), largest)
    assert not torch.allclose(found, angle_reference(second, first))
    assert (printed < 0).any()  # ACL Eq. 2 takes the logarithm of it


def test_equation_7_ranks_the_other_way_round():
    first, second = pairs()
    labels, scores = torch.tensor([1.0, 0, 1, 0, 1, 0]), angle_reference(first, second)
    ours = ranking_loss(scores, labels, 1 / TAU).item()
    assert ours == approx(ranked(scores, labels, -1))
    reversed_loss = ranked(scores, labels, 1)  # as printed
    assert reversed_loss == approx(ranking_loss(-scores, labels, 1 / TAU).item())
    better = scores + labels  # positives score higher
    assert ranked(better, labels, 1) > reversed_loss


def test_equation_1_is_ours():
    (first, second), labels = pairs(), torch.tensor([1.0, 0, 0.5, 0, 1, 0.5])
    scores = cosine(first, second)
    ours = ranking_loss(scores, labels, 1 / TAU).item()
    assert ours == approx(ranked(scores, labels, -1))


def test_the_contrast_is_a_mean_instead_of_a_sum():
    first, second = pairs()
    printed = printed_contrast(first, second, [[i] for i in range(6)])
    assert ours(first, second, [[i, 10 + i] for i in range(6)]) == approx(printed / 6)


def test_copies_of_a_positive():
    first, second = pairs(4)
    second = first + second
    second[1] = second[0]
    # The second texts of the first two pairs are the same.
    texts = [[0, 10], [1, 10], [2, 12], [3, 13]]
    assigned = printed_contrast(first, second, [[0, 1], [0, 1], [2], [3]])
    as_negatives = printed_contrast(first, second, [[0], [1], [2], [3]])
    left_out = printed_contrast(first[2:], second, [[2], [3]])
    for i in (0, 1):
        left_out += printed_contrast(first[[i]], second[[i, 2, 3]], [[0]])
    found = [
        ours(first, second, texts, duplicates=rule)
        for rule in ("positive", "exclude", "negative")
    ]
    assert found == approx([assigned / 6, left_out / 4, as_negatives / 4])
    figures = [f"{value:.2f}" for value in found]
    assert re.findall(r"\d\.\d\d", PAGE[PAGE.index("toy batch") :]) == figures


def test_hard_negatives_are_candidates_beyond_equation_4():
    generator = seeded(4)
    vectors = torch.randn(5, 3, 8, generator=generator, dtype=torch.float64)
    numbers = torch.arange(15).reshape(5, 3)
    first, positives = vectors[:, 0], vectors[:, 1]
    printed = printed_contrast(first, positives, [[i] for i in range(5)]) / 5

    def loss(**options):
        options |= {"weights": {"contrastive": 1}, "tau": {"contrastive": TAU}}
        objective = Objective(ObjectiveSettings(**options), dim=8, kind="triplet")
        return objective(vectors, None, numbers)["loss"].item()

    assert loss(hard_negatives=False) == approx(printed)
    assert loss() > printed
