"""What processes that encode together are told, here or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aoe_train.encoding.wanted import Described, Wanted, bound

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Orders:
    """What each worker loads and does."""

    model: str
    precision: str | None
    wanted: Wanted
    devices: Sequence[str | None]
    layers: int | None = None


def fulfilled(orders: Orders, place: int) -> tuple[Described, Callable[[list[str]], np.ndarray]]:
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
    described, make = bound(encoder, orders.wanted)
    return replace(described, slow=slow_precision(precision, encoder.device)), make
