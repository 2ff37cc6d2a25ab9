"""The datasets of a run: the order of their batches, and how much of each dataset an epoch has.

A *pass* is one iteration over all batches of a dataset, planned by `Batches` as in a run on that dataset
only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from torch.utils.data import Sampler

from aoe_train.data.defaults import epoch_passes
from aoe_train.data.token_batches import Batches
from aoe_train.model.tokenised import TokenStore
from aoe_train.objectives.training_rows import distinct_texts
from aoe_train.settings.run_settings import MixSettings

# Separates the order of datasets from the shuffling of rows, which has the same seed.
_ORDER_STREAM = 1


class Mixture(Sampler[list[int]]):
    """Yields a rank's row numbers of each batch of an epoch; a batch has rows of one dataset.

    Rows are numbered consecutively over all datasets. Every epoch has the same number of batches of each
    dataset, `counts`. If these are not whole passes, the next epoch continues where this one stopped. An
    epoch starts with the dataset of the largest batch, so that a lack of memory shows at once.
    """

    def __init__(
        self,
        batches: Sequence[Batches],
        weights: Sequence[float],
        mix: MixSettings,
        *,
        seed: int = 0,
        world: int = 1,
        rank: int | None = None,
    ) -> None:
        """Mix the batches of datasets with these weights; without a rank, yield the rows of all ranks."""
        self.batches = batches
        self._is_round_robin = mix.order == "round-robin"
        self._until = mix.until
        self._seed = seed
        self._world = world
        self._rank = rank
        self._epoch = 0
        rows = [len(each.examples) for each in batches]
        self.starts = np.cumsum([0, *rows])
        lengths = [len(each) for each in batches]
        sizes = lengths if self._is_round_robin else rows
        counts = np.round(epoch_passes(mix, weights, sizes) * lengths)
        self.counts = np.maximum(1, counts).astype(np.int64)
        # The dataset of each batch, one dataset after the other.
        self._unmixed = np.repeat(np.arange(len(batches)), self.counts)
        most_tokens = [each.most_tokens() for each in batches]
        self._largest = int(np.argmax(most_tokens))  # the dataset of the largest batch

    def __len__(self) -> int:
        return int(self.counts.sum())

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch to iterate over, from 0."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        for rows in self.plan(self._epoch):
            if self._rank is not None:
                rows = np.split(rows, self._world)[self._rank]
            yield rows.tolist()

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The epoch's batches of all ranks, each an int64 array of row numbers."""
        numbers = range(len(self.batches))
        upcoming = [self._batches_from(number, epoch) for number in numbers]
        plan = []
        for dataset in self.turns(epoch):
            rows = next(upcoming[dataset])
            plan.append(self.starts[dataset] + rows)
        return plan

    def turns(self, epoch: int) -> np.ndarray:
        """The dataset of each batch of an epoch, int64 (batch,)."""
        if self._is_round_robin:
            datasets = self._in_rounds()
        else:
            random = np.random.default_rng([self._seed, epoch, _ORDER_STREAM])
            datasets = random.permutation(self._unmixed)
        first = int(np.argmax(datasets == self._largest))
        datasets[[0, first]] = datasets[[first, 0]]
        return datasets

    def _in_rounds(self) -> np.ndarray:
        """The dataset of each batch, in turns."""
        datasets = self._unmixed
        position = np.concatenate([np.arange(count) for count in self.counts])
        # Each dataset has a turn per round until its batches end, or its batches are spread over the epoch.
        if self._until != "once":
            position = (position + 0.5) / self.counts[datasets]
        tie_break = (datasets - self._largest) % len(self.counts)
        order = np.lexsort((tie_break, position))
        return datasets[order]

    def locate(self, rows: Sequence[int]) -> tuple[int, list[int]]:
        """The dataset of a batch's rows, and their row numbers in it."""
        dataset = int(np.searchsorted(self.starts, rows[0], side="right")) - 1
        start = int(self.starts[dataset])
        return dataset, [row - start for row in rows]

    def rows_seen(self, epochs: int) -> int:
        """Number of rows in this many epochs, including repeats."""
        numbers = range(len(self.batches))
        return sum(self._rows_seen(number, epochs) for number in numbers)

    def epoch_share(self, dataset: int) -> dict[str, float]:
        """The share of a dataset in the first epoch, for run.json."""
        batches = self.batches[dataset]
        count = int(self.counts[dataset])
        seen = self._rows_seen(dataset, 1)
        whole_pass = batches.rows_seen(1)
        return {
            "batches": count,
            "passes": round(count / len(batches), 4),
            "rows_seen": seen,
            "rows_repeated": max(0, seen - whole_pass),
            "rows_waiting": max(0, whole_pass - seen),
        }

    def _rows_seen(self, dataset: int, epochs: int) -> int:
        """Number of rows of one dataset, in whole passes and a part of one."""
        batches = self.batches[dataset]
        count = epochs * int(self.counts[dataset])
        passes, rest = divmod(count, len(batches))
        rows = batches.rows_seen(passes)
        if rest:
            rows += sum(len(batch) for batch in batches.plan(passes)[:rest])
        return rows

    def _batches_from(self, dataset: int, epoch: int) -> Iterator[np.ndarray]:
        """A dataset's batches from the start of an epoch, pass after pass."""
        batches = self.batches[dataset]
        count = epoch * int(self.counts[dataset])
        number, start = divmod(count, len(batches))
        while True:
            yield from batches.plan(number)[start:]
            number += 1
            start = 0


def format_epoch_share(share: Mapping[str, float]) -> str:
    """Format the counts of `Mixture.epoch_share`."""
    batches = f"{share['batches']:,} batches an epoch, "
    if share["rows_repeated"]:
        return f"{batches}{share['passes']:.4g} times each row ({share['rows_repeated']:,} rows repeat)"
    if share["rows_waiting"]:
        return f"{batches}{share['rows_seen']:,} rows ({share['rows_waiting']:,} wait for a later epoch)"
    return f"{batches}each row once"


def describe(mixture: Mixture, stores: Sequence[TokenStore]) -> dict[str, float]:
    """Statistics of the first epoch's batches, over all ranks; `stores` are the datasets' token stores."""
    plan = mixture.plan(0)
    tokens = []
    unpadded = 0
    padded = 0
    for rows in plan:
        dataset, numbers = mixture.locate(rows.tolist())
        batches = mixture.batches[dataset]
        lengths = stores[dataset].lengths
        texts = distinct_texts(batches.examples.rows[numbers])
        tokens.append(batches.copies * int(lengths[texts].sum()))
        # Each column padded to its longest text, where repeated texts count each time.
        counts = batches.examples.token_counts(lengths, numbers)
        unpadded += int(counts.sum())
        width = int(counts.max(axis=0).sum())
        padded += width * len(counts)
    return {
        "steps": len(plan),
        "rows_mean": float(np.mean([len(rows) for rows in plan])),
        "tokens_mean": float(np.mean(tokens)),
        "tokens_max": max(tokens),
        "padding_share": float(1 - unpadded / padded),
        "left_out": sum(batches.left_out for batches in mixture.batches),
        "truncated_texts": sum(store.truncated for store in stores),
    }
