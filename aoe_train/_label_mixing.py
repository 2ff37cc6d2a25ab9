"""Batches in which labels differ: a ranking loss has nothing to learn from rows of one label."""

from __future__ import annotations

import numpy as np


def mix_labels(batches: list[np.ndarray], labels: np.ndarray) -> None:
    """Exchange single rows, in place, so that as many batches as can be hold more than one label.

    A batch of one label takes an unlike row from the nearest batch that has two: batches in order of length
    stay so, give or take a row. Sizes never change.

    Args:
        batches: Arrays of row numbers.
        labels: float32 (row,).
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
    """How many batches of two rows or more hold a single label."""
    return sum(_one_label(labels[rows]) for rows in batches)


def _one_label(labels: np.ndarray) -> bool:
    return len(labels) > 1 and bool((labels == labels[0]).all())


def _exchange(own: np.ndarray, donor: np.ndarray, labels: np.ndarray, label: float, *, later: bool) -> None:
    """The rows that are nearest to the other batch change places."""
    unlike = np.flatnonzero(labels[donor] != label)
    give, take = (-1, unlike[0]) if later else (0, unlike[-1])
    own[give], donor[take] = donor[take], own[give]
