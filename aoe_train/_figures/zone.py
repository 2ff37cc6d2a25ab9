"""Which pairs lie in the saturation zone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from aoe_train._figures.pairs import Scored
from pairkit.errors import ConfigError

Rule = Literal["gold", "cosine", "all"]
RULES: tuple[Rule, ...] = get_args(Rule)


@dataclass(frozen=True)
class Zone:
    """A choice of pairs.

    `gold`: gold score / the highest one > `above`. That is how the ACL paper (§5, Fig. 3) can be read, whose
    "weighted similarity score > 0.95" includes a pair of gold score 4.8 of 5; it is the same pairs for every
    model. `cosine`: the model's |cosine| > `above`, which is where the cosine's gradient vanishes. `all`: all
    pairs (ACL Fig. 10).

    Attributes:
        above: In [0, 1).
        most: Pairs to keep, a seeded choice where there are more: t-SNE's time grows faster than they do.
    """

    rule: Rule = "gold"
    above: float = 0.95
    most: int = 2_000

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ConfigError(f"--zone {self.rule}: expected {', '.join(RULES)}")
        if not 0 <= self.above < 1:
            raise ConfigError(f"--above {self.above:g}: expected 0 or more and less than 1")

    def __str__(self) -> str:
        scores = {"gold": "gold score / highest", "cosine": "|cosine|"}
        return "all pairs" if self.rule == "all" else f"{scores[self.rule]} > {self.above:g}"

    def members(self, scored: Scored) -> np.ndarray:
        """int64 (pair,): the numbers of all pairs that lie in the zone, ascending."""
        labels = scored.gold.labels
        if self.rule == "all":
            return np.arange(len(labels))
        strength = labels / labels.max() if self.rule == "gold" else np.abs(scored.cosines)
        return np.flatnonzero(strength > self.above)
