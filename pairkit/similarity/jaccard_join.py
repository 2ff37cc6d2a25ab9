"""Group sets by Jaccard similarity, directly or through others: exact, and fast for texts from a template.

Texts from one template share most elements, so that an index of common elements makes all pairs candidates.
Two observations avoid comparing all pairs. For every set C

    A Δ B = (A Δ C) Δ (B Δ C)        |A & B| = (|A| + |B| - |A Δ B|) / 2

so that sets can be replaced by their differences from what most of them contain. And A and B reach the
threshold t if and only if

    excess(A) + excess(B) <= 2 |(A Δ C) & (B Δ C)|,    excess(A) = |A Δ C| - |A| (1 - t) / (1 + t)

If the sum is not above zero, no common element is needed. The set with the smallest excess, the hub, is then
similar to both, so that it is enough to compare each set with the hub. All other similar pairs have a common
element in their differences. They are found, by the same method, among the sets that share their first such
element, rarest first (prefix filtering: Bayardo et al., "Scaling up all pairs similarity search", WWW 2007);
these have more in common than all sets.

Worst case: all pairs are just below the threshold and share their differences in many combinations. Then all
pairs are compared by matrix products, about 10^8 pairs per second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pairkit.similarity.groups import Indices, NumberedGroups

Hashes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Items = npt.NDArray[np.signedinteger[Any]]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_FEW = 12  # sets with a common item that are compared pair by pair
_TOLERANCE = 1e-6  # for excesses; pairs within it are decided by exact similarity
_BATCH_ENTRIES = 1 << 22  # elements per batch, which bounds the memory
_BATCH_ROWS = 512  # rows of a matrix product
# Approximate seconds per operation, to choose between comparing all pairs and using common items.
_SECONDS_PER_PRODUCT = 7e-11  # of two elements, in a product of matrices
_SECONDS_PER_ENTRY = 1e-7
_SECONDS_PER_PAIR = 1e-8
_SECONDS_PER_SEARCH = 5e-4
_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)


def tied_sets(sets: Sequence[Hashes], threshold: float) -> Indices:
    """The first set of each set's group; sets of a group are similar directly or through others."""
    rows = np.arange(len(sets))
    if len(sets) < 2:
        return rows
    sizes = np.array([len(elements) for elements in sets])
    elements = np.concatenate(sets)
    distinct = np.unique(elements)  # with `return_inverse` it takes three times as long
    groups = NumberedGroups(rows)
    all_sets = _Sets(
        rows=rows,
        sizes=sizes,
        private=np.zeros_like(sizes),
        counts=sizes,
        items=np.searchsorted(distinct, elements).astype(np.int32),
        weights=np.ones(len(distinct), np.int64),
    )
    _join_similar(all_sets, threshold, groups)
    return groups.names()


@dataclass(frozen=True)
class _Sets:
    """Sets as lists of shared items, and the number of elements that only one set has."""

    rows: Ints  # the number of each set in the input
    sizes: Ints
    private: Ints
    counts: Ints  # shared items of each set
    items: Items  # of one set after the other; (entry,)
    weights: Ints  # the number of elements that each item stands for

    @property
    def owners(self) -> Ints:
        """The index of each entry's set, (entry,)."""
        indices = np.arange(len(self.rows))
        return np.repeat(indices, self.counts)

    @cached_property
    def ends(self) -> Ints:
        """The place after the last entry of each set, (set,)."""
        return np.cumsum(self.counts)

    def entries(self, indices: Ints) -> tuple[Ints, Items]:
        """The entries of these sets: the place of each one's set in `indices`, and its item."""
        counts = self.counts[indices]
        starts = self.ends[indices] - counts
        new_starts = np.cumsum(counts) - counts
        shifts = np.repeat(starts - new_starts, counts)
        places = shifts + np.arange(len(shifts))
        owners = np.repeat(np.arange(len(indices)), counts)
        return owners, self.items[places]

    def sums(self, values: Ints) -> Ints:
        """The sum of `values` (entry,) for each set, (set,)."""
        totals = _running_sums(values)
        starts = self.ends - self.counts
        sums: Ints = totals[self.ends] - totals[starts]
        return sums


def _join_similar(sets: _Sets, threshold: float, groups: NumberedGroups) -> None:
    """Join the groups of similar sets, of which there are at least two."""
    sets = _differences(sets)
    weight = sets.private + sets.sums(sets.weights[sets.items])
    largest_difference = (1 - threshold) / (1 + threshold)
    excess = weight - sets.sizes * largest_difference
    search = _Search(sets, weight, excess, threshold, groups)
    hub = int(excess.argmin())
    others = np.arange(len(sets.rows))
    search.compare_pairs(np.full_like(others, hub), others)
    names = groups.names(sets.rows)
    is_outside = names != names[hub]
    if is_outside.any():
        search.compare_outside(hub, is_outside)


def _running_sums(values: Ints) -> Ints:
    """The sum of the values before each place, and of all, (place + 1,)."""
    return np.concatenate([[0], np.cumsum(values)])


def _differences(sets: _Sets) -> _Sets:
    """Differences of the sets from the elements of most of them; items are numbered rarest first."""
    sets, keys = _merge_items(sets)
    count = len(sets.rows)
    set_counts = np.bincount(sets.items, minlength=len(keys))

    # For items of most sets, list the sets without them.
    is_common = 2 * set_counts > count
    owners, items = _flipped(sets, is_common)
    set_counts = np.where(is_common, count - set_counts, set_counts)

    # Items of a single set can't be common.
    is_shared = set_counts > 1
    is_kept = is_shared[items]
    weights_of_private = sets.weights[items[~is_kept]]
    private = sets.private + _sum_by(owners[~is_kept], weights_of_private, count)

    rarest_first = np.lexsort((keys, set_counts))
    rarest_first = rarest_first[is_shared[rarest_first]]
    rank = np.zeros(len(keys), np.int64)
    rank[rarest_first] = np.arange(len(rarest_first))
    width = max(1, len(rarest_first))
    entries = np.sort(owners[is_kept] * width + rank[items[is_kept]])
    return replace(
        sets,
        private=private,
        counts=np.bincount(entries // width, minlength=count),
        items=(entries % width).astype(np.int32),
        weights=sets.weights[rarest_first],
    )


def _merge_items(sets: _Sets) -> tuple[_Sets, Hashes]:
    """The sets with one item in place of all that the same sets have; and a key of each item."""
    # Items of the same sets have equal sums of the sets' random keys.
    numbers = np.arange(1, len(sets.rows) + 1, dtype=np.uint64)
    set_keys = mixed(numbers * _GOLDEN_RATIO)
    item_keys = np.zeros(len(sets.weights), np.uint64)
    np.add.at(item_keys, sets.items, set_keys[sets.owners])
    keys, first, merged = np.unique(item_keys, return_index=True, return_inverse=True)

    is_first = first[merged[sets.items]] == sets.items
    merged_sets = replace(
        sets,
        counts=sets.sums(is_first),
        items=merged[sets.items[is_first]],
        weights=_sum_by(merged, sets.weights, len(keys)),
    )
    return merged_sets, keys


def mixed(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64, which spreads similar values."""
    values = values ^ (values >> np.uint64(30))
    values = values * np.uint64(0xBF58476D1CE4E5B9)
    values = values ^ (values >> np.uint64(27))
    values = values * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _sum_by(places: Items, values: Ints, count: int) -> Ints:
    """The sum of the values at each place, (count,)."""
    return np.bincount(places, weights=values, minlength=count).astype(np.int64)


def _flipped(sets: _Sets, is_common: Mask) -> tuple[Ints, Items]:
    """Owners and items of entries in which a common item means that the set lacks it."""
    owners = sets.owners
    items = sets.items
    of_common = is_common[items]
    common = np.flatnonzero(is_common)
    columns = np.searchsorted(common, items[of_common])
    lacks = np.ones((len(sets.rows), len(common)), np.bool_)
    lacks[owners[of_common], columns] = False
    lacking, lacked = np.nonzero(lacks)
    return (
        np.concatenate([owners[~of_common], lacking]),
        np.concatenate([items[~of_common], common[lacked]]),
    )


@dataclass(frozen=True)
class _Sharing:
    """The sets that share an item, for one item after the other."""

    holders: Ints
    items: Ints  # (item,)
    starts: Ints  # of each item's holders; (item,)
    sizes: Ints  # the number of its holders; (item,)

    def where(self, is_chosen: Mask) -> _Sharing:
        """Some of the items."""
        return replace(
            self,
            items=self.items[is_chosen],
            starts=self.starts[is_chosen],
            sizes=self.sizes[is_chosen],
        )


@dataclass
class _Search:
    """Sets as differences, with weight and excess of each."""

    sets: _Sets
    weight: Ints  # of a set's difference
    excess: Floats
    threshold: float
    groups: NumberedGroups

    def compare_outside(self, hub: int, is_outside: Mask) -> None:
        """Join similar pairs with a set outside the hub's group; these have a common item."""
        least_outside = self.excess[is_outside].min()
        least_other = np.where(is_outside, self.excess[hub], least_outside)
        # The weight that a set must have in common with any other set.
        need = np.ceil((self.excess + least_other) / 2 - _TOLERANCE)
        need = np.maximum(need, 1)
        sharing = self._sharing(need)
        able = np.flatnonzero(self.sets.private + need <= self.weight)
        outside = able[is_outside[able]]
        inside = able[~is_outside[able]]
        width = max(8, len(self.sets.weights))
        products = len(outside) * len(able) * width
        seconds_for_all = products * _SECONDS_PER_PRODUCT
        if seconds_for_all <= self._seconds_by_items(sharing):
            self._compare_all(outside, inside)
        else:
            self._compare_by_items(sharing)

    def _seconds_by_items(self, sharing: _Sharing) -> float:
        """The estimated time of `_compare_by_items`."""
        sizes = sharing.sizes.astype(float)
        pairs = (sizes**2).sum()
        searches = (sizes > _FEW).sum()
        entries = sizes.sum() * self.sets.counts.mean()
        of_pairs = pairs * _SECONDS_PER_PAIR + searches * _SECONDS_PER_SEARCH
        return float(of_pairs + entries * _SECONDS_PER_ENTRY)

    def _compare_by_items(self, sharing: _Sharing) -> None:
        """Compare the sets that share an item: few pair by pair, many by a search among them."""
        is_few = sharing.sizes <= _FEW
        self._compare_few(sharing.where(is_few))
        many = sharing.where(~is_few)
        for item, start, size in zip(many.items, many.starts, many.sizes, strict=True):
            members = many.holders[start : start + size]
            names = self._names(members)
            if (names != names[0]).any():
                later = self._after(members, item)
                _join_similar(later, self.threshold, self.groups)

    def _sharing(self, need: Floats) -> _Sharing:
        """The sets of each item that may be the first common one of a pair."""
        sets = self.sets
        owners = sets.owners
        totals = _running_sums(sets.weights[sets.items])
        # The weight of an entry and the following ones of its set.
        remaining = totals[sets.ends][owners] - totals[:-1]
        entries = np.flatnonzero(remaining >= need[owners])
        by_item = np.argsort(sets.items[entries], kind="stable")
        entries = entries[by_item]
        holders = owners[entries]
        items, starts, sizes = np.unique(
            sets.items[entries],
            return_index=True,
            return_counts=True,
        )
        return _Sharing(holders, items, starts, sizes)

    def _join_if_similar(self, low: Ints, high: Ints, common: Ints) -> None:
        """Join pairs that reach the threshold, given the common weight of their differences."""
        sizes = self.sets.sizes[low] + self.sets.sizes[high]
        different = self.weight[low] + self.weight[high] - 2 * common
        shared = (sizes - different) / 2
        is_similar = shared / (sizes - shared) >= self.threshold
        rows = self.sets.rows
        first = rows[low[is_similar]]
        second = rows[high[is_similar]]
        self.groups.join(first, second)

    def _after(self, members: Ints, item: np.signedinteger[Any]) -> _Sets:
        """The sets that share an item; earlier items become private, as their own search covers them."""
        sets = self.sets
        count = len(members)
        owners, items = sets.entries(members)
        is_before = items < item
        is_after = items > item
        before = _sum_by(owners[is_before], sets.weights[items[is_before]], count)
        known, numbered = np.unique(items[is_after], return_inverse=True)
        return _Sets(
            rows=sets.rows[members],
            sizes=sets.sizes[members],
            private=sets.private[members] + before,
            counts=np.bincount(owners[is_after], minlength=count),
            items=numbered.astype(np.int32),
            weights=sets.weights[known],
        )

    def _compare_few(self, sharing: _Sharing) -> None:
        """Compare all pairs of sets that share an item of few sets."""
        count = len(self.weight)
        keys = [np.empty(0, np.int64)]
        for size in np.unique(sharing.sizes).tolist():
            starts = sharing.starts[sharing.sizes == size]
            members = sharing.holders[starts[:, None] + np.arange(size)]
            low, high = np.triu_indices(size, 1)
            pairs = members[:, low] * count + members[:, high]
            keys.append(np.unique(pairs))
        distinct = np.unique(np.concatenate(keys))
        low, high = np.divmod(distinct, count)
        self.compare_pairs(low, high)

    def _batches(self, low: Ints, high: Ints) -> Iterator[slice]:
        """Batches of pairs of bounded work."""
        work = np.cumsum(self.sets.counts[low] + self.sets.counts[high])
        start = 0
        while start < len(low):
            done = work[start - 1] if start else 0
            end = int(np.searchsorted(work, done + _BATCH_ENTRIES // 4))
            end = max(start + 1, end)
            yield slice(start, end)
            start = end

    def compare_pairs(self, low: Ints, high: Ints) -> None:
        """Compare pairs, in batches as each that joins two groups leaves fewer to compare."""
        for batch in self._batches(low, high):
            first = low[batch]
            second = high[batch]
            is_apart = self._names(first) != self._names(second)
            first = first[is_apart]
            second = second[is_apart]
            self._join_if_similar(first, second, self._common(first, second))

    def _names(self, indices: Ints) -> Indices:
        """The group of each of these sets."""
        return self.groups.names(self.sets.rows[indices])

    def _common(self, low: Ints, high: Ints) -> Ints:
        """The common weight of the differences of each pair, (pair,)."""
        sets = self.sets
        width = max(1, len(sets.weights))
        owners, items = sets.entries(np.concatenate([low, high]))
        pairs = owners % max(1, len(low))
        keys = np.sort(pairs * width + items)
        is_twice = keys[1:] == keys[:-1]
        pair, item = np.divmod(keys[1:][is_twice], width)
        return _sum_by(pair, sets.weights[item], len(low))

    def _compare_all(self, outside: Ints, inside: Ints) -> None:
        """Compare sets outside with each other and with those inside, by matrix products."""
        every = np.concatenate([outside, inside])
        weights = self.sets.weights.astype(np.float32)
        width = max(64, _BATCH_ENTRIES // max(_BATCH_ROWS, len(weights)))
        for left in range(0, len(outside), _BATCH_ROWS):
            batch = outside[left : left + _BATCH_ROWS]
            twice = 2 * self._dense(batch) * weights
            for right in range(left, len(every), width):
                self._compare_block(batch, twice, every[right : right + width])

    def _compare_block(
        self, batch: Ints, twice: npt.NDArray[np.float32], others: Ints
    ) -> None:
        """Compare each set of a batch, given twice the weights of its items, with the others."""
        is_apart = self._names(batch)[:, None] != self._names(others)
        if not is_apart.any():
            return
        # Candidates within float32's rounding errors are decided by exact similarity.
        need = (self.excess[batch] - 0.01).astype(np.float32)
        common = twice @ self._dense(others).T
        common -= self.excess[others].astype(np.float32)
        is_candidate = (common >= need[:, None]) & is_apart
        rows, columns = np.nonzero(is_candidate)
        self.compare_pairs(batch[rows], others[columns])

    def _dense(self, indices: Ints) -> npt.NDArray[np.float32]:
        """The items of these sets as a matrix of 0 and 1, (set, item)."""
        owners, items = self.sets.entries(indices)
        table = np.zeros((len(indices), len(self.sets.weights)), np.float32)
        table[owners, items] = 1
        return table
