"""What a run will take, before it takes it: nothing is written but the tokens' cache."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import set_seed

from aoe_train.data.defaults import format_epochs
from aoe_train.data.examples import negative_counts, negatives_in_words, silent
from aoe_train.data.mixture import Mixture, distinct_texts, epoch_of, seen_in_words
from aoe_train.data.run_data import Sources
from aoe_train.model.device import upload_batch
from aoe_train.model.memory import memory_errors
from aoe_train.model.precision import training_note
from aoe_train.model.run_folder import cache_dir
from aoe_train.objectives.objective import OwnObjective, trained_by
from aoe_train.training.arguments import autocast, start_processes
from aoe_train.training.build import TrainingSetup, build, load_teachers
from aoe_train.training.keep_if_better import JudgedPairs, check_judged
from aoe_train.training.load import load, resolve
from aoe_train.training.pair_model import check_own_objectives, split_texts
from aoe_train.training.record import batches_of
from aoe_train.training.teachers import placeholder_vectors
from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line
from pairkit.app.progress import Display, Listener
from pairkit.app.result_table import ResultTable

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import TrainingArguments

    from aoe_train.records import Examples
    from aoe_train.settings.training import TrainSettings
    from aoe_train.training.pair_model import PairModel

_PROBES = 4  # timed steps, after one that warms up
_MIB = 1 << 20


def plan(
    sources: Sources,
    settings: TrainSettings,
    *,
    own: Mapping[str, OwnObjective] | None = None,
    progress: bool | Listener = True,
) -> dict[str, Any]:
    """Prepare everything, train a few steps on a model that is then thrown away, and report.

    Time is the mean of a few steps evenly spaced over the first epoch, times the number of steps. Memory is
    that of weights, gradients, AdamW's two moments and the copies of weights that a run keeps, plus what the
    forward pass over the batch with most tokens keeps for the backward pass, which is measured.
    """
    check_judged(sources.judged, settings)
    if settings.run.shard:
        raise ConfigError(
            "--dry-run with run.shard: it measures whole models; leave run.shard out, and divide the memory"
            " of weights, gradients and optimiser by the number of processes"
        )

    def advice() -> str:
        return f"lower --batch-size (now {settings.optim.batch_size}), --max-length or run.chunk"

    own = own or {}
    with memory_errors(advice), TemporaryDirectory() as scratch, Display(progress) as show:
        args = start_processes(settings, Path(scratch))
        set_seed(settings.seed)
        check_own_objectives(own, sources, settings)
        loaded = load(sources, settings, own.keys(), args.device, silent, show)
        resolved = resolve(sources, loaded, args)
        teachers = load_teachers(resolved, loaded, own.keys(), show, identify=False)
        data, settings = loaded.data, resolved.run
        zeros = placeholder_vectors(teachers, data.train, settings.teacher, cache_dir("vectors"), show)
        setup = build(loaded, resolved, args, own, zeros, show)
        judged = None if sources.judged is None else JudgedPairs(sources.judged, silent)
        memory = _memory(setup, settings, args, copies=0 if judged is None else 1)
        seconds_a_batch = _probe(setup, settings, args)
    planned = batches_of(setup)
    batches = math.ceil(planned["steps"] * settings.optim.epochs)
    each = {name: _rows(rows, resolved.datasets[name], own.get(name)) for name, rows in data.train.items()}
    if isinstance(setup.batches, Mixture):
        for number, row in enumerate(each.values()):
            row["epoch"] = epoch_of(setup.batches, number)
        found: dict[str, Any] = {"rows": sum(map(len, data.train.values())), "datasets": each}
    else:
        (found,) = each.values()
    return {
        **found,
        "optim": settings.optim.model_dump(include={"lr", "epochs", "batch_size"}),
        "precision": resolved.precision,
        "precision_note": training_note(settings.run.precision, args.device),
        "advisers": {teacher.role: teacher.name for teacher in teachers},
        "dev_rows": sum(map(len, data.dev.values())),
        **({} if judged is None else {"judged_pairs": len(judged)}),
        **({"dev_sets": {name: len(rows) for name, rows in data.dev.items()}} if len(data.dev) > 1 else {}),
        "batches": planned,
        "steps": math.ceil(batches / settings.optim.accumulation),
        "parameters": _parameters(setup.model),
        "memory_mb": memory,
        "seconds": round(batches * seconds_a_batch, 3),
        "pairs_per_s": round(planned["rows_mean"] / seconds_a_batch, 1),
    }


def plan_table(record: Mapping[str, Any]) -> ResultTable:
    """The same for people."""
    batches, memory, weights = record["batches"], record["memory_mb"], record["parameters"]
    optim = record["optim"]
    table = ResultTable("", "plan", left=("plan",))
    rows = {
        **_of_datasets(record),
        **_dev_rows(record),
        "training": f"{format_epochs(optim['epochs'])}, learning rate {optim['lr']:g}, "
        f"{optim['batch_size']} rows a batch",
        "precision": "; ".join(filter(None, (record["precision"], record["precision_note"]))),
        "truncated texts": f"{batches['truncated_texts']:,}",
        "batches an epoch": f"{batches['steps']:,} of {batches['rows_mean']:.1f} rows, "
        f"{batches['tokens_mean']:,.0f} tokens (at most {batches['tokens_max']:,})",
        "padding avoided": f"{batches['padding_share']:.0%}",
        "parameters": f"{weights['total']:,}, of which {weights['trained']:,} learn",
        "memory": f"{sum(memory.values()):,.0f} MiB ("
        + ", ".join(f"{name} {size:,.0f}" for name, size in memory.items())
        + ")",
        "steps": f"{record['steps']:,}",
        "time": f"{record['seconds']:,.0f} s by a short probe, {record['pairs_per_s']:,.1f} rows a second",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _of_datasets(record: Mapping[str, Any]) -> dict[str, str]:
    """The lines on rows and objective; of several datasets, each under its name."""
    if "datasets" not in record:
        return _of_rows(record)
    found = {"rows": f"{record['rows']:,} of {len(record['datasets'])} datasets"}
    for name, own in record["datasets"].items():
        lines = _of_rows(own) | {"share": seen_in_words(own["epoch"])}
        found |= {f"{name}: {line}": words for line, words in lines.items()}
    return found


def _of_rows(record: Mapping[str, Any]) -> dict[str, str]:
    labels = ", ".join(f"{label}: {count:,}" for label, count in record["labels"].items())
    reading = record["reading"]
    left_out = ", ".join(f"{count:,} {one_line(why, 40)}" for why, count in reading["left_out"].items())
    return {
        "rows": f"{record['rows']:,} ({record['kind']}), {record['texts']:,} distinct texts",
        "labels": labels or "none",
        "read as": reading["labels"] or "no labels",
        "rows left out": left_out or "none",
        "pairs with two labels": f"{reading['conflicts']:,}",
        **({"negatives": negatives_in_words(counts)} if (counts := record["negatives"]) else {}),
        "objective": " + ".join(f"{weight:g} {part}" for part, weight in record["objective"].items()),
    }


def _dev_rows(record: Mapping[str, Any]) -> dict[str, str]:
    sets = ", ".join(f"{name} {count:,}" for name, count in record.get("dev_sets", {}).items())
    judged = {"judged pairs": f"{record['judged_pairs']:,}"} if "judged_pairs" in record else {}
    return {"dev rows": f"{record['dev_rows']:,}" + (f" ({sets})" if sets else ""), **judged}


def _rows(rows: Examples, settings: TrainSettings, own: OwnObjective | None) -> dict[str, Any]:
    """What is known of a dataset's rows, and what they are trained by."""
    return {
        "rows": len(rows),
        "kind": rows.kind,
        "texts": len(rows.texts),
        "labels": _labels(rows.labels),
        "negatives": negative_counts(rows),
        "reading": rows.reading.record(),
        "objective": trained_by(settings.objective, own),
    }


def _labels(labels: np.ndarray | None) -> dict[str, int]:
    """How many rows have each label; graded labels are rounded down to whole numbers."""
    if labels is None:
        return {}
    found, counts = np.unique(np.floor(labels).astype(np.int64), return_counts=True)
    return {str(label): count for label, count in zip(found.tolist(), counts.tolist(), strict=True)}


def _parameters(model: torch.nn.Module) -> dict[str, int]:
    return {
        "total": sum(weight.numel() for weight in model.state_dict().values() if weight.is_floating_point()),
        "trained": sum(weight.numel() for weight in model.parameters() if weight.requires_grad),
    }


def _memory(
    setup: TrainingSetup, settings: TrainSettings, args: TrainingArguments, *, copies: int
) -> dict[str, float]:
    """MiB by use; beside `copies` there may be one for the mix, the mean, and the best weights so far."""
    model = setup.model
    weights = sum(weight.nbytes for weight in (*model.parameters(), *model.buffers()))
    trained = sum(weight.nbytes for weight in model.parameters() if weight.requires_grad)
    largest = max(setup.batches, key=lambda rows: _tokens(setup, rows))
    batch = _batch(setup, largest, args)
    model.train()
    with autocast(args):
        kept = saved_bytes(model, batch)
    optim, here = settings.optim, args.device.type == "cpu"
    copies = (copies + bool(setup.data.dev)) * here  # of a run on a GPU they lie in host memory
    copies += (optim.weight_mix != 1) + (optim.average > 0)
    sizes = {"weights": weights, "gradients": trained, "optimiser": 2 * trained, "copies": copies * trained}
    sizes["activations"] = kept
    return {name: round(size / _MIB, 1) for name, size in sizes.items()}


def _tokens(setup: TrainingSetup, rows: list[int]) -> int:
    mixture = setup.batches
    number, own = mixture.place(rows) if isinstance(mixture, Mixture) else (0, rows)
    dataset = setup.datasets[number]
    return int(dataset.store.lengths[distinct_texts(dataset.examples.rows[own])].sum())


def _probe(setup: TrainingSetup, settings: TrainSettings, args: TrainingArguments) -> float:
    """Seconds a batch takes, learning included."""
    model = setup.model
    learned = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(learned, lr=settings.optim.lr, fused=True)
    places = [int(place) for place in np.linspace(0, len(setup.batches) - 1, _PROBES + 1)]
    batches = {place: rows for place, rows in enumerate(setup.batches) if place in places}
    picked = [batches[place] for place in places]
    took = []
    for rows in [picked[-1], *picked[:-1]]:
        begun = time.perf_counter()
        with autocast(args):
            loss = model(**_batch(setup, rows, args))["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, max_norm=1.0)
        optimiser.step()
        optimiser.zero_grad()
        loss.item()  # wait for the device
        took.append(time.perf_counter() - begun)
    return sum(took[1:]) / _PROBES


def _batch(setup: TrainingSetup, rows: list[int], args: TrainingArguments) -> dict[str, Any]:
    batch: dict[str, Any] = setup.loader.collate_fn(rows)
    batch.pop("numbers")
    return upload_batch(batch, args.device)


def saved_bytes(model: PairModel, batch: Mapping[str, Any]) -> int:
    """What a forward pass keeps for the backward pass, weights left out.

    With chunks it keeps only each chunk's input; what one chunk needs when it is embedded again is added.
    """
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    kept = _saved(lambda: model(**batch), weights)
    if model.chunk is not None and len(batch["pieces"]) > model.chunk:
        left_out = [batch["prompt_lengths"]] if "prompt_lengths" in batch else []
        parts = split_texts(batch["input_ids"], batch["lengths"], batch["pieces"], model.chunk, *left_out)
        *_, longest = parts  # batches go from short to long
        kept += _saved(lambda: model.text_model(*longest), weights)
    return kept


def _saved(forward: Callable[[], object], without: set[int]) -> int:
    sizes: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in without:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        _ = forward()  # held, so that no address is given out twice
    return sum(sizes.values())
