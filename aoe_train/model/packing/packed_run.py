"""Running a backbone on packed tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from aoe_train.model.device import one_thread, only_callees_compiled
from aoe_train.model.packing.attention import NAME, register
from aoe_train.model.packing.layers import FastDropout, FastLinear
from aoe_train.model.packing.sequences import Sequences

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


# Largest relative difference between a token's packed and single vectors that rounding explains: in float32,
# and in half precision. The latter also accepts _TIMES the difference between two attention implementations.
_TOLERANCE, _HALF_TOLERANCE, _TIMES = 1e-3, 5e-2, 3
_MAX_PROBE = 1_024  # tokens; longer sliding windows are not tested


def use_fast_layers(module: nn.Module) -> None:
    """Replace plain linear and dropout layers by faster ones, in place; parameters and names stay."""
    for layer in module.modules():
        if type(layer) is nn.Linear:
            layer.__class__ = FastLinear
        elif type(layer) is nn.Dropout:
            layer.__class__ = FastDropout


def position_offset(backbone: Any) -> int:
    """The first token's position: RoBERTa and related models start after the padding token's id."""
    positions: Any = getattr(getattr(backbone, "embeddings", None), "position_embeddings", None)
    padding = getattr(positions, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1


@only_callees_compiled
def run_packed(
    backbone: Any,
    input_ids: Int[Tensor, " token"],
    lengths: list[int] | Sequences,
    *,
    layers: bool = False,
) -> tuple[Float[Tensor, "token dim"], ...]:
    """Hidden states of packed sequences, ascending by length: the last layer's, or (`layers`) all."""
    packed = lengths if isinstance(lengths, Sequences) else Sequences(lengths, input_ids.device)
    with _attention(backbone):
        output = backbone(
            input_ids=input_ids[None],
            position_ids=packed.positions[None] + position_offset(backbone),
            packed=packed,
            output_hidden_states=layers,
            **({"use_cache": False} if hasattr(backbone.config, "use_cache") else {}),
        )
    states = output.hidden_states if layers else (output.last_hidden_state,)
    return tuple(state[0] for state in states)


class _attention:  # noqa: N801 - used as a function
    """Sets the attention implementation for the duration of a call."""

    def __init__(self, backbone: Any, name: str = NAME) -> None:
        self.config = backbone.config
        self.name = name

    def __enter__(self) -> None:
        self.before = self.config._attn_implementation
        self.config._attn_implementation = self.name

    def __exit__(self, *_: object) -> None:
        self.config._attn_implementation = self.before


@torch.no_grad()
def can_pack(backbone: Any) -> bool:
    """Whether packed and single vectors of random sequences agree, measured on the model itself."""
    register()
    training = backbone.training
    backbone.eval()
    try:
        generator = torch.Generator().manual_seed(0)
        lengths = sorted([3, 5, 5, 9, *_beyond_window(backbone.config)])
        ids = [
            torch.randint(5, backbone.config.vocab_size, (n,), generator=generator) for n in lengths
        ]
        ids = [part.to(backbone.device) for part in ids]
        with one_thread():
            (packed,) = run_packed(backbone, torch.cat(ids), lengths)
            single = _single(backbone, ids)
            tolerance = (
                _TOLERANCE if packed.dtype == torch.float32 else _rounding(backbone, ids, single)
            )
    except (TypeError, KeyError, AttributeError, ValueError, RuntimeError, IndexError):
        return False
    finally:
        backbone.train(training)
    return _difference(packed, single) <= tolerance


def _single(backbone: Any, ids: list[Int[Tensor, " token"]]) -> Float[Tensor, "token dim"]:
    """Token vectors, with each sequence in its own batch."""
    return torch.cat([backbone(input_ids=part[None]).last_hidden_state[0] for part in ids])


def _difference(
    vectors: Float[Tensor, "token dim"], reference: Float[Tensor, "token dim"]
) -> float:
    """The largest distance of a token's two vectors, relative to the length of its reference."""
    vectors = vectors.float()
    reference = reference.float()
    return float(((vectors - reference).norm(dim=-1) / reference.norm(dim=-1)).max())


def _rounding(
    backbone: Any, ids: list[Int[Tensor, " token"]], single: Float[Tensor, "token dim"]
) -> float:
    """The tolerance in half precision, where transformers' own implementations differ by some percent."""
    implementation = "sdpa" if backbone.config._attn_implementation == "eager" else "eager"
    with _attention(backbone, implementation):
        return max(_HALF_TOLERANCE, _TIMES * _difference(_single(backbone, ids), single))


def _beyond_window(config: Any) -> list[int]:
    """A length beyond the backbone's sliding window, if it has one."""
    window = getattr(config, "sliding_window", None)
    positions = getattr(config, "max_position_embeddings", 0)
    return [window + 3] if window and window + 3 <= min(positions, _MAX_PROBE) else []
