"""Which rows train together, and the tensors of a step.

Each row comes once an epoch, in batches that seed and epoch alone decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
import torch
from torch.utils.data import DataLoader, Sampler

from aoe_train.model.tokens.tokens import TokenStore
from aoe_train.records import ABSENT, NO_ADVICE, AdviceStore, Batch, Examples
from pairkit.app.errors import ConfigError, DataError


def mix_labels(batches: list[np.ndarray], labels: np.ndarray) -> None:
    """Exchange single rows, in place, so that as many batches as can be hold more than one label.

    A batch of one label takes an unlike row from the nearest batch that has two: batches in order of length
    stay so, give or take a row. Sizes never change.
    """
    alike = {batch: labels[rows[0]] for batch, rows in enumerate(batches) if _one_label(labels[rows])}
    for label in sorted(set(alike.values())):
        unlike = np.array([np.count_nonzero(labels[rows] != label) for rows in batches])
        for batch in (number for number, own in alike.items() if own == label):
            donors = np.flatnonzero(unlike >= 2)
            if unlike[batch]:  # it has been given one already
                continue
            if not len(donors):
                break
            donor = donors[np.argmin(np.abs(donors - batch))]
            _exchange(batches[batch], batches[donor], labels, label, later=bool(donor > batch))
            unlike[batch] += 1
            unlike[donor] -= 1


def one_label_batches(batches: list[np.ndarray], labels: np.ndarray) -> int:
    """Number of batches of at least two rows that have a single label."""
    return sum(_one_label(labels[rows]) for rows in batches)


def _one_label(labels: np.ndarray) -> bool:
    return len(labels) > 1 and bool((labels == labels[0]).all())


def _exchange(own: np.ndarray, donor: np.ndarray, labels: np.ndarray, label: float, *, later: bool) -> None:
    """The rows that are nearest to the other batch change places."""
    unlike = np.flatnonzero(labels[donor] != label)
    give, take = (-1, unlike[0]) if later else (0, unlike[-1])
    own[give], donor[take] = donor[take], own[give]


Strategy = Literal["shuffle", "length", "tokens"]

_MEGA_BATCH = 50  # batches whose rows are sorted by length together


class Batches(Sampler[list[int]]):
    """Row numbers of each batch of an epoch.

    `shuffle` takes rows as they come. `length` shuffles, sorts within runs of 50 batches, and so has rows of
    like length together. `tokens` sorts all rows (equal lengths in random order) and fills each batch up to a
    number of tokens. The last two then shuffle the batches, but for the one with most tokens, which comes
    first: if memory is short, that shows at once. Where rows have labels, no batch is left with a single one
    that could have two, see `mix_labels`; in `tokens` that may put a batch over its budget by the difference
    of two rows.

    A batch is one of all ranks together and cuts into equal slices, rank by rank: so many processes see just
    what one process with the whole batches sees. Rows that cannot be dealt out evenly (fewer than there are
    ranks) sit out: others each epoch, or the shortest with `tokens`; see `left_out`. Only the last batch may
    be smaller (`shuffle`, `length`). Every epoch has equally many batches, which resuming relies on.
    """

    def __init__(
        self,
        examples: Examples,
        lengths: np.ndarray,
        batch_size: int,
        *,
        strategy: Strategy = "length",
        max_tokens: int | None = None,
        seed: int = 0,
        world: int = 1,
        rank: int | None = None,
        drop_last: bool = False,
        views: bool = True,
    ) -> None:
        """Plan batches."""
        _check_sizes(batch_size, strategy, max_tokens, world, drop_last=drop_last)
        if len(examples) < (least := batch_size if drop_last else world):
            raise DataError(f"{len(examples)} rows, expected at least {least}; lower batch size or processes")
        self.examples = examples
        self._lengths = examples.row_lengths(lengths)
        self.copies = 2 if examples.kind == "single" and views else 1
        self._lengths *= self.copies
        self._batch_size, self._strategy = batch_size, strategy
        self._seed, self._world, self._rank = seed, world, rank
        self._epoch = 0
        self.left_out = len(examples) % (batch_size if drop_last else world)
        used = len(examples) - self.left_out
        if max_tokens is None:
            self._cuts = np.arange(batch_size, used, batch_size)
        else:
            self._cuts = budget_cuts(np.sort(self._lengths)[self.left_out :], max_tokens, batch_size, world)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch to iterate over, from 0."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._cuts) + 1

    def __iter__(self) -> Iterator[list[int]]:
        for rows in self.plan(self._epoch):
            own = rows if self._rank is None else rank_slice(rows, self._rank, self._world)
            yield own.tolist()

    def rows_seen(self, epochs: int) -> int:
        """Rows in the batches of so many epochs."""
        return epochs * (len(self.examples) - self.left_out)

    def most_tokens(self) -> int:
        """Tokens of the largest batch of the first epoch; a text counts each time it occurs."""
        return max(int(self._lengths[batch].sum()) for batch in self.plan(0))

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The epoch's batches of all ranks, each an int64 array of row numbers."""
        random = np.random.default_rng([self._seed, epoch])
        order = random.permutation(len(self._lengths))
        if self._strategy == "tokens":
            order = self._sorted(order)
        order = order[self.left_out :]
        if self._strategy == "length":
            run = _MEGA_BATCH * self._batch_size
            runs = [self._sorted(order[start : start + run]) for start in range(0, len(order), run)]
            order = np.concatenate(runs)
        batches = np.split(order, self._cuts)
        if self.examples.labels is not None:
            mix_labels(batches, self.examples.labels)
        if self._strategy == "shuffle":
            return batches
        # Neighbours in length go to different ranks, so that none has the longest rows.
        turns = self._turns(batches, random)
        return [batches[turn].reshape(-1, self._world).T.ravel() for turn in turns]

    def _sorted(self, rows: np.ndarray) -> np.ndarray:
        return rows[np.argsort(self._lengths[rows], kind="stable")]

    def _turns(self, batches: list[np.ndarray], random: np.random.Generator) -> np.ndarray:
        """Batches in random order, the one with most tokens first."""
        turns = random.permutation(len(batches))
        first = int(np.argmax([self._lengths[batches[turn]].sum() for turn in turns]))
        turns[[0, first]] = turns[[first, 0]]
        return turns


def rank_slice(rows: np.ndarray, rank: int, world: int) -> np.ndarray:
    """A rank's part of a batch: the `rank`th of `world` equal, contiguous slices."""
    share = len(rows) // world
    return rows[rank * share : (rank + 1) * share]


def budget_cuts(lengths: np.ndarray, max_tokens: int, max_rows: int, step: int) -> np.ndarray:
    """Where to cut rows into batches of at most `max_tokens` tokens and `max_rows` rows.

    A batch's rows are a multiple of `step`; it has `step` rows even if they have too many tokens.
    """
    tokens = 0
    start = 0
    cuts = []
    for row, more in enumerate(lengths.reshape(-1, step).sum(axis=1).tolist()):
        if row > start and (tokens + more > max_tokens or (row - start) * step >= max_rows):
            cuts.append(row * step)
            start, tokens = row, 0
        tokens += more
    return np.array(cuts, dtype=np.int64)


def _check_sizes(
    batch_size: int, strategy: Strategy, max_tokens: int | None, world: int, *, drop_last: bool
) -> None:
    if batch_size < 1 or batch_size % world:
        raise ConfigError(
            f"batch size {batch_size}: expected a multiple of the {world} processes, from {world}"
        )
    if (strategy == "tokens") != (max_tokens is not None):
        raise ConfigError(
            f"batches by {strategy!r} with max_tokens {max_tokens}: 'tokens' needs a number of"
            " tokens, and nothing else takes one"
        )
    if max_tokens is not None and max_tokens < 1:
        raise ConfigError(f"max_tokens {max_tokens}: expected 1 or more")
    if drop_last and strategy == "tokens":
        raise ConfigError("drop_last with batches by 'tokens': those differ in size anyway; leave it out")


class Collate:
    """Makes the batch of given rows: its texts from short to long, so that like lengths lie together.

    A text that occurs several times is encoded once, unless `dedup` is off. Where a text is its own positive
    (kind `single`) both columns hold it and it is encoded twice, as only dropout tells the two apart.
    """

    def __init__(
        self,
        examples: Examples,
        store: TokenStore,
        *,
        dedup: bool = True,
        views: bool = True,
        advice: AdviceStore = NO_ADVICE,
    ) -> None:
        """Collate rows of `examples`, whose texts are those of `store` in the same order."""
        self._examples, self._store, self._advice = examples, store, advice
        self._dedup = not views if examples.kind == "single" else dedup

    def __call__(self, rows: Sequence[int]) -> Batch:
        """The batch of these rows, in their order."""
        chosen = np.asarray(rows, dtype=np.int64)
        columns = self._examples.rows[chosen]
        if self._examples.kind == "single":
            columns = np.repeat(columns, 2, axis=1)
        there = columns != ABSENT
        texts = columns[there]
        places = np.arange(len(texts))
        if self._dedup:
            texts, places = np.unique(texts, return_inverse=True)
        order = np.argsort(self._store.lengths[texts], kind="stable")
        moved = np.empty_like(order)
        moved[order] = np.arange(len(order))
        texts = texts[order]
        numbered = np.full_like(columns, ABSENT)
        numbered[there] = moved[places]
        tokens = self._store.batch(texts)
        batch = Batch(
            input_ids=tokens["input_ids"],
            lengths=tokens["lengths"],
            pieces=tokens["pieces"],
            rows=torch.from_numpy(numbered),
            texts=torch.from_numpy(texts if self._examples.said is None else self._examples.said[texts]),
        )
        if "prompt_lengths" in tokens:
            batch["prompt_lengths"] = tokens["prompt_lengths"]
        if self._examples.labels is not None:
            batch["labels"] = torch.from_numpy(self._examples.labels[chosen])
        return cast("Batch", {**batch, **self._advice.batch(chosen)})


class PlannedLoader(DataLoader[int]):
    """Batches of a plan, epoch by epoch, each with its rows' numbers: an error can then name them."""

    def __init__(
        self,
        plan: Sampler[list[int]],
        collate: Callable[[Sequence[int]], Mapping[str, Any]],
        rows: int,
        **options: Any,
    ) -> None:
        super().__init__(
            range(rows),  # type: ignore[arg-type]
            batch_sampler=plan,
            collate_fn=lambda numbers: {"numbers": numbers, **collate(numbers)},
            **options,
        )

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch to iterate over, from 0; transformers calls it."""
        self.batch_sampler.set_epoch(epoch)  # type: ignore[union-attr]
