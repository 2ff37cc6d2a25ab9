"""How much memory a forward pass keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from aoe_train._trainer.pair_model import split_texts

if TYPE_CHECKING:
    from torch import Tensor

    from aoe_train._trainer.pair_model import PairModel


def saved_bytes(model: PairModel, batch: Mapping[str, Any]) -> int:
    """What a forward pass keeps for the backward pass, weights left out.

    With chunks it keeps only each chunk's input; what one chunk needs when it is embedded again is added.
    """
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    kept = _saved(lambda: model(**batch), weights)
    if model.chunk is not None and len(batch["pieces"]) > model.chunk:
        parts = split_texts(batch["input_ids"], batch["lengths"], batch["pieces"], model.chunk)
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
