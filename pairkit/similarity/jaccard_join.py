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
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Items = npt.NDArray[np.signedinteger[Any]]
Floats = npt.NDArray[np.float64]

_FEW = 12  # sets with a common element that are compared pair by pair
_TOLERANCE = 1e-6  # for excesses; pairs within it are decided by exact similarity
_ENTRIES = 1 << 22  # elements per batch, which bounds the memory
# Approximate seconds per operation, to choose between comparing all pairs and using common elements.
_PRODUCT, _GATHER, _PAIR, _CALL = 7e-11, 1e-7, 1e-8, 5e-4


def tied_sets(sets: Sequence[Hashes], threshold: float) -> Ints:
    """The number of each set's group; sets of a group are similar directly or through others."""
    groups = _Groups(len(sets))
    sizes = np.fromiter(map(len, sets), np.int64, len(sets))
    elements = np.concatenate([*sets, np.empty(0, np.uint64)])
    known = np.sort(elements)
    known = known[np.concatenate([[True], known[1:] != known[:-1]])] if len(known) else known
    items = np.empty(len(elements), np.int32)
    for start in range(0, len(elements), _ENTRIES):
        items[start : start + _ENTRIES] = np.searchsorted(known, elements[start : start + _ENTRIES])
    weights = np.ones(len(known), np.int64)
    del elements, known
    all_sets = _Sets(np.arange(len(sets)), sizes, np.zeros(len(sets), np.int64), sizes, items, weights)
    _join_similar(all_sets, threshold, groups)
    return groups.label


class _Groups:
    """Disjoint groups of numbers, with an array of the group of each."""

    def __init__(self, count: int) -> None:
        self.label: Ints = np.arange(count)
        self._members: dict[int, list[int]] = {}

    def join(self, members: Ints) -> None:
        """Merge the groups of these members."""
        labels = np.unique(self.label[members]).tolist()
        lists = [self._members.pop(label, [label]) for label in labels]
        largest = max(range(len(lists)), key=lambda index: len(lists[index]))
        moved = [member for index, batch in enumerate(lists) if index != largest for member in batch]
        self.label[moved] = labels[largest]
        lists[largest].extend(moved)
        self._members[labels[largest]] = lists[largest]

    def are_one(self, members: Ints) -> bool:
        labels = self.label[members]
        return bool((labels == labels[0]).all())


@dataclass(frozen=True)
class _Sets:
    """Sets as lists of shared elements, and the number of elements that only one set has."""

    rows: Ints
    sizes: Ints
    private: Ints
    counts: Ints
    items: Items
    weights: Ints

    @property
    def owners(self) -> Ints:
        """The index of each entry's set, (entry,)."""
        return np.repeat(np.arange(len(self.rows)), self.counts)

    def entries(self, indices: Ints) -> Ints:
        """The places of the items of these sets, (entry,)."""
        return _ranges((np.cumsum(self.counts) - self.counts)[indices], self.counts[indices])

    def sums(self, values: npt.NDArray[np.float64] | Ints) -> Ints:
        """The sum of `values` (entry,) for each set, (set,)."""
        totals = np.concatenate([[0], np.cumsum(values)])
        ends = np.cumsum(self.counts)
        sums: Ints = (totals[ends] - totals[ends - self.counts]).astype(np.int64)
        return sums


def _join_similar(sets: _Sets, threshold: float, groups: _Groups) -> None:
    """Join the groups of similar sets."""
    if len(sets.rows) < 2 or groups.are_one(sets.rows):
        return
    sets = _differences(sets)
    weight = sets.private + sets.sums(sets.weights[sets.items])
    excess = weight - sets.sizes * ((1 - threshold) / (1 + threshold))
    search = _Search(sets, weight, excess, threshold, groups)
    hub = int(excess.argmin())
    search.compare_with(hub)
    is_outside = groups.label[sets.rows] != groups.label[sets.rows[hub]]
    if is_outside.any():
        search.compare_outside(hub, is_outside)


def _differences(sets: _Sets) -> _Sets:
    """Differences of the sets from the elements of most of them; items are numbered rarest first."""
    count = len(sets.rows)
    owners, weights = sets.owners, sets.weights
    items: Items = sets.items
    # Elements of the same sets have equal sums of the sets' random keys.
    keys = mixed(np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    sums = np.zeros(len(weights), np.uint64)
    np.add.at(sums, items, keys[owners])
    held = np.bincount(items, minlength=len(weights))
    _, first, block = np.unique(sums, return_index=True, return_inverse=True)
    weights = np.bincount(block, weights=weights, minlength=len(first)).astype(np.int64)
    held = held[first]
    stays = first[block[items]] == items
    owners, items = owners[stays], block[items[stays]]
    # For elements of most sets, the sets without them are listed.
    owners, items = _flipped(owners, items, held * 2 > count, count)
    held = np.where(held * 2 > count, count - held, held)
    # Elements of a single set can't be common.
    is_single = held[items] == 1
    private = sets.private + np.bincount(
        owners[is_single], weights=weights[items[is_single]], minlength=count
    ).astype(np.int64)
    owners, items = owners[~is_single], items[~is_single]
    rarest = np.lexsort((sums[first], held))
    rarest = rarest[held[rarest] > 1]
    rank = np.zeros(len(held), np.int64)
    rank[rarest] = np.arange(len(rarest))
    width = max(1, len(rarest))
    ordered = np.sort(owners * width + rank[items])
    counts = np.bincount(ordered // width, minlength=count)
    return _Sets(sets.rows, sets.sizes, private, counts, (ordered % width).astype(np.int32), weights[rarest])


def mixed(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64, which spreads similar values."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _flipped(owners: Ints, items: Ints, is_common: npt.NDArray[np.bool_], count: int) -> tuple[Ints, Ints]:
    """Entries in which a common item means that the set lacks it."""
    common = np.flatnonzero(is_common)
    if not len(common):
        return owners, items
    column = np.full(len(is_common), -1)
    column[common] = np.arange(len(common))
    columns = column[items]
    rest = columns < 0
    parts = [(owners[rest], items[rest])]
    holders, columns = owners[~rest], columns[~rest]
    step = max(1, _ENTRIES // len(common))
    for start in range(0, count, step):
        low, high = np.searchsorted(holders, [start, start + step])
        lacks = np.ones((min(step, count - start), len(common)), np.bool_)
        lacks[holders[low:high] - start, columns[low:high]] = False
        indices, which = np.nonzero(lacks)
        parts.append((indices + start, common[which]))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


@dataclass
class _Search:
    """Sets as differences, with weight and excess of each."""

    sets: _Sets
    weight: Ints  # of a set's difference
    excess: Floats
    threshold: float
    groups: _Groups

    def compare_with(self, hub: int) -> None:
        """Join the hub with all similar sets."""
        mine = self.sets.items[self.sets.entries(np.array([hub]))]
        marks = np.zeros(len(self.sets.weights), np.int64)
        marks[mine] = self.sets.weights[mine]
        tied = self._similar(
            np.intp(hub), np.arange(len(self.weight)), self.sets.sums(marks[self.sets.items])
        )
        tied[hub] = True
        self.groups.join(self.sets.rows[tied])

    def compare_outside(self, hub: int, is_outside: npt.NDArray[np.bool_]) -> None:
        """Join similar pairs with a set outside the hub's group; these have a common element."""
        sets, labels = self.sets, self.groups.label[self.sets.rows]
        least = np.where(is_outside, self.excess[hub], self.excess[is_outside].min())
        # The weight that a set must have in common with any other set.
        need = np.maximum(np.ceil((self.excess + least) / 2 - _TOLERANCE), 1)
        owners, weights = sets.owners, sets.weights[sets.items]
        totals = np.cumsum(weights)
        ends = np.cumsum(sets.counts)
        # The weight of an entry and the following ones.
        after = np.concatenate([[0], totals])[ends][owners] - totals + weights
        first = np.flatnonzero(after >= need[owners])  # includes the first common element of each pair
        first = first[np.argsort(sets.items[first], kind="stable")]
        items, holders = sets.items[first], owners[first]
        starts = np.flatnonzero(np.concatenate([[True], items[1:] != items[:-1]])) if len(items) else first
        sizes = np.diff(np.append(starts, len(items)))
        if not len(starts):
            return
        mixed = np.minimum.reduceat(labels[holders], starts) != np.maximum.reduceat(labels[holders], starts)
        starts, sizes = starts[mixed], sizes[mixed]
        here = np.flatnonzero(sets.private + need <= self.weight)
        outside = here[is_outside[here]]
        dense = len(outside) * len(here) * max(8, len(sets.weights)) * _PRODUCT
        sparse = float((sizes.astype(float) ** 2).sum()) * _PAIR + (sizes > _FEW).sum() * _CALL
        if dense <= sparse + sizes.sum() * sets.counts.mean() * _GATHER:
            self._compare_all(outside, here[~is_outside[here]])
            return
        few = sizes <= _FEW
        self._compare_few(holders, starts[few], sizes[few])
        begins = ends - sets.counts
        for start, size in zip(starts[~few].tolist(), sizes[~few].tolist(), strict=True):
            members = holders[start : start + size]
            if not self.groups.are_one(sets.rows[members]):
                _join_similar(self._after(members, int(items[start]), begins), self.threshold, self.groups)

    def _similar(
        self, low: npt.NDArray[np.intp] | np.intp, high: Ints, common: Ints
    ) -> npt.NDArray[np.bool_]:
        """Which pairs reach the threshold, given the common weight of their differences."""
        sizes = self.sets.sizes[low] + self.sets.sizes[high]
        shared = (sizes - self.weight[low] - self.weight[high] + 2 * common) / 2
        return np.asarray(shared / (sizes - shared) >= self.threshold)

    def _after(self, members: Ints, item: int, begins: Ints) -> _Sets:
        """The sets that share an item; earlier items become private, as their own search covers them."""
        sets = self.sets
        entries = _ranges(begins[members], sets.counts[members])
        owners = np.repeat(np.arange(len(members)), sets.counts[members])
        items = sets.items[entries]
        before, later = items < item, items > item
        private = sets.private[members] + np.bincount(
            owners[before], weights=sets.weights[items[before]], minlength=len(members)
        ).astype(np.int64)
        counts = np.bincount(owners[later], minlength=len(members))
        known, numbered = np.unique(items[later], return_inverse=True)
        return _Sets(
            sets.rows[members],
            sets.sizes[members],
            private,
            counts,
            numbered.astype(np.int32),
            sets.weights[known],
        )

    def _compare_few(self, holders: Ints, starts: Ints, sizes: Ints) -> None:
        """Compare all pairs of sets that share an item of few sets."""
        count, rows, label = len(self.weight), self.sets.rows, self.groups.label
        keys = [np.empty(0, np.int64)]
        for size in np.unique(sizes).tolist():
            members = holders[starts[sizes == size][:, None] + np.arange(size)]
            low, high = np.triu_indices(size, 1)
            keys.append(np.unique(members[:, low] * count + members[:, high]))
        pairs = np.unique(np.concatenate(keys))
        low, high = pairs // count, pairs % count
        shared = self.weight - self.sets.private
        able = self.excess[low] + self.excess[high] <= 2 * np.minimum(shared[low], shared[high]) + _TOLERANCE
        low, high = low[able], high[able]
        for part in self._parts(low, high):
            a, b = low[part], high[part]
            apart = label[rows[a]] != label[rows[b]]
            a, b = a[apart], b[apart]
            tied = self._similar(a, b, self._common(a, b))
            for pair in np.stack([a[tied], b[tied]], axis=1):
                if not self.groups.are_one(rows[pair]):
                    self.groups.join(rows[pair])

    def _parts(self, low: Ints, high: Ints) -> Iterator[slice]:
        """Batches of pairs of bounded work."""
        work = np.cumsum(self.sets.counts[low] + self.sets.counts[high])
        start = 0
        while start < len(low):
            done = work[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(work, done + _ENTRIES // 4)))
            yield slice(start, end)
            start = end

    def _common(self, low: Ints, high: Ints) -> Ints:
        """The common weight of the differences of each pair, (pair,)."""
        sets, width = self.sets, max(1, len(self.sets.weights))
        both = np.concatenate([low, high])
        pair = np.repeat(np.tile(np.arange(len(low)), 2), sets.counts[both])
        keys = np.sort(pair * width + sets.items[sets.entries(both)])
        twice = keys[1:][keys[1:] == keys[:-1]]
        return np.bincount(twice // width, weights=sets.weights[twice % width], minlength=len(low)).astype(
            np.int64
        )

    def _compare_all(self, outside: Ints, inside: Ints) -> None:
        """Compare sets outside with each other and with those inside, by matrix products."""
        all_sets = np.concatenate([outside, inside])
        wide, high = max(64, _ENTRIES // max(512, len(self.sets.weights))), 512
        rows, label = self.sets.rows, self.groups.label
        for left in range(0, len(outside), high):
            batch = outside[left : left + high]
            twice = 2 * self._dense(batch) * self.sets.weights.astype(np.float32)
            for right in range(left, len(all_sets), wide):
                others = all_sets[right : right + wide]
                if self.groups.are_one(rows[np.concatenate([batch, others])]):
                    continue
                common = twice @ self._dense(others).T
                common -= self.excess[others].astype(np.float32)
                maybe = common >= (self.excess[batch] - 0.01).astype(np.float32)[:, None]
                for index in np.flatnonzero(maybe.any(axis=1)).tolist():
                    candidates = others[maybe[index]]
                    candidates = candidates[label[rows[candidates]] != label[rows[batch[index]]]]
                    if len(candidates):
                        same = np.full(len(candidates), batch[index])
                        tied = candidates[self._similar(same, candidates, self._common(same, candidates))]
                        self.groups.join(rows[np.append(tied, batch[index])])

    def _dense(self, indices: Ints) -> npt.NDArray[np.float32]:
        sets = self.sets
        table = np.zeros((len(indices), len(sets.weights)), np.float32)
        owners = np.repeat(np.arange(len(indices)), sets.counts[indices])
        table[owners, sets.items[sets.entries(indices)]] = 1
        return table


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """start, start + 1, … for each start, up to its count."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + counts, counts)
