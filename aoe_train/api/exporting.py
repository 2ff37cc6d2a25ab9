"""Models in other forms, as `aoe export` makes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from aoe_train.exporting.export import Dtype, Exported, Format
    from pairkit.app.progress import Listener
    from pairkit.dataset.hub import Pushed
    from pairkit.dataset.in_memory import Source


def export(
    model: str | Path,
    *,
    out: str | Path,
    format: str = "sentence-transformers",  # noqa: A002 - named as the flag
    dtype: str = "fp32",
    layers: int | None = None,
    soup: float | None = None,
    backbone: str | Path | None = None,
    data: Source | None = None,
    progress: bool | Listener = True,
) -> Exported:
    """Write a model as a folder that stands by itself, LoRA merged, checked to give the same vectors.

    Args:
        model: A model's folder, a Hub id, `minilm` or `smollm2`.
        out: A folder that doesn't exist yet.
        format: sentence-transformers, or a graph beside config and tokenizer: onnx (`onnx/model.onnx`, as
            sentence-transformers' `backend="onnx"`, transformers.js and fastembed load it), or onnx-int8
            (`onnx/model_qint8.onnx`). What int8 loses is measured, and the card has the figures.
        dtype: Store weights as fp32, bf16 or fp16; graphs are fp32 or int8 by their format.
        layers: Keep so many of the model's layers, the first ones; the export is then checked against the
            model that has no more.
        soup: Keep so much of the trained weights, above 0 and at most 1, and the rest of the backbone's
            (WiSE-FT). Several exports of one model show how much of it suits best.
        backbone: What the model was trained from, for `soup`; by default what its record says.
        data: Pairs with labels to measure on what int8 loses: a path, a Hub id, or rows in memory; of several
            splits the test. By default the cosines of built-in sentences are compared.
        progress: Shown on stderr, or not, or told to a function.

    Raises:
        ConfigError: `out` exists, or the model can't be exported so.
        DataError: The export's vectors are not the model's, or in int8 too far from them; nothing is written.
        RemoteError: The Hub could not be asked.

    Example:
        >>> import aoe_train
        >>> aoe_train.export("model", out="small", dtype="bf16", progress=False).dtype
        'bf16'
    """
    from aoe_train.evaluation.pairs import read_pair_task
    from aoe_train.exporting import export as use_case
    from aoe_train.exporting.soup import backbone_of, mix
    from aoe_train.model.backbones.load import find_folder
    from aoe_train.model.encoder import Encoder
    from pairkit.app.errors import ConfigError
    from pairkit.app.progress import Display, Progress, stage

    use_case.check(Path(out), format, dtype, measured=data is not None)
    if backbone is not None and soup is None:
        raise ConfigError("--backbone: says what --soup mixes the model with; give it too")
    task = None if data is None else read_pair_task(data)
    with Display(progress) as show:
        with stage(f"load {model}", show):
            encoder = Encoder.load(model, device="cpu", precision="fp32", layers=layers)
        merged = False
        if soup is not None:
            first = backbone or backbone_of(model, Path(find_folder(model)))
            with stage(f"load {first}", show):
                start = Encoder.load(first, device="cpu", precision="fp32", layers=layers)
                merged = mix(encoder, start, soup)
        show(Progress(f"write and check {out}"))
        return use_case.export(
            encoder,
            out,
            source=find_folder(model),
            form=cast("Format", format),
            dtype=cast("Dtype", dtype),
            task=task,
            soup=soup,
            merged=merged,
        )


def push(
    model: str | Path, *, repo: str, public: bool = False, revision: str | None = None, dry_run: bool = False
) -> Pushed:
    """Send a model's folder, as `train` or `export` wrote it, to the Hugging Face Hub in one commit.

    The token is that of the environment variable HF_TOKEN.

    Args:
        model: The model's folder, with its card and its run.json.
        repo: `owner/name`; created unless it exists.
        public: Let everybody see it. Else a repository that is created is private, and a public one refused.
        revision: Branch to commit to, created unless it exists; the main one if None.
        dry_run: Send nothing; say what would be sent.

    Returns:
        What was sent, and the commit's address.

    Raises:
        ConfigError: `repo` is no repository's name, or is public.
        DataError: `model` is no such folder, or holds a link.
        AuthError: There is no token, or it lacks the right to write there.
        RemoteError: The Hub can't be reached or failed; nothing was changed, so call it again.
    """
    from aoe_train.exporting.hub import push as send
    from pairkit.app.settings import argument

    folder, name = argument("model", model, Path), argument("repo", repo, str)
    return send(folder, name, public=public, revision=revision, dry_run=dry_run)
