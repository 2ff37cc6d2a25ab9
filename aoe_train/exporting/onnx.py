"""The encoder as one ONNX graph in a folder that others load.

`onnx/model.onnx` stands beside config, tokenizer and sentence-transformers' list of modules: the layout that
sentence-transformers' `backend="onnx"`, transformers.js and fastembed look for. They pool `last_hidden_state`
themselves; `sentence_embedding` is for whoever runs the graph alone.
"""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from aoe_train.model.backbones.load import model_class
from aoe_train.model.backbones.packaged import quietly
from aoe_train.model.dense_layers import dense_names, read_dense_layers
from aoe_train.model.encoder_settings import SETTINGS_FILE
from aoe_train.model.interchange import is_ran, needs_toolkit, write_sentence_transformers
from aoe_train.settings.prompts import read_prompt
from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from jaxtyping import Float, Int
    from transformers import PreTrainedModel

    from aoe_train.model.dense_layers import DenseLayers
    from aoe_train.settings.prompts import NamedPrompts
    from aoe_train.settings.training import EncoderSettings, Pooling


INPUTS = ("input_ids", "attention_mask")
OUTPUTS = ("last_hidden_state", "sentence_embedding")
_PACKAGES = ("onnx", "onnxruntime", "onnxscript")


@dataclass(frozen=True)
class Graph:
    """A form of graph."""

    file: str
    int8: bool = False


GRAPHS = {"onnx": Graph("onnx/model.onnx"), "onnx-int8": Graph("onnx/model_qint8.onnx", int8=True)}


def require_onnx() -> None:
    """Check that everything is installed that a graph is written and checked with."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise ConfigError(f"ONNX needs {', '.join(missing)}; install with `pip install 'aoe-toolkit[onnx]'`")


def quantize_onnx(folder: Path) -> None:
    """Put a graph with int8 weights, one scale a channel, in the place of the folder's float32 graph.

    Values are quantised as they are computed. Weights take 7 bits: with 8, processors that add products of
    int8 in 16 bits (x86 without VNNI) would cut some sums off, so that vectors depended on the processor.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    plain, graph = folder / GRAPHS["onnx"].file, folder / GRAPHS["onnx-int8"].file
    external = plain.with_name(plain.name + ".data")  # where a graph is too large for one file
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it advises steps that change nothing here
    try:
        quantize_dynamic(
            plain,
            graph,
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            use_external_data_format=external.exists(),
        )
    finally:
        root.setLevel(level)
    plain.unlink()
    external.unlink(missing_ok=True)


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
        heads: DenseLayers | None = None,
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
    """Pool as `aoe_train.model.text_model` does, in operations that a graph of any length can hold."""
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
    """
    require_onnx()
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
    places = dense_names(len(settings.dense))
    heads = read_dense_layers([model / place for place in places], settings.dense, dim) if places else None
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
    from transformers import AutoTokenizer

    session = onnxruntime.InferenceSession(folder / file, providers=["CPUExecutionProvider"])
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)

    def encode(texts: Sequence[str], prompt_name: str | None = None) -> np.ndarray:
        words = "" if prompts is None or prompts.around_all else prompts.chosen(name=prompt_name)
        whole = [read_prompt(words).before + text for text in texts]
        tokens = tokenizer(whole, padding=True, truncation=True, return_tensors="np")
        inputs = {name: tokens[name].astype("int64") for name in INPUTS}
        vectors: np.ndarray = session.run(OUTPUTS[1:], inputs)[0]
        return vectors

    return encode


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
