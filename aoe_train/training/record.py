"""What a run reports of its rows and batches: before it trains, in its plan, and in run.json."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aoe_train.data.defaults import format_choices, format_epochs
from aoe_train.data.examples import negative_counts
from aoe_train.data.mixture import Mixture, describe, describe_all, epoch_of, seen_in_words
from aoe_train.data.run_data import Sources, one_or_all
from aoe_train.evaluation.tasks import defined
from aoe_train.model.run_folder import hash_files, versions
from aoe_train.objectives.objective import OwnObjective, trained_by
from aoe_train.settings.training import PAPERS
from pairkit import __version__
from pairkit.system.machine import peak_rss_mb

if TYPE_CHECKING:
    from aoe_train.data.batches import Batches
    from aoe_train.evaluation.dev import DevScores
    from aoe_train.evaluation.gain import Gain
    from aoe_train.records import Examples
    from aoe_train.settings.training import TrainSettings
    from aoe_train.training.build import Dataset, TrainingSetup
    from aoe_train.training.load import ResolvedSettings
    from aoe_train.training.trainer import PairTrainer
    from pairkit.dataset.in_memory import Source

_KEPT = {True: "model", False: "backbone"}  # whose weights are saved


def choices_in_words(
    setup: TrainingSetup, resolved: ResolvedSettings, own: Mapping[str, OwnObjective]
) -> Iterator[str]:
    """Lines on what was chosen for a run; with several datasets, on each."""
    settings = resolved.run
    optim = settings.optim
    if not isinstance(setup.batches, Mixture):
        (dataset,) = setup.datasets
        if not settings.preset.endswith(PAPERS):
            parts = trained_by(settings.objective, own.get(dataset.name))
            rows, steps_an_epoch = dataset.examples, math.ceil(len(setup.batches) / optim.accumulation)
            seen = rows_trained(setup.batches, math.ceil(optim.epochs * steps_an_epoch), optim.accumulation)
            yield format_choices(settings, rows.kind, rows=len(rows), seen=seen, parts=parts)
        return
    for number, dataset in enumerate(setup.datasets):
        parts = trained_by(resolved.datasets[dataset.name].objective, own.get(dataset.name))
        yield (
            f"{dataset.name}: {len(dataset.examples):,} {dataset.examples.kind} rows: {' + '.join(parts)};"
            f" {seen_in_words(epoch_of(setup.batches, number))}"
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
    ahead: Mapping[str, Any] | None,
    gain: Gain | None,
    keeps: bool,
    wall_s: float,
) -> dict[str, Any]:
    """The run.json of a finished run.

    `ahead` is how far the trained weights are ahead on dev data, `keeps` whether they are those saved.
    """
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
            "dev": trainer.state.best_metric if keeps or before is None else before.deciding.value,
            "dev_metric": before and before.deciding.name,
            "dev_before": before and before.deciding.value,
        }
        | _dev_sets(before, [entry for entry in dev_history if entry["step"] == best], trained=keeps)
        | ({"dev_gain": dict(ahead)} if keeps and ahead is not None else {})
        | ({} if gain is None else {"judged": {**gain.to_dict(), "kept": _KEPT[keeps]}}),
        "origin": origin,
        "sources": sources.names(),
        "files": {"data": _hashes(sources.data), "dev_data": _hashes(sources.dev_data or {})},
        "encoder": setup.encoder.settings.model_dump(mode="json"),
        **({"advisers": teachers} if teachers else {}),
        **rows_record(setup),
        "training_texts": settings.log.training_texts and keeps,
        "versions": versions(),
        "wall_s": round(wall_s, 3),
        "history": [entry for entry in history if "loss" in entry],
        "dev_history": dev_history,
        "best_step": (best or None) if keeps else None,
    }


def rows_record(setup: TrainingSetup) -> dict[str, Any]:
    """What a run's record says of its rows and batches; with several datasets, of each."""
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
                "epoch": epoch_of(mixture, number),
                "batches": describe(dataset.batches, dataset.store),
            }
            for number, dataset in enumerate(setup.datasets)
        },
        **_dev_rows(setup),
    }


def _dev_rows(setup: TrainingSetup) -> dict[str, Any]:
    """How many rows each of several dev sets has, or the one that is a dataset's own."""
    if len(setup.data.dev) < 2 and len(setup.datasets) < 2:
        return {}
    return {"dev_sets": {name: len(rows) for name, rows in setup.data.dev.items()}}


def batches_of(setup: TrainingSetup) -> dict[str, float]:
    """The batches of the first epoch, of all datasets."""
    if not isinstance(setup.batches, Mixture):
        return describe(setup.batches, setup.datasets[0].store)
    of_epoch: list[tuple[Dataset, list[Any]]] = [(dataset, []) for dataset in setup.datasets]
    for rows in setup.batches.plan(0):
        number, own = setup.batches.place(rows.tolist())
        of_epoch[number][1].append(own)
    return describe_all(
        [(plan, dataset.batches, dataset.store) for dataset, plan in of_epoch],
        left_out=sum(dataset.batches.left_out for dataset in setup.datasets),
    )


def _rows(examples: Examples) -> dict[str, Any]:
    negatives = negative_counts(examples)
    found = {"kind": examples.kind, "reading": examples.reading.record()}
    return found | ({"negatives": negatives} if negatives else {})


def _finite(entry: dict[str, Any]) -> dict[str, Any]:
    """A log entry as JSON can hold it: a gradient norm that overflowed, as in fp16's first steps, is None."""
    return {name: defined(value) if isinstance(value, float) else value for name, value in entry.items()}


def _hashes(sources: Mapping[str, Source]) -> dict[str, Any]:
    """Of each source's files; without a name where there is but one."""
    found: dict[str, Any] = one_or_all({name: hash_files(source) for name, source in sources.items()})
    return found


def _dev_sets(
    before: DevScores | None, best: Sequence[Mapping[str, Any]], *, trained: bool
) -> dict[str, Any]:
    """Of several dev sets, what each measures, before training and with the weights kept."""
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
    """Rows in the batches of so many optimiser steps, of all processes together."""
    epochs, rest = divmod(steps, math.ceil(len(batches) / accumulation))
    begun = batches.plan(epochs)[: rest * accumulation]
    return batches.rows_seen(epochs) + sum(map(len, begun))
