"""Between the host and the device without waiting for each other.

A plain copy to or from a GPU waits for all that was asked of it before; with pinned memory it queues up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor


def upload(values: Tensor, device: torch.device) -> Tensor:
    """`values`, made on the host, on `device`."""
    if device.type != "cuda":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


def upload_batch(batch: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """The batch with its tensors on `device`, whose loader pinned them where that is a GPU."""
    return {
        name: value.to(device, non_blocking=True) if isinstance(value, Tensor) else value
        for name, value in batch.items()
    }


def arrived(
    coming: Iterable[tuple[np.ndarray, Tensor]],
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Texts and their vectors on the host, each once the device has the next batch to work on."""
    before: list[tuple[np.ndarray, Callable[[], np.ndarray]]] = []
    for texts, vectors in coming:
        before.append((texts, _download(vectors)))
        if len(before) > 1:
            done, wait = before.pop(0)
            yield done, wait()
    yield from ((texts, wait()) for texts, wait in before)


def _download(values: Tensor) -> Callable[[], np.ndarray]:
    """Send `values` to the host; what is returned waits until they are there."""
    if values.device.type != "cuda":
        return values.cpu().numpy
    found = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    found.copy_(values, non_blocking=True)
    sent = torch.cuda.Event()  # type: ignore[no-untyped-call]
    sent.record(torch.cuda.current_stream(values.device))

    def arrived() -> np.ndarray:
        sent.synchronize()
        return found.numpy()

    return arrived
