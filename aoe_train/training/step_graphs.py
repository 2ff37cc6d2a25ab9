"""Forward pass, loss and backward pass of a step as a CUDA graph, which launches all kernels at once.

A step starts over a thousand kernels, most of which take less time than their start, so the GPU is idle most
of the time. A graph has fixed shapes. A batch is therefore padded to one of a few shapes by further texts, to
which no row refers, so that loss and gradient stay the same. The first batch of a shape runs without a graph,
the second captures it. All graphs share memory and gradients, since only those of the last step are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch

from aoe_train.model.device import upload
from aoe_train.model.packing.attention import has_flash, is_for_flash
from aoe_train.model.text_model import PackedBackbone
from aoe_train.objectives.objective import (
    CustomObjective,
    MatryoshkaObjective,
    Objective,
)
from pairkit.base.printable import one_line
from pairkit.base.system.machine import is_out_of_memory

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor, nn
    from transformers import TrainingArguments

    from aoe_train.data.examples import Say
    from aoe_train.training.build import Built
    from aoe_train.training.pair_model import PairModel

# Shapes have 256 tokens, or a multiple of 128 that is about 1.25 times the next smaller shape's.
_MIN_TOKENS = 256
_GROWTH = 1.25
_MULTIPLE = 128
# The lowest upper bound of a text's tokens.
_MIN_LONGEST = 64
_MAX_GRAPHS = 32
# Steps before a capture, as libraries allocate memory in their first calls.
_WARM_UPS = 2
# Parts of a batch that graphs don't support.
_UNSUPPORTED = ("prompt_lengths", "guide", "teacher", "scores", "dataset")


class StepShape(NamedTuple):
    """Number of tokens and texts of a padded batch, and an upper bound of a text's tokens."""

    tokens: int
    texts: int
    longest: int


def choose_shape(lengths: np.ndarray, most_texts: int, limit: int) -> StepShape:
    """The smallest shape for texts of these lengths, in batches of at most `most_texts`.

    Every padding text has at least one token, as pooling needs one, and at most `limit`, as the model may
    have no positions beyond the longest text of the run.
    """
    power_of_two = 1 << (int(lengths.max()) - 1).bit_length()
    longest = min(limit, max(_MIN_LONGEST, power_of_two))
    tokens = _MIN_TOKENS
    while True:
        texts = most_texts + 1 + tokens // longest
        if tokens - lengths.sum() >= texts - len(lengths):
            return StepShape(tokens, texts, longest)
        tokens = math.ceil(int(tokens * _GROWTH) / _MULTIPLE) * _MULTIPLE


def padded(
    batch: Mapping[str, Any], shape: StepShape, padding_id: int
) -> Int[Tensor, " number"]:
    """A batch's tokens, lengths, texts, rows and labels, in one vector that is uploaded at once."""
    lengths = batch["lengths"]
    texts = shape.texts - len(lengths)
    tokens = shape.tokens - int(lengths.sum())
    numbers = [
        np.pad(batch["input_ids"].numpy(), (0, tokens), constant_values=padding_id),
        lengths,
        np.diff(np.arange(texts + 1) * tokens // texts),
        np.pad(batch["texts"].numpy(), (0, texts)),
        batch["rows"].numpy().ravel(),
    ]
    if "labels" in batch:
        numbers.append(batch["labels"].double().numpy().view(np.int64))
    return torch.from_numpy(np.concatenate(numbers))


class _Graph(NamedTuple):
    """A captured step: `replay` computes the loss parts in `values` from `inputs`."""

    inputs: Tensor
    values: Tensor
    replay: Callable[[], None]


class StepGraphs:
    """Runs the steps of a model; `limit` is the number of tokens of the longest text."""

    def __init__(
        self, model: PairModel, args: TrainingArguments, limit: int, say: Say
    ) -> None:
        self._model = model
        self._args = args
        self._say = say
        # The functions of the device's random numbers.
        self._generator: Any = torch.cuda if args.device.type == "cuda" else torch
        self._rows = args.per_device_train_batch_size
        self._limit = max(2, limit)
        self._padding_id = (
            getattr(model.text_model.backbone.config, "pad_token_id", None) or 0
        )
        self._graphs: dict[StepShape, _Graph] = {}
        self._seen: set[StepShape] = set()
        self._names: list[str] = []  # of the loss parts
        self._gradients: dict[nn.Parameter, Tensor] = {}
        self._pool: Any = None
        self._works = True
        self._captures_more = True

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Tensor] | None:
        """Run a step up to its gradients, and return the loss parts; None if the batch must run eagerly."""
        is_plain = batch.keys().isdisjoint(_UNSUPPORTED)
        if not self._works or not is_plain or len(batch["rows"]) != self._rows:
            return None
        columns = batch["rows"].shape[1]
        shape = choose_shape(batch["lengths"], self._rows * columns, self._limit)
        graph = self._graphs.get(shape)
        is_first = shape not in self._seen
        if graph is None:
            may_run = self._captures_more and (is_first or self._has_room())
            if not may_run:
                return None
        inputs = upload(padded(batch, shape, self._padding_id), self._args.device)
        if graph is None:
            step = partial(self._losses_and_gradients, inputs, shape, columns)
            if is_first:
                self._seen.add(shape)
                return self._run_first(step)
            graph = self._add_graph(shape, inputs, step)
        return None if graph is None else self._replay(graph, inputs)

    def _has_room(self) -> bool:
        """Whether memory suffices for another graph beside an eager step; it is checked until it doesn't."""
        if len(self._graphs) >= _MAX_GRAPHS:
            return False
        torch.cuda.empty_cache()
        step_bytes = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
        free, _ = torch.cuda.mem_get_info()
        self._captures_more = free >= 2 * step_bytes
        return self._captures_more

    def _run_first(self, step: Callable[[], Tensor]) -> dict[str, Tensor] | None:
        """Run a step without a graph; None if it fails, with random numbers as before."""
        random = self._generator.get_rng_state()
        try:
            return self._named_losses(step())
        except Exception as error:  # noqa: BLE001 - from libraries
            self._give_up(error)
        self._generator.set_rng_state(random)
        return None

    def _add_graph(
        self, shape: StepShape, inputs: Tensor, step: Callable[[], Tensor]
    ) -> _Graph | None:
        """Capture a step, with random numbers as before; None if it fails."""
        random = self._generator.get_rng_state()
        try:
            shared = partial(self._with_shared_gradients, step)
            self._graphs[shape] = self._capture(inputs, shared)
        except Exception as error:  # noqa: BLE001 - from libraries
            self._give_up(error)
        self._generator.set_rng_state(random)
        return self._graphs.get(shape)

    def _replay(self, graph: _Graph, inputs: Tensor) -> dict[str, Tensor]:
        """Run a captured step with these inputs, and return the loss parts."""
        graph.inputs.copy_(inputs)
        graph.replay()
        for weight, gradient in self._gradients.items():
            weight.grad = gradient
        # The next replay overwrites them.
        return self._named_losses(graph.values.clone())

    def _give_up(self, error: Exception) -> None:
        """Capture no more graphs; after other errors than a lack of memory, don't use them either."""
        self._captures_more = False
        self._model.zero_grad()
        if not is_out_of_memory(error):
            self._works = False
            reason = one_line(f"{type(error).__name__}: {error}", 200)
            self._say(
                f"continuing without CUDA graphs, which don't work for this model ({reason})"
            )

    def _named_losses(self, values: Tensor) -> dict[str, Tensor]:
        """The loss parts by name."""
        return dict(zip(self._names, values.unbind(), strict=True))

    def _losses_and_gradients(
        self, inputs: Tensor, shape: StepShape, columns: int
    ) -> Tensor:
        """Compute gradients for a vector of `padded`, and return the loss parts."""
        sizes = [shape.tokens, shape.texts, shape.texts, self._rows * columns]
        sizes.append(len(inputs) - sum(sizes))
        ids, lengths, texts, rows, label_bits = torch.split(inputs, sizes)
        labels = label_bits.view(torch.float64).float() if len(label_bits) else None
        # A graph would keep a cached cast of the weights as they were at the capture.
        precision = torch.autocast(
            self._args.device.type,
            torch.bfloat16,
            enabled=self._args.bf16,
            cache_enabled=False,
        )
        with precision:
            losses = self._model.fixed_shape(
                ids,
                lengths,
                rows.view(self._rows, columns),
                texts,
                labels,
                longest=shape.longest,
            )
        losses["loss"].backward()  # type: ignore[no-untyped-call]
        self._names = list(losses)
        return torch.stack([part.detach() for part in losses.values()])

    def _with_shared_gradients(self, step: Callable[[], Tensor]) -> Tensor:
        """Run a step, and copy its gradients to the tensors that all graphs share."""
        values = step()
        if not self._gradients:
            for weight in self._model.parameters():
                if weight.grad is not None:
                    self._gradients[weight] = torch.empty_like(weight)
        gradients = [cast("Tensor", weight.grad) for weight in self._gradients]
        torch._foreach_copy_([*self._gradients.values()], gradients)
        self._model.zero_grad()
        return values

    def _capture(self, inputs: Tensor, step: Callable[[], Tensor]) -> _Graph:
        """Capture a step after a few runs, which draw random numbers."""
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        current = torch.cuda.current_stream()
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                step()
        current.wait_stream(stream)
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            values = step()
        return _Graph(inputs, values, graph.replay)


def make_step_graphs(built: Built) -> StepGraphs | None:
    """The graphs of a run; None, with a note, for runs whose steps can't be captured or would not repeat."""
    loaded = built.loaded
    if not loaded.settings.run.graphs:
        return None
    if not _can_capture(built):
        loaded.process.say("run.graphs has no effect on this run")
        return None
    (dataset,) = built.datasets
    longest = int(dataset.store.lengths.max())
    return StepGraphs(built.model, built.args, longest, loaded.process.say)


def _can_capture(built: Built) -> bool:
    args = built.args
    settings = built.loaded.settings
    model = built.model
    run = settings.run
    is_usual = args.device.type == "cuda" and args.world_size == 1 and args.bf16
    has_other_steps = (
        settings.optim.accumulation > 1
        or run.chunk
        or run.compile
        or run.deterministic
        or run.gradient_checkpointing
    )
    has_four_bit = settings.lora is not None and settings.lora.four_bit
    if not is_usual or has_other_steps or has_four_bit:
        return False
    is_ours = isinstance(model.objective, Objective | MatryoshkaObjective)
    modules = model.objective.modules()
    if not is_ours or any(isinstance(each, CustomObjective) for each in modules):
        return False
    dataset, *others = built.datasets
    outputs = dataset.teacher_outputs
    if others or outputs.vectors or outputs.scores is not None:
        return False
    return _attends_by_flash(model.text_model, args.device)


def _attends_by_flash(text_model: Any, device: torch.device) -> bool:
    """Whether attention gets the bounds of texts from the device, which only FlashAttention does."""
    backbone = text_model.backbone
    config = backbone.config
    if not text_model.packed or isinstance(backbone, PackedBackbone):
        return False
    dim = (
        getattr(config, "head_dim", None)
        or config.hidden_size // config.num_attention_heads
    )
    head = torch.empty(1, 1, dim, dtype=torch.bfloat16, device="meta")
    return has_flash(device) and is_for_flash(head)
