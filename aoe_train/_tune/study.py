"""Optuna's part: which settings to try next, and which run to give up.

What it says depends on the trials so far alone: they are told to it anew before each one, and its random
choices begin from the search's seed and the trial's number. So a killed search goes on as if it had not been.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aoe_train._tune.space import Dimension, Value
from pairkit.extras import needed_for

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial as OptunaTrial

    from aoe_train._tune.trial import Trial

_AT_CHANCE = 5  # trials before anything is learnt from them, or any is given up
_FAILED = -1.0  # below whatever held-out rows may say: such settings are avoided


def check_installed() -> None:
    """Find out before any run whether Optuna is there.

    Raises:
        ConfigError: It is not installed.
    """
    with needed_for("aoe tune"):
        import optuna  # noqa: F401 - asked for only


class Study:
    """What is known of a space so far.

    Args:
        space: What may differ.
        trials: Those that are over, in order.
        seed: The search's.
    """

    def __init__(self, space: Sequence[Dimension], trials: Sequence[Trial], seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._distributions = {dimension.key: _distribution(dimension) for dimension in space}
        sampler = optuna.samplers.TPESampler(
            seed=seed + len(trials), n_startup_trials=_AT_CHANCE, multivariate=True
        )
        pruner = optuna.pruners.MedianPruner(n_startup_trials=_AT_CHANCE)
        self._study = optuna.create_study(sampler=sampler, pruner=pruner, direction="maximize")
        states = {"done": "COMPLETE", "pruned": "PRUNED", "failed": "COMPLETE"}
        for trial in trials:
            known = trial.drawn.keys() == self._distributions.keys()
            value = _FAILED if trial.state == "failed" else trial.dev
            self._study.add_trial(
                optuna.trial.create_trial(
                    params=dict(trial.drawn) if known else {},
                    distributions=self._distributions if known else {},
                    value=value,
                    intermediate_values=dict(trial.seen),
                    state=optuna.trial.TrialState[states[trial.state]],
                )
            )
        self._trial: OptunaTrial | None = None
        self._told: set[int] = set()

    def next(self) -> dict[str, Value]:
        """The settings to try."""
        self._trial = self._study.ask(self._distributions)
        return dict(self._trial.params)

    def gives_up(self, seen: Mapping[int, float]) -> bool:
        """Whether the trial that was asked for is behind the median of the others.

        Args:
            seen: Its figures on held-out rows, by how far it was, in hundredths.
        """
        if self._trial is None:
            return False
        for at in seen.keys() - self._told:
            self._trial.report(seen[at], at)
        self._told |= seen.keys()
        return bool(self._trial.should_prune())


def _distribution(dimension: Dimension) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if dimension.choices:
        return CategoricalDistribution(dimension.choices)
    if dimension.whole:
        return IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return FloatDistribution(dimension.low, dimension.high, log=dimension.log)
