"""WhitenedCSE: roots of matrices, whitening in groups, and its loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from aoe_train import Encoder
from aoe_train._baselines.way import Rows, Texts
from aoe_train._baselines.whitenedcse import WhitenedCse, group_whitened, inverse_root


def test_a_root_by_hand_and_by_numpys_eigenvalues():
    found = inverse_root(torch.diag(torch.tensor([4.0, 0.25]))[None].double())
    assert found[0].numpy() == pytest.approx(np.diag([0.5, 2]), rel=1e-3)
    made = torch.randn(5, 40, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    covariance = made.transpose(1, 2) @ made / 40
    values, directions = np.linalg.eigh(covariance.numpy())
    expected = directions / np.sqrt(values)[:, None] @ directions.swapaxes(1, 2)
    assert inverse_root(covariance).numpy() == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_groups_are_white_and_numbers_keep_their_places():
    generator = torch.Generator().manual_seed(2)
    vectors = torch.randn(200, 12, generator=generator) @ torch.randn(12, 12, generator=generator) + 4
    order = torch.randperm(12, generator=generator)
    white = group_whitened(vectors, order, 6)
    for group in order.split(6):
        assert np.cov(white[:, group].T, bias=True) == pytest.approx(np.eye(6), abs=5e-3)
    assert group_whitened(vectors, order, 1) == pytest.approx(
        (vectors - vectors.mean(0)) / vectors.std(0, unbiased=False), abs=1e-3
    )


@pytest.mark.parametrize("texts", [1, 2, 3])
def test_few_texts_have_finite_gradients(texts: int):
    vectors = torch.randn(texts, 12, generator=torch.Generator().manual_seed(3)).requires_grad_()
    group_whitened(vectors, torch.arange(12), 6).square().sum().backward()
    assert vectors.grad is not None
    assert vectors.grad.isfinite().all()


def test_without_dropout_each_text_is_found_at_once(bert: Path):
    encoder = Encoder.load(bert, device="cpu")
    way = WhitenedCse(encoder)
    assert way.group == 4  # of 32 numbers
    lengths = np.array([5, 5, 6, 7, 8, 9])
    ids = torch.randint(5, 60, (int(lengths.sum()),), generator=torch.Generator().manual_seed(4))
    texts = Texts(ids, lengths)
    rows = Rows(torch.arange(6)[:, None], None)
    loss = way(encoder.model, texts, torch.arange(6), rows)["loss"]
    loss.backward()
    assert 0 < loss.item() < 2 * np.log(6)
    assert all(weight.grad is not None for weight in way.parameters())
