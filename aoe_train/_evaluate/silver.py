"""The area under the ROC curve by labels that judges are not sure of.

A pair whose label is 1 with probability p is a pair of label 1 with weight p, and one of label 0 with weight
1 - p. That draws the area towards one half, as errors of labels do: where judges err independently of the
models and p is what it says, area - 1/2 is that of true labels, times the labels' reliability,
Var(p) / (mean(p) (1 - mean(p))): 1 where p is 0 or 1, and 0 where judges tell nothing. Dividing by it gives
the area of true labels back, so that a gain keeps its size and its interval widens with the judges' doubts.
Resampling pairs resamples the judges' errors with them.
Source: Menon et al., Learning from corrupted binary labels (ICML 2015), Corollary 3, where alpha and beta are
here mean(p (1 - p)) / mean(p) and mean(p (1 - p)) / mean(1 - p).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aoe_train._evaluate.binary import Binary
from aoe_train._evaluate.resample import Judged


@dataclass(frozen=True)
class Silver(Judged):
    """Cosines against probabilities of label 1.

    Attributes:
        cosines: (pair,), not constant.
        likely: (pair,), how likely each pair's label is 1, in [0, 1].
    """

    cosines: np.ndarray
    likely: np.ndarray

    @property
    def n(self) -> int:
        """Pairs."""
        return len(self.likely)

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """`roc_auc` as by true labels; beyond 1 where judges err on the pairs that models err on."""
        measured = Binary(self.cosines, self.likely).roc_auc(counts)
        return {"roc_auc": 0.5 + (measured - 0.5) / reliability(self.likely, counts)}


def reliability(likely: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(draw,), in [0, 1]: what is left of a figure's distance from chance; NaN where labels tell nothing.

    Args:
        likely: (pair,), how likely each pair's label is 1.
        counts: (draw, pair), how often each pair stands there.
    """
    total = counts.sum(axis=1)
    mean, square = counts @ likely / total, counts @ likely**2 / total
    spread = square - mean**2
    found: np.ndarray = np.divide(
        spread, mean * (1 - mean), out=np.full(len(counts), np.nan), where=spread > 1e-9
    )
    return found
