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


# The largest difference that rounding explains between a token's packed and single vectors, as a share of
# their length: in float32, and in half precision, or so many times the difference of other ways to attend.
_AGREES, _AGREES_ROUGHLY, _TIMES = 1e-3, 5e-2, 3
_LONGEST_PROBE = 1_024  # tokens; of a longer window its meaning is taken on trust


def use_fast_layers(module: nn.Module) -> None:
    """Swap plain linear and dropout layers for their faster equals, in place; parameters and names stay."""
    for layer in module.modules():
        if type(layer) is nn.Linear:
            layer.__class__ = FastLinear
        elif type(layer) is nn.Dropout:
            layer.__class__ = FastDropout


def position_offset(backbone: Any) -> int:
    """The first token's position: RoBERTa and its kin begin after the padding's number."""
    embeddings: Any = getattr(backbone, "embeddings", None)
    if hasattr(embeddings, "create_position_ids_from_input_ids"):
        return int(embeddings.padding_idx) + 1
    return 0


@only_callees_compiled
def run_packed(
    backbone: Any,
    input_ids: Int[Tensor, " token"],
    lengths: list[int],
    *,
    layers: bool = False,
) -> tuple[Float[Tensor, "token dim"], ...]:
    """Hidden states of packed sequences, ascending by length: the last layer's, or (`layers`) all."""
    packed = Sequences(lengths, input_ids.device)
    with _attention(backbone):
        found = backbone(
            input_ids=input_ids[None],
            position_ids=packed.positions[None] + position_offset(backbone),
            packed=packed,
            output_hidden_states=layers,
            **({"use_cache": False} if hasattr(backbone.config, "use_cache") else {}),
        )
    states = found.hidden_states if layers else (found.last_hidden_state,)
    return tuple(state[0] for state in states)


class _attention:  # noqa: N801 - used as a function
    """Our attention, or another, for the duration of a call; elsewhere it stays as it was loaded."""

    def __init__(self, backbone: Any, name: str = NAME) -> None:
        self.config, self.name = backbone.config, name

    def __enter__(self) -> None:
        self.before = self.config._attn_implementation
        self.config._attn_implementation = self.name

    def __exit__(self, *_: object) -> None:
        self.config._attn_implementation = self.before


@torch.no_grad()
def can_pack(backbone: Any) -> bool:
    """Whether packed and single vectors of random sequences agree: asked of the model, not of a list."""
    register()
    training = backbone.training
    backbone.eval()
    try:
        generator = torch.Generator().manual_seed(0)
        lengths = sorted([3, 5, 5, 9, *_beyond_window(backbone.config)])
        ids = [torch.randint(5, backbone.config.vocab_size, (n,), generator=generator) for n in lengths]
        ids = [part.to(backbone.device) for part in ids]
        with one_thread():
            (packed,) = run_packed(backbone, torch.cat(ids), lengths)
            alone = _alone(backbone, ids)
            agrees = _AGREES if packed.dtype == torch.float32 else _rounding(backbone, ids, alone)
    except (TypeError, KeyError, AttributeError, ValueError, RuntimeError, IndexError):
        return False
    finally:
        backbone.train(training)
    return _difference(packed, alone) <= agrees


def _alone(backbone: Any, ids: list[Int[Tensor, " token"]]) -> Float[Tensor, "token dim"]:
    """The tokens' vectors, each sequence by itself."""
    return torch.cat([backbone(input_ids=part[None]).last_hidden_state[0] for part in ids])


def _difference(one: Float[Tensor, "token dim"], other: Float[Tensor, "token dim"]) -> float:
    """The largest difference of a token's two vectors, as a share of the second one's length."""
    one, other = one.float(), other.float()
    return float(((one - other).norm(dim=-1) / other.norm(dim=-1)).max())


def _rounding(backbone: Any, ids: list[Int[Tensor, " token"]], alone: Float[Tensor, "token dim"]) -> float:
    """What half precision explains: in a deep model two ways of transformers to attend are some % apart."""
    other = "sdpa" if backbone.config._attn_implementation == "eager" else "eager"
    with _attention(backbone, other):
        return max(_AGREES_ROUGHLY, _TIMES * _difference(_alone(backbone, ids), alone))


def _beyond_window(config: Any) -> list[int]:
    """A length at which a sliding window hides something, where the backbone has one."""
    window = getattr(config, "sliding_window", None)
    positions = getattr(config, "max_position_embeddings", 0)
    return [window + 3] if window and window + 3 <= min(positions, _LONGEST_PROBE) else []
