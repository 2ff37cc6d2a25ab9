"""t-SNE, which brings vectors to a plane so that neighbours stay neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pairkit.errors import ConfigError


@dataclass(frozen=True)
class Tsne:
    """How t-SNE is run; the seed also chooses the sample pairs."""

    perplexity: float = 30.0
    seed: int = 42

    def __post_init__(self) -> None:
        if not 2 <= self.perplexity < math.inf:
            raise ConfigError(f"--perplexity {self.perplexity:g}: expected 2 or more (5 to 50 is usual)")

    @property
    def texts_needed(self) -> int:
        """Texts that it takes, as t-SNE looks at three neighbours for each unit of perplexity."""
        return int(3 * self.perplexity) + 2


def to_plane(half: np.ndarray, tsne: Tsne) -> np.ndarray:
    """t-SNE (van der Maaten and Hinton, 2008) of (text, half) to float64 (text, 2), centred.

    Raises:
        ConfigError: scikit-learn is not installed.
    """
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise ConfigError("t-SNE needs scikit-learn: pip install 'aoe-toolkit[figures]'") from error
    fitted = TSNE(perplexity=tsne.perplexity, random_state=tsne.seed, init="pca").fit_transform(half)
    points: np.ndarray = fitted.astype(np.float64)
    points -= points.mean(axis=0)
    return points
