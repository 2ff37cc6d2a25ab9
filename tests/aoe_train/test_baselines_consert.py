"""ConSERT's views and its loss."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from aoe_train import Encoder
from aoe_train._baselines.consert import ConSert, features_cut, shuffled, without_dropout
from aoe_train._baselines.way import Rows, Texts
from aoe_train._objectives.contrastive import ibn_angle_emb


def texts(*lengths: int) -> Texts:
    ids = [[2, *range(10 * row, 10 * row + length), 3] for row, length in enumerate(lengths, start=1)]
    return Texts(
        torch.tensor([token for text in ids for token in text]), np.array([len(text) for text in ids])
    )


def test_two_texts_by_hand():
    # Views (1, 0) and (1, 0) of one, (0, 1) and (0, 1) of the other, tau 1: -log(e / (e + 1 + 1)) each
    views = torch.eye(2)
    loss = ibn_angle_emb(views, views, torch.ones(2, dtype=torch.bool), 1.0)
    assert loss.item() == pytest.approx(math.log(math.e + 2) - 1)


def test_tokens_move_within_their_text_and_special_ones_stay():
    torch.manual_seed(0)
    batch = texts(3, 9, 9)
    found = shuffled(batch, ~torch.isin(batch.input_ids, torch.tensor([2, 3])))
    assert not torch.equal(found.input_ids, batch.input_ids)
    for before, after in zip(batch.sequences(), found.sequences(), strict=True):
        assert sorted(after.tolist()) == sorted(before.tolist())
        assert (after[0], after[-1]) == (2, 3)


@pytest.mark.parametrize("packing", [True, False])
def test_a_text_lacks_the_same_features_at_every_token(packing: bool, bert: Path):
    model = Encoder.load(bert, device="cpu", packing=packing).model
    assert model.packed == packing
    seen: list[torch.Tensor] = []
    batch = texts(2, 5, 5)
    torch.manual_seed(1)
    with features_cut(model, batch.lengths, 0.5):
        handle = model.backbone.encoder.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
        batch.vectors(model)
        handle.remove()
    states = seen[0] if not packing else torch.split(seen[0][0], batch.lengths.tolist())
    cut = []
    for state, length in zip(states, batch.lengths, strict=True):
        zero = state[:length] == 0
        assert (zero == zero[0]).all()
        assert 4 <= zero[0].sum() <= 28
        cut.append(zero[0].tolist())
    assert cut[0] != cut[1]
    before = batch.vectors(model)
    with features_cut(model, batch.lengths, 0.0):
        assert torch.equal(batch.vectors(model), before)


def test_dropout_is_off_for_the_views_alone(bert: Path):
    encoder = Encoder.load(bert, device="cpu")
    model = encoder.model.train()
    batch = texts(4, 6)
    with without_dropout(model):
        one, other = batch.vectors(model), batch.vectors(model)
    assert torch.equal(one, other)
    assert one.requires_grad
    assert model.training
    assert not torch.equal(batch.vectors(model), batch.vectors(model))


def test_its_loss_has_a_gradient(bert: Path):
    encoder = Encoder.load(bert, device="cpu")
    way = ConSert(encoder)
    assert way.classifier is None
    loss = way(encoder.model, texts(3, 6), torch.arange(2), Rows(torch.arange(2)[:, None], None))["loss"]
    loss.backward()
    assert all(weight.grad is not None for weight in encoder.model.backbone.encoder.parameters())
