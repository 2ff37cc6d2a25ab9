"""What a run on one dataset or several tells of them: before it trains, in its plan, and in its record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from aoe_train.data.batch_plan import describe, describe_all
from aoe_train.data.defaults import epochs, told
from aoe_train.data.examples import negative_counts
from aoe_train.data.mixture import Mixture, epoch_of, seen_in_words
from aoe_train.objectives.own import OwnObjective, trained_by
from aoe_train.settings.training import PAPERS

if TYPE_CHECKING:
    from aoe_train.records import Examples
    from aoe_train.settings.training import TrainSettings
    from aoe_train.training.preparation import Dataset, Prepared


def told_of(prepared: Prepared, settings: TrainSettings, own: Mapping[str, OwnObjective]) -> Iterator[str]:
    """Lines on what a run has chosen, where it was not given; for several datasets, on each."""
    optim = settings.optim
    if not isinstance(prepared.batches, Mixture):
        (dataset,) = prepared.datasets
        if not settings.preset.endswith(PAPERS):
            parts = trained_by(settings.objective, own.get(dataset.name))
            rows = dataset.examples
            yield told(settings, rows.kind, rows=len(rows), parts=parts)
        return
    for number, dataset in enumerate(prepared.datasets):
        parts = trained_by(settings.of(dataset.name).objective, own.get(dataset.name))
        yield (
            f"{dataset.name}: {len(dataset.examples):,} {dataset.examples.kind} rows: {' + '.join(parts)};"
            f" {seen_in_words(epoch_of(prepared.batches, number))}"
        )
    yield (
        f"{len(prepared.datasets)} datasets, {settings.mix.order}: {len(prepared.batches):,} batches an"
        f" epoch, {epochs(optim.epochs)}, learning rate {optim.lr:g}, batches of {optim.batch_size}"
    )


def told_in_record(prepared: Prepared) -> dict[str, Any]:
    """What a run's record says of its rows and batches; with several datasets, of each."""
    held_out = {"dev": sum(map(len, prepared.data.dev.values()))} if prepared.data.dev else {}
    if not isinstance(prepared.batches, Mixture):
        (dataset,) = prepared.datasets
        rows = {"train": len(dataset.examples), **_rows(dataset.examples)}
        return {
            "rows": rows | held_out,
            "batches": describe(dataset.batches, dataset.store),
            **_dev_rows(prepared),
        }
    mixture = prepared.batches
    return {
        "rows": {"train": sum(len(dataset.examples) for dataset in prepared.datasets)} | held_out,
        "batches": batches_of(prepared),
        "datasets": {
            dataset.name: {
                "rows": len(dataset.examples),
                **_rows(dataset.examples),
                "epoch": epoch_of(mixture, number),
                "batches": describe(dataset.batches, dataset.store),
            }
            for number, dataset in enumerate(prepared.datasets)
        },
        **_dev_rows(prepared),
    }


def _dev_rows(prepared: Prepared) -> dict[str, Any]:
    """How many rows each of several dev sets has, or the one that is a dataset's own."""
    if len(prepared.data.dev) < 2 and len(prepared.datasets) < 2:
        return {}
    return {"dev_sets": {name: len(rows) for name, rows in prepared.data.dev.items()}}


def batches_of(prepared: Prepared) -> dict[str, float]:
    """The batches of the first epoch, of all datasets."""
    if not isinstance(prepared.batches, Mixture):
        return describe(prepared.batches, prepared.datasets[0].store)
    of_epoch: list[tuple[Dataset, list[Any]]] = [(dataset, []) for dataset in prepared.datasets]
    for rows in prepared.batches.plan(0):
        number, own = prepared.batches.place(rows.tolist())
        of_epoch[number][1].append(own)
    return describe_all(
        [(plan, dataset.batches, dataset.store) for dataset, plan in of_epoch],
        left_out=sum(dataset.batches.left_out for dataset in prepared.datasets),
    )


def _rows(examples: Examples) -> dict[str, Any]:
    negatives = negative_counts(examples)
    found = {"kind": examples.kind, "reading": examples.reading.record()}
    return found | ({"negatives": negatives} if negatives else {})
