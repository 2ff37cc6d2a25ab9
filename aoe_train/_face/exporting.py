"""Models in other forms, as `aoe export` and `aoe convert` make them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from aoe_train._export.export import Dtype, Exported, Format
    from pairkit.hub import Pushed
    from pairkit.in_memory import Source
    from pairkit.progress import Listener


@dataclass(frozen=True)
class Converted:
    """A model folder made of a published checkpoint, for `train(backbone=...)`."""

    out: Path
    parameters: int
    layers: int


def export(
    model: str | Path,
    *,
    out: str | Path,
    format: str = "sentence-transformers",  # noqa: A002 - named as the flag
    dtype: str = "fp32",
    layers: int | None = None,
    soup: float | None = None,
    backbone: str | Path | None = None,
    whiten: Source | None = None,
    whiten_dim: int | None = None,
    flow: Source | None = None,
    data: Source | None = None,
    progress: bool | Listener = True,
) -> Exported:
    """Write a model as a folder that stands by itself, LoRA merged, checked to give the same vectors.

    Args:
        model: A model's folder, a Hub id, `minilm` or `smollm2`.
        out: A folder that doesn't exist yet.
        format: sentence-transformers, or a graph beside config and tokenizer: onnx (`onnx/model.onnx`, as
            sentence-transformers' `backend="onnx"`, transformers.js and fastembed load it), onnx-int8
            (`onnx/model_qint8.onnx`), openvino (`openvino/openvino_model.xml`) or openvino-int8
            (`openvino/openvino_model_qint8.xml`). What int8 loses is measured and stands in the card.
        dtype: Store weights as fp32, bf16 or fp16; graphs are fp32 or int8 by their format.
        layers: Keep so many of the model's layers, the first ones; the export is then checked against the
            model that has no more.
        soup: Keep so much of the trained weights, above 0 and at most 1, and the rest of the backbone's
            (WiSE-FT). Several exports of one model show how much of it suits best.
        backbone: What the model was trained from, for `soup`; by default what its record says.
        whiten: Texts without labels by whose vectors the model's are whitened, so that they have mean 0 and
            unit covariance (BERT-whitening): a path, a Hub id, or rows in memory. The export has one dense
            layer more.
        whiten_dim: Keep so many directions of a whitened vector, those of the largest variance.
        flow: Texts without labels to whose vectors an invertible flow is fitted, so that they are distributed
            as a Gaussian (BERT-flow): a path, a Hub id, or rows in memory. Readers need this package then.
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
    from aoe_train._backbones.load import find_folder
    from aoe_train._baselines.flow import fit_flow
    from aoe_train._baselines.whitening import whiten as white
    from aoe_train._encoder import Encoder
    from aoe_train._evaluate import read_pair_task
    from aoe_train._examples import read_examples
    from aoe_train._export import export as use_case
    from aoe_train._export.soup import backbone_of, mix
    from pairkit.errors import ConfigError
    from pairkit.progress import Display, Progress, stage

    use_case.check(Path(out), format, dtype, measured=data is not None)
    if whiten_dim is not None and whiten is None:
        raise ConfigError(f"--whiten-dim {whiten_dim}: says what --whiten keeps; give it too")
    if flow is not None and format != "sentence-transformers":
        raise ConfigError(f"--flow with --format {format}: no graph can hold a flow; leave --format out")
    if backbone is not None and soup is None:
        raise ConfigError("--backbone: says what --soup mixes the model with; give it too")
    texts = None if whiten is None else read_examples(whiten).texts
    fitted = None if flow is None else read_examples(flow).texts
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
        whitened = None if texts is None else white(encoder, texts, whiten_dim, progress=show)
        flowed = None if fitted is None else fit_flow(encoder, fitted, progress=show)
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
            whitened=whitened,
            flowed=flowed,
        )


def convert(
    checkpoint: str | Path,
    *,
    vocab: str | Path,
    out: str | Path,
    heads: int | None = None,
    cased: bool = False,
) -> Converted:
    """Turn a published RAN checkpoint of TensorFlow into a model folder.

    Args:
        checkpoint: Its folder or path.
        vocab: Its vocab.txt, or a tokenizer's folder.
        out: The model's folder, which doesn't exist yet.
        heads: Attention heads; by default what its config.json says.
        cased: The vocabulary is cased.

    Raises:
        ConfigError: `out` exists, or the vocabulary is another checkpoint's.
        DataError: A damaged checkpoint.
    """
    from aoe_train._backbones.ran.convert import convert_checkpoint
    from aoe_train._backbones.ran.tokenizer import load_tokenizer
    from pairkit.errors import ConfigError
    from pairkit.files import whole_folder

    out = Path(out)
    if out.exists():
        raise ConfigError(f"{out}: exists; give another folder or remove it")
    tokenizer = load_tokenizer(Path(vocab), lowercase=not cased)
    model = convert_checkpoint(Path(checkpoint), heads=heads)
    if len(tokenizer) > model.config.vocab_size:
        raise ConfigError(
            f"{vocab}: {len(tokenizer)} tokens; the checkpoint has {model.config.vocab_size}: give its own"
        )
    with whole_folder(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    parameters = sum(weight.numel() for weight in model.parameters())
    return Converted(out, parameters, model.config.num_hidden_layers)


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
    from aoe_train._export.hub import push as send
    from pairkit.config import argument

    folder, name = argument("model", model, Path), argument("repo", repo, str)
    return send(folder, name, public=public, revision=revision, dry_run=dry_run)
