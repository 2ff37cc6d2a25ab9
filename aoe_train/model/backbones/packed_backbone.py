"""The interface of backbones with their own forward pass for packed tokens.

All other backbones are transformers models, which `model.packing` runs. A new kind of backbone is one class
with this base.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float, Int
    from torch import Tensor, nn


class PackedBackbone:
    """Base of a backbone that reads packed tokens.

    Attributes:
        title: Its name in messages.
        poolings: The poolings that it supports, the default first.
        varies: Whether the modules that run depend on the texts. Then a process may lack gradients of some
            weights, and weights can't be sharded.
    """

    title: ClassVar[str]
    poolings: ClassVar[tuple[str, ...]]
    varies: ClassVar[bool] = False

    def packed_states(
        self, input_ids: Int[Tensor, " token"], lengths: Int[np.ndarray, " piece"]
    ) -> Float[Tensor, "token dim"]:
        """The last hidden state of each token."""
        raise NotImplementedError

    def packed_vectors(
        self,
        input_ids: Int[Tensor, " token"],
        lengths: Int[np.ndarray, " piece"],
        pieces: Int[np.ndarray, " text"],
        pooling: str,
    ) -> Float[Tensor, "text dim"] | None:
        """Float32 vectors of texts, if they aren't pooled from hidden states."""
        del input_ids, lengths, pieces, pooling
        return None

    def unused_modules(self, pooling: str) -> Iterable[nn.Module]:
        """Modules that don't affect the vectors."""
        del pooling
        return ()
