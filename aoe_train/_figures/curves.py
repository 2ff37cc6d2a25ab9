"""What a training run wrote down of itself: the loss, its parts and the dev metric against steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aoe_train._figures.density import Curve
from aoe_train._workplace import RUN_FILE, read_run
from pairkit.errors import ConfigError, DataError


@dataclass(frozen=True)
class Dev:
    """The figure that the weights were chosen by.

    Attributes:
        metric: Its name, such as `spearman`; larger is better.
        curve: Against steps; it begins at step 0, before training.
        best_step: Whose weights were kept.
        sets: Where there are several dev sets, the figure of each, as `name: metric`.
    """

    metric: str
    curve: Curve
    best_step: int | None
    sets: Mapping[str, Curve] = field(default_factory=dict)


@dataclass(frozen=True)
class Curves:
    """A run's curves against optimiser steps.

    Attributes:
        loss: What was minimised, each point the mean over the steps since the one before.
        parts: The loss's parts by name, likewise, each before its weight is applied. Of several datasets, the
            loss and the parts of each as `name.part`.
        dev: None where there was no held-out data.
    """

    loss: Curve
    parts: Mapping[str, Curve]
    dev: Dev | None


def read_curves(model: str) -> Curves:
    """The curves of a model's run.

    Raises:
        ConfigError: No folder with a run.json of `aoe train`.
        DataError: A run.json without a history that can be read.
    """
    folder = Path(model)
    run = read_run(folder)
    if run is None:
        raise ConfigError(
            f"{model}: no folder with a {RUN_FILE} of `aoe train`; only models trained with it have curves"
        )
    try:
        curves = _curves(run)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"no history that can be read ({type(error).__name__} {error}); expected that of `aoe train`",
            path=folder / RUN_FILE,
        ) from error
    if not len(curves.loss.x):
        raise DataError("its history is empty: there is nothing to draw", path=folder / RUN_FILE)
    return curves


def _curves(run: Mapping[str, Any]) -> Curves:
    history, settings = run["history"], run["origin"]["settings"]
    wanted = list(settings["objective"]["weights"])
    if "datasets" in run:
        wanted = [
            f"{name}.{part}"
            for name in run["datasets"]
            for part in ("loss", *settings["datasets"][name]["objective"]["weights"])
        ]
    parts = [name for name in wanted if any(name in entry for entry in history)]
    return Curves(_curve(history, "loss"), {name: _curve(history, name) for name in parts}, _dev(run))


def _dev(run: Mapping[str, Any]) -> Dev | None:
    result = run["result"]
    if result["dev_metric"] is None:
        return None
    sets = result.get("dev_sets", {})
    before = {"step": 0, "eval_dev": result["dev_before"]}
    before |= {f"eval_dev.{name}": dev["before"] for name, dev in sets.items()}
    entries = [before, *run["dev_history"]]
    return Dev(
        str(result["dev_metric"]),
        _curve(entries, "eval_dev"),
        run["best_step"],
        {f"{name}: {dev['metric']}": _curve(entries, f"eval_dev.{name}") for name, dev in sets.items()},
    )


def _curve(entries: Sequence[Mapping[str, Any]], key: str) -> Curve:
    found = [(entry["step"], entry[key]) for entry in entries if key in entry]
    steps, values = np.array(found, np.float64).reshape(-1, 2).T
    return Curve(steps, values)
