"""The encoder as one ONNX graph in a folder that others load.

`onnx/model.onnx` stands beside config, tokenizer and sentence-transformers' list of modules: the layout that
sentence-transformers' `backend="onnx"`, transformers.js and fastembed look for. They pool `last_hidden_state`
themselves; `sentence_embedding` is for whoever runs the graph alone.
"""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from aoe_train._backbones.architecture import model_class
from aoe_train._backbones.quiet import quietly
from aoe_train._encoder_settings import SETTINGS_FILE
from aoe_train._export.graphs import GRAPHS, INPUTS, OUTPUTS, graph_encoder, require
from aoe_train._heads import own_places, read_heads
from aoe_train._interchange import is_ran, needs_toolkit, write_sentence_transformers
from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from jaxtyping import Float, Int
    from transformers import PreTrainedModel

    from aoe_train._heads import Heads
    from aoe_train._prompts import NamedPrompts
    from aoe_train._settings import EncoderSettings, Pooling

GRAPH = GRAPHS["onnx"].file
_MOST_BYTES = 1_900_000_000  # of one file, as protobuf has it; larger weights get a file of their own


class PaddedEncoder(nn.Module):
    """Backbone, pooling, dense layers, normalisation and cut, over texts that are padded on the right."""

    def __init__(
        self,
        backbone: PreTrainedModel,
        pooling: str,
        *,
        normalize: bool,
        heads: Heads | None = None,
        dim: int | None = None,
    ) -> None:
        super().__init__()
        self.backbone, self.pooling, self.normalize = backbone, pooling, normalize
        self.heads, self.dim = heads, dim

    def forward(
        self, input_ids: Int[Tensor, "text token"], attention_mask: Int[Tensor, "text token"]
    ) -> tuple[Float[Tensor, "text token dim"], Float[Tensor, "text dim"]]:
        """A vector a token and one a text; `attention_mask` is 1 on tokens and 0 on padding."""
        layers = self.pooling == "first-last-avg"
        output = self.backbone(
            input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=layers, return_dict=True
        )
        tokens = (
            (output.hidden_states[1] + output.hidden_states[-1]) / 2 if layers else output.last_hidden_state
        )
        vectors = pool_padded(tokens.float(), attention_mask, self.pooling)
        if self.heads is not None:
            vectors = self.heads(vectors)
        vectors = nn.functional.normalize(vectors, dim=-1) if self.normalize else vectors
        return tokens, vectors if self.dim is None else vectors[:, : self.dim]


def pool_padded(
    tokens: Float[Tensor, "text token dim"], mask: Int[Tensor, "text token"], pooling: str
) -> Float[Tensor, "text dim"]:
    """Pool as `aoe_train._pooling` does, in operations that a graph of any length can hold."""
    if pooling == "weighted-mean":
        mask = mask.cumsum(dim=1) * mask
    real = mask.unsqueeze(-1).to(tokens.dtype)
    first = tokens[:, 0]
    if pooling == "cls":
        return first
    if pooling == "max":
        return tokens.masked_fill(real == 0, -torch.inf).amax(dim=1)
    if pooling == "last":
        end = (mask.sum(dim=1) - 1).view(-1, 1, 1).expand(-1, 1, tokens.shape[-1])
        return tokens.gather(1, end).squeeze(1)
    mean = (tokens * real).sum(dim=1) / real.sum(dim=1)
    return (first + mean) / 2 if pooling in ("cls-avg", "cls-last-avg") else mean


def write_onnx(folder: Path, model: Path, settings: EncoderSettings, dim: int) -> None:
    """Write the graph, and what a model folder has besides its weights, into `folder`.

    The graph takes any number of texts of any length; its weights are float32.

    Args:
        folder: Where to.
        model: A model folder without adapters.
        settings: That model's, resolved.
        dim: Numbers in a token's vector.

    Raises:
        ConfigError: a package is missing, or the model can't be a graph.
    """
    require("onnx")
    _refuse_loops(model, settings)
    # Read afresh: an encoder's backbone may have been changed to run without padding.
    kind = model_class(model)
    with quietly():
        backbone = kind.from_pretrained(
            model,
            dtype=torch.float32,
            # What torch makes of a T5's position bias in its own attention can't be traced.
            attn_implementation="sdpa" if kind.__name__ == "AutoModel" else "eager",
            use_safetensors=True,
            trust_remote_code=False,
        )
    if getattr(backbone.config, "use_cache", False):
        backbone.config.use_cache = False
    (folder / GRAPH).parent.mkdir()
    places = own_places(len(settings.dense))
    heads = read_heads([model / place for place in places], settings.dense, dim) if places else None
    padded = PaddedEncoder(
        backbone, settings.pooling, normalize=settings.normalize, heads=heads, dim=settings.dim
    )
    _trace(padded.eval(), folder / GRAPH)
    for place in places:
        shutil.copytree(model / place, folder / place)
    for file in model.iterdir():
        if file.is_file() and file.suffix != ".safetensors" and file.name != SETTINGS_FILE:
            shutil.copyfile(file, folder / file.name)
    # The graph has averaged the first and the last layer.
    pooling: Pooling = "avg" if settings.pooling == "first-last-avg" else settings.pooling
    write_sentence_transformers(folder, settings.model_copy(update={"pooling": pooling}), dim)


def _refuse_loops(model: Path, settings: EncoderSettings) -> None:
    if settings.long_text != "truncate":
        reason = f"it reads long texts by {settings.long_text}, and a graph reads one window"
    elif is_ran(model):
        reason = "its memory is updated as often as a text is long, and a graph has a fixed number of steps"
    elif not settings.include_prompt:
        reason = "its pooling leaves out the tokens of prompts, and a graph can't tell them from the text's"
    elif (prompts := settings.named_prompts).after_text and prompts.around_all is None:
        reason = f"its prompt {prompts.after_text!r} has words after the text, and it has other prompts"
    elif (ours := needs_toolkit(model, settings)) is not None:
        reason = ours
    else:
        return
    raise ConfigError(f"this model can't be a graph: {reason}; use --format sentence-transformers")


def onnx_encoder(
    folder: Path, prompts: NamedPrompts | None = None, *, file: str = GRAPH
) -> Callable[..., np.ndarray]:
    """What encodes texts, perhaps with a `prompt_name`, by a folder's graph with onnxruntime, on the CPU."""
    import onnxruntime

    session = onnxruntime.InferenceSession(folder / file, providers=["CPUExecutionProvider"])

    def run(inputs: dict[str, np.ndarray]) -> np.ndarray:
        vectors: np.ndarray = session.run(OUTPUTS[1:], inputs)[0]
        return vectors

    return graph_encoder(folder, run, prompts)


def _trace(model: PaddedEncoder, path: Path) -> None:
    ids = torch.ones((2, 8), dtype=torch.int64)
    mask = ids.clone()
    mask[0, 5:] = 0
    shape = {0: torch.export.Dim("text"), 1: torch.export.Dim("token")}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                model,
                (ids, mask),
                path,
                input_names=INPUTS,
                output_names=OUTPUTS,
                external_data=sum(weight.nbytes for weight in model.parameters()) > _MOST_BYTES,
                dynamic_shapes=(shape, shape),
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        raise ConfigError(
            f"{type(model.backbone).__name__} can't be traced into a graph of any length ({error}); "
            "use --format sentence-transformers"
        ) from error
