"""Run by test_trainer_gather in two processes: trains under DDP and compares with one process, in float64."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from aoe_train.trainer.ledger import Ledger
from aoe_train.trainer.pair_model import PairModel
from pairkit.errors import DataError

ROWS, DIM, WORDS = 8, 6, 40


class Bag(nn.Module):
    """A text model: the mean of its tokens' embeddings, through a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, DIM)
        self.layer = nn.Linear(DIM, DIM)

    def forward(self, input_ids: Tensor, lengths: Tensor, pieces: Tensor) -> Tensor:
        parts = self.embedding(input_ids).split(lengths.tolist())
        return torch.tanh(self.layer(torch.stack([part.mean(0) for part in parts])))


class AllPairs(nn.Module):
    """An objective in which every row depends on every other, with a weight of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, vectors: Tensor, labels: Tensor | None, texts: Tensor) -> dict[str, Tensor]:
        cosines = torch.cosine_similarity(vectors[:, 0], vectors[:, 1]) * self.scale
        ranks = (cosines[None] - cosines[:, None]) * (labels[:, None] - labels[None]).sign()
        apart = torch.exp(ranks).mean() + (vectors.flatten(0, 1) @ vectors.flatten(0, 1).T).square().mean()
        return {"loss": apart + 0 * texts.sum()}


def model(chunk: int | None) -> PairModel:
    torch.manual_seed(0)
    return PairModel(Bag(), AllPairs(), chunk=chunk).double()


def batch(step: int, rank: int, world: int) -> dict[str, Tensor]:
    """A rank's slice of a step's batch."""
    random = torch.Generator().manual_seed(step)
    share = ROWS // world
    lengths = torch.randint(1, 5, (ROWS, 2), generator=random)
    ids = [torch.randint(WORDS, (int(n),), generator=random) for n in lengths.flatten()]
    labels = torch.rand(ROWS, generator=random, dtype=torch.float64)
    mine = range(rank * share * 2, (rank + 1) * share * 2)
    rows = torch.arange(2 * share).reshape(share, 2)
    numbers = torch.arange(2 * ROWS)[mine.start : mine.stop]
    return {
        "input_ids": torch.cat([ids[i] for i in mine]),
        "lengths": torch.tensor([len(ids[i]) for i in mine]),
        "pieces": torch.ones(len(mine), dtype=torch.int64),
        "rows": rows,
        "texts": numbers,
        "labels": labels[rank * share : (rank + 1) * share],
    }


def steps(wrapped: nn.Module, rank: int, world: int) -> list[Tensor]:
    optimiser = torch.optim.SGD(wrapped.parameters(), lr=0.5)
    history = []
    for step in range(4):
        wrapped(**batch(step, rank, world))["loss"].backward()
        optimiser.step()
        optimiser.zero_grad()
        history.append(torch.cat([weight.detach().flatten() for weight in wrapped.parameters()]))
    return history


def name_the_rows_of_all_ranks() -> None:
    ledger = Ledger()
    ledger.add({"loss": torch.tensor(float("nan"))}, [7 - dist.get_rank(), dist.get_rank()])
    try:
        ledger.check()
    except DataError as error:
        if "rows 0, 1, 6, 7 " in str(error):
            return
    raise SystemExit("the rows of a bad batch are not those of both ranks")


def main() -> None:
    alone = steps(model(None), 0, 1)  # before there are ranks to gather from
    if float((alone[-1] - alone[0]).abs().max()) < 1e-3:
        raise SystemExit("nothing was learned: the comparison says nothing")
    dist.init_process_group("gloo")
    name_the_rows_of_all_ranks()
    for chunk in (None, 3):
        together = steps(DistributedDataParallel(model(chunk)), dist.get_rank(), 2)
        for weights, expected in zip(together, alone, strict=True):  # after each step
            everyone = [torch.empty_like(weights) for _ in range(2)]
            dist.all_gather(everyone, weights)
            torch.testing.assert_close(everyone[0], everyone[1], rtol=0, atol=0)
            torch.testing.assert_close(weights, expected, rtol=1e-12, atol=1e-12)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
