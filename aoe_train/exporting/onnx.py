"""Exports the encoder as one ONNX graph.

The folder contains `onnx/model.onnx`, config, tokenizer and sentence-transformers' list of modules, as
sentence-transformers' `backend="onnx"`, transformers.js and fastembed expect. They pool `last_hidden_state`
themselves; `sentence_embedding` is for other programs that run the graph. An int8 graph's
loss is measured on pairs of texts.
"""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor, nn

from aoe_train.evaluation.pair_metrics import Correlation, correlation
from aoe_train.model.backbones.load_backbone import model_class
from aoe_train.model.backbones.packaged import quietly
from aoe_train.model.encoder_settings import (
    SETTINGS_FILE,
    is_ran,
    needs_toolkit,
    write_sentence_transformers,
)
from aoe_train.model.similarity import pair_similarities, unit
from aoe_train.model.text_model import DenseLayers, dense_names, read_dense_layers
from aoe_train.settings.train_settings import NamedPrompts, read_prompt
from pairkit.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from transformers import PreTrainedModel

    from aoe_train.evaluation.pair_task import PairTask
    from aoe_train.settings.train_settings import EncoderSettings


INPUTS = ("input_ids", "attention_mask")
OUTPUTS = ("last_hidden_state", "sentence_embedding")
INT8 = "onnx-int8"
GRAPHS = {"onnx": "onnx/model.onnx", INT8: "onnx/model_qint8.onnx"}
GRAPH = GRAPHS["onnx"]
_PACKAGES = ("onnx", "onnxruntime", "onnxscript")
# Bytes of a protobuf file; larger weights have a separate file.
_MAX_BYTES = 1_900_000_000
# Lowest mean cosine of int8 and fp32 vectors, and lowest Spearman correlation of their cosines.
_MIN_COSINE = 0.95
_MIN_AGREEMENT = 0.9
_BATCH = 32

SAMPLES = (
    "A man is playing a flute.",
    "Someone plays a wind instrument.",
    "Two dogs are running through the snow.",
    "The dogs chase each other on a winter field.",
    "The train to the coast leaves at seven in the morning.",
    "There is an early train to the seaside.",
    "The central bank raised its interest rate by a quarter of a point.",
    "Shares of the airline fell after it cancelled hundreds of flights.",
    "How do I install the package without root rights?",
    "Installing into my home folder because I have no administrator account",
    "The build fails on Windows since the last release, because a path has a space in it.",
    "Unable to log in after the password was changed; the server answers 401",
    "def area(radius): return 3.14159 * radius ** 2",
    "SELECT name, count(*) FROM visits GROUP BY name ORDER BY 2 DESC",
    "Which vitamins does an orange contain?",
    "Oranges are rich in vitamin C.",
    "Regular exercise lowers the risk of disease of the heart, as a study over ten years with several "
    "thousand people of all ages found.",
    "Ein Hund schläft vor dem Haus.",
    "Le chien dort devant la maison.",
    "Thanks!",
)


def require_onnx() -> None:
    """Check that the packages for writing and checking a graph are installed."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"ONNX needs {', '.join(missing)}; install with `pip install 'aoe-toolkit[onnx]'`"
        )


def quantize_onnx(folder: Path) -> None:
    """Replace the folder's float32 graph by one with int8 weights, with one scale per channel.

    Activations are quantized dynamically. Weights have 7 bits: with 8, sums of products would saturate on
    processors that add them in 16 bits (x86 without VNNI), so vectors would depend on the processor.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    plain = folder / GRAPH
    graph = folder / GRAPHS[INT8]
    # The weights of a graph that is too large for one file.
    external = plain.with_name(plain.name + ".data")
    # torch swaps the recorded shape of a dense layer's weight, which quantize_dynamic refuses.
    model = onnx.load(plain, load_external_data=False)
    model.graph.ClearField("value_info")
    onnx.save(model, plain)
    with _errors_only():
        quantize_dynamic(
            plain,
            graph,
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            use_external_data_format=external.exists(),
        )
    plain.unlink()
    external.unlink(missing_ok=True)


@contextmanager
def _errors_only() -> Iterator[None]:
    """Hide log messages that don't apply here, such as advice, and the absence of torchvision."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(disabled)


class PaddedEncoder(nn.Module):
    """Backbone, pooling, dense layers, normalisation and truncation, for texts padded on the right."""

    def __init__(
        self,
        backbone: PreTrainedModel,
        settings: EncoderSettings,
        dense: DenseLayers | None = None,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.settings = settings
        self.dense = dense

    def forward(
        self,
        input_ids: Int[Tensor, "text token"],
        attention_mask: Int[Tensor, "text token"],
    ) -> tuple[Float[Tensor, "text token dim"], Float[Tensor, "text dim"]]:
        """Vectors of tokens and of texts; `attention_mask` is 1 for tokens and 0 for padding."""
        pooling = self.settings.pooling
        layers = pooling == "first-last-avg"
        output = self.backbone(
            input_ids=input_ids,
            attention_mask=attention_mask,
            output_hidden_states=layers,
            return_dict=True,
        )
        tokens = output.last_hidden_state
        if layers:
            tokens = (output.hidden_states[1] + output.hidden_states[-1]) / 2
        vectors = pool_padded(tokens.float(), attention_mask, pooling)
        if self.dense is not None:
            vectors = self.dense(vectors)
        if self.settings.normalize:
            vectors = nn.functional.normalize(vectors, dim=-1)
        if self.settings.dim is not None:
            vectors = vectors[:, : self.settings.dim]
        return tokens, vectors


def pool_padded(
    tokens: Float[Tensor, "text token dim"],
    mask: Int[Tensor, "text token"],
    pooling: str,
) -> Float[Tensor, "text dim"]:
    """Pool like `aoe_train.model.text_model`, with operations that can be traced for any length."""
    if pooling == "weighted-mean":
        mask = mask.cumsum(dim=1) * mask
    real = mask.unsqueeze(-1).to(tokens.dtype)
    first = tokens[:, 0]
    if pooling == "cls":
        return first
    if pooling == "max":
        return tokens.masked_fill(real == 0, -torch.inf).amax(dim=1)
    if pooling == "last":
        last = mask.sum(dim=1) - 1
        index = last.view(-1, 1, 1).expand(-1, 1, tokens.shape[-1])
        return tokens.gather(1, index).squeeze(1)
    mean = (tokens * real).sum(dim=1) / real.sum(dim=1)
    return (first + mean) / 2 if pooling == "cls-avg" else mean


def write_onnx(
    folder: Path,
    model: Path,
    settings: EncoderSettings,
    dim: int,
) -> None:
    """Write a float32 graph, and a model folder's files other than its weights, into `folder`."""
    require_onnx()
    _refuse_unsupported(model, settings)
    # The backbone is loaded again, because that of an encoder may have been changed to run without padding.
    kind = model_class(model)
    with quietly():
        backbone = kind.from_pretrained(
            model,
            dtype=torch.float32,
            # torch's own attention can't be traced with a T5's position bias.
            attn_implementation="sdpa" if kind.__name__ == "AutoModel" else "eager",
            use_safetensors=True,
            trust_remote_code=False,
        )
    if getattr(backbone.config, "use_cache", False):
        backbone.config.use_cache = False
    (folder / GRAPH).parent.mkdir()
    paths = [model / name for name in dense_names(len(settings.dense))]
    dense = None
    if paths:
        dense = read_dense_layers(paths, settings.dense, dim)
    padded = PaddedEncoder(backbone, settings, dense)
    _trace(padded.eval(), folder / GRAPH)
    for path in paths:
        shutil.copytree(path, folder / path.name)
    for file in model.iterdir():
        is_weights = file.suffix == ".safetensors"
        if file.is_file() and not is_weights and file.name != SETTINGS_FILE:
            shutil.copyfile(file, folder / file.name)
    if settings.pooling == "first-last-avg":  # the graph averages these layers
        settings = settings.model_copy(update={"pooling": "avg"})
    write_sentence_transformers(folder, settings, dim)


def _refuse_unsupported(model: Path, settings: EncoderSettings) -> None:
    reason = needs_toolkit(model, settings)
    if is_ran(model):
        reason = "the number of its recurrent steps depends on the text, but a graph's is fixed"
    elif not settings.include_prompt:
        reason = "its pooling ignores the tokens of prompts, which a graph can't distinguish from the text"
    if reason is not None:
        raise ConfigError(
            f"can't be exported as a graph: {reason}; use --format=sentence-transformers"
        )


def onnx_encoder(
    folder: Path,
    prompts: NamedPrompts,
    *,
    file: str = GRAPH,
) -> Callable[..., ndarray]:
    """A function that encodes texts with a folder's graph, onnxruntime and optionally a `prompt_name`."""
    import onnxruntime
    from transformers import AutoTokenizer

    session = onnxruntime.InferenceSession(
        folder / file, providers=["CPUExecutionProvider"]
    )
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)

    def encode(texts: Sequence[str], prompt_name: str | None = None) -> ndarray:
        before = ""
        if not prompts.around_all:
            before = read_prompt(prompts.chosen(name=prompt_name)).before
        prompted = [before + text for text in texts]
        tokens = tokenizer(prompted, padding=True, truncation=True, return_tensors="np")
        inputs = {name: tokens[name].astype("int64") for name in INPUTS}
        vectors: ndarray = session.run(OUTPUTS[1:], inputs)[0]
        return vectors

    return encode


def _trace(model: PaddedEncoder, path: Path) -> None:
    ids = torch.ones((2, 8), dtype=torch.int64)
    mask = ids.clone()
    mask[0, 5:] = 0
    shape = {0: torch.export.Dim("text"), 1: torch.export.Dim("token")}
    num_bytes = sum(weight.nbytes for weight in model.parameters())
    try:
        with warnings.catch_warnings(), _errors_only():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                model,
                (ids, mask),
                path,
                input_names=INPUTS,
                output_names=OUTPUTS,
                external_data=num_bytes > _MAX_BYTES,
                dynamic_shapes=(shape, shape),
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        raise ConfigError(
            f"{type(model.backbone).__name__} can't be exported as a graph ({error}); use"
            " --format=sentence-transformers"
        ) from error


@dataclass(frozen=True)
class Loss:
    """Agreement of int8 vectors with fp32 ones."""

    pairs: int
    source: str
    cosine_mean: float
    cosine_least: float
    agreement: float
    spearman: float | None = None
    spearman_int8: float | None = None

    def __str__(self) -> str:
        """One line; Spearman's rho with labels is multiplied by 100, as in tables."""
        with_labels = ""
        if self.spearman is not None and self.spearman_int8 is not None:
            with_labels = (
                f"Spearman with the labels {100 * self.spearman:.2f} in fp32 and "
                f"{100 * self.spearman_int8:.2f} in int8, "
            )
        return (
            f"int8 on {self.pairs:,} pairs of {self.source}: {with_labels}Spearman of their cosines with"
            f" fp32's {self.agreement:.4f}; cosine of a vector with fp32's {self.cosine_mean:.4f} (mean),"
            f" {self.cosine_least:.4f} (minimum)"
        )


def measure(
    expected: Callable[[Sequence[str]], ndarray],
    quantized: Callable[[Sequence[str]], ndarray],
    task: PairTask | None,
    *,
    path: Path,
) -> Loss:
    """Encode pairs with the model and with its int8 graph, and compare."""
    rows = list(combinations(SAMPLES, 2))
    source = "sample sentences"
    if task is not None:
        rows = list(task.rows)
        source = task.name
    distinct = {text for row in rows for text in row}
    texts = sorted(distinct, key=lambda text: (len(text), text))
    index = {text: number for number, text in enumerate(texts)}
    pairs = np.array([[index[first], index[second]] for first, second in rows])
    blocks = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
    plain, int8 = (
        np.concatenate([encode(block) for block in blocks])
        for encode in (expected, quantized)
    )
    cosines = (unit(plain) * unit(int8)).sum(axis=1)
    before, after = (
        pair_similarities(vectors, pairs, "cosine") for vectors in (plain, int8)
    )
    agreement = Correlation(before, after).scores()["spearman"]
    labels = {}
    if task is not None:
        by_label = correlation(before, task.labels, task.name)
        labels["spearman"] = by_label.scores()["spearman"]
        by_label = Correlation(after, task.labels)
        labels["spearman_int8"] = by_label.scores()["spearman"]
    mean = float(cosines.mean())
    lowest = float(cosines.min())
    loss = Loss(len(rows), source, mean, lowest, agreement, **labels)
    if not (mean >= _MIN_COSINE and agreement >= _MIN_AGREEMENT):
        raise DataError(
            f"{loss}; expected a mean cosine of at least {_MIN_COSINE} and a Spearman of at least "
            f"{_MIN_AGREEMENT}: int8 is too imprecise for this model; nothing was written, export it in fp32",
            path=path,
        )
    return loss
