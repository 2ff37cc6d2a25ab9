"""The in-batch losses against hand-worked numbers and plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from aoe_train.objectives.contrastive import contrastive_loss, false_negatives, ibn_loss
from aoe_train.records import ABSENT

quick = settings(max_examples=25)
seeds = st.integers(0, 10**6)


def draw(seed: int, rows: int = 6, dim: int = 5, distinct: int = 7) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A batch with few distinct texts, so that they repeat; equal texts have equal vectors."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(distinct, dim, generator=generator, dtype=torch.float64)
    texts = torch.randint(distinct, (rows, 2), generator=generator)
    positive = torch.rand(rows, generator=generator) < 0.6
    return table[texts[:, 0]], table[texts[:, 1]], texts, positive


def plain(anchors, candidates, numbers, positive, tau, usable) -> float:
    """One anchor and one candidate at a time; `numbers` are (anchor, candidate) texts of each row."""
    together = {frozenset(pair) for pair, good in zip(numbers, positive, strict=True) if good}
    losses = []
    for i, (anchor, own) in enumerate(zip(anchors, candidates, strict=True)):
        if not positive[i]:
            continue

        def similarity(other, anchor=anchor):
            return math.exp(anchor @ other / np.linalg.norm(anchor) / np.linalg.norm(other) / tau)

        total = similarity(own)
        for j, other in enumerate(candidates):
            texts = (numbers[i][0], numbers[j][1])
            if usable[j] and texts[0] != texts[1] and frozenset(texts) not in together:
                total += similarity(other)
        losses.append(-math.log(similarity(own) / total))
    return sum(losses) / max(len(losses), 1)


def swapped(numbers):
    return [(b, a) for a, b in numbers]


def test_two_positive_rows_by_hand():
    # Orthogonal texts, tau 1: each anchor is 1 alike to its partner and 0 to the other: log(1 + 1/e)
    eye = torch.eye(2)
    loss = ibn_loss(eye, eye, torch.tensor([[0, 1], [2, 3]]), torch.tensor([True, True]), 1.0)
    assert loss.item() == pytest.approx(0.3132617, abs=1e-6)


def test_a_negative_rows_second_text_is_a_candidate_and_its_first_no_anchor():
    # Anchor (1, 0): partner at cosine 0.6, the negative row's second text at 0.8: log(1 + e^0.2)
    first, second = torch.tensor([[1.0, 0], [0, 1]]), torch.tensor([[0.6, 0.8], [0.8, 0.6]])
    batch = first, second, torch.tensor([[0, 1], [2, 3]]), torch.tensor([True, False]), 1.0
    assert ibn_loss(*batch).item() == pytest.approx(0.7981389, abs=1e-6)
    assert contrastive_loss(*batch).item() == pytest.approx(0.7981389, abs=1e-6)
    assert contrastive_loss(*batch, hard_negatives=False).item() == 0


def test_symmetric_by_hand():
    # Forth: anchors e1, e2, logits [[1, 0.6], [0, 0.8]]; back: the columns. Mean of both directions.
    first, second = torch.eye(2), torch.tensor([[1.0, 0], [0.6, 0.8]])
    texts, positive = torch.tensor([[0, 1], [2, 3]]), torch.tensor([True, True])
    forth = (math.log(1 + math.exp(-0.4)) + math.log(1 + math.exp(-0.8))) / 2
    back = (math.log(1 + math.exp(-1.0)) + math.log(1 + math.exp(-0.2))) / 2
    loss = contrastive_loss(first, second, texts, positive, 1.0, symmetric=True)
    assert loss.item() == pytest.approx((forth + back) / 2, abs=1e-6)


def test_who_is_no_negative_of_whom():
    # 0-1 and 0-2 share an anchor, 3-1 shares a partner, 4-0 has that anchor second, 0-5 is labelled "no"
    texts = torch.tensor([[0, 1], [0, 2], [3, 1], [4, 0], [0, 5]])
    positive = torch.tensor([True, True, True, True, False])
    expected = [  # candidates 1, 2, 1, 0, 5
        [1, 1, 1, 1, 0],  # 0: both its partners, the copy of one, itself
        [1, 1, 1, 1, 0],
        [1, 0, 1, 0, 0],  # 3: its partner and the copy
        [0, 0, 0, 1, 0],  # 4
        [1, 1, 1, 1, 0],  # 0 again; being labelled "no", 5 stays a negative
    ]
    assert false_negatives(texts, positive).int().tolist() == expected


def test_two_negatives_a_row_by_hand():
    # Anchor (1, 0), partner at cosine 0.8, negatives at 0.6 and 0: log(1 + e^-0.2 + e^-0.8)
    first, second = torch.tensor([[1.0, 0]]), torch.tensor([[0.8, 0.6], [0.6, 0.8], [0, 1]])
    batch = first, second, torch.tensor([[0, 1], [0, 2], [0, 3]]), torch.tensor([True]), 1.0
    expected = math.log(1 + math.exp(-0.2) + math.exp(-0.8))
    assert ibn_loss(*batch).item() == pytest.approx(expected, abs=1e-6)
    assert contrastive_loss(*batch).item() == pytest.approx(expected, abs=1e-6)
    assert contrastive_loss(*batch, hard_negatives=False).item() == 0


def test_which_negatives_of_the_rows_are_none():
    # Rows 0-1 and 2-3; then a negative of each: 4 and 3, which is the second row's own partner, and 2, the
    # second anchor itself, and one that the second row lacks.
    texts = torch.tensor([[0, 1], [2, 3], [0, 4], [2, 3], [0, 2], [2, ABSENT]])
    expected = [[1, 0, 0, 0, 0, 1], [0, 1, 0, 1, 1, 1]]
    assert false_negatives(texts, torch.tensor([True, True])).int().tolist() == expected


def test_numbers_tell_equal_texts_not_vectors():
    same = torch.ones(2, 3)
    positive = torch.tensor([True, True])
    different = ibn_loss(same, same, torch.tensor([[0, 1], [2, 3]]), positive, 1.0)
    assert different.item() == pytest.approx(math.log(2))
    assert ibn_loss(same, same, torch.tensor([[0, 1], [2, 1]]), positive, 1.0) == 0


@quick
@given(seeds, st.sampled_from([0.05, 1.0]))
def test_against_loops(seed, tau):
    first, second, texts, positive = draw(seed)
    numbers, flags = [tuple(row) for row in texts.tolist()], positive.tolist()
    a, b = first.numpy(), second.numpy()
    everyone = [True] * len(flags)
    whole = plain(a, b, numbers, flags, tau, everyone)
    some = plain(a, b, numbers, flags, tau, flags)
    back = plain(b, a, swapped(numbers), flags, tau, flags)
    batch = first, second, texts, positive, tau
    assert ibn_loss(*batch).item() == pytest.approx(whole)
    assert contrastive_loss(*batch).item() == pytest.approx(whole)
    assert contrastive_loss(*batch, hard_negatives=False).item() == pytest.approx(some)
    assert contrastive_loss(*batch, symmetric=True).item() == pytest.approx((whole + back) / 2)


@quick
@given(seeds)
def test_gradient_against_finite_differences(seed):
    first, second, texts, positive = draw(seed)
    assert torch.autograd.gradcheck(
        lambda x, y: contrastive_loss(x, y, texts, positive, 0.5, symmetric=True),
        (first.requires_grad_(), second.requires_grad_()),
    )


@pytest.mark.parametrize("loss", [ibn_loss, contrastive_loss])
def test_no_positive_row_is_zero_with_zero_gradient(loss):
    first, second, texts, positive = draw(0)
    value = loss(first.requires_grad_(), second, texts, torch.zeros_like(positive), 0.05)
    value.backward()
    assert value == 0
    assert torch.equal(first.grad, torch.zeros_like(first))
