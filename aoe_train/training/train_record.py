"""Records of a run's rows and batches for run.json, the dry run, and the notes before training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aoe_train.data.defaults import format_choices, format_epochs
from aoe_train.data.examples import negative_counts
from aoe_train.data.mixture import Mixture, describe, describe_all, format_epoch_share
from aoe_train.data.run_data import Sources, unwrap_single
from aoe_train.evaluation.tasks import defined
from aoe_train.model.model_folder import hash_files, versions
from aoe_train.model.tokens.coverage import languages
from aoe_train.objectives.objective import LossFunction, loss_weights
from aoe_train.settings.train_settings import PAPERS
from pairkit import __version__
from pairkit.base.system.machine import peak_rss_mb

if TYPE_CHECKING:
    from aoe_train.data.token_batches import Batches
    from aoe_train.evaluation.dev import DevScores
    from aoe_train.evaluation.gain import Gain
    from aoe_train.records import Examples
    from aoe_train.settings.train_settings import TrainSettings
    from aoe_train.training.build import TrainingSetup
    from aoe_train.training.load import ResolvedSettings
    from aoe_train.training.trainer import PairTrainer
    from pairkit.dataset.reading.in_memory import Source


def format_run_choices(
    setup: TrainingSetup, resolved: ResolvedSettings, custom_losses: Mapping[str, LossFunction]
) -> Iterator[str]:
    """Lines on the chosen settings of a run; with several datasets, on each."""
    settings = resolved.run
    optim = settings.optim
    if not isinstance(setup.batches, Mixture):
        (dataset,) = setup.datasets
        if not settings.preset.endswith(PAPERS):
            parts = loss_weights(settings.objective, custom_losses.get(dataset.name))
            rows, steps_an_epoch = dataset.examples, math.ceil(len(setup.batches) / optim.accumulation)
            seen = rows_trained(setup.batches, math.ceil(optim.epochs * steps_an_epoch), optim.accumulation)
            yield format_choices(settings, rows.kind, rows=len(rows), seen=seen, parts=parts)
        return
    for number, dataset in enumerate(setup.datasets):
        parts = loss_weights(resolved.datasets[dataset.name].objective, custom_losses.get(dataset.name))
        yield (
            f"{dataset.name}: {len(dataset.examples):,} {dataset.examples.kind} rows: {' + '.join(parts)};"
            f" {format_epoch_share(setup.batches.epoch_share(number))}"
        )
    yield (
        f"{len(setup.datasets)} datasets, {settings.mix.order}: {len(setup.batches):,} batches an"
        f" epoch, {format_epochs(optim.epochs)}, learning rate {optim.lr:g}, batches of {optim.batch_size}"
    )


def run_record(
    sources: Sources,
    origin: Mapping[str, Any],
    settings: TrainSettings,
    setup: TrainingSetup,
    trainer: PairTrainer,
    *,
    teachers: Mapping[str, Any],
    before: DevScores | None,
    dev_gain: Mapping[str, Any] | None,
    gain: Gain | None,
    keeps_model: bool,
    wall_s: float,
) -> dict[str, Any]:
    """The run.json of a finished run; `keeps_model`: whether the trained weights are saved."""
    steps, history = trainer.state.global_step, [_finite(entry) for entry in trainer.state.log_history]
    pairs = rows_trained(setup.batches, steps, settings.optim.accumulation)
    seconds, best = trainer.clock.seconds, trainer.state.best_global_step
    dev_history = [entry for entry in history if "eval_dev" in entry]
    return {
        "made_by": f"aoe {__version__}",
        "result": {
            "out": str(sources.out),
            "steps": steps,
            "pairs": pairs,
            "seconds": round(seconds, 3),
            "pairs_per_s": round(pairs / seconds, 2),
            "peak_rss_mb": peak_rss_mb(),
            "dev": trainer.state.best_metric if keeps_model or before is None else before.deciding.value,
            "dev_metric": before and before.deciding.name,
            "dev_before": before and before.deciding.value,
        }
        | _dev_sets(before, [entry for entry in dev_history if entry["step"] == best], trained=keeps_model)
        | ({"dev_gain": dict(dev_gain)} if keeps_model and dev_gain is not None else {})
        | (
            {}
            if gain is None
            else {"judged": {**gain.to_dict(), "kept": "model" if keeps_model else "backbone"}}
        ),
        "origin": origin,
        "sources": sources.names(),
        "files": {"data": _hashes(sources.data), "dev_data": _hashes(sources.dev_data or {})},
        "encoder": setup.encoder.settings.model_dump(mode="json"),
        **({"advisers": teachers} if teachers else {}),
        **rows_record(setup),
        "languages": languages([text for rows in setup.data.train.values() for text in rows.texts]),
        "training_texts": settings.log.training_texts and keeps_model,
        "versions": versions(),
        "wall_s": round(wall_s, 3),
        "history": [entry for entry in history if "loss" in entry],
        "dev_history": dev_history,
        "best_step": (best or None) if keeps_model else None,
    }


def rows_record(setup: TrainingSetup) -> dict[str, Any]:
    """Rows and batches for run.json; with several datasets, of each."""
    held_out = {"dev": sum(map(len, setup.data.dev.values()))} if setup.data.dev else {}
    if not isinstance(setup.batches, Mixture):
        (dataset,) = setup.datasets
        rows = {"train": len(dataset.examples), **_rows(dataset.examples)}
        return {
            "rows": rows | held_out,
            "batches": describe(dataset.batches, dataset.store),
            **_dev_rows(setup),
        }
    mixture = setup.batches
    return {
        "rows": {"train": sum(len(dataset.examples) for dataset in setup.datasets)} | held_out,
        "batches": batches_of(setup),
        "datasets": {
            dataset.name: {
                "rows": len(dataset.examples),
                **_rows(dataset.examples),
                "epoch": mixture.epoch_share(number),
                "batches": describe(dataset.batches, dataset.store),
            }
            for number, dataset in enumerate(setup.datasets)
        },
        **_dev_rows(setup),
    }


def _dev_rows(setup: TrainingSetup) -> dict[str, Any]:
    """Number of rows of each dev set; nothing if there is one dataset and one dev set."""
    if len(setup.data.dev) < 2 and len(setup.datasets) < 2:
        return {}
    return {"dev_sets": {name: len(rows) for name, rows in setup.data.dev.items()}}


def batches_of(setup: TrainingSetup) -> dict[str, float]:
    """Statistics of the first epoch's batches over all datasets."""
    if not isinstance(setup.batches, Mixture):
        return describe(setup.batches, setup.datasets[0].store)
    plans: list[list[Any]] = [[] for _ in setup.datasets]
    for rows in setup.batches.plan(0):
        number, own = setup.batches.locate(rows.tolist())
        plans[number].append(own)
    return describe_all(
        [(plan, each.batches, each.store) for plan, each in zip(plans, setup.datasets, strict=True)],
        left_out=sum(dataset.batches.left_out for dataset in setup.datasets),
    )


def _rows(examples: Examples) -> dict[str, Any]:
    negatives = negative_counts(examples)
    record = {"kind": examples.kind, "reading": examples.reading.record()}
    return record | ({"negatives": negatives} if negatives else {})


def _finite(entry: dict[str, Any]) -> dict[str, Any]:
    """A log entry for JSON: gradient norms that overflowed, as in fp16's first steps, become None."""
    return {name: defined(value) if isinstance(value, float) else value for name, value in entry.items()}


def _hashes(sources: Mapping[str, Source]) -> dict[str, Any]:
    """Hashes of the files, by dataset if there are several."""
    hashes: dict[str, Any] = unwrap_single({name: hash_files(source) for name, source in sources.items()})
    return hashes


def _dev_sets(
    before: DevScores | None, best: Sequence[Mapping[str, Any]], *, trained: bool
) -> dict[str, Any]:
    """Metric and scores of each of several dev sets, before training and with the saved weights."""
    if before is None or len(before.by_set) == 1:
        return {}
    figures = {
        name: {
            "metric": metric.name,
            "before": metric.value,
            "dev": (best[0][f"eval_dev.{name}"] if best else None) if trained else metric.value,
        }
        for name, metric in before.by_set.items()
    }
    return {"dev_sets": figures, "dev_set": before.chosen}


def rows_trained(batches: Batches | Mixture, steps: int, accumulation: int) -> int:
    """Number of rows in this many optimiser steps, over all processes."""
    epochs, rest = divmod(steps, math.ceil(len(batches) / accumulation))
    unfinished = batches.plan(epochs)[: rest * accumulation]
    return batches.rows_seen(epochs) + sum(map(len, unfinished))
