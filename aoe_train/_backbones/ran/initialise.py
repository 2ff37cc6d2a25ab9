"""A RAN that begins with another encoder's token embeddings instead of random ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from aoe_train._backbones.load import load_backbone
from aoe_train._backbones.ran.modeling import RanModel
from pairkit.errors import ConfigError, DataError


def read_embeddings(folder: Path) -> Float[Tensor, "vocabulary dim"]:
    """The token embeddings of a transformers encoder.

    Raises:
        ConfigError: The folder holds no model with weights in safetensors.
    """
    try:
        encoder: Any = load_backbone(folder).backbone
    except (ConfigError, DataError) as error:
        raise ConfigError(
            f"{folder}: no encoder to take embeddings from ({error}); give a folder with config.json and"
            " model.safetensors"
        ) from error
    weight: Tensor = encoder.get_input_embeddings().weight
    return weight.detach().float()


def copy_embeddings(model: RanModel, embeddings: Float[Tensor, "vocabulary dim"]) -> None:
    """Put `embeddings` in place of the model's own.

    Raises:
        ConfigError: They are of another vocabulary or dimension.
    """
    own = model.embed_tokens.weight
    if own.shape != embeddings.shape:
        raise ConfigError(
            f"embeddings of {embeddings.shape[0]} tokens x {embeddings.shape[1]}, but the RAN has "
            f"{own.shape[0]} x {own.shape[1]}; use the same tokenizer and dimension"
        )
    with torch.no_grad():
        own.copy_(embeddings)
