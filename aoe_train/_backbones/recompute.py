"""Running layers again in the backward pass instead of keeping what they computed.

transformers 5.17 calls it gradient checkpointing; 5.23 calls it activation checkpointing, and warns of the
old name.
"""

from __future__ import annotations

from typing import Any

_NEW, _OLD = "activation_checkpointing", "gradient_checkpointing"


def recompute_layers(backbone: Any) -> None:
    """Let `backbone` do so, in place.

    Raises:
        ValueError: It can't.
    """
    name = _NEW if hasattr(backbone, f"{_NEW}_enable") else _OLD
    getattr(backbone, f"{name}_enable")({"use_reentrant": False})


def recompute_argument(arguments: type) -> str:
    """What transformers' training arguments call it."""
    return _NEW if _NEW in getattr(arguments, "__dataclass_fields__", {}) else _OLD
