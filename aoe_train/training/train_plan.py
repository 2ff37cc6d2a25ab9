"""Estimate of a run's memory and time; writes only to the cache of tokens."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from aoe_train.data.defaults import format_epochs
from aoe_train.data.examples import negative_counts, negatives_in_words, silent
from aoe_train.data.mixture import describe, format_epoch_share
from aoe_train.data.run_data import Sources
from aoe_train.evaluation.dev import check_judged
from aoe_train.model.device import upload_batch
from aoe_train.model.memory import memory_errors
from aoe_train.model.precision import training_note
from aoe_train.objectives.objective import LossFunction, loss_weights
from aoe_train.objectives.training_rows import distinct_texts
from aoe_train.training.build import Built, build
from aoe_train.training.load import load
from aoe_train.training.pair_model import check_loss_functions, split_texts
from aoe_train.training.training_arguments import Process, autocast, memory_advice, start_processes
from pairkit.base.cli.progress import Display, Listener
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

if TYPE_CHECKING:
    from torch import Tensor

    from aoe_train.objectives.training_rows import Examples
    from aoe_train.settings.train_settings import TrainSettings
    from aoe_train.training.pair_model import PairModel

_PROBES = 4  # timed steps, after a warm-up step
_MIB = 1 << 20
_GPU_NOTE = (
    "measured without CUDA graphs; a GPU trains more rows a second with a larger --batch-size"
)


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
        batches = self.record["batches"]
        optim = self.record["optim"]
        memory = record["memory_mb"]
        weights = record["parameters"]
        dev_sets = ", ".join(f"{name} {count:,}" for name, count in record["dev_sets"].items())
        rows = {
            **_dataset_lines(record),
            "dev rows": dev_sets or "none",
            **({"judged pairs": f"{record['judged_pairs']:,}"} if "judged_pairs" in record else {}),
            "training": f"{format_epochs(optim['epochs'])}, learning rate {optim['lr']:g}, "
            f"{optim['batch_size']} rows a batch",
            "precision": "; ".join(filter(None, (record["precision"], record["precision_note"]))),
            "truncated texts": f"{batches['truncated_texts']:,}",
            "batches an epoch": f"{batches['steps']:,} of {batches['rows_mean']:.1f} rows, "
            f"{batches['tokens_mean']:,.0f} tokens (at most {batches['tokens_max']:,})",
            "padding avoided": f"{batches['padding_share']:.0%}",
            "parameters": f"{weights['total']:,}, of which {weights['trained']:,} are trained",
            "memory": f"{sum(memory.values()):,.0f} MiB ("
            + ", ".join(f"{name} {size:,.0f}" for name, size in memory.items())
            + ")",
            "steps": f"{record['steps']:,}",
            "time": f"{record['seconds']:,.0f} s, estimated; {record['pairs_per_s']:,.1f} rows a second",
            **({"on a GPU": note} if (note := record["gpu_note"]) else {}),
        }
        table = ResultTable("", "plan", left=("plan",))
        for name, value in rows.items():
            table.add_row(name, value)
        return table


def plan(sources: Sources, settings: TrainSettings, *, progress: bool | Listener = True) -> Plan:
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
        memory_errors(lambda: memory_advice(settings)),
        TemporaryDirectory() as scratch,
        Display(progress) as show,
    ):
        args = start_processes(settings, Path(scratch))
        loaded = load(sources, settings, Process(args, Path(scratch), silent, show))
        settings = loaded.settings
        built = build(loaded, placeholders=True)
        memory = _memory(built)
        seconds_a_batch = _probe(built)
    data = loaded.data
    judged = loaded.judged
    planned = describe(built.batches, [dataset.store for dataset in built.datasets])
    batches = math.ceil(planned["steps"] * settings.optim.epochs)
    dev_sets = {name: len(rows) for name, rows in data.dev.items()}
    datasets = {
        name: _dataset(rows, loaded.datasets[name], sources.losses.get(name))
        | {"epoch": built.batches.epoch_share(number)}
        for number, (name, rows) in enumerate(data.train.items())
    }
    return Plan(
        {
            "rows": sum(map(len, data.train.values())),
            "datasets": datasets,
            "optim": settings.optim.model_dump(include={"lr", "epochs", "batch_size"}),
            "precision": loaded.precision,
            "precision_note": training_note(settings.run.precision, args.device),
            "advisers": {teacher.role: teacher.name for teacher in loaded.teachers},
            **({} if judged is None else {"judged_pairs": len(judged)}),
            "dev_sets": dev_sets,
            "batches": planned,
            "steps": math.ceil(batches / settings.optim.accumulation),
            "parameters": {
                "total": sum(
                    each.numel()
                    for each in built.model.state_dict().values()
                    if each.is_floating_point()
                ),
                "trained": sum(
                    each.numel() for each in built.model.parameters() if each.requires_grad
                ),
            },
            "memory_mb": memory,
            "seconds": round(batches * seconds_a_batch, 3),
            "pairs_per_s": round(planned["rows_mean"] / seconds_a_batch, 1),
            "gpu_note": _GPU_NOTE if args.device.type == "cuda" else None,
        }
    )


def _dataset_lines(record: Mapping[str, Any]) -> dict[str, str]:
    """Lines on rows and objective, prefixed with the dataset's name if there are several."""
    if len(record["datasets"]) == 1:
        return _row_lines(*record["datasets"].values())
    lines = {"rows": f"{record['rows']:,} of {len(record['datasets'])} datasets"}
    for name, dataset in record["datasets"].items():
        of_dataset = _row_lines(dataset) | {"share": format_epoch_share(dataset["epoch"])}
        lines |= {f"{name}: {line}": value for line, value in of_dataset.items()}
    return lines


def _row_lines(record: Mapping[str, Any]) -> dict[str, str]:
    labels = ", ".join(f"{label}: {count:,}" for label, count in record["labels"].items())
    reading = record["reading"]
    left_out = ", ".join(
        f"{count:,} {one_line(reason, 40)}" for reason, count in reading["left_out"].items()
    )
    return {
        "rows": f"{record['rows']:,} ({record['kind']}), {record['texts']:,} distinct texts",
        "labels": labels or "none",
        "read as": reading["labels"] or "no labels",
        "rows left out": left_out or "none",
        "pairs with different labels": f"{reading['conflicts']:,}",
        **({"negatives": negatives_in_words(counts)} if (counts := record["negatives"]) else {}),
        "objective": " + ".join(
            f"{weight:g} {part}" for part, weight in record["objective"].items()
        ),
    }


def _dataset(
    rows: Examples, settings: TrainSettings, custom_loss: LossFunction | None
) -> dict[str, Any]:
    """A dataset's rows and objective for the record."""
    return {
        "rows": len(rows),
        "kind": rows.kind,
        "texts": len(rows.texts),
        "labels": _labels(rows.labels),
        "negatives": negative_counts(rows),
        "reading": rows.reading.record(),
        "objective": loss_weights(settings.objective, custom_loss),
    }


def _labels(labels: np.ndarray | None) -> dict[str, int]:
    """Number of rows with each label; graded labels are rounded down."""
    if labels is None:
        return {}
    distinct, counts = np.unique(np.floor(labels).astype(np.int64), return_counts=True)
    return {
        str(label): count for label, count in zip(distinct.tolist(), counts.tolist(), strict=True)
    }


def _memory(built: Built) -> dict[str, float]:
    """MiB by use."""
    model = built.model
    args = built.args
    optim = built.loaded.settings.optim
    weights = sum(weight.nbytes for weight in (*model.parameters(), *model.buffers()))
    trained = sum(weight.nbytes for weight in model.parameters() if weight.requires_grad)
    batch = _batch(built, max(built.batches, key=lambda rows: _tokens(built, rows)))
    model.train()
    with autocast(args):
        activations = saved_bytes(model, batch)
    copies = (optim.interpolate != 1) + (optim.average > 0)
    if (
        args.device.type == "cpu"
    ):  # in a run on a GPU the backbone's and the best weights are in host memory
        copies += (built.loaded.judged is not None) + bool(built.data.dev)
    sizes = {
        "weights": weights,
        "gradients": trained,
        "optimiser": 2 * trained,
        "copies": copies * trained,
    }
    sizes["activations"] = activations
    return {name: round(size / _MIB, 1) for name, size in sizes.items()}


def _tokens(built: Built, rows: list[int]) -> int:
    number, rows = built.batches.locate(rows)
    dataset = built.datasets[number]
    return int(dataset.store.lengths[distinct_texts(dataset.examples.rows[rows])].sum())


def _probe(built: Built) -> float:
    """Seconds per training batch."""
    model = built.model
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=built.args.learning_rate, fused=True)
    steps = [int(step) for step in np.linspace(0, len(built.batches) - 1, _PROBES + 1)]
    batches = {step: rows for step, rows in enumerate(built.batches) if step in steps}
    durations = []
    for step in [steps[-1], *steps[:-1]]:
        start = time.perf_counter()
        with autocast(built.args):
            loss = model(**_batch(built, batches[step]))["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, max_norm=1.0)
        optimiser.step()
        optimiser.zero_grad()
        loss.item()  # wait for the device
        durations.append(time.perf_counter() - start)
    return sum(durations[1:]) / _PROBES


def _batch(built: Built, rows: list[int]) -> dict[str, Any]:
    batch: dict[str, Any] = built.loader.collate_fn(rows)
    batch.pop("numbers")
    return upload_batch(batch, built.args.device)


def saved_bytes(model: PairModel, batch: Mapping[str, Any]) -> int:
    """Bytes that a forward pass saves for the backward pass; with chunks their inputs and one chunk."""
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    saved = _saved(lambda: model(**batch), weights)
    if model.chunk is not None and len(batch["pieces"]) > model.chunk:
        prompts = [batch["prompt_lengths"]] if "prompt_lengths" in batch else []
        chunks = split_texts(
            batch["input_ids"], batch["lengths"], batch["pieces"], model.chunk, *prompts
        )
        *_, longest = chunks  # texts are sorted by length
        saved += _saved(lambda: model.text_model(*longest), weights)
    return saved


def _saved(forward: Callable[[], object], exclude: set[int]) -> int:
    sizes: dict[int, int] = {}

    def record(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in exclude:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor):
        _ = forward()  # keeps tensors alive, so that no address is reused
    return sum(sizes.values())
