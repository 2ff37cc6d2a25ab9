"""Spearman correlation of cosines with gold scores, the same code for every library."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr


def spearman(left: np.ndarray, right: np.ndarray, scores: list[float]) -> float:
    """Spearman x 100 between the cosines of pairs and their gold scores, with averaged ties."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return 100 * float(spearmanr((left * right).sum(axis=1) / norms, scores).statistic)


def score(encode, sets: dict[str, list[dict]]) -> dict[str, float]:
    """Spearman x 100 on each set (dev, test)."""
    return {
        name: spearman(
            np.asarray(encode([row["text1"] for row in rows])),
            np.asarray(encode([row["text2"] for row in rows])),
            [row["label"] for row in rows],
        )
        for name, rows in sets.items()
    }
