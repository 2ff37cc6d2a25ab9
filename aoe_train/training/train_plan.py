"""Estimate of a run's memory and time; writes only to the cache of tokens."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from aoe_train.data.defaults import format_epochs
from aoe_train.data.examples import count_values, negatives_in_words, silent
from aoe_train.data.run_data import Sources
from aoe_train.data.token_batches import describe, format_epoch_share
from aoe_train.evaluation.dev import check_judged
from aoe_train.model.device import memory_errors, upload_batch
from aoe_train.model.precision import training_note
from aoe_train.training.build import Built, build
from aoe_train.training.load import load
from aoe_train.training.pair_model import PairModel, check_loss_functions, split_texts
from aoe_train.training.train import dataset_records
from aoe_train.training.training_arguments import (
    Process,
    autocast,
    memory_advice,
    start_processes,
)
from pairkit.base.cli.progress import Display, Listener
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

if TYPE_CHECKING:
    from torch import Tensor, nn

    from aoe_train.settings.train_settings import TrainSettings

# Timed steps, after a warm-up step.
_PROBES = 4
_MIB = 1 << 20
_GPU_NOTE = "measured without CUDA graphs; a GPU trains more rows a second with a larger --batch-size"


@dataclass(frozen=True, repr=False)
class Plan(Printed):
    """Estimate of a run of `train`: counts, batches, memory and time.

    Attributes:
        record: The JSON object of `aoe train --dry-run --json`.
    """

    record: Mapping[str, Any]

    @property
    def seconds(self) -> float:
        """Estimated duration of the training steps, from a short probe."""
        return float(self.record["seconds"])

    @property
    def memory_mb(self) -> float:
        """Estimated memory in MiB for weights, gradients, optimiser, copies and activations."""
        return float(sum(self.record["memory_mb"].values()))

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `aoe train --dry-run --json`."""
        return dict(self.record)

    def next_steps(self) -> list[tuple[str, str]]:
        """The command that starts the training."""
        return [("train", "the same command without --dry-run")]

    def table(self) -> ResultTable:
        """The estimate as a table."""
        record = self.record
        batches = record["batches"]
        optim = record["optim"]
        weights = record["parameters"]
        uses = [f"{use} {size:,.0f}" for use, size in record["memory_mb"].items()]
        dev_sets = [f"{name} {count:,}" for name, count in record["dev_sets"].items()]
        precision = (record["precision"], record["precision_note"])

        lines = _dataset_lines(record)
        lines["dev rows"] = ", ".join(dev_sets) or "none"
        if "judged_pairs" in record:
            lines["judged pairs"] = f"{record['judged_pairs']:,}"
        lines |= {
            "training": f"{format_epochs(optim['epochs'])}, learning rate {optim['lr']:g}, "
            f"{optim['batch_size']} rows a batch",
            "precision": "; ".join(filter(None, precision)),
            "truncated texts": f"{batches['truncated_texts']:,}",
            "batches an epoch": f"{batches['steps']:,} of {batches['rows_mean']:.1f} rows, "
            f"{batches['tokens_mean']:,.0f} tokens (at most {batches['tokens_max']:,})",
            "padding avoided": f"{batches['padding_share']:.0%}",
            "parameters": f"{weights['total']:,}, of which {weights['trained']:,} are trained",
            "memory": f"{self.memory_mb:,.0f} MiB ({', '.join(uses)})",
            "steps": f"{record['steps']:,}",
            "time": f"{self.seconds:,.0f} s, estimated; {record['pairs_per_s']:,.1f} rows a second",
        }
        if record["gpu_note"]:
            lines["on a GPU"] = record["gpu_note"]

        table = ResultTable("", "plan", left=("plan",))
        for name, value in lines.items():
            table.add_row(name, value)
        return table


def plan(
    sources: Sources, settings: TrainSettings, *, progress: bool | Listener = True
) -> Plan:
    """Prepare a run, and train a few steps on a temporary model.

    Time is the mean of a few steps spread over the first epoch, times the number of steps. Memory is that of
    weights, gradients, AdamW's two moments, copies of weights, and the measured activations of the batch with
    most tokens.
    """
    check_judged(sources.judged, settings)
    check_loss_functions(sources, settings)
    if settings.run.shard:
        raise ConfigError(
            "a dry run doesn't support run.shard; leave run.shard out, and divide the memory of weights,"
            " gradients and optimiser by the number of processes"
        )
    with (
        memory_errors(memory_advice(settings)),
        TemporaryDirectory() as scratch,
        Display(progress) as show,
    ):
        args = start_processes(settings, Path(scratch))
        loaded = load(sources, settings, Process(args, Path(scratch), silent, show))
        built = build(loaded, placeholders=True)
        memory = _memory_by_use(built)
        seconds_a_batch = _seconds_a_batch(built)
    return Plan(_plan_record(built, memory, seconds_a_batch))


def _plan_record(
    built: Built, memory: Mapping[str, float], seconds_a_batch: float
) -> dict[str, object]:
    """The record of a plan; `memory` and `seconds_a_batch` are measured."""
    loaded = built.loaded
    settings = loaded.settings
    train = built.data.train
    batches = describe(built.batches, [dataset.store for dataset in built.datasets])
    num_batches = math.ceil(batches["steps"] * settings.optim.epochs)
    datasets = {}
    records = dataset_records(built)
    for dataset in built.datasets:
        rows = loaded.data.train[dataset.name]
        labels = {}
        if rows.labels is not None:  # graded ones are rounded down
            labels = count_values(np.floor(rows.labels).astype(np.int64))
        datasets[dataset.name] = {
            **records[dataset.name].model_dump(),
            "texts": len(rows.texts),
            "labels": labels,
            "objective": dataset.loss_weights,
        }
    record: dict[str, Any] = {
        "rows": sum(map(len, train.values())),
        "datasets": datasets,
        "optim": settings.optim.model_dump(include={"lr", "epochs", "batch_size"}),
        "precision": loaded.precision,
        "precision_note": training_note(settings.run.precision, built.args.device),
        "advisers": {teacher.role: teacher.name for teacher in loaded.teachers},
        "dev_sets": {name: len(rows) for name, rows in built.data.dev.items()},
        "batches": batches,
        "steps": built.steps,
        "parameters": {
            "total": sum(
                weight.numel()
                for weight in built.model.state_dict().values()
                if weight.is_floating_point()
            ),
            "trained": sum(each.numel() for each in _trained(built.model)),
        },
        "memory_mb": memory,
        "seconds": round(num_batches * seconds_a_batch, 3),
        "pairs_per_s": round(batches["rows_mean"] / seconds_a_batch, 1),
        "gpu_note": _GPU_NOTE if built.args.device.type == "cuda" else None,
    }
    if loaded.judged is not None:
        record["judged_pairs"] = len(loaded.judged)
    return record


def _dataset_lines(record: Mapping[str, Any]) -> dict[str, str]:
    """Lines on rows and objective, prefixed with the dataset's name if there are several."""
    if len(record["datasets"]) == 1:
        return _row_lines(*record["datasets"].values())
    lines = {"rows": f"{record['rows']:,} of {len(record['datasets'])} datasets"}
    for name, dataset in record["datasets"].items():
        for line, value in _row_lines(dataset).items():
            lines[f"{name}: {line}"] = value
        lines[f"{name}: share"] = format_epoch_share(dataset["epoch"])
    return lines


def _row_lines(record: Mapping[str, Any]) -> dict[str, str]:
    """Lines on the rows and the objective of a dataset."""
    reading = record["reading"]
    labels = [f"{label}: {count:,}" for label, count in record["labels"].items()]
    left_out = [
        f"{count:,} {one_line(reason, 40)}"
        for reason, count in reading["left_out"].items()
    ]
    lines = {
        "rows": f"{record['rows']:,} ({record['kind']}), {record['texts']:,} distinct texts",
        "labels": ", ".join(labels) or "none",
        "read as": reading["labels"] or "no labels",
        "rows left out": ", ".join(left_out) or "none",
        "pairs with different labels": f"{reading['conflicts']:,}",
    }
    if record["negatives"]:
        lines["negatives"] = negatives_in_words(record["negatives"])
    parts = [f"{weight:g} {part}" for part, weight in record["objective"].items()]
    return lines | {"objective": " + ".join(parts)}


def _trained(model: nn.Module) -> list[nn.Parameter]:
    """The trained weights."""
    return [weight for weight in model.parameters() if weight.requires_grad]


def _memory_by_use(built: Built) -> dict[str, float]:
    """MiB by use."""
    model = built.model
    args = built.args
    optim = built.loaded.settings.optim
    weights = sum(weight.nbytes for weight in (*model.parameters(), *model.buffers()))
    trained = sum(weight.nbytes for weight in _trained(model))

    def tokens(rows: list[int]) -> int:
        dataset, numbers = built.batches.locate(rows)
        return built.batches.batches[dataset].count_tokens(numbers)

    batch = _device_batch(built, max(built.batches, key=tokens))
    model.train()
    with autocast(args):
        activations = saved_bytes(model, batch)
    kept = [optim.interpolate != 1, optim.average > 0]
    # A run on a GPU has the backbone's and the best weights in host memory.
    if args.device.type == "cpu":
        kept += [built.loaded.judged is not None, bool(built.data.dev)]
    sizes = {
        "weights": weights,
        "gradients": trained,
        "optimiser": 2 * trained,
        "copies": sum(kept) * trained,
        "activations": activations,
    }
    return {name: round(size / _MIB, 1) for name, size in sizes.items()}


def _seconds_a_batch(built: Built) -> float:
    """Mean seconds of some training batches, spread over the first epoch."""
    model = built.model
    trained = _trained(model)
    optimiser = torch.optim.AdamW(trained, lr=built.args.learning_rate, fused=True)
    batches = list(built.batches)
    numbers = np.linspace(0, len(batches) - 1, _PROBES + 1)
    *timed, warm_up = numbers.astype(int).tolist()
    durations = []
    for number in (warm_up, *timed):
        start = time.perf_counter()
        with autocast(built.args):
            loss = model(**_device_batch(built, batches[number]))["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, max_norm=1.0)
        optimiser.step()
        optimiser.zero_grad()
        loss.item()  # wait for the device
        durations.append(time.perf_counter() - start)
    return sum(durations[1:]) / _PROBES


def _device_batch(built: Built, rows: list[int]) -> dict[str, object]:
    """A batch on the device."""
    batch: dict[str, Any] = built.loader.collate_fn(rows)
    batch.pop("numbers")
    return upload_batch(batch, built.args.device)


def saved_bytes(model: PairModel, batch: Mapping[str, Any]) -> int:
    """Bytes that a forward pass saves for the backward pass; with chunks their inputs and one chunk."""
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    saved = _count_saved_bytes(lambda: model(**batch), weights)
    if model.chunk is not None and len(batch["lengths"]) > model.chunk:
        chunks = split_texts(
            batch["input_ids"],
            batch["lengths"],
            model.chunk,
            batch.get("prompt_lengths"),
        )
        saved += max(
            _count_saved_bytes(partial(model.text_model, *chunk), weights)
            for chunk in chunks
        )
    return saved


def _count_saved_bytes(forward: Callable[[], object], exclude: set[int]) -> int:
    """Bytes that `forward` saves, without the storages to `exclude`."""
    sizes: dict[int, int] = {}

    def record(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in exclude:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor):
        _ = forward()  # keeps tensors alive, so that no address is reused
    return sum(sizes.values())
