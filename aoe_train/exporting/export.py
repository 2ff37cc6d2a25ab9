"""A trained model as a folder that stands by itself, checked before it is there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch

from aoe_train.evaluation.overlap import DIGESTS_FILE
from aoe_train.exporting.card import card_data, graph_usage, head, mixed_with, usage
from aoe_train.exporting.loss import Loss, measure
from aoe_train.exporting.onnx import GRAPHS, Graph, onnx_encoder, quantize_onnx, require_onnx, write_onnx
from aoe_train.model.backbones.decoder import has_lora, merge_lora
from aoe_train.model.backbones.static import refuse_static
from aoe_train.model.folder_checks import read_object
from aoe_train.model.interchange import needs_toolkit
from aoe_train.model.precision import DTYPES
from aoe_train.model.run_folder import RUN_FILE
from pairkit import __version__
from pairkit.app.errors import ConfigError, DataError
from pairkit.system.files import whole_folder, write_json, write_text

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

    from aoe_train.evaluation.pairs import PairTask
    from aoe_train.model.encoder import Encoder


_SENTENCE = "The compiler panics when a file is opened from the menu, but not when it is saved. "


def probes(max_length: int) -> list[str]:
    """Texts to compare on: short, of several scripts, and longer than `max_length` tokens."""
    return ["crash", "A man is playing a flute.", "naïve Straße 東京 🙂", _SENTENCE, _SENTENCE * max_length]


def difference(found: Float[np.ndarray, "text dim"], expected: Float[np.ndarray, "text dim"]) -> float:
    """The largest difference of two vectors of a text, relative to the expected one's length."""
    if found.shape != expected.shape:
        return float("inf")
    apart = np.linalg.norm(found.astype(np.float64) - expected, axis=1)
    relative = apart / np.maximum(np.linalg.norm(expected.astype(np.float64), axis=1), 1e-12)
    return float("inf") if np.isnan(relative).any() else float(relative.max())


def verify(
    encode: Callable[[Sequence[str]], np.ndarray],
    texts: Sequence[str],
    expected: Float[np.ndarray, "text dim"],
    *,
    path: Path,
    within: float,
) -> float:
    """Encode `texts` by the export and compare."""
    found = difference(encode(texts), expected)
    if found > within:
        raise DataError(
            f"the export's vectors differ from the model's by {found:.1e} of their length; expected at most "
            f"{within:.0e}; nothing was written",
            path=path,
        )
    return found


Format = Literal["sentence-transformers", "onnx", "onnx-int8"]
Dtype = Literal["fp32", "bf16", "fp16"]
_WITHIN, _GRAPH_WITHIN = 1e-5, 1e-4


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
            computed in float32 with the weights as stored; for int8 before the weights became int8.
        rounding: The same, from the model as it was: what merging and storing in `dtype` changed.
        needs_toolkit: Why the reader needs aoe-toolkit; None if it does not.
        loss: What int8 changed; None in other formats.
        weight_mix: Share of the trained weights, where they are mixed with the backbone's; else None.
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
    weight_mix: float | None = None

    def notes(self) -> list[str]:
        """How far the vectors differ, and what a reader needs."""
        needed = f"its readers need aoe-toolkit and trust_remote_code=True: {self.needs_toolkit}"
        return [
            f"vectors differ by at most {self.difference:.0e} of their length; "
            f"weights stored as {self.dtype} change them by {self.rounding:.0e}",
            *([str(self.loss)] if self.loss else []),
            *([needed] if self.needs_toolkit else []),
        ]

    def tables(self) -> list[str]:
        """The folder."""
        return [str(self.out)]

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to send it to the Hub."""
        return [("upload it to the Hub", ["hf", "upload", "OWNER/NAME", str(self.out), "--private"])]

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe export --json`."""
        return {**asdict(self), "out": str(self.out)}


def export(
    encoder: Encoder,
    out: str | Path,
    *,
    source: str | Path,
    form: Format,
    dtype: Dtype = "fp32",
    task: PairTask | None = None,
    weight_mix: float | None = None,
    merged: bool = False,
) -> Exported:
    """Write `encoder`, in float32, to the folder `out`, whole and verified, or not at all.

    A card, a run.json and digests of texts in `source` are taken along.
    """
    out, source = Path(out), Path(source)
    check(out, form, dtype)
    refuse_static(encoder.model.backbone, f"{source}: export")
    texts = probes(encoder.settings.max_length or 1)
    original = encoder.encode(texts)
    if has_lora(encoder.model.backbone):
        merge_lora(encoder.model.backbone)
        merged = True
    encoder.model.to(DTYPES[dtype]).float()
    expected = encoder.encode(texts)
    graph = GRAPHS.get(form)
    within = _WITHIN if graph is None else _GRAPH_WITHIN
    with whole_folder(out) as folder:
        found, reason = _write(encoder, folder, graph, DTYPES[dtype])
        apart = verify(found, texts, expected, path=out, within=within)
        for name in encoder.settings.prompts:
            expected_so = encoder.encode(texts[:1], prompt_name=name)
            verify(partial(found, prompt_name=name), texts[:1], expected_so, path=out, within=within)
        loss = _to_int8(encoder, folder, graph, task, out) if graph and graph.int8 else None
        rounding = difference(expected, original)
        done = Exported(out, form, dtype, encoder.dim, merged, apart, rounding, reason, loss, weight_mix)
        _describe(done, encoder, source, folder)
    return done


def backbone_of(model: str | Path, folder: Path) -> str:
    """What a model was trained from, by the record in its folder."""
    try:
        sources = read_object(folder / RUN_FILE).get("sources")
    except DataError:
        sources = None
    found = sources.get("backbone") if isinstance(sources, dict) else None
    if not isinstance(found, str):
        raise ConfigError(f"{model}: has no record of what it was trained from; give --backbone")
    return found


@torch.no_grad()
def mix(encoder: Encoder, backbone: Encoder, share: float) -> bool:
    """Average `encoder` with its backbone, in place (WiSE-FT, Eq. 1); whether it had adapters."""
    if not 0 < share <= 1:
        raise ConfigError(f"weight_mix: found {share:g}; expected a share above 0, and 1 at most")
    adapters = has_lora(encoder.model.backbone)
    for one in (encoder, backbone):
        if has_lora(one.model.backbone):
            merge_lora(one.model.backbone)
    trained, first = (dict(one.model.named_parameters()) for one in (encoder, backbone))
    if {name: weight.shape for name, weight in trained.items()} != {
        name: weight.shape for name, weight in first.items()
    }:
        raise ConfigError(
            "weight_mix: the model has other weights than its backbone; give the --backbone it began as"
        )
    for name, weight in trained.items():
        weight.copy_(first[name].lerp(weight, share))
    return adapters


def check(out: Path, form: str, dtype: str, *, measured: bool = False) -> None:
    """Refuse what is known to fail before a model is loaded for it."""
    if form not in get_args(Format) or dtype not in DTYPES:
        raise ConfigError(
            f"can't export {form} in {dtype}; formats are {', '.join(get_args(Format))}, "
            f"dtypes {', '.join(DTYPES)}"
        )
    if out.exists():
        raise ConfigError(f"{out}: already exists; give another folder to --out, or remove it")
    graph = GRAPHS.get(form)
    if graph is not None:
        require_onnx()
        if dtype != "fp32":
            raise ConfigError(f"--dtype {dtype}: a graph is exported in fp32 or int8; leave --dtype out")
    if measured and not (graph and graph.int8):
        raise ConfigError("--data is what the loss of int8 is measured on; give it with an int8 --format")


def _write(
    encoder: Encoder, folder: Path, graph: Graph | None, dtype: torch.dtype
) -> tuple[Callable[..., np.ndarray], str | None]:
    """What encodes texts by the written folder, with a `prompt_name` too, and why it needs this package."""
    if graph is not None:
        with TemporaryDirectory() as model:
            encoder.save(Path(model))
            write_onnx(folder, Path(model), encoder.settings, encoder.model.token_dim)
        return onnx_encoder(folder, encoder.settings.named_prompts), None
    encoder.model.to(dtype)
    encoder.save(folder)
    reason = needs_toolkit(folder, encoder.settings)
    return _their_encoder(folder, trust=reason is not None), reason


def _to_int8(encoder: Encoder, folder: Path, graph: Graph, task: PairTask | None, out: Path) -> Loss:
    """Replace the verified float32 graph by one in int8, and measure what that changed."""
    quantize_onnx(folder)
    found = onnx_encoder(folder, encoder.settings.named_prompts, file=graph.file)
    return measure(encoder.encode, found, task, path=out)


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
    name, settings, graph = done.out.name, encoder.settings, GRAPHS.get(done.format)
    if (source / DIGESTS_FILE).is_file():
        shutil.copyfile(source / DIGESTS_FILE, folder / DIGESTS_FILE)
    card = source / "README.md"
    changed = mixed_with(done.weight_mix)
    if graph is None and card.is_file() and not changed:
        shutil.copyfile(card, folder / "README.md")
    else:
        use = (
            usage(name, prompts=settings.named_prompts, needs_toolkit=done.needs_toolkit)
            if graph is None
            else graph_usage(name, settings, graph, done.loss)
        )
        about = card_data(card) if card.is_file() else {}
        tags = () if graph is None else ("onnx", "transformers.js")
        write_text(folder / "README.md", head(name, done.dim, tags=tags, about=about) + changed + use)
    facts: dict[str, Any] = {**asdict(done), "out": name, "version": __version__}
    made = read_object(source / RUN_FILE) or {"source": source.name}
    write_json(folder / RUN_FILE, {**made, "export": facts})
