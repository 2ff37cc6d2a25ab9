"""Shared-out weights; what needs two processes is in two_ranks.py, which test_trainer_gather runs."""

from __future__ import annotations

import torch
from torch import nn

from aoe_train.training.trainer.sharding import (
    copy_weights,
    gather_weights,
    is_sharded,
    repeated_layers,
    shard_like,
    unshard,
    unsharded_root,
)


def stack(*members: nn.Module) -> nn.Module:
    holder = nn.Module()
    holder.layers = nn.ModuleList(members)
    return holder


def test_layers_are_the_members_of_the_outermost_lists() -> None:
    experts = stack(nn.Linear(2, 2), nn.Linear(2, 2))
    inner = stack(experts, nn.ReLU())
    found = repeated_layers(nn.Sequential(nn.Embedding(3, 2), inner))
    assert found == [experts, inner.layers[1]]
    assert repeated_layers(nn.Linear(2, 2)) == []
    blocks = [nn.ModuleList([nn.ReLU(), nn.Tanh()]), nn.ModuleList([nn.GELU()])]
    assert repeated_layers(stack(*blocks)) == [*blocks[0], *blocks[1]]


def test_a_whole_model_is_left_as_it_is() -> None:
    model = nn.Linear(3, 2)
    before = model.weight
    assert not is_sharded(model)
    with unsharded_root(model):
        pass
    unshard(model)
    assert model.weight is before
    assert gather_weights({"weight": before}, main=True)["weight"].data_ptr() == before.data_ptr()
    assert not gather_weights({"weight": before}, main=False)
    assert copy_weights({"weight": before})["weight"].data_ptr() != before.data_ptr()
    assert torch.equal(shard_like(torch.ones(2, 3), before), torch.ones(2, 3))
