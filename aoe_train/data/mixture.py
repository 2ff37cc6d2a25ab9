"""Several datasets in one run: whose batch comes next, and how much of each an epoch takes.

A *pass* is once through all batches of a dataset, which `Batches` plans as for a run on it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from torch.utils.data import Sampler

from aoe_train.data.batches import Batches, one_label_batches, rank_slice
from aoe_train.data.defaults import epoch_passes
from aoe_train.model.tokens.tokens import TokenStore
from aoe_train.records import ABSENT
from aoe_train.settings.training import MixSettings

_MIX = 1  # keeps the choice of turns apart from the shuffling of rows, which has the same seed


class Mixture(Sampler[list[int]]):
    """Row numbers of each batch of an epoch, a batch's all of one dataset; see `Batches`.

    Rows are numbered through: those of the second dataset begin where those of the first end. Every epoch has
    equally many batches of each dataset, `counts`. Where those are not whole passes, the next epoch goes on
    where this one stopped; so no rows are left out for good. The dataset with the largest batch comes first:
    if memory is short, that shows at once.
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
        """Put datasets together."""
        self.batches = list(batches)
        by_rows = mix.order == "proportional"
        sizes = [len(one.examples) if by_rows else len(one) for one in batches]
        wanted = epoch_passes(mix, weights, sizes) * [len(one) for one in batches]
        self.counts = np.maximum(1, np.round(wanted)).astype(np.int64)
        self.starts = np.cumsum([0, *(len(one.examples) for one in batches)])
        self._in_turns, self._strictly = not by_rows, mix.until == "once"
        self._seed, self._world, self._rank = seed, world, rank
        self._first = int(np.argmax([one.most_tokens() for one in batches]))
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch to iterate over, from 0."""
        self._epoch = epoch

    def __len__(self) -> int:
        return int(self.counts.sum())

    def __iter__(self) -> Iterator[list[int]]:
        for rows in self.plan(self._epoch):
            own = rows if self._rank is None else rank_slice(rows, self._rank, self._world)
            yield own.tolist()

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The epoch's batches of all ranks, each an int64 array of row numbers."""
        coming = [self._coming(dataset, epoch) for dataset in range(len(self.batches))]
        return [self.starts[dataset] + next(coming[dataset]) for dataset in self.turns(epoch)]

    def turns(self, epoch: int) -> np.ndarray:
        """The dataset of each batch of an epoch, int64 (batch,)."""
        datasets = np.repeat(np.arange(len(self.counts)), self.counts)
        if not self._in_turns:
            turns = np.random.default_rng([self._seed, epoch, _MIX]).permutation(datasets)
            place = int(np.argmax(turns == self._first))
            turns[[0, place]] = turns[[place, 0]]
            return turns
        number = np.concatenate([np.arange(count) for count in self.counts])
        # Evenly over the epoch, so that equal counts alternate; or round by round, until each is through.
        when = number if self._strictly else (number + 0.5) / self.counts[datasets]
        seat = (datasets - self._first) % len(self.counts)
        return datasets[np.lexsort((seat, when))]

    def passes(self, dataset: int) -> float:
        """How often an epoch goes through a dataset."""
        return float(self.counts[dataset] / len(self.batches[dataset]))

    def rows_of(self, dataset: int, epoch: int = 0) -> int:
        """How many rows of a dataset an epoch sees, repeats counted."""
        coming = self._coming(dataset, epoch)
        return sum(len(next(coming)) for _ in range(self.counts[dataset]))

    def place(self, rows: Sequence[int]) -> tuple[int, list[int]]:
        """The dataset that a batch's rows are of, and their numbers there."""
        dataset = int(np.searchsorted(self.starts, rows[0], side="right")) - 1
        start = int(self.starts[dataset])
        return dataset, [row - start for row in rows]

    def rows_seen(self, epochs: int) -> int:
        """Rows in the batches of the first so many epochs, repeats counted."""
        return sum(len(batch) for epoch in range(epochs) for batch in self.plan(epoch))

    def _coming(self, dataset: int, epoch: int) -> Iterator[np.ndarray]:
        """A dataset's batches from the first of an epoch on, pass after pass."""
        batches = self.batches[dataset]
        number, place = divmod(epoch * int(self.counts[dataset]), len(batches))
        while True:
            yield from batches.plan(number)[place:]
            number, place = number + 1, 0


def epoch_of(mixture: Mixture, dataset: int) -> dict[str, float]:
    """How much of a dataset an epoch takes."""
    batches, count = mixture.batches[dataset], int(mixture.counts[dataset])
    seen = mixture.rows_of(dataset)
    distinct = min(seen, batches.rows_seen(1))
    return {
        "batches": count,
        "passes": round(mixture.passes(dataset), 4),
        "rows_seen": seen,
        "rows_repeated": seen - distinct,
        "rows_waiting": batches.rows_seen(1) - distinct,
    }


def seen_in_words(epoch: Mapping[str, float]) -> str:
    """What `epoch_of` counts, for people."""
    begun = f"{epoch['batches']:,} batches an epoch, "
    if epoch["rows_repeated"]:
        return f"{begun}{epoch['passes']:.4g} times each row ({epoch['rows_repeated']:,} rows repeat)"
    if epoch["rows_waiting"]:
        return f"{begun}{epoch['rows_seen']:,} rows ({epoch['rows_waiting']:,} wait for a later epoch)"
    return f"{begun}each row once"


class MixedCollate:
    """Makes the batch of given rows of a mixture, by its dataset's own `Collate`.

    Beside what that makes, a batch says which `dataset` it is of, and the `numbers` of its rows there.
    """

    def __init__(self, mixture: Mixture, collates: Sequence[Callable[[Sequence[int]], Any]]) -> None:
        """Collate the rows of `mixture`, dataset by dataset."""
        self._mixture, self._collates = mixture, collates

    def __call__(self, rows: Sequence[int]) -> dict[str, Any]:
        """The batch of these rows, in their order."""
        dataset, numbers = self._mixture.place(rows)
        return {**self._collates[dataset](numbers), "dataset": dataset, "numbers": numbers}


def describe(batches: Batches, store: TokenStore) -> dict[str, float]:
    """The first epoch in numbers, for whole batches of all ranks."""
    return describe_all([(batches.plan(0), batches, store)], left_out=batches.left_out)


def describe_all(
    datasets: Sequence[tuple[Sequence[np.ndarray], Batches, TokenStore]], *, left_out: int
) -> dict[str, float]:
    """The same for several datasets: some batches of each, what dealt them, and their texts."""
    tables, one_label = [], 0
    for plan, batches, store in datasets:
        examples, copies = batches.examples, batches.copies
        lengths = store.lengths
        tables += [
            (
                len(batch),
                copies,
                *_sizes(examples.rows[batch], examples.token_counts(lengths, batch), lengths),
            )
            for batch in plan
        ]
        if examples.labels is not None:
            one_label += one_label_batches([np.asarray(batch) for batch in plan], examples.labels)
    rows, copied, tokens, distinct, texts, own, padded = np.array(tables).T
    return {
        "steps": len(tables),
        "rows_mean": float(rows.mean()),
        "rows_max": int(rows.max()),
        "tokens_mean": float((tokens * copied).mean()),
        "tokens_max": int((tokens * copied).max()),
        "distinct_share": float(distinct.sum() / texts.sum()),
        "padding_share": float(1 - own.sum() / padded.sum()),
        "one_label_batches": one_label,
        "left_out": left_out,
        "truncated_texts": sum(store.truncated for _, _, store in datasets),
    }


def _sizes(columns: np.ndarray, counts: np.ndarray, lengths: np.ndarray) -> tuple[int, int, int, int, int]:
    """Tokens of distinct texts, distinct texts, texts, tokens of all texts, tokens with columns padded."""
    distinct = distinct_texts(columns)
    texts = int(np.count_nonzero(columns != ABSENT))
    return lengths[distinct].sum(), len(distinct), texts, counts.sum(), counts.max(axis=0).sum() * len(counts)


def distinct_texts(columns: np.ndarray) -> np.ndarray:
    """The texts of some rows of `Examples`, each once."""
    return np.unique(columns[columns != ABSENT])
