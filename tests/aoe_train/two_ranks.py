"""Run by test_trainer_pair_model in two processes: DDP and sharding against one process (float64)."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close

from aoe_train.objectives.objective import make_objective
from aoe_train.objectives.objective_checks import TeacherInfo
from aoe_train.objectives.objective_settings import PARTS, ObjectiveSettings, Weights
from aoe_train.objectives.training_rows import ABSENT
from aoe_train.training.checkpoints import (
    load_optimiser,
    optimiser_state,
    restore_weights,
)
from aoe_train.training.monitoring import LossLog
from aoe_train.training.pair_model import PairModel
from aoe_train.training.processes import (
    copy_weights,
    exit_cleanly,
    gather_weights,
    leave_group,
    run_on_main,
    shard,
    trained_weights,
    unshard,
)
from tests.aoe_train.tiny import seeded
from tests.support.shorthand import data_error

ROWS, DIM, WORDS, TAUGHT = 8, 6, 40, 3


class Bag(nn.Module):
    """A text model: the mean of its tokens' embeddings, through two layers."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, DIM)
        self.layers = nn.ModuleList([nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)])

    def forward(self, input_ids, lengths, prompt_lengths=None, layers=()):
        parts = self.embedding(input_ids).split(lengths.tolist())
        states = [torch.stack([part.mean(0) for part in parts])]
        for layer in self.layers:
            states.append(torch.tanh(layer(states[-1])))
        if not layers:
            return states[-1]
        return torch.stack([*(states[n] for n in layers), states[-1]], dim=1)


class AllPairs(nn.Module):
    """An objective in which all rows depend on each other, with a trained weight."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))  # FSDP takes no scalars

    def forward(self, vectors, labels, texts, *_):
        cosines = torch.cosine_similarity(*vectors.unbind(1)) * self.scale
        ranks = (cosines - cosines[:, None]) * (labels[:, None] - labels).sign()
        every = vectors.flatten(0, 1)
        apart = torch.exp(ranks).mean() + (every @ every.T).square().mean()
        return {"loss": apart + 0 * texts.sum()}


def model(chunk):
    torch.manual_seed(0)
    return PairModel(Bag(), AllPairs(), chunk=chunk).double()


def texts(seed, columns, rank, world):
    """A rank's slice of a batch of texts, and its row numbers."""
    random = seeded(seed)
    lengths = torch.randint(1, 5, (ROWS, columns), generator=random)
    ids = [torch.randint(WORDS, (int(n),), generator=random) for n in lengths.flatten()]
    share = ROWS // world
    mine = range(rank * share * columns, (rank + 1) * share * columns)
    return {
        "input_ids": torch.cat([ids[i] for i in mine]),
        "lengths": np.array([len(ids[i]) for i in mine]),
        "rows": torch.arange(columns * share).reshape(share, columns),
        "texts": torch.tensor(mine),
    }, range(rank * share, (rank + 1) * share)


def batch(step, rank, world):
    """A rank's slice of a step's batch."""
    made, rows = texts(step, 2, rank, world)
    labels = torch.rand(ROWS, generator=seeded(step), dtype=torch.float64)
    return made | {"labels": labels[rows.start : rows.stop]}


def gather(weights):
    return gather_weights(weights, main=True)


def steps(wrapped, rank, world):
    optimiser = torch.optim.SGD(wrapped.parameters(), lr=0.5)
    history = []
    for step in range(4):
        wrapped(**batch(step, rank, world))["loss"].backward()
        optimiser.step()
        optimiser.zero_grad()
        history.append(flat(gather(dict(wrapped.named_parameters()))))
    return history


def triplet_gradients(wrapped, rank, world):
    """Gradients on rows with one to three negatives, a guide and a teacher."""
    made, rows = texts(5, 5, rank, world)
    made["rows"][::2, 3:] = ABSENT
    made["rows"][1::4, 4] = ABSENT
    random = seeded(6)
    for role in ("guide", "teacher"):
        told = torch.rand(ROWS, 5, TAUGHT, generator=random)
        made[role] = told[rows.start : rows.stop]
    wrapped(**made)["loss"].backward()
    return torch.cat([weight.grad.flatten() for weight in wrapped.parameters()])


def triplet_model():
    torch.manual_seed(1)
    weights = Weights(**dict.fromkeys(PARTS, 1.0) | {"sbert": 0})
    wanted = ObjectiveSettings(
        weights=weights, dims=(DIM, 4, 2), dim_weights=(1, 0.5, 2)
    )
    how = {"kind": "triplet", "teachers": TeacherInfo(guide=True, teacher_dim=TAUGHT)}
    return PairModel(Bag(), make_objective(wanted, dim=DIM, **how)).double()


def deep_model(chunk=None):
    torch.manual_seed(2)
    weights = Weights(cosent=1, contrastive=1)
    wanted = ObjectiveSettings(weights=weights, dims=(DIM, 3), layers=(1,), align=0.5)
    objective = make_objective(wanted, dim=DIM, kind="triplet", layers=(1,))
    return PairModel(Bag(), objective, layers=(1,), chunk=chunk).double()


def flat(weights):
    return torch.cat([weight.flatten() for weight in weights.values()])


def name_the_rows_of_all_ranks():
    log, rank = LossLog(lr=0.1), dist.get_rank()
    log.add({"loss": torch.tensor(float("nan"))}, [7 - rank, rank], 0)
    with data_error("rows 0, 1, 6, 7 "):
        log.check()


def check_sharding(alone):
    """Sharded weights take the same steps as whole ones, and are gathered again."""
    rank = dist.get_rank()
    shared = model(None)
    if rank:
        more = {name: weight + 1 for name, weight in trained_weights(shared).items()}
        restore_weights(shared, more)
    shard(shared)  # takes rank 0's
    held = sum(weight.to_local().numel() for weight in shared.parameters())
    assert abs(held - len(alone[0]) / 2) <= 10, held
    for weights, expected in zip(steps(shared, rank, 2), alone, strict=True):
        assert_close(weights, expected, rtol=1e-12, atol=1e-12)
    weights = gather(trained_weights(shared))
    assert not gather_weights(trained_weights(shared), main=False)
    # In memory, and as in a checkpoint.
    for kept in (copy_weights(trained_weights(shared)), weights):
        restore_weights(shared, {name: 0 * weight for name, weight in weights.items()})
        restore_weights(shared, kept)
        assert_close(gather(trained_weights(shared)), weights, rtol=0, atol=0)
    check_optimiser(shared)
    # A part by itself, as dev data are scored.
    with torch.inference_mode():
        vectors = run_on_main(shared, lambda: shared.text_model(**text_batch(9)))
    unshard(shared)
    assert not any(isinstance(weight, DTensor) for weight in shared.parameters())
    found = flat(dict(shared.named_parameters()))
    assert_close(found, alone[-1], rtol=1e-12, atol=1e-12)
    assert_close(shared.text_model(**text_batch(9)), vectors)


def check_optimiser(shared):
    """The optimiser's state is saved whole and sharded again."""
    path = Path(os.environ["KEEP"]) / "optimiser.pt"
    found = []
    for _ in range(2):
        optimiser = torch.optim.AdamW(shared.parameters(), lr=0.0)
        wrapped = SimpleNamespace(optimizer=optimiser)  # as accelerate has it
        if found:
            load_optimiser(shared, wrapped, torch.load(path))
        else:
            shared(**batch(7, dist.get_rank(), 2))["loss"].backward()
            optimiser.step()
            optimiser.zero_grad()
            state = optimiser_state(shared, wrapped)
            if dist.get_rank() == 0:
                torch.save(state, path)
            dist.barrier()
        states = (optimiser.state[weight]["exp_avg"] for weight in shared.parameters())
        found.append(torch.cat([state.full_tensor().flatten() for state in states]))
    assert torch.equal(*found)
    assert found[0].any()


def text_batch(step):
    whole = batch(step, 0, 1)
    return {name: whole[name] for name in ("input_ids", "lengths")}


def main():
    alone = steps(model(None), 0, 1)  # before there are ranks to gather from
    triplets = [triplet_gradients(make(), 0, 1) for make in (triplet_model, deep_model)]
    # Otherwise nothing was learned.
    assert (alone[-1] - alone[0]).abs().max() >= 1e-3
    dist.init_process_group("gloo")
    exit_cleanly()
    name_the_rows_of_all_ranks()
    for chunk in (None, 3):
        together = steps(DistributedDataParallel(model(chunk)), dist.get_rank(), 2)
        for weights, expected in zip(together, alone, strict=True):  # after each step
            everyone = [torch.empty_like(weights) for _ in range(2)]
            dist.all_gather(everyone, weights)
            assert_close(*everyone, rtol=0, atol=0)
            assert_close(weights, expected, rtol=1e-12, atol=1e-12)
    for make, expected in zip((triplet_model, deep_model), triplets, strict=True):
        found = triplet_gradients(DistributedDataParallel(make()), dist.get_rank(), 2)
        assert_close(found, expected, rtol=1e-9, atol=1e-12)
    check_sharding(alone)
    leave_group()


if __name__ == "__main__":
    main()
