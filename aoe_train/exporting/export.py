"""Exports a trained model as a self-contained folder, which is verified before it appears."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy import ndarray

from aoe_train.evaluation.overlap import DIGESTS_FILE
from aoe_train.exporting.onnx import (
    GRAPHS,
    INT8,
    Loss,
    measure,
    onnx_encoder,
    quantize_onnx,
    require_onnx,
    write_onnx,
)
from aoe_train.exporting.usage_card import (
    exported_card_head,
    graph_usage,
    mix_note,
    usage,
)
from aoe_train.model.backbones.changes import has_lora, merge_lora
from aoe_train.model.backbones.packaged import quietly
from aoe_train.model.backbones.static import refuse_static
from aoe_train.model.encoder_settings import needs_toolkit
from aoe_train.model.folder_checks import read_object
from aoe_train.model.precision import DTYPES
from aoe_train.model.run_folder import RUN_FILE, OutputResult
from pairkit import __version__
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.extras import needed_for
from pairkit.base.system.files import whole_folder, write_json, write_text

if TYPE_CHECKING:
    from jaxtyping import Float

    from aoe_train.evaluation.pair_task import PairTask
    from aoe_train.model.encoder import Encoder
    from aoe_train.settings.train_settings import EncoderSettings


Format = Literal["sentence-transformers", "onnx", "onnx-int8"]
Dtype = Literal["fp32", "bf16", "fp16"]
# Largest relative differences between vectors of the export and of the model.
_TOLERANCE = 1e-5
_GRAPH_TOLERANCE = 1e-4
_SENTENCE = "The compiler panics when a file is opened from the menu, but not when it is saved. "


@dataclass(frozen=True)
class Exported(OutputResult):
    """The result of an export.

    Attributes:
        out: The folder.
        format: Its format.
        dtype: Data type of its weights.
        dim: Dimensions of a vector.
        merged: Whether adapters were merged into the weights.
        difference: Largest relative difference between the export's and the model's vectors, both computed in
            float32 with the stored weights; for int8 before quantization.
        rounding: Largest relative change of vectors by merging adapters and storing weights in `dtype`.
        needs_toolkit: Why readers need aoe-toolkit; None if they don't.
        loss: The loss by int8; None for other formats.
        interpolate: Share of the trained weights when averaged with the backbone's; None if they weren't.
    """

    out: Path
    format: Format
    dtype: Dtype
    dim: int
    merged: bool
    difference: float
    rounding: float
    needs_toolkit: str | None
    loss: Loss | None = None
    interpolate: float | None = None

    def notes(self) -> list[str]:
        """Differences of vectors, and requirements of readers."""
        notes = [
            f"vectors differ by at most {self.difference:.0e} of their length;"
            f" storing weights as {self.dtype} changes them by {self.rounding:.0e}"
        ]
        if self.loss:
            notes.append(str(self.loss))
        if self.needs_toolkit:
            notes.append(
                f"readers need aoe-toolkit and trust_remote_code=True: {self.needs_toolkit}"
            )
        return notes

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to send it to the Hub."""
        upload = ["hf", "upload", "OWNER/NAME", str(self.out), "--private"]
        return [("upload it to the Hub", upload)]


def export(
    encoder: Encoder,
    out: Path,
    *,
    source: Path,
    export_format: Format,
    dtype: Dtype = "fp32",
    task: PairTask | None = None,
    interpolate: float | None = None,
    merged: bool = False,
    keep_card: bool = True,
    made_of: Mapping[str, object] = {},
) -> Exported:
    """Write a float32 `encoder` to the folder `out` once it is verified, with the records of `source`.

    `encoder` is changed: its adapters are merged, and its weights are rounded to `dtype`.
    """
    refuse_static(encoder.model.backbone, f"{source}: export")
    texts = probes(encoder.settings.max_length or 1)
    original = encoder.encode(texts)
    merged |= has_lora(encoder.model.backbone)
    merge_lora(encoder.model.backbone)
    # Round to the stored precision, compute in fp32.
    encoder.model.to(DTYPES[dtype]).float()
    expected = encoder.encode(texts)
    graph_file = GRAPHS.get(export_format)
    within = _TOLERANCE if graph_file is None else _GRAPH_TOLERANCE
    with whole_folder(out) as folder:
        encode, reason = _write_model(encoder, folder, graph_file, DTYPES[dtype])
        largest = verify(encode, texts, expected, path=out, within=within)
        for name in encoder.settings.prompts:
            encode_prompted = partial(encode, prompt_name=name)
            prompted = encoder.encode(texts[:1], prompt_name=name)
            verify(encode_prompted, texts[:1], prompted, path=out, within=within)
        loss = None
        if export_format == INT8:  # replaces the verified float32 graph
            quantize_onnx(folder)
            prompts = encoder.settings.named_prompts
            encode = onnx_encoder(folder, prompts, file=GRAPHS[INT8])
            loss = measure(encoder.encode, encode, task, path=out)
        exported = Exported(
            out,
            export_format,
            dtype,
            dim=encoder.dim,
            merged=merged,
            difference=largest,
            rounding=difference(expected, original),
            needs_toolkit=reason,
            loss=loss,
            interpolate=interpolate,
        )
        _write_card(exported, encoder.settings, source, folder, keep=keep_card)
        _write_records(exported, source, folder, made_of)
    return exported


def check_options(export_format: Format, dtype: Dtype, *, measured: bool) -> None:
    """Raise ConfigError for options that conflict, before a model is loaded."""
    if export_format in GRAPHS:
        if dtype != "fp32":
            raise ConfigError(
                f"--dtype {dtype}: a graph is always in fp32 or int8; leave --dtype out"
            )
        require_onnx()
    if measured and export_format != INT8:
        raise ConfigError(
            "--data measures the loss by int8; use an int8 --format, or leave --data out"
        )


def backbone_of(model: str | Path, folder: Path) -> str:
    """The backbone of a trained model, from the record in its folder."""
    sources = read_object(folder / RUN_FILE).get("sources")
    backbone = sources.get("backbone") if isinstance(sources, dict) else None
    if not isinstance(backbone, str):
        raise ConfigError(
            f"{model}: its run.json doesn't name its backbone; give --backbone"
        )
    return backbone


@torch.no_grad()
def mix(encoder: Encoder, backbone: Encoder, share: float) -> bool:
    """Average `encoder` with its backbone, in place (WiSE-FT, Eq. 1); returns whether it had adapters."""
    had_adapters = has_lora(encoder.model.backbone)
    for model in (encoder.model, backbone.model):
        merge_lora(model.backbone)
    trained = dict(encoder.model.named_parameters())
    original = dict(backbone.model.named_parameters())
    if trained.keys() != original.keys() or any(
        weight.shape != original[name].shape for name, weight in trained.items()
    ):
        raise ConfigError(
            "interpolate: the weights of model and backbone have different names or shapes; give the original"
            " --backbone"
        )
    for name, weight in trained.items():
        weight.copy_(original[name].lerp(weight, share))
    return had_adapters


def _write_model(
    encoder: Encoder,
    folder: Path,
    graph_file: str | None,
    dtype: torch.dtype,
) -> tuple[Callable[..., ndarray], str | None]:
    """Write the folder; returns a function that encodes with it, and why readers need aoe-toolkit."""
    if graph_file is not None:
        with TemporaryDirectory() as saved:
            encoder.save(saved)
            write_onnx(folder, Path(saved), encoder.settings, encoder.model.token_dim)
        return onnx_encoder(folder, encoder.settings.named_prompts), None
    encoder.model.to(dtype)
    encoder.save(folder)
    encoder.model.float()  # is compared with the saved model, which is read as float32
    reason = needs_toolkit(folder, encoder.settings)
    # As a reader of the export would.
    with needed_for("the check of an export"), quietly():
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(
            str(folder),
            device="cpu",
            trust_remote_code=reason is not None,
            local_files_only=True,
            model_kwargs={"dtype": torch.float32},
        )
    return partial(model.encode, show_progress_bar=False), reason


def _write_card(
    exported: Exported,
    settings: EncoderSettings,
    source: Path,
    folder: Path,
    *,
    keep: bool,
) -> None:
    """Copy the source's card, or write a new one with its metadata if it would describe another use."""
    card = source / "README.md"
    name = exported.out.name
    graph_file = GRAPHS.get(exported.format)
    if graph_file is not None:
        use = graph_usage(name, settings, graph_file, exported.loss)
        tags = ["onnx", "transformers.js"]
    elif keep and card.is_file():
        shutil.copyfile(card, folder / "README.md")
        return
    else:
        use = usage(
            name, prompts=settings.named_prompts, needs_toolkit=exported.needs_toolkit
        )
        tags = []
    head = exported_card_head(name, exported.dim, tags=tags, source=card)
    write_text(folder / "README.md", head + mix_note(exported.interpolate) + use)


def _write_records(
    exported: Exported, source: Path, folder: Path, made_of: Mapping[str, object]
) -> None:
    """Write the source's hashes and record, if it has any, and how the export was made from it."""
    if (source / DIGESTS_FILE).is_file():
        shutil.copyfile(source / DIGESTS_FILE, folder / DIGESTS_FILE)
    run = read_object(source / RUN_FILE) or {"source": source.name}
    about = asdict(exported) | {"out": exported.out.name, "version": __version__}
    about["made_of"] = made_of
    write_json(folder / RUN_FILE, {**run, "export": about})


def probes(max_length: int) -> list[str]:
    """Texts for verification: short ones, several scripts, and one longer than `max_length` tokens."""
    return [
        "crash",
        "A man is playing a flute.",
        "naïve Straße 東京 🙂",
        _SENTENCE,
        _SENTENCE * max_length,
    ]


def difference(
    vectors: Float[ndarray, "text dim"],
    expected: Float[ndarray, "text dim"],
) -> float:
    """The largest distance between two vectors of a text, relative to the expected one's length."""
    if vectors.shape != expected.shape:
        return float("inf")
    distances = np.linalg.norm(vectors.astype(np.float64) - expected, axis=1)
    lengths = np.linalg.norm(expected.astype(np.float64), axis=1)
    return float((distances / np.maximum(lengths, 1e-12)).max())


def verify(
    encode: Callable[[Sequence[str]], ndarray],
    texts: Sequence[str],
    expected: Float[ndarray, "text dim"],
    *,
    path: Path,
    within: float,
) -> float:
    """Return the largest difference of the export's vectors; raise DataError if it is above `within`."""
    largest = difference(encode(texts), expected)
    if not largest <= within:  # also NaN
        raise DataError(
            f"the export's vectors differ from the model's by {largest:.1e} of their length; expected at most"
            f" {within:.0e}; nothing was written",
            path=path,
        )
    return largest
