"""Running a backbone on packed tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from aoe_train.model.device import evaluation_mode, one_thread, only_callees_compiled
from aoe_train.model.packing.attention import NAME, register
from aoe_train.model.packing.layers import FastDropout, FastLinear
from aoe_train.model.packing.sequences import Sequences

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    TokenVectors = Float[Tensor, "token dim"]
    TokenIds = Int[Tensor, " token"]


# Largest relative difference between a token's packed and single vectors that rounding explains: in float32,
# and in half precision. The latter also accepts _TIMES the difference between two attention implementations.
_TOLERANCE = 1e-3
_HALF_TOLERANCE = 5e-2
_TIMES = 3
# Tokens; longer sliding windows are not tested.
_MAX_PROBE = 1_024


def use_fast_layers(module: nn.Module) -> None:
    """Replace plain linear and dropout layers by faster ones, in place; parameters and names stay."""
    for layer in module.modules():
        if type(layer) is nn.Linear:
            layer.__class__ = FastLinear
        elif type(layer) is nn.Dropout:
            layer.__class__ = FastDropout


def position_offset(backbone: Any) -> int:
    """The first token's position: RoBERTa and related models start after the padding token's id."""
    positions: Any = getattr(
        getattr(backbone, "embeddings", None), "position_embeddings", None
    )
    padding = getattr(positions, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1


@contextmanager
def _attention(config: Any, name: str) -> Iterator[None]:
    """Set the attention implementation for the duration of a call."""
    before = config._attn_implementation
    config._attn_implementation = name
    try:
        yield
    finally:
        config._attn_implementation = before


@only_callees_compiled
def run_packed(
    backbone: Any,
    input_ids: TokenIds,
    packed: Sequences,
    *,
    layers: bool = False,
) -> tuple[TokenVectors, ...]:
    """Hidden states of packed sequences, ascending by length: the last layer's, or (`layers`) all."""
    options: dict[str, bool] = {}
    if hasattr(backbone.config, "use_cache"):
        options["use_cache"] = False
    with _attention(backbone.config, NAME):
        output = backbone(
            input_ids=input_ids[None],
            position_ids=packed.positions[None] + position_offset(backbone),
            packed=packed,
            output_hidden_states=layers,
            **options,
        )
    states = output.hidden_states if layers else (output.last_hidden_state,)
    return tuple(state[0] for state in states)


@torch.no_grad()
def can_pack(backbone: Any) -> bool:
    """Whether packed and single vectors of random sequences agree, measured on the model itself."""
    register()
    try:
        generator = torch.Generator().manual_seed(0)
        lengths = sorted([3, 5, 5, 9, *_beyond_window(backbone.config)])
        size = backbone.config.vocab_size
        ids = [
            torch.randint(5, size, (length,), generator=generator) for length in lengths
        ]
        ids = [tokens.to(backbone.device) for tokens in ids]
        with evaluation_mode(backbone), one_thread():
            (packed,) = run_packed(
                backbone, torch.cat(ids), Sequences(lengths, backbone.device)
            )
            single = _single(backbone, ids)
            tolerance = _TOLERANCE
            if packed.dtype != torch.float32:
                tolerance = _rounding(backbone, ids, single)
    except (TypeError, KeyError, AttributeError, ValueError, RuntimeError, IndexError):
        return False
    return _difference(packed, single) <= tolerance


def _single(backbone: Any, ids: list[TokenIds]) -> TokenVectors:
    """Token vectors, with each sequence in its own batch."""
    outputs = [backbone(input_ids=tokens[None]) for tokens in ids]
    return torch.cat([output.last_hidden_state[0] for output in outputs])


def _difference(
    vectors: TokenVectors,
    reference: TokenVectors,
) -> float:
    """The largest distance of a token's two vectors, relative to the length of its reference."""
    reference = reference.float()
    distances = (vectors.float() - reference).norm(dim=-1)
    return float((distances / reference.norm(dim=-1)).max())


def _rounding(
    backbone: Any,
    ids: list[TokenIds],
    single: TokenVectors,
) -> float:
    """The tolerance in half precision, where transformers' own implementations differ by some percent."""
    implementation = (
        "sdpa" if backbone.config._attn_implementation == "eager" else "eager"
    )
    with _attention(backbone.config, implementation):
        difference = _difference(_single(backbone, ids), single)
    return max(_HALF_TOLERANCE, _TIMES * difference)


def _beyond_window(config: Any) -> list[int]:
    """A length beyond the backbone's sliding window, if it has one."""
    window = getattr(config, "sliding_window", None)
    if not window:
        return []
    positions = getattr(config, "max_position_embeddings", 0)
    length = window + 3
    return [length] if length <= min(positions, _MAX_PROBE) else []
