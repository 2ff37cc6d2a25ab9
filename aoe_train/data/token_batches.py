"""Grouping of rows into batches, the mixture of several datasets, and the tensors of a batch.

A *pass* is one iteration over all batches of a dataset, in which each row occurs once. Its batches depend only
on the seed and the number of the pass. `Mixture` orders the batches of all datasets, and decides how many of
each an epoch has.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import numpy as np
import torch
from torch.utils.data import Sampler

from aoe_train.data.defaults import epoch_passes
from aoe_train.model.tokenised import TokenStore
from aoe_train.objectives.training_rows import (
    ABSENT,
    NO_OUTPUTS,
    Examples,
    TeacherOutputs,
    distinct_texts,
)
from aoe_train.settings.run_settings import BatchSettings, MixSettings
from pairkit.base.errors import ConfigError, DataError

_MEGA_BATCH = 50  # batches whose rows are sorted by length at once
# Separates the order of datasets from the shuffling of rows, which has the same seed.
_ORDER_STREAM = 1


def mix_labels(batches: list[np.ndarray], labels: np.ndarray) -> None:
    """Swap rows of near batches, in place, so that as many as possible have more than one label."""
    rows = np.concatenate(batches)
    sizes = np.array([*map(len, batches)])
    ends = np.cumsum(sizes)
    starts = ends - sizes

    lowest = np.minimum.reduceat(labels[rows], starts)
    highest = np.maximum.reduceat(labels[rows], starts)
    is_single = (lowest == highest) & (sizes > 1)

    for label in np.unique(lowest[is_single]):
        is_other = labels[rows] != label
        counts = np.add.reduceat(is_other, starts, dtype=np.int64)
        # Batches that keep a row with another label after giving one away.
        donors = np.flatnonzero(counts > 1).tolist()

        # Swaps for earlier labels have mixed some of the batches.
        for batch in np.flatnonzero(is_single & (counts == 0)).tolist():
            if not donors:
                break
            donor = _nearest(donors, batch)
            start = starts[donor]
            others = start + np.flatnonzero(is_other[start : ends[donor]])
            # In both batches, the row that is closest to the other batch.
            swapped = [starts[batch], others[-1]]
            if donor > batch:
                swapped = [ends[batch] - 1, others[0]]
            rows[swapped] = rows[swapped[::-1]]
            is_other[swapped] = [True, False]
            if len(others) == 2:
                del donors[bisect(donors, donor) - 1]

    batches[:] = np.split(rows, starts[1:])


def _nearest(ascending: list[int], number: int) -> int:
    """The nearest of ascending numbers; of two that are equally near, the lower."""
    above = bisect(ascending, number)
    around = ascending[max(0, above - 1) : above + 1]
    return min(around, key=lambda each: abs(each - number))


class Batches:
    """Row numbers of each batch of an epoch.

    `shuffle` takes rows in random order. `length` shuffles rows and sorts them by length within 50 batches.
    `tokens` sorts all rows by length (ties in random order) and fills each batch up to a number of tokens.
    The last two then shuffle the batches, except that the one with most tokens comes first, so that a lack of
    memory shows at once. `mix_labels` avoids batches with a single label; with `tokens` this can exceed a
    batch's budget by the difference of two rows.

    A batch is split into equal slices, one per rank, so several processes see the same batches as one
    process. The remainder of rows that can't be split equally is left out (`left_out`): different rows each
    epoch, or the shortest with `tokens`. With `shuffle` and `length` only the last batch can be smaller.
    Every epoch has the same number of batches, which resuming relies on.
    """

    def __init__(
        self,
        examples: Examples,
        lengths: np.ndarray,
        batch_size: int,
        settings: BatchSettings,
        *,
        seed: int = 0,
        world: int = 1,
        views: bool = True,
    ) -> None:
        """Plan batches; raises ConfigError or DataError if the processes can't get equal slices."""
        if batch_size % world:
            raise ConfigError(
                f"batch size {batch_size}: expected a multiple of the {world} processes, at least {world}"
            )
        if len(examples) < world:
            raise DataError(
                f"{len(examples)} rows, expected at least one for each of {world} processes; start fewer"
            )
        self.examples = examples
        self._copies = 2 if examples.kind == "single" and views else 1  # of a text
        self.left_out = len(examples) % world
        self.text_lengths = lengths
        counts = examples.token_counts(lengths, slice(None))
        self._lengths = self._copies * counts.sum(axis=1)
        self._batch_size = batch_size
        self._strategy = settings.strategy
        self._seed = seed
        self._world = world
        if settings.max_tokens is None:
            self._cuts = np.arange(
                batch_size, len(examples) - self.left_out, batch_size
            )
        else:
            sizes = np.sort(self._lengths)[self.left_out :]
            self._cuts = budget_cuts(sizes, settings.max_tokens, batch_size, world)

    def __len__(self) -> int:
        return len(self._cuts) + 1

    def rows_seen(self, epochs: int) -> int:
        """Number of rows in this many epochs."""
        return epochs * (len(self.examples) - self.left_out)

    def most_tokens(self) -> int:
        """Number of tokens of the first epoch's largest batch, counting repeated texts each time."""
        return max(int(self._lengths[batch].sum()) for batch in self.plan(0))

    def count_tokens(self, rows: Sequence[int]) -> int:
        """Number of tokens of a batch, in which a single text can occur twice."""
        texts = distinct_texts(self.examples.rows[rows])
        return self._copies * int(self.text_lengths[texts].sum())

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The epoch's batches of all ranks, each an int64 array of row numbers."""
        random = np.random.default_rng([self._seed, epoch])
        order = random.permutation(len(self._lengths))
        if self._strategy == "tokens":
            order = self._sorted(order)
        order = order[self.left_out :]
        if self._strategy == "length":
            size = _MEGA_BATCH * self._batch_size
            mega_batches = np.split(order, np.arange(size, len(order), size))
            order = np.concatenate([self._sorted(rows) for rows in mega_batches])
        batches = np.split(order, self._cuts)
        if self.examples.labels is not None:
            mix_labels(batches, self.examples.labels)
        if self._strategy == "shuffle":
            return batches
        # Rows of similar length go to different ranks, so that no rank has all the long ones.
        turns = random.permutation(len(batches))
        sizes = [self._lengths[batches[turn]].sum() for turn in turns]
        largest = int(np.argmax(sizes))
        turns[[0, largest]] = turns[[largest, 0]]
        return [batches[turn].reshape(-1, self._world).T.ravel() for turn in turns]

    def _sorted(self, rows: np.ndarray) -> np.ndarray:
        """The rows by length; equal lengths keep their order."""
        return rows[np.argsort(self._lengths[rows], kind="stable")]


def budget_cuts(
    lengths: np.ndarray, max_tokens: int, max_rows: int, step: int
) -> np.ndarray:
    """Indices that split rows into batches within both limits; sizes are multiples of `step`, at least it."""
    cuts = []
    tokens = 0
    rows = 0
    for number, more in enumerate(lengths.reshape(-1, step).sum(axis=1).tolist()):
        if rows and (tokens + more > max_tokens or rows >= max_rows):
            cuts.append(number * step)
            tokens = 0
            rows = 0
        tokens += more
        rows += step
    return np.array(cuts, dtype=np.int64)


def collate(
    rows: Sequence[int],
    examples: Examples,
    store: TokenStore,
    teacher_outputs: TeacherOutputs = NO_OUTPUTS,
    *,
    views: bool = True,
) -> dict[str, object]:
    """The tensors of a batch, which `PairModel.forward` takes; each distinct text is in it once.

    A single text is encoded twice if the objective compares two `views` of it. `rows` are indices into the
    batch's texts, or `ABSENT`; `texts` are content ids: equal ids are equal texts, on any rank.
    """
    chosen = np.asarray(rows, dtype=np.int64)
    columns = examples.rows[chosen]
    if examples.kind == "single":
        columns = np.repeat(columns, 2, axis=1)
    present = columns != ABSENT
    texts = columns[present]
    indices = np.arange(len(texts))
    if examples.kind != "single" or not views:
        texts, indices = np.unique(texts, return_inverse=True)

    order = np.argsort(store.lengths[texts], kind="stable")
    texts = texts[order]
    new_index = np.argsort(order)  # the inverse permutation
    in_batch = np.full_like(columns, ABSENT)
    in_batch[present] = new_index[indices]

    content_ids = texts
    if examples.content_ids is not None:
        content_ids = examples.content_ids[texts]
    batch: dict[str, object] = {
        **store.batch(texts),
        "rows": torch.from_numpy(in_batch),
        "texts": torch.from_numpy(content_ids),
        **teacher_outputs.batch(chosen),
    }
    if examples.labels is not None:
        batch["labels"] = torch.from_numpy(examples.labels[chosen])
    return batch


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
        rank: int = 0,
    ) -> None:
        """Mix the batches of datasets with these weights, and yield this rank's rows of each."""
        self.batches = batches
        self._mix = mix
        self._is_round_robin = mix.order == "round-robin"
        self._seed = seed
        self._world = world
        self._rank = rank
        self._epoch = 0
        rows = [len(each.examples) for each in batches]
        self.starts = np.cumsum([0, *rows])
        lengths = [*map(len, batches)]
        sizes = lengths if self._is_round_robin else rows
        counts = np.round(epoch_passes(mix, weights, sizes) * lengths)
        self.counts = np.maximum(1, counts).astype(np.int64)
        # The dataset of each batch, one dataset after the other.
        self._unmixed = np.repeat(np.arange(len(batches)), self.counts)
        # The dataset of the largest batch.
        self._largest = np.argmax([each.most_tokens() for each in batches])

    def __len__(self) -> int:
        return int(self.counts.sum())

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch to iterate over, from 0."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        for rows in self.plan(self._epoch):
            yield np.split(rows, self._world)[self._rank].tolist()

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The epoch's batches of all ranks, each an int64 array of row numbers."""
        datasets = range(len(self.batches))
        upcoming = [self._batches_from(dataset, epoch) for dataset in datasets]
        return [
            self.starts[dataset] + next(upcoming[dataset])
            for dataset in self.turns(epoch)
        ]

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
        position = np.concatenate([np.arange(number) for number in self.counts])
        # Each dataset has a turn per round until its batches end, or its batches are spread over the epoch.
        if self._mix.until != "once":
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
        return sum(self._rows_seen(each, epochs) for each in range(len(self.batches)))

    def epoch_share(self, dataset: int) -> dict[str, float]:
        """The share of a dataset in the first epoch, for run.json."""
        batches = self.batches[dataset]
        num_batches = int(self.counts[dataset])
        seen = self._rows_seen(dataset, 1)
        whole_pass = batches.rows_seen(1)
        return {
            "batches": num_batches,
            "passes": round(num_batches / len(batches), 4),
            "rows_seen": seen,
            "rows_repeated": max(0, seen - whole_pass),
            "rows_waiting": max(0, whole_pass - seen),
        }

    def _rows_seen(self, dataset: int, epochs: int) -> int:
        """Number of rows of one dataset, in whole passes and a part of one."""
        batches = self.batches[dataset]
        passes, rest = divmod(epochs * int(self.counts[dataset]), len(batches))
        rows = batches.rows_seen(passes)
        if rest:
            rows += sum(map(len, batches.plan(passes)[:rest]))
        return rows

    def _batches_from(self, dataset: int, epoch: int) -> Iterator[np.ndarray]:
        """A dataset's batches from the start of an epoch, pass after pass."""
        batches = self.batches[dataset]
        first, start = divmod(epoch * int(self.counts[dataset]), len(batches))
        yield from batches.plan(first)[start:]
        for number in count(first + 1):
            yield from batches.plan(number)


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
        tokens.append(batches.count_tokens(numbers))
        # Each column padded to its longest text, where repeated texts count each time.
        counts = batches.examples.token_counts(batches.text_lengths, numbers)
        unpadded += counts.sum()
        padded += counts.max(axis=0).sum() * len(counts)
    return {
        "steps": len(plan),
        "rows_mean": float(np.mean([*map(len, plan)])),
        "tokens_mean": float(np.mean(tokens)),
        "tokens_max": max(tokens),
        "padding_share": float(1 - unpadded / padded),
        "left_out": sum(batches.left_out for batches in mixture.batches),
        "truncated_texts": sum(store.truncated for store in stores),
    }
