"""What an encoding process loads, and what decides the vectors that it makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

    from aoe_train.model.encoder import Encoder


@dataclass(frozen=True, slots=True)
class EncodingRequest:
    """What is asked for; None is as the model has it. See `Encoder.encode`."""

    prompt_name: str | None = None
    prompt: str | None = None
    normalize: bool | None = None
    dim: int | None = None
    batch_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What the vectors will be."""

    dim: int
    settings: dict[str, Any]
    slow: str | None = None


def model_info(encoder: Encoder, wanted: EncodingRequest) -> tuple[ModelInfo, Callable[..., np.ndarray]]:
    """What a model's vectors will be, and its `encode` to make them."""
    if wanted.prompt is not None and wanted.prompt_name is not None:
        raise ConfigError("--prompt and --prompt-name: give one of them")
    words = encoder.settings.named_prompts.chosen(prompt=wanted.prompt, name=wanted.prompt_name)
    size = encoder.size(wanted.dim)
    normalize = encoder.settings.normalize if wanted.normalize is None else wanted.normalize
    settings = {
        "model": encoder.identity(),
        "prompt": words,
        "normalize": normalize,
        "batch tokens": wanted.batch_tokens,
        **({} if size == encoder.dim else {"dim": size}),
    }
    make = partial(
        encoder.encode,
        prompt=words,
        normalize=wanted.normalize,
        dim=wanted.dim,
        batch_tokens=wanted.batch_tokens,
    )
    return ModelInfo(size, settings), make


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What each worker loads and does."""

    model: str
    precision: str | None
    wanted: EncodingRequest
    devices: Sequence[str | None]
    layers: int | None = None


def load_worker(orders: WorkerSpec, place: int) -> tuple[ModelInfo, Callable[[list[str]], np.ndarray]]:
    """The model, on its share of the processor's threads: what its vectors will be, and what makes them."""
    import torch

    device, count = orders.devices[place], len(orders.devices)
    if device is None and torch.cuda.is_available():
        device = f"cuda:{place % torch.cuda.device_count()}"
    if device == "cpu" or not torch.accelerator.is_available():
        threads = max(1, torch.get_num_threads() // count)
        torch.set_num_threads(threads)
        os.environ["RAYON_NUM_THREADS"] = str(threads)  # of the tokenizer, which reads it when it first works

    from aoe_train.model.encoder import Encoder
    from aoe_train.model.precision import slow_precision
    from aoe_train.settings.training import named_precision

    precision = named_precision(orders.precision)
    encoder = Encoder.load(
        orders.model, device=device, precision=precision, inference_only=True, layers=orders.layers
    )
    described, make = model_info(encoder, orders.wanted)
    return replace(described, slow=slow_precision(precision, encoder.device)), make
