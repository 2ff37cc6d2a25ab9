"""Chunks and two processes give the gradients of one whole batch."""

import os

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from aoe_train.training.pair_model import PairModel, split_texts
from aoe_train.training.processes import repeated_layers
from aoe_train.training.train_plan import saved_bytes
from tests import forked
from tests.aoe_train.two_ranks import (
    WORDS,
    AllPairs,
    Bag,
    batch,
    deep_model,
    triplet_gradients,
)
from tests.support.shorthand import ROOT


class Dropped(nn.Module):
    """A text model with dropout."""

    def __init__(self):
        super().__init__()
        self.bag = Bag()

    def forward(self, input_ids, lengths, *_):
        return torch.dropout(self.bag(input_ids, lengths), 0.5, train=True)


def gradients(model):
    torch.manual_seed(7)
    model.zero_grad()
    model(**batch(0, 0, 1))["loss"].backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters()}


def models(kind, chunk):
    torch.manual_seed(0)
    return PairModel(kind(), AllPairs(), chunk=chunk).double()


@pytest.mark.parametrize("chunk", [1, 5, 16, 99])
def test_chunks_keep_gradients(chunk):
    assert_close(gradients(models(Bag, chunk)), gradients(models(Bag, None)))


def test_chunks_keep_gradients_of_earlier_layers():
    whole = triplet_gradients(deep_model(), 0, 1)
    for chunk in (1, 7):
        assert_close(triplet_gradients(deep_model(chunk), 0, 1), whole)


def test_recomputed_chunks_have_the_same_dropout():
    class ByHand(PairModel):
        def embed(self, input_ids, lengths, *_):
            parts = split_texts(input_ids, lengths, 5)
            return torch.cat([self.text_model(*part) for part in parts])

    torch.manual_seed(0)
    by_hand = ByHand(Dropped(), AllPairs()).double()
    assert_close(gradients(models(Dropped, 5)), gradients(by_hand))


@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=9).map(np.array),
    size=st.integers(1, 10),
)
def test_split_texts_keeps_every_text_whole(lengths, size):
    ids = torch.arange(int(lengths.sum()))
    parts = list(split_texts(ids, lengths, size, lengths - 1))
    assert [len(part[1]) for part in parts[:-1]] == [size] * (len(parts) - 1)
    assert all(len(tokens) == int(sizes.sum()) for tokens, sizes, _ in parts)
    for place, whole in enumerate((ids, lengths, lengths - 1)):
        assert np.array_equal(np.concatenate([part[place] for part in parts]), whole)


def test_saved_bytes_counts_what_backward_needs():
    class Square(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Linear(1, 4)

        def forward(self, input_ids, lengths, *_):
            return self.weight(input_ids.double()[:, None]).square()[: len(lengths)]

    class Sum(nn.Module):
        def forward(self, vectors, *_):
            return {"loss": vectors.sum()}

    ids = torch.arange(1000) % WORDS
    one = np.ones(1000, dtype=np.int64)
    found = {
        "input_ids": ids,
        "lengths": one,
        "rows": torch.tensor([[0, 1]]),
        "texts": ids,
    }
    kept, by_hundreds, by_600 = (
        saved_bytes(PairModel(Square(), Sum(), chunk=chunk).double(), found)
        for chunk in (None, 100, 600)
    )
    # `square` saves 1000 x 4 and `linear` 1000 x 1, in float64; indexing saves its few rows.
    assert 8 * 5000 <= kept <= 8 * 5100
    assert by_hundreds + 8 * 2500 == by_600 < kept  # the last chunk has only 400 texts


def test_two_ranks_equal_one_with_the_doubled_batch(tmp_path):
    environ = {**os.environ, "KEEP": str(tmp_path)}
    ranks = forked.begin_ranks(
        "tests.aoe_train.two_ranks", cwd=ROOT, err=tmp_path, environ=environ
    )
    for number, rank in enumerate(ranks):
        rank.join(100)
        assert rank.exitcode == 0, (tmp_path / str(number)).read_text()


def stack(*members):
    holder = nn.Module()
    holder.layers = nn.ModuleList(members)
    return holder


def test_repeated_layers():
    experts = stack(nn.Linear(2, 2), nn.Linear(2, 2))
    inner = stack(experts, nn.ReLU())
    found = repeated_layers(nn.Sequential(nn.Embedding(3, 2), inner))
    assert found == [experts, inner.layers[1]]
    assert repeated_layers(nn.Linear(2, 2)) == []
    blocks = [nn.ModuleList([nn.ReLU(), nn.Tanh()]), nn.ModuleList([nn.GELU()])]
    assert repeated_layers(stack(*blocks)) == [*blocks[0], *blocks[1]]
