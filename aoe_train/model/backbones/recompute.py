"""Running layers again in the backward pass instead of keeping what they computed.

transformers 5.17 calls it gradient checkpointing; 5.23 calls it activation checkpointing, and warns of the
old name.
"""

from __future__ import annotations

from typing import Any

_NEW, _OLD = "activation_checkpointing", "gradient_checkpointing"


def recompute_layers(backbone: Any) -> None:
    """Let `backbone` do so, in place."""
    getattr(backbone, _named(backbone, "_enable"))({"use_reentrant": False})


def recompute_argument(arguments: type) -> str:
    """What transformers' training arguments call it."""
    return _named(arguments)


def _named(where: Any, ending: str = "") -> str:
    return (_NEW if hasattr(where, _NEW + ending) else _OLD) + ending
