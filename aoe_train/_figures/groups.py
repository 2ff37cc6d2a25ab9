"""Pairs in groups of like gold score, the rows of a ridge plot."""

from __future__ import annotations

import numpy as np

_MOST = 6  # groups: as many as whole scores from 0 to 5, the scale of STS
_WIDE = 3.0  # a scale this wide has whole scores enough


def levels(labels: np.ndarray) -> np.ndarray:
    """The gold scores to group by, ascending.

    The labels themselves where they are few (0 and 1 of binary data), else whole scores (the six groups of
    arXiv Fig. 6), else six evenly spaced scores.

    Args:
        labels: (pair,), with two or more different values.
    """
    distinct: np.ndarray = np.unique(labels)
    if len(distinct) <= _MOST:
        return distinct
    low, high = float(distinct[0]), float(distinct[-1])
    if high - low >= _WIDE:
        return np.arange(np.floor(low), np.ceil(high) + 1)
    return np.linspace(low, high, _MOST)


def nearest(labels: np.ndarray, to: np.ndarray) -> np.ndarray:
    """int64 (pair,): the index of the level nearest to each label; halfway goes to the higher one."""
    return np.searchsorted((to[1:] + to[:-1]) / 2, labels, side="right")
