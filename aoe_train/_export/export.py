"""A trained model as a folder that stands by itself, checked before it is there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch

from aoe_train._backbones.decoder import has_lora, merge_lora
from aoe_train._evaluate.overlap import DIGESTS_FILE
from aoe_train._export.card import card_data, graph_usage, head, usage
from aoe_train._export.onnx import onnx_encoder, require_onnx, write_onnx
from aoe_train._export.verify import difference, probes, verify
from aoe_train._interchange import needs_toolkit
from aoe_train._model_folder.files import read_object
from aoe_train._precision import DTYPES
from pairkit import __version__
from pairkit.errors import ConfigError
from pairkit.files import whole_folder, write_json, write_text

if TYPE_CHECKING:
    import numpy as np

    from aoe_train._encoder import Encoder

Format = Literal["sentence-transformers", "onnx"]
Dtype = Literal["fp32", "bf16", "fp16"]
_WITHIN = {"sentence-transformers": 1e-5, "onnx": 1e-4}


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes:
        out: The folder.
        format: What can read it.
        dtype: What its weights are stored as.
        dim: Numbers in a vector.
        merged: Whether there were adapters, now part of the weights.
        difference: Largest difference of a probe's vector from the model's, relative to its length, both
            computed in float32 with the weights as stored.
        rounding: The same, from the model as it was: what merging and storing in `dtype` changed.
        needs_toolkit: Why the reader needs aoe-toolkit; None if it does not.
    """

    out: Path
    format: Format
    dtype: Dtype
    dim: int
    merged: bool
    difference: float
    rounding: float
    needs_toolkit: str | None

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe export --json`."""
        return {**asdict(self), "out": str(self.out)}


def export(
    encoder: Encoder, out: str | Path, *, source: str | Path, form: Format, dtype: Dtype = "fp32"
) -> Exported:
    """Write `encoder` to the folder `out`, whole and verified, or not at all.

    Args:
        encoder: In float32; adapters in it are merged, its weights are rounded to `dtype`.
        out: Must not exist.
        source: Where the model comes from; a card, a run.json and digests of texts there are taken along.
        form: What shall read the folder.
        dtype: What to store the weights as.

    Raises:
        ConfigError: `out` exists, or the model can't be exported so.
        DataError: the export's vectors are not the model's.
    """
    out, source = Path(out), Path(source)
    check(out, form, dtype)
    texts = probes(encoder.settings.max_length or 1)
    original = encoder.encode(texts)
    merged = has_lora(encoder.model.backbone)
    if merged:
        merge_lora(encoder.model.backbone)
    encoder.model.to(DTYPES[dtype]).float()
    expected = encoder.encode(texts)
    with whole_folder(out) as folder:
        found, reason = _write(encoder, folder, form, DTYPES[dtype])
        apart = verify(found, texts, expected, path=out, within=_WITHIN[form])
        for name in encoder.settings.prompts:
            expected_so = encoder.encode(texts[:1], prompt_name=name)
            verify(partial(found, prompt_name=name), texts[:1], expected_so, path=out, within=_WITHIN[form])
        done = Exported(out, form, dtype, encoder.dim, merged, apart, difference(expected, original), reason)
        _describe(done, encoder, source, folder)
    return done


def check(out: Path, form: str, dtype: str) -> None:
    """Refuse what is known to fail before a model is loaded for it.

    Raises:
        ConfigError: See `export`.
    """
    if form not in get_args(Format) or dtype not in DTYPES:
        raise ConfigError(
            f"can't export {form} in {dtype}; formats are {', '.join(get_args(Format))}, "
            f"dtypes {', '.join(DTYPES)}"
        )
    if out.exists():
        raise ConfigError(f"{out}: already exists; give another folder to --out, or remove it")
    if form == "onnx":
        require_onnx()
        if dtype != "fp32":
            raise ConfigError(f"--dtype {dtype}: an ONNX graph is exported in fp32; leave --dtype out")


def _write(
    encoder: Encoder, folder: Path, form: Format, dtype: torch.dtype
) -> tuple[Callable[..., np.ndarray], str | None]:
    """What encodes texts by the written folder, with a `prompt_name` too, and why it needs this package."""
    if form == "onnx":
        with TemporaryDirectory() as model:
            encoder.save(Path(model))
            write_onnx(folder, Path(model), encoder.settings, encoder.model.token_dim)
        return onnx_encoder(folder, encoder.settings.named_prompts), None
    encoder.model.to(dtype)
    encoder.save(folder)
    reason = needs_toolkit(folder, encoder.settings)
    return _their_encoder(folder, trust=reason is not None), reason


def _their_encoder(folder: Path, *, trust: bool) -> Callable[..., np.ndarray]:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ConfigError(
            "an export is checked with sentence-transformers, which isn't installed; "
            "install it with `pip install sentence-transformers`"
        ) from error

    model = SentenceTransformer(
        str(folder),
        device="cpu",
        trust_remote_code=trust,
        local_files_only=True,
        model_kwargs={"dtype": torch.float32},
    )
    return lambda texts, prompt_name=None: model.encode(
        list(texts), prompt_name=prompt_name, show_progress_bar=False
    )


def _describe(done: Exported, encoder: Encoder, source: Path, folder: Path) -> None:
    """Card, run.json and digests: the source's own if it has them, and how to use what was exported."""
    name, settings = done.out.name, encoder.settings
    if (source / DIGESTS_FILE).is_file():
        shutil.copyfile(source / DIGESTS_FILE, folder / DIGESTS_FILE)
    card = source / "README.md"
    if done.format == "sentence-transformers" and card.is_file():
        shutil.copyfile(card, folder / "README.md")
    else:
        use = (
            graph_usage(name, settings)
            if done.format == "onnx"
            else usage(name, prompts=settings.named_prompts, needs_toolkit=done.needs_toolkit)
        )
        about = card_data(card) if card.is_file() else {}
        write_text(folder / "README.md", head(name, done.dim, library=done.format, about=about) + use)
    facts: dict[str, Any] = {**asdict(done), "out": name, "version": __version__}
    write_json(folder / "run.json", {**_run(source), "export": facts})


def _run(source: Path) -> dict[str, Any]:
    path = source / "run.json"
    return read_object(path) or {"source": source.name}
