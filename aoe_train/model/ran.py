"""Recurrent Attention Network (Li et al., 2023): attention within windows, and a memory passed between them.

For each window with tokens X, `g` is the memory before it and `c` (the cell) the attention's output for it:

    A = attention([g; X]),  c = SN(A_0),  O = SN(A_1..),  g' = c after the first window,
                                                          g' = LN(c + GLU(c of the previous window)) later

After the last window every token attends to all cells (memory review). For a text of n tokens, memory grows
with n, and time with n and, in the memory review, with n²/window. All parts work on packed tokens; only
attention pads, within a window. Importing this module registers the network with transformers' Auto classes.

Example:
    from aoe_train import ran  # noqa: F401 - registers it
    from transformers import AutoModel

    model = AutoModel.from_pretrained("ran")  # a folder that `aoe train` wrote
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from huggingface_hub.dataclasses import strict
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.utils.generic import can_return_tuple

from aoe_train.model.device import only_callees_compiled
from aoe_train.model.ran_windows import Step, WindowLayout
from aoe_train.model.text_model import PackedBackbone

if TYPE_CHECKING:
    from aoe_train.model.text_model import TextLengths, TextVectors, TokenIds

LayerNormStyle = Literal["standard", "second-moment"]
MemoryStart = Literal["projected", "carried"]
Tokens = Float[Tensor, "token dim"]
Slots = Float[Tensor, "slot dim"]
Rows = Float[Tensor, "row dim"]
Cells = Float[Tensor, "cell dim"]
Vectors = Float[Tensor, "... dim"]
Rotary = tuple[Float[Tensor, "slot half"], Float[Tensor, "slot half"]]


@strict
class RanConfig(PreTrainedConfig):  # type: ignore[no-untyped-call]
    """Configuration of a Recurrent Attention Network; the default is the base size, 87M parameters."""

    model_type = "ran"

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 4
    num_attention_heads: int = 12
    head_dim: int = 256
    window_size: int = 256
    min_window_size: int = 16
    hidden_dropout_prob: float | int = 0.1
    attention_probs_dropout_prob: float | int = 0.1
    layer_norm_eps: float = 1e-7
    ln_style: LayerNormStyle = "standard"
    memory_start: MemoryStart = "projected"
    rotary_base: float | int = 10000.0
    initializer_range: float = 0.02
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True

    def validate_sizes(self) -> None:
        """Refuse invalid sizes."""
        for name in (
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "head_dim",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} {getattr(self, name)}: expected at least 1")
        if self.head_dim % 2:
            raise ValueError(
                f"head_dim {self.head_dim} is odd; rotary positions rotate pairs of dimensions"
            )
        if not 1 <= self.min_window_size <= self.window_size:
            raise ValueError(
                f"min_window_size {self.min_window_size}: expected 1 to window_size, {self.window_size}"
            )


def normalise(x: Vectors, config: RanConfig) -> Vectors:
    """Layer normalisation without parameters; `second-moment` divides by sqrt(mean(x²) + eps)."""
    eps = config.layer_norm_eps
    if config.ln_style == "standard":
        return F.layer_norm(x, x.shape[-1:], eps=eps)
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    centred = wide - wide.mean(-1, keepdim=True)
    return (centred * scale).to(x.dtype)


class RanLayerNorm(nn.Module):
    """Layer normalisation in the configured style; transformers initialises it by its class name."""

    def __init__(self, config: RanConfig) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.ones(config.hidden_size))
        self.bias = nn.Parameter(torch.zeros(config.hidden_size))

    def forward(self, x: Vectors) -> Vectors:
        """Normalise each vector."""
        if self.config.ln_style == "standard":
            eps = self.config.layer_norm_eps
            return F.layer_norm(x, self.weight.shape, self.weight, self.bias, eps)
        return normalise(x, self.config) * self.weight + self.bias


class GatedLinearUnit(nn.Module):
    """(x W1 + b1) * sigmoid(x W2 + b2), computed as one product."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.value_gate = nn.Linear(dim, 2 * dim)

    def forward(self, x: Vectors) -> Vectors:
        """Gate each vector."""
        return F.glu(self.value_gate(x), dim=-1)


def rotary_table(
    slots: int,
    head_dim: int,
    base: float,
    device: torch.device,
) -> Rotary:
    """Cosine and sine of each slot's angles, one per pair of adjacent dimensions."""
    even = torch.arange(0, head_dim, 2, device=device, dtype=torch.float32)
    frequencies = base ** (-even / head_dim)
    angles = torch.arange(slots, device=device)[:, None] * frequencies
    return angles.cos(), angles.sin()


def rotate(
    x: Float[Tensor, "row head slot head_dim"],
    rotary: Rotary,
) -> Float[Tensor, "row head slot head_dim"]:
    """Rotate dimensions (2k, 2k + 1) of every slot by the slot's k-th angle."""
    cos, sin = (table[: x.shape[2]] for table in rotary)
    even = x[..., ::2]
    odd = x[..., 1::2]
    new_even = even * cos - odd * sin
    new_odd = odd * cos + even * sin
    rotated = torch.stack([new_even, new_odd], dim=-1)
    return rotated.flatten(-2).to(x.dtype)


@dataclass(frozen=True)
class RanPackedOutput:
    """RAN's output for packed sequences, in input order."""

    hidden: Tokens
    cells: TextVectors
    memory: TextVectors


class WindowAttention(nn.Module):
    """Multi-head attention within a memory and its window, then LN(o + GLU(input))."""

    def __init__(self, config: RanConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.attention_dropout = config.attention_probs_dropout_prob
        inner = config.num_attention_heads * config.head_dim
        self.qkv = nn.Linear(config.hidden_size, 3 * inner)
        self.output = nn.Linear(inner, config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.glu = GatedLinearUnit(config.hidden_size)
        self.norm = RanLayerNorm(config)

    def forward(
        self,
        x: Slots,
        step: Step,
        rotary: Rotary,
    ) -> Slots:
        """Attend within each row of the step; in every window positions start at 0, the memory."""
        grid = step.grid(F.silu(self.qkv(x))).unflatten(-1, (3, self.heads, -1))  # type: ignore[no-untyped-call]
        q, k, v = grid.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(
            rotate(q, rotary),
            rotate(k, rotary),
            v,
            attn_mask=step.visible,
            dropout_p=self.attention_dropout if self.training else 0.0,
        )
        joined_heads = attended.transpose(1, 2).flatten(2)
        packed = step.packed(joined_heads, tokens=len(x))
        output = self.dropout(F.silu(self.output(packed)))
        return self.norm(output + self.glu(x))  # type: ignore[no-any-return]


class RanWindow(GradientCheckpointingLayer):  # type: ignore[no-untyped-call]
    """One step of the recurrence."""

    def __init__(self, config: RanConfig) -> None:
        super().__init__()
        self.config = config
        self.input_norm = RanLayerNorm(config)
        self.attention = WindowAttention(config)
        self.glu = GatedLinearUnit(config.hidden_size)
        self.memory_norm = RanLayerNorm(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        memory: Rows,
        previous: Float[Tensor, "earlier dim"] | None,
        tokens: Tokens,
        step: Step,
        rotary: Rotary,
    ) -> tuple[Rows, Tokens, Rows]:
        """Read one window of each row."""
        x = self.dropout(self.input_norm(torch.cat([memory, tokens])))
        attended = normalise(self.attention(x, step, rotary), self.config)
        cell, outputs = self.dropout(attended).split([len(memory), len(tokens)])
        if previous is None:
            return cell, outputs, cell
        gated = self.glu(previous[: len(cell)])
        return cell, outputs, self.dropout(self.memory_norm(cell + gated))


class MemoryReview(GradientCheckpointingLayer):  # type: ignore[no-untyped-call]
    """Single-head attention of every token over all cells of its sequence: LN(o + GLU(query))."""

    def __init__(self, config: RanConfig) -> None:
        super().__init__()
        self.attention_dropout = config.attention_probs_dropout_prob
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key_value = nn.Linear(config.hidden_size, 2 * config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.glu = GatedLinearUnit(config.hidden_size)
        self.norm = RanLayerNorm(config)

    def forward(
        self,
        tokens: Tokens,
        cells: Cells,
        layout: WindowLayout,
    ) -> Tokens:
        """Process the steps in turn, so that only the scores of one window per text are in memory."""
        query = F.silu(self.query(tokens))
        by_row = layout.by_row(F.silu(self.key_value(cells)))
        key, value = by_row.unsqueeze(1).chunk(2, dim=-1)
        reviewed = []
        for step, part in zip(layout.steps, query.split(layout.sizes), strict=True):  # type: ignore[no-untyped-call]
            attended = F.scaled_dot_product_attention(
                step.grid(part).unsqueeze(1),
                key[: step.rows],
                value[: step.rows],
                attn_mask=None if layout.seen is None else layout.seen[: step.rows],
                dropout_p=self.attention_dropout if self.training else 0.0,
            )
            reviewed.append(step.packed(attended.squeeze(1), tokens=len(part)))
        output = self.dropout(F.silu(self.output(torch.cat(reviewed))))
        return self.norm(output + self.glu(query))  # type: ignore[no-any-return]


class MemoryProjection(nn.Module):
    """The memory before the first window: LN(swish(W x)) of the previous layer's memory (at first zeros)."""

    def __init__(self, config: RanConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.norm = RanLayerNorm(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, memory: TextVectors) -> TextVectors:
        """Project each sequence's memory."""
        return self.dropout(self.norm(F.silu(self.dense(memory))))  # type: ignore[no-any-return]


class RanLayer(nn.Module):
    """All windows of all sequences, then the memory review."""

    def __init__(self, config: RanConfig, index: int) -> None:
        super().__init__()
        projected = index == 0 or config.memory_start == "projected"
        self.start = MemoryProjection(config) if projected else nn.Identity()
        self.window = RanWindow(config)
        self.review = MemoryReview(config)

    def forward(
        self,
        tokens: Tokens,
        memory: TextVectors,
        layout: WindowLayout,
        rotary: Rotary,
    ) -> tuple[Tokens, Cells, TextVectors]:
        """Returns reviewed tokens, the cells of each step in turn, and updated memories."""
        memory = self.start(memory)
        previous = None
        cells = []
        outputs = []
        for step, window in zip(layout.steps, tokens.split(layout.sizes), strict=True):  # type: ignore[no-untyped-call]
            cell, read, updated = self.window(
                memory[: step.rows], previous, window, step, rotary
            )
            # Sequences that have ended keep their memory, so it does not depend on the batch.
            memory = torch.cat([updated, memory[step.rows :]])
            cells.append(cell)
            outputs.append(read)
            previous = cell
        all_cells = torch.cat(cells)
        reviewed = self.review(torch.cat(outputs), all_cells, layout)
        return reviewed, all_cells, memory


class RanPreTrainedModel(PreTrainedModel):  # type: ignore[no-untyped-call]
    """Weight initialisation, saving and loading."""

    config: RanConfig
    config_class = RanConfig
    base_model_prefix = "ran"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _no_split_modules = ["RanLayer"]  # noqa: RUF012


class RanModel(PackedBackbone, RanPreTrainedModel):  # type: ignore[no-untyped-call]
    """The encoder, for packed tokens (`forward_packed`) or a padded batch (`forward`)."""

    title = "Recurrent Attention Network"
    varies = True  # only a second window uses the memory
    poolings = ("cells", "cls", "avg", "max", "last", "cls-avg", "weighted-mean")

    _keys_to_ignore_on_load_unexpected = [r"^head\.", r"^lm_head\."]  # noqa: RUF012 - the prediction head's

    def __init__(self, config: RanConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(
            config.vocab_size,
            config.hidden_size,
            padding_idx=config.pad_token_id,
        )
        self.norm = RanLayerNorm(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.layers = nn.ModuleList(
            RanLayer(config, index) for index in range(config.num_hidden_layers)
        )
        self.post_init()  # type: ignore[no-untyped-call]

    def forward_packed(
        self,
        input_ids: TokenIds,
        lengths: TextLengths | Int[Tensor, " text"],
    ) -> RanPackedOutput:
        """Encode consecutive sequences without padding."""
        config = self.config
        device = input_ids.device
        layout = WindowLayout.of(
            lengths.tolist(),
            config.window_size,
            config.min_window_size,
            device,
        )
        tokens = self.dropout(self.norm(self.embed_tokens(input_ids[layout.order])))
        widest = max(step.width for step in layout.steps)
        rotary = rotary_table(widest, config.head_dim, config.rotary_base, device)
        memory = tokens.new_zeros(len(lengths), config.hidden_size)
        for layer in self.layers:
            tokens, cells, memory = layer(tokens, memory, layout, rotary)
        rows = layout.rank.argsort()
        mean = layout.by_row(cells).sum(dim=1) / layout.windows[:, None]
        return RanPackedOutput(tokens[layout.order.argsort()], mean[rows], memory[rows])

    def packed_states(
        self,
        input_ids: TokenIds,
        lengths: TextLengths,
    ) -> Tokens:
        """The reviewed tokens."""
        return self.forward_packed(input_ids, lengths).hidden

    @only_callees_compiled
    def packed_vectors(
        self,
        input_ids: TokenIds,
        lengths: TextLengths,
        pooling: str,
    ) -> TextVectors | None:
        """With the pooling `cells`, the mean of a text's cells."""
        if pooling != "cells":
            return None
        return self.forward_packed(input_ids, lengths).cells.float()

    def unused_modules(self, pooling: str) -> Iterable[nn.Module]:
        """The last layer's memory review, which comes after its cells."""
        return [self.layers[-1].review] if pooling == "cells" else []  # type: ignore[list-item]

    @can_return_tuple  # type: ignore[untyped-decorator]
    def forward(
        self,
        input_ids: Int[Tensor, "row column"],
        attention_mask: Int[Tensor, "row column"] | None = None,
        **_: object,
    ) -> BaseModelOutputWithPooling:
        """Encode a padded batch; the vectors don't depend on the side and amount of padding."""
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        mask = attention_mask.bool()
        packed = self.forward_packed(input_ids[mask], mask.sum(dim=1))
        hidden = packed.hidden.new_zeros(*input_ids.shape, self.config.hidden_size)
        hidden[mask] = packed.hidden
        return BaseModelOutputWithPooling(
            last_hidden_state=hidden, pooler_output=packed.cells
        )


AutoConfig.register("ran", RanConfig)
AutoModel.register(RanConfig, RanModel)

__all__ = ["RanConfig", "RanLayerNorm", "RanModel", "RanPreTrainedModel"]
