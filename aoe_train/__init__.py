"""Training text embeddings with angles.

>>> from aoe_train import Encoder
>>> encoder = Encoder.load("model")
>>> encoder.encode(["A plane is taking off.", "An air plane is taking off."]).shape == (2, encoder.dim)
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairkit.face import lazy_names

if TYPE_CHECKING:
    from aoe_train._encoder import Encoder

__all__ = ["Encoder"]

__getattr__, __dir__ = lazy_names(__name__, {"Encoder": "aoe_train._encoder"})
