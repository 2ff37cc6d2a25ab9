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
from aoe_train.model.tokens.tokenised import TokenStore
from aoe_train.objectives.training_rows import distinct_texts
from aoe_train.settings.run_settings import MixSettings

# Separates the order of datasets from the shuffling of rows, which has the same seed.
_ORDER_STREAM = 1


class Mixture(Sampler[list[int]]):
    """Yields a rank's row numbers of each batch of an epoch; a batch has rows of one dataset. See `Batches`.

    Rows are numbered consecutively over all datasets. Every epoch has the same number of batches of each
    dataset, `counts`. If these are not whole passes, the next epoch continues where this one stopped. The
    dataset with the largest batch comes first, so that a lack of memory shows at once.
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
        """Mix datasets."""
        self.batches = batches
        self._round_robin = mix.order == "round-robin"
        self._once = mix.until == "once"
        self._seed = seed
        self._world = world
        self._rank = rank
        self._epoch = 0
        rows = [len(each.examples) for each in batches]
        self.starts = np.cumsum([0, *rows])
        lengths = [len(each) for each in batches]
        sizes = lengths if self._round_robin else rows
        counts = np.round(epoch_passes(mix, weights, sizes) * lengths)
        self.counts = np.maximum(1, counts).astype(np.int64)
        most_tokens = [each.most_tokens() for each in batches]
        self._first = int(np.argmax(most_tokens))

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
        datasets = range(len(self.batches))
        upcoming = [self._batches_from(dataset, epoch) for dataset in datasets]
        plan = []
        for dataset in self.turns(epoch):
            rows = next(upcoming[dataset])
            plan.append(self.starts[dataset] + rows)
        return plan

    def turns(self, epoch: int) -> np.ndarray:
        """The dataset of each batch of an epoch, int64 (batch,)."""
        datasets = np.repeat(np.arange(len(self.counts)), self.counts)
        if not self._round_robin:
            random = np.random.default_rng([self._seed, epoch, _ORDER_STREAM])
            turns = random.permutation(datasets)
            first = int(np.argmax(turns == self._first))
            turns[[0, first]] = turns[[first, 0]]
            return turns
        # Round by round until each dataset has had all its batches, or spread evenly over the epoch.
        position = np.concatenate([np.arange(count) for count in self.counts])
        if not self._once:
            position = (position + 0.5) / self.counts[datasets]
        tie_break = (datasets - self._first) % len(self.counts)
        order = np.lexsort((tie_break, position))
        return datasets[order]

    def locate(self, rows: Sequence[int]) -> tuple[int, list[int]]:
        """The dataset of a batch's rows, and their row numbers in it."""
        dataset = int(np.searchsorted(self.starts, rows[0], side="right")) - 1
        start = int(self.starts[dataset])
        return dataset, [row - start for row in rows]

    def rows_seen(self, epochs: int) -> int:
        """Number of rows in this many epochs, including repeats."""
        datasets = range(len(self.batches))
        return sum(self._rows_seen(dataset, epochs) for dataset in datasets)

    def _rows_seen(self, dataset: int, epochs: int) -> int:
        """Number of rows of one dataset, in whole passes and a part of one."""
        batches = self.batches[dataset]
        count = epochs * int(self.counts[dataset])
        passes, more = divmod(count, len(batches))
        rows = batches.rows_seen(passes)
        if more:
            rows += sum(map(len, batches.plan(passes)[:more]))
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


def format_epoch_share(share: Mapping[str, float]) -> str:
    """Format the counts of `Mixture.epoch_share`."""
    batches = f"{share['batches']:,} batches an epoch, "
    if share["rows_repeated"]:
        return f"{batches}{share['passes']:.4g} times each row ({share['rows_repeated']:,} rows repeat)"
    if share["rows_waiting"]:
        return f"{batches}{share['rows_seen']:,} rows ({share['rows_waiting']:,} wait for a later epoch)"
    return f"{batches}each row once"


def describe(mixture: Mixture, stores: Sequence[TokenStore]) -> dict[str, float]:
    """Statistics of the first epoch's batches, over all ranks; `stores` have the datasets' tokens."""
    plan = mixture.plan(0)
    tokens = []
    all_tokens = 0  # repeated texts count each time
    padded_tokens = 0
    for rows in plan:
        dataset, numbers = mixture.locate(rows.tolist())
        batches = mixture.batches[dataset]
        lengths = stores[dataset].lengths
        texts = distinct_texts(batches.examples.rows[numbers])
        distinct_tokens = int(lengths[texts].sum())
        tokens.append(batches.copies * distinct_tokens)
        counts = batches.examples.token_counts(lengths, numbers)
        all_tokens += int(counts.sum())
        width = int(counts.max(axis=0).sum())
        padded_tokens += width * len(counts)
    return {
        "steps": len(plan),
        "rows_mean": float(np.mean([len(rows) for rows in plan])),
        "tokens_mean": float(np.mean(tokens)),
        "tokens_max": max(tokens),
        "padding_share": float(1 - all_tokens / padded_tokens),
        "left_out": sum(batches.left_out for batches in mixture.batches),
        "truncated_texts": sum(store.truncated for store in stores),
    }
