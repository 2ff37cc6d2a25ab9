"""Training text embeddings with angles.

>>> from aoe_train import Encoder
>>> vectors = Encoder.load("model").encode(["A plane is taking off.", "An air plane is taking off."])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aoe_train._encoder import Encoder

__all__ = ["Encoder"]


def __getattr__(name: str) -> Any:
    # Loaded when it is asked for: torch takes seconds, which `aoe --help` must not cost.
    if name == "Encoder":
        from aoe_train._encoder import Encoder

        return Encoder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
