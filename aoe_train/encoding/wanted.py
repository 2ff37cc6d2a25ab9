"""What is asked of a model's vectors, and what of it decides them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

    from aoe_train.model.encoder import Encoder


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for; None is as the model has it. See `Encoder.encode`."""

    prompt_name: str | None = None
    prompt: str | None = None
    normalize: bool | None = None
    dim: int | None = None
    batch_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Described:
    """What the vectors will be."""

    dim: int
    settings: dict[str, Any]
    slow: str | None = None


def bound(encoder: Encoder, wanted: Wanted) -> tuple[Described, Callable[..., np.ndarray]]:
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
    return Described(size, settings), make
