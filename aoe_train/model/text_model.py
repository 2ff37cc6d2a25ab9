"""Backbone, pooling and dense layers: packed tokens in, one vector per text out.

A dense layer has a folder with `config.json` and `model.safetensors` in sentence-transformers' format. In our
model folders these are called `dense_1`, `dense_2` and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor, nn

from aoe_train.model.device import only_callees_compiled, upload
from aoe_train.model.folder_checks import read_weights
from aoe_train.model.packing.sequences import (
    Sequences,
    run_packed,
    shifted_indices,
)
from aoe_train.model.tokenised import ranges
from aoe_train.settings.run_settings import Activation, DenseSettings
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.files import write_bytes, write_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxtyping import Float, Int
    from transformers import PreTrainedModel

    TokenIds = Int[Tensor, " token"]
    TextLengths = Int[np.ndarray, " text"]
    OfText = Int[Tensor, " text"]
    TokenStates = Float[Tensor, "token dim"]
    TextVectors = Float[Tensor, "text dim"]

_PADDED_TOGETHER = 8  # texts on a CPU, in order of length
_WEIGHTS = "model.safetensors"
# Classes by their names in settings; sentence-transformers' files contain the class names.
_ACTIVATIONS: dict[str, type[nn.Module]] = {
    name.lower(): layer
    for name, layer in vars(nn).items()
    if name.lower() in get_args(Activation)
}


def pool(
    states: tuple[TokenStates, ...],
    lengths: OfText,
    pooling: str,
    prompt_lengths: OfText | None = None,
) -> TextVectors:
    """Pool tokens to one float32 vector per text; `prompt_lengths` tokens are left out."""
    ends = torch.cumsum(lengths, 0)
    last = states[-1].float()
    if pooling == "cls":
        return last[ends - lengths]
    if pooling == "last":
        return last[ends - 1]
    if pooling == "max":
        # Checks, which `unsafe` leaves out, would wait for the device.
        return torch.segment_reduce(last, "max", lengths=lengths, unsafe=True)
    if pooling == "avg":
        return mean(last, lengths)
    if pooling == "weighted-mean":
        return _weighted_mean(last, lengths, prompt_lengths)
    if pooling == "cls-avg":
        return (last[ends - lengths] + mean(last, lengths)) / 2
    if pooling == "first-last-avg":
        return mean((states[1].float() + last) / 2, lengths)
    raise ValueError(f"unknown pooling {pooling!r}")


def _weighted_mean(
    rows: TokenStates,
    lengths: OfText,
    prompt_lengths: OfText | None,
) -> TextVectors:
    """The mean of each text's rows, weighted by their position, from 1."""
    shift = lengths - torch.cumsum(lengths, 0) + 1
    if prompt_lengths is not None:
        shift = shift + prompt_lengths
    positions = shifted_indices(shift, lengths, len(rows))
    weights = positions[:, None].to(rows.dtype)
    return mean(rows * weights, lengths) / mean(weights, lengths)


def mean(rows: TokenStates, lengths: OfText) -> TextVectors:
    """The mean of each text's rows, which follow each other."""
    texts = torch.arange(len(lengths), device=rows.device)
    owners = torch.repeat_interleave(texts, lengths, output_size=len(rows))
    zeros = rows.new_zeros(len(lengths), rows.shape[1])
    return zeros.index_add(0, owners, rows) / lengths[:, None]


class TextBatch(NamedTuple):
    """The distinct texts of a batch as one row of tokens without padding, in ascending order of length.

    Attributes:
        input_ids: Tokens of all texts, including special tokens and prompts.
        lengths: Number of tokens of each text; on the host.
        prompt_lengths: Number of leading tokens of each text that pooling ignores; None for none.
        texts: An id for each text; equal ids mean equal texts.
        rows: (row, column), indices of the rows' texts in the batch; -1 for a missing negative.
        labels: (row,), or None for rows without labels.
    """

    input_ids: Int[Tensor, " token"]
    lengths: Int[np.ndarray, " text"]
    prompt_lengths: Int[np.ndarray, " text"] | None
    texts: Int[Tensor, " text"]
    rows: Int[Tensor, "row column"]
    labels: Float[Tensor, " row"] | None = None

    def vectors(self, model: TextModel) -> Float[Tensor, "text dim"]:
        """The texts' vectors, computed with `encoder.model` or a copy of it."""
        return model(  # type: ignore[no-any-return]
            self.input_ids, self.lengths, self.prompt_lengths
        )

    def states(self, model: TextModel) -> Float[Tensor, "token hidden"]:
        """The last hidden state of each token, for your own pooling."""
        return model.states(self.input_ids, self.lengths)[-1]

    def sequences(self) -> list[Int[Tensor, " token"]]:
        """The tokens of each text."""
        return list(torch.split(self.input_ids, self.lengths.tolist()))

    def with_sequences(self, sequences: list[Int[Tensor, " token"]]) -> TextBatch:
        """A copy of the batch with the tokens of each text replaced."""
        lengths = np.array([len(tokens) for tokens in sequences])
        return self._replace(input_ids=torch.cat(sequences), lengths=lengths)


class PackedBackbone:
    """Base of a backbone with its own forward pass for packed tokens; `model.packing` runs all others.

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
        self,
        input_ids: TokenIds,
        lengths: TextLengths,
    ) -> TokenStates:
        """The last hidden state of each token."""
        raise NotImplementedError

    def packed_vectors(
        self,
        input_ids: TokenIds,
        lengths: TextLengths,
        pooling: str,
    ) -> TextVectors | None:
        """Float32 vectors of texts, if they aren't pooled from hidden states."""
        del input_ids, lengths, pooling
        return None

    def unused_modules(self, pooling: str) -> Iterable[nn.Module]:
        """Modules that don't affect the vectors."""
        del pooling
        return ()


class DenseLayer(nn.Module):
    """A linear layer with an activation and an optional residual connection."""

    def __init__(self, settings: DenseSettings, inputs: int) -> None:
        super().__init__()
        self.settings = settings
        self.linear = nn.Linear(inputs, settings.size, bias=settings.bias)
        self.activation = _ACTIVATIONS[settings.activation]()
        if settings.residual and inputs != settings.size:
            self.residual = nn.Linear(inputs, settings.size, bias=False)

    def forward(self, vectors: Float[Tensor, "text in"]) -> Float[Tensor, "text out"]:
        """Apply the layer."""
        output: Tensor = self.activation(self.linear(vectors))
        if not self.settings.residual:
            return output
        if hasattr(self, "residual"):
            vectors = self.residual(vectors)
        return output + vectors


class DenseLayers(nn.ModuleList):
    """A sequence of dense layers; their output is float32 even under autocast."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[DenseLayer]: ...

    def __init__(self, layers: Sequence[DenseSettings], inputs: int) -> None:
        super().__init__()
        self.dim = inputs
        for settings in layers:
            self.append(DenseLayer(settings, self.dim))
            self.dim = settings.size

    def forward(self, vectors: Float[Tensor, "text in"]) -> Float[Tensor, "text out"]:
        """Apply all layers."""
        with torch.autocast(vectors.device.type, enabled=False):
            for layer in self:
                vectors = layer(vectors.to(layer.linear.weight.dtype))
        return vectors.float()


def new_dense_layers(layers: Sequence[DenseSettings], inputs: int) -> DenseLayers:
    """Untrained layers with random orthogonal weights, which preserve cosines as far as their size allows."""
    dense = DenseLayers(layers, inputs)
    for part in dense.modules():
        if isinstance(part, nn.Linear):
            nn.init.orthogonal_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    return dense


class TextModel(nn.Module):
    """The network that training optimises and encoding runs.

    Attributes:
        token_dim: Dimensions of a token's vector.
        dim: Dimensions of a text's vector.
    """

    def __init__(
        self,
        backbone: PreTrainedModel,
        pooling: str,
        *,
        packed: bool,
        heads: DenseLayers | None = None,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.pooling = pooling
        self.packed = packed
        self.token_dim = int(backbone.config.hidden_size)
        self.heads = heads or DenseLayers((), self.token_dim)
        self.dim = self.heads.dim
        self._final_norm: tuple[nn.Module, ...] = ()

    def set_final_norm(self, final_norm: nn.Module | None) -> None:
        """Set the backbone's final norm, which `layers` of `forward` pass through."""
        # A tuple hides the norm from torch, as the backbone registers its weights already.
        self._final_norm = () if final_norm is None else (final_norm,)

    @only_callees_compiled  # its plan differs with each batch
    def forward(
        self,
        input_ids: TokenIds,
        lengths: TextLengths,
        prompt_lengths: TextLengths | None = None,
        layers: tuple[int, ...] = (),
    ) -> Float[Tensor, "text *layer dim"]:
        """Vectors of texts, float32."""
        if isinstance(self.backbone, PackedBackbone):
            vectors = self.backbone.packed_vectors(input_ids, lengths, self.pooling)
            if vectors is not None:
                return self.heads(vectors)  # type: ignore[no-any-return]
        states = self.states(input_ids, lengths, every=bool(layers))
        return self.vectors(states, lengths, prompt_lengths, layers)

    @only_callees_compiled
    def states(
        self,
        input_ids: TokenIds,
        lengths: TextLengths,
        *,
        every: bool = False,
    ) -> tuple[TokenStates, ...]:
        """The last layer's hidden states, or all layers' if the pooling or `every` needs them."""
        if isinstance(self.backbone, PackedBackbone):
            return (self.backbone.packed_states(input_ids, lengths),)
        every = every or self.pooling == "first-last-avg"
        if not self.packed:
            return self._padded(input_ids, lengths, every=every)
        device = input_ids.device
        if (np.diff(lengths) >= 0).all():
            packed = Sequences(lengths.tolist(), device)
            return run_packed(self.backbone, input_ids, packed, layers=every)

        ascending = np.argsort(lengths, kind="stable")
        starts = np.cumsum(lengths) - lengths
        order = ranges(starts[ascending], lengths[ascending])
        sorted_ids = input_ids[upload(order, device)]
        states = self.states(sorted_ids, lengths[ascending], every=every)
        back = upload(np.argsort(order), device)
        return tuple(state[back] for state in states)

    @only_callees_compiled
    def vectors(
        self,
        states: tuple[TokenStates, ...],
        lengths: TextLengths,
        prompt_lengths: TextLengths | None = None,
        layers: tuple[int, ...] = (),
    ) -> Float[Tensor, "text *layer dim"]:
        """Pool token states to vectors of texts; the arguments are those of `forward`."""
        device = states[-1].device
        prompt_sizes = None
        if prompt_lengths is not None:
            starts = np.cumsum(lengths) - lengths
            # At least one token must remain.
            prompt_lengths = np.minimum(prompt_lengths, lengths - 1)
            lengths = lengths - prompt_lengths
            kept = upload(ranges(starts + prompt_lengths, lengths), device)
            states = tuple(state[kept] for state in states)
            prompt_sizes = upload(prompt_lengths, device)
        sizes = upload(lengths, device)
        pooled = pool(states, sizes, self.pooling, prompt_sizes)
        if layers:
            by_layer = []
            for depth in layers:
                state = states[depth]
                for norm in self._final_norm:
                    state = norm(state)
                shallow = (*states[:depth], state)
                by_layer.append(pool(shallow, sizes, self.pooling, prompt_sizes))
            pooled = torch.stack([*by_layer, pooled], dim=1)
        return self.heads(pooled)  # type: ignore[no-any-return]

    def fixed_shape(
        self,
        input_ids: TokenIds,
        sizes: OfText,
        longest: int,
    ) -> TextVectors:
        """Vectors of packed texts whose `sizes` only the device knows, for CUDA graphs."""
        packed = Sequences.on_device(sizes, len(input_ids), longest)
        every = self.pooling == "first-last-avg"
        states = run_packed(self.backbone, input_ids, packed, layers=every)
        pooled = pool(states, sizes, self.pooling)
        return self.heads(pooled)  # type: ignore[no-any-return]

    @only_callees_compiled
    def _padded(
        self, input_ids: Tensor, lengths: np.ndarray, *, every: bool
    ) -> tuple[Tensor, ...]:
        """The states of padded texts; on a CPU, where padding costs time, of a few of similar length each."""
        together = len(lengths)
        if input_ids.device.type == "cpu":
            together = _PADDED_TOGETHER
        padding = int(getattr(self.backbone.config, "pad_token_id", None) or 0)
        by_group = []
        first = 0
        for start in range(0, len(lengths), together):
            group = lengths[start : start + together]
            tokens = input_ids[first : first + int(group.sum())]
            first += len(tokens)
            shape = len(group), int(group.max())
            is_token = np.arange(shape[1]) < group[:, None]
            slots = upload(np.flatnonzero(is_token), input_ids.device)
            # The mask hides padding, but some models derive positions from the padding token's id.
            ids = tokens.new_full(shape, padding)
            ids.view(-1).index_copy_(0, slots, tokens)
            mask = tokens.new_zeros(shape)
            mask.view(-1).index_fill_(0, slots, 1)
            output = self.backbone(
                input_ids=ids, attention_mask=mask, output_hidden_states=every
            )
            states = output.hidden_states if every else (output.last_hidden_state,)
            by_group.append(
                [state.flatten(0, 1).index_select(0, slots) for state in states]
            )
        return tuple(torch.cat(states) for states in zip(*by_group, strict=True))


def dense_names(count: int) -> list[str]:
    """The layers' folders in one of our model folders."""
    return [f"dense_{number}" for number in range(1, count + 1)]


def read_dense_layers(
    folders: Sequence[Path],
    layers: Sequence[DenseSettings],
    inputs: int,
) -> DenseLayers:
    """Read trained layers."""
    with torch.device("meta"):
        dense = DenseLayers(layers, inputs)
    for layer, folder in zip(dense, folders, strict=True):
        _read_weights(layer, folder)
    return dense


def _read_weights(layer: nn.Module, folder: Path) -> None:
    """Load a folder's weights into a layer, which may be on the meta device, and make it trainable."""
    path = folder / _WEIGHTS
    pickled = sorted(folder.glob("*.bin"))
    if pickled and not path.is_file():
        raise ConfigError(
            f"{folder}: its only weights are {pickled[0].name}, a pickle, which can run code when loaded; if"
            " you trust it, load and save the model with a new release of sentence-transformers"
        )
    stored = read_weights(path)
    shapes, expected = (
        {name: tuple(weight.shape) for name, weight in weights.items()}
        for weights in (stored, layer.state_dict())
    )
    if shapes != expected:
        raise DataError(
            f"expected weights of the shapes {expected}, which follow from config.json and the previous layer;"
            " copy or download the model again",
            path=path,
        )
    weights = {name: weight.float() for name, weight in stored.items()}
    layer.load_state_dict(weights, assign=True)
    layer.requires_grad_(requires_grad=True)


def write_dense_layers(folder: Path, dense: DenseLayers) -> None:
    """Write a folder for each layer into a model folder."""
    from safetensors.torch import save

    for name, layer in zip(dense_names(len(dense)), dense, strict=True):
        settings = layer.settings
        activation = type(layer.activation)
        config = {
            "in_features": layer.linear.in_features,
            "out_features": settings.size,
            "bias": settings.bias,
            "activation_function": f"{activation.__module__}.{activation.__qualname__}",
        }
        if settings.residual:  # older releases don't know the key
            config["use_residual"] = True
        write_json(folder / name / "config.json", config)
        weights = {
            key: weight.detach().cpu().contiguous()
            for key, weight in layer.state_dict().items()
        }
        write_bytes(folder / name / _WEIGHTS, save(weights))
