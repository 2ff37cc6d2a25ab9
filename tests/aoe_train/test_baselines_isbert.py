"""IS-BERT's loss, and which models it is not for."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from aoe_train import Encoder
from aoe_train._baselines.isbert import IsBert, information_loss
from aoe_train._baselines.way import Rows, Texts
from pairkit.errors import ConfigError


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def test_two_texts_by_hand():
    local = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])  # two tokens of one text, one of the other
    vectors = torch.tensor([[1.0, 1.0], [3.0, 0.0]])
    # Scores: own 1, 2 and 3; others' 3, 0 and 2
    own = (softplus(-1) + softplus(-2) + softplus(-3)) / 3
    others = (softplus(3) + softplus(0) + softplus(2)) / 3
    owners = torch.tensor([0, 0, 1])
    found = information_loss(local, vectors, owners, torch.arange(2))
    assert found.item() == pytest.approx(own + others)
    alone = information_loss(local, vectors, owners, torch.zeros(2, dtype=torch.long))
    assert alone.item() == pytest.approx(own)  # copies of one text


def test_its_vectors_are_the_means_of_their_tokens_features(bert: Path):
    encoder = Encoder.load(bert, device="cpu", ngrams=(1, 3, 5), pooling="avg")
    lengths = np.array([4, 5])
    texts = Texts(torch.tensor([2, 8, 9, 3, 2, 10, 11, 12, 3]), lengths)
    way = IsBert(encoder)
    states = encoder.model.states(texts.input_ids, lengths)[-1]
    vectors = torch.stack([part.mean(0) for part in torch.split(states, lengths.tolist())])
    expected = information_loss(states, vectors, torch.tensor([0] * 4 + [1] * 5), torch.arange(2))
    found = way(encoder.model, texts, torch.arange(2), Rows(torch.arange(2)[:, None], None))["loss"]
    torch.testing.assert_close(found, expected)
    found.backward()
    assert all(weight.grad is not None for weight in encoder.model.ngrams.parameters())


@pytest.mark.parametrize("given", [{}, {"ngrams": (1, 3), "dense": [8]}])
def test_models_without_filters_or_with_dense_layers_are_refused(given: dict[str, object], bert: Path):
    with pytest.raises(ConfigError, match="preset isbert: tokens are compared"):
        IsBert(Encoder.load(bert, device="cpu", **given))
