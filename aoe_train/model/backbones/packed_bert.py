"""A BERT for encoding packed tokens that needs no model code of transformers.

Importing transformers' model code takes longer than all other imports together (`benchmarks/README.md`).
Weights have the same names and operations the same order as there, so vectors are bit-identical. `read_bert`
returns None for anything but a plain BERT with all weights in one file, which transformers then loads.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from aoe_train.model.folder_checks import ADAPTERS_FILE, read_object
from aoe_train.model.packing.attention import packed_attention
from aoe_train.model.precision import (
    LEAST_OF_GELU,
    TOKENS_IN_CACHE,
    Int8Linear,
    to_codes,
)

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from aoe_train.model.packing.sequences import Sequences

_WEIGHTS = "model.safetensors"
_UNUSED = "embeddings.position_ids"  # in older files
# Settings that change the network, other than its sizes, with the only values supported here.
_PLAIN = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "chunk_size_feed_forward": 0,
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "is_causal": None,
    "quantization_config": None,
}


class _States(NamedTuple):
    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...] | None


class _Embeddings(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.word_embeddings = _embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = _embedding(
            config.max_position_embeddings, config.hidden_size
        )
        self.token_type_embeddings = _embedding(
            config.type_vocab_size, config.hidden_size
        )
        self.LayerNorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        types = self.token_type_embeddings(torch.zeros_like(ids))
        words = self.word_embeddings(ids) + types
        embedded = words + self.position_embeddings(positions)
        return self.LayerNorm(embedded)  # type: ignore[no-any-return]


def _embedding(count: int, dim: int) -> nn.Embedding:
    """Not initialised at random: on the meta device that would import torch's compiler."""
    return nn.Embedding(count, dim, _weight=torch.empty(count, dim))


class _SelfAttention(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Tensor, packed: Sequences) -> Tensor:
        size = x.shape[-1] // self.num_heads
        by_head = (*x.shape[:-1], -1, size)
        shared: Any = x
        if isinstance(self.query, Int8Linear):
            shared = to_codes(x)
        query, key, value = (
            layer(shared).view(by_head).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        attended, _ = packed_attention(
            self, query, key, value, None, packed=packed, scaling=size**-0.5
        )
        return attended.reshape(x.shape)


class _Output(nn.Module):
    def __init__(self, config: Any, inner: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inner, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.LayerNorm(self.dense(x) + residual)  # type: ignore[no-any-return]


class _Layer(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        attention = _SelfAttention(config)
        output = _Output(config, config.hidden_size)
        self.attention = nn.ModuleDict({"self": attention, "output": output})
        self.intermediate = nn.ModuleDict(
            {"dense": nn.Linear(config.hidden_size, config.intermediate_size)}
        )
        self.output = _Output(config, config.intermediate_size)
        self.output.dense.input_lower_bound = LEAST_OF_GELU  # type: ignore[assignment]  # read by `Int8Linear`

    def forward(self, x: Tensor, packed: Sequences) -> Tensor:
        x = self.attention["output"](self.attention["self"](x, packed), x)
        up = self.intermediate["dense"]
        if not isinstance(up, Int8Linear):
            return self.output(gelu(up(x)), x)  # type: ignore[no-any-return]
        # In int8, memory traffic would dominate.
        parts = torch.split(x, TOKENS_IN_CACHE, dim=1)
        return torch.cat([self.output(gelu(up(part)), part) for part in parts], dim=1)


class PackedBert(nn.Module):
    """A BERT that reads only packed tokens and can't be trained or saved."""

    def __init__(self, config: Any, *, pooler: bool) -> None:
        super().__init__()
        self.config = config
        self.embeddings = _Embeddings(config)
        layers = [_Layer(config) for _ in range(config.num_hidden_layers)]
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(layers)})
        if pooler:
            self.pooler = nn.ModuleDict(
                {"dense": nn.Linear(config.hidden_size, config.hidden_size)}
            )

    def forward(
        self,
        input_ids: Int[Tensor, "1 token"],
        position_ids: Int[Tensor, "1 token"],
        packed: Sequences,
        *,
        output_hidden_states: bool = False,
        **_: object,
    ) -> _States:
        """Hidden states (1, token, dim) under transformers' names: the last layer's, and optionally all."""
        state: Float[Tensor, "1 token dim"] = self.embeddings(input_ids, position_ids)
        states = []
        layers: Any = self.encoder["layer"]
        for layer in layers:
            if output_hidden_states:
                states.append(state)
            state = layer(state, packed)
        return _States(state, (*states, state) if output_hidden_states else None)


def read_bert(folder: Path, dtype: torch.dtype) -> PackedBert | None:
    """The BERT in a checked model folder; None if transformers has to load it."""
    if not _is_plain(folder):
        return None
    from safetensors import SafetensorError, safe_open
    from transformers import AutoConfig

    config: Any = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    heads = config.num_attention_heads
    if heads < 1 or config.hidden_size % heads:
        return None
    try:
        with safe_open(folder / _WEIGHTS, framework="pt") as file:
            names = set(file.keys()) - {_UNUSED}
            with torch.device("meta"):
                model = PackedBert(config, pooler="pooler.dense.weight" in names)
            shapes = {name: [*each.shape] for name, each in model.named_parameters()}
            if {name: file.get_slice(name).get_shape() for name in names} != shapes:
                return None
            weights = {name: file.get_tensor(name).to(dtype) for name in names}
    except SafetensorError:  # transformers reports what is wrong
        return None
    model.load_state_dict(weights, assign=True)
    config.dtype = dtype
    return model


def _is_plain(folder: Path) -> bool:
    """Whether the configuration is that of an unmodified BERT."""
    files = [path.name for path in folder.glob("*.safetensors")]
    if files != [_WEIGHTS] or (folder / ADAPTERS_FILE).exists():
        return False
    config = read_object(folder / "config.json")
    if "model_type" not in config:
        return False
    return all(config.get(key, value) == value for key, value in _PLAIN.items())
