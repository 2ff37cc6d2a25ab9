"""T5's bias by distance over packed sequences.

transformers makes it for all pairs of tokens of a row, which of a packed row are far too many. Here it is
made once for each distance, and looked up where a bucket's sequences attend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from aoe_train._packing.sequences import Sequences

_KINDS = ("T5Attention", "MT5Attention")


@dataclass(frozen=True)
class ByDistance:
    """What is added to the scores of two tokens, by how far the key is behind the query.

    Attributes:
        values: For the distances from 1 - `longest` to `longest` - 1.
        longest: Tokens of the longest sequence.
    """

    values: Float[Tensor, "head distance"]
    longest: int

    def square(self, length: int) -> Float[Tensor, "head query key"]:
        """For all pairs of so many tokens."""
        at = torch.arange(length, device=self.values.device)
        places = (at[None, :] - at[:, None] + self.longest - 1).flatten()
        return self.values.index_select(1, places).view(-1, length, length)


def use_distances(module: nn.Module) -> None:
    """Let T5's attention ask for a bias by distance where it runs packed, in place; names stay."""
    kinds = {type(layer) for layer in module.modules() if type(layer).__name__ in _KINDS}
    packed = {kind: _by_distance(kind) for kind in kinds}
    for layer in module.modules():
        if type(layer) in packed:
            layer.__class__ = packed[type(layer)]


def _by_distance(kind: Any) -> Any:
    class Packed(kind):  # type: ignore[misc]  # either of two, which are the same
        def forward(self, *given: Any, packed: Any = None, position_bias: Any = None, **named: Any) -> Any:
            if packed is not None and position_bias is None and self.has_relative_attention_bias:
                position_bias = _table(self, packed.lengths[-1])
            more = named if packed is None else {**named, "packed": packed}
            return super().forward(*given, position_bias=position_bias, **more)

    Packed.__name__ = Packed.__qualname__ = f"Packed{kind.__name__}"
    return Packed


def _table(attention: Any, longest: int) -> ByDistance:
    weight = attention.relative_attention_bias.weight
    bucket = attention._relative_position_bucket(
        torch.arange(1 - longest, longest, device=weight.device),
        bidirectional=True,
        num_buckets=attention.relative_attention_num_buckets,
        max_distance=attention.relative_attention_max_distance,
    )
    return ByDistance(attention.relative_attention_bias(bucket).T, longest)


def attend_by_distance(
    query: Float[Tensor, "token head dim"],
    key: Float[Tensor, "token head dim"],
    value: Float[Tensor, "token head dim"],
    packed: Sequences,
    distances: ByDistance,
    *,
    scaling: float,
    dropout: float,
) -> Float[Tensor, "token head dim"]:
    """Each sequence's attention to itself, in both directions, with torch's own attention."""
    found = []
    for bucket in packed.buckets:
        q, k, v = (bucket.grid(part).transpose(1, 2) for part in (query, key, value))
        bias = distances.square(bucket.length).to(q.dtype)[None]
        hidden = bucket.bias(causal=False, window=None, dtype=q.dtype)
        out = functional.scaled_dot_product_attention(
            q, k, v, attn_mask=bias if hidden is None else bias + hidden, dropout_p=dropout, scale=scaling
        ).transpose(1, 2)
        out = out.reshape(-1, *out.shape[2:])
        found.append(out if bucket.even else out.index_select(0, bucket.slots))
    return torch.cat(found)
