"""Give a model to other programs: export it, distil it into a static one, or serve it."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aoe_train.api.parameters import (
    MODEL,
    as_list,
    loaded,
    notes,
    optional,
    options,
)
from pairkit.base.cli.options import OUTPUT, RUN, Request, parameter, takes
from pairkit.base.cli.progress import Display, Listener, Progress, stage
from pairkit.base.errors import ConfigError

if TYPE_CHECKING:
    from aoe_train.encoding.embedders.embedder import Embedder
    from aoe_train.exporting.export import Dtype, Exported, Format
    from aoe_train.exporting.static_model import Distilled
    from aoe_train.model.encoder import Encoder
    from aoe_train.searching.index import SearchIndex
    from aoe_train.searching.serve.embedding_server import EmbeddingServer
    from pairkit.dataset.reading.in_memory import Source

_SERVER = "Server"
_LIMITS = "Limits"


class ExportRequest(Request, shared=options):
    """The arguments of `export`."""

    model: str | Path
    _: KW_ONLY
    out: str | Path
    format: str = parameter(
        default="sentence-transformers", metavar="NAME", panel=OUTPUT, main=True
    )
    dtype: str = parameter(default="fp32", metavar="NAME", panel=OUTPUT, main=True)
    layers: int | None = None
    interpolate: float | None = optional(panel=MODEL, main=True)
    default_prompt: str | None = optional(metavar="NAME", panel=MODEL)
    backbone: str | Path | None = optional(metavar="MODEL", panel=MODEL)
    data: Source | None = optional(options["data"], main=False)
    fresh: bool = False
    progress: bool | Listener = True


@takes(ExportRequest)
def export(request: ExportRequest) -> Exported:
    """Write a model as a self-contained folder.

    LoRA adapters are merged, and the export's vectors are compared with the model's.

    Args:
        model: A folder, a Hub id, minilm or smollm2.
        out: Folder of the export.
        format: Format of the export: sentence-transformers, onnx or onnx-int8. `onnx/model.onnx` is for
            sentence-transformers (`backend="onnx"`), transformers.js and fastembed; int8 is
            `onnx/model_qint8.onnx`, and the card has its measured loss of quality.
        dtype: Data type of the weights: fp32, bf16 or fp16. ONNX graphs are fp32 or int8.
        layers: Export only the first N layers of the model. Default: all.
        interpolate: Weight of the trained model when averaged with its backbone, above 0 to 1 (WiSE-FT).
            Several exports of one model show the best weight. Default: 1.
        default_prompt: Name of the prompt that plain `encode` uses, such as document for programs that name
            none; they then also use it for queries. Default: the model's default.
        backbone: The model's backbone, for averaging. Default: the recorded one.
        data: Labelled pairs to measure int8's loss on: a folder, a file or a Hub id. In Python also rows in
            memory. Of several splits, test is used. Default: cosines of built-in sentences are compared.

    Raises:
        ConfigError: `out` has something else, or the model can't be exported in this format.
        DataError: The export's vectors differ from the model's (int8: by too much); nothing is written.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import aoe_train
        >>> aoe_train.export("model", out="small", dtype="bf16", progress=False).dtype
        'bf16'
    """
    from pydantic import Field

    from aoe_train.evaluation.pair_task import PairSource
    from aoe_train.exporting import export as exporting
    from aoe_train.exporting.onnx import Loss
    from aoe_train.model.backbones.load_backbone import find_folder
    from aoe_train.model.encoder import Encoder
    from aoe_train.model.run_folder import digest_of, exported_there
    from pairkit.base.settings import argument
    from pairkit.base.system.folders import check_same_run

    model: str | Path = argument("model", request.model, str | Path)
    export_format: Format = argument("format", request.format, exporting.Format)
    dtype: Dtype = argument("dtype", request.dtype, exporting.Dtype)
    exporting.check_options(export_format, dtype, measured=request.data is not None)
    folder = argument("out", request.out, Path)
    earlier = exported_there(folder, "export", fresh=request.fresh)
    interpolate = argument(
        "interpolate",
        request.interpolate,
        Annotated[float, Field(gt=0, le=1)] | None,
    )
    if request.backbone is not None and interpolate is None:
        raise ConfigError(
            "--backbone without --interpolate has no effect; add --interpolate"
        )
    task = None
    data = None
    if request.data is not None:
        task = PairSource(request.data).task()
        data = digest_of({"texts": list(task.texts), "labels": task.labels.tolist()})

    with Display(request.progress) as show:
        prompt = request.default_prompt
        load = partial(
            Encoder.load, device="cpu", precision="fp32", layers=request.layers
        )
        with stage(f"load {model}", show):
            source = find_folder(model)
            encoder = load(source, default_prompt_name=prompt)
        merged = False
        if interpolate is not None:
            original = request.backbone or exporting.backbone_of(model, source)
            with stage(f"load {original}", show):
                merged = exporting.mix(encoder, load(original), interpolate)
        made_of = {
            "model": digest_of(encoder.identity()),
            "format": export_format,
            "dtype": dtype,
            "interpolate": interpolate,
            "default_prompt": prompt,
            "data": data,
        }
        if earlier is not None:
            check_same_run(folder, earlier["made_of"], made_of)
            if earlier["loss"] is not None:
                earlier["loss"] = Loss(**earlier["loss"])
            return exporting.Exported.from_facts(folder, earlier)
        show(Progress(f"write and check {folder}"))
        changes = (request.layers, interpolate, prompt)
        return exporting.export(
            encoder,
            folder,
            source=source,
            export_format=export_format,
            dtype=dtype,
            task=task,
            interpolate=interpolate,
            merged=merged,
            keep_card=all(change is None for change in changes),
            made_of=made_of,
        )


@options()
def distill(
    texts: Source,
    *,
    model: str | Path | Encoder,
    out: str | Path,
    dim: int | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Distilled:
    """Distil a model into a static one, which looks up one vector per token instead of running a network.

    A text's vector is the mean of its token vectors: hundreds of times faster, but without word order. The
    token vectors are fitted by least squares to the model's vectors of the texts, starting from Model2Vec's
    (each token encoded on its own, weighted by its rarity). No labels and no GPU are needed.
    sentence-transformers and `evaluate` load the folder. The model's vectors are cached in
    `$AOE_CACHE/vectors`, so a killed call continues.

    Args:
        texts: Unlabelled texts: a file, a folder or a Hub id. In Python also rows in memory. They should
            resemble the texts that the static model will encode. All texts of a row are used. About 20,000
            texts make a good model; more are better.
        out: Folder of the static model.
        dim: Reduce vectors to N dimensions (PCA). Default: the model's.
        fresh: Replace a static model of other texts, another model or another size.

    Returns:
        Counts, and the similarity to the model's vectors on held-out texts.

    Raises:
        ConfigError: `out` has something else, `dim` exceeds the model's, or the model can't be distilled.
        DataError: Too few texts.
        RemoteError: The Hub could not be reached.
    """
    from pydantic import PositiveInt

    from aoe_train.data.examples import read_examples
    from aoe_train.encoding.embedders.cached import CachedEmbedder
    from aoe_train.encoding.embedders.embedder import LocalEmbedder
    from aoe_train.exporting.static_model import Distilled, distil, write
    from aoe_train.model.run_folder import digest_of, exported_there, hash_examples
    from pairkit.base.settings import argument
    from pairkit.base.system.folders import check_same_run

    folder = argument("out", out, Path)
    size = argument("dim", dim, PositiveInt | None)
    earlier = exported_there(folder, "distill", fresh=fresh)
    examples = read_examples(texts, meant="texts")
    with Display(progress) as show:
        name = "encoder"
        precision = None
        if isinstance(model, str | Path):
            name = str(model)
            precision = "fp32"
        encoder = loaded(model, precision, show, notes(progress))
        full_dim = encoder.dim
        if size is None:
            size = full_dim
        if size > full_dim:
            raise ConfigError(
                f"--dim {size}: the model's vectors have {full_dim} dimensions"
            )
        made_of = {
            "texts": hash_examples(examples),
            "model": digest_of(encoder.identity()),
            "dim": size,
        }
        if earlier is not None:
            check_same_run(folder, earlier["made_of"], made_of)
            return Distilled.from_facts(folder, earlier)
        embedder = LocalEmbedder(encoder, name)
        encode = CachedEmbedder(embedder, show=show).encode
        static, result = distil(encoder, encode, examples.texts, folder, size, show)
        write(
            static,
            result,
            source=encoder.folder,
            full_dim=full_dim,
            texts=examples.texts,
            made_of=made_of,
            model=embedder.name,
        )
    return result


class ServeRequest(
    Request, shared=options, settings="aoe_train.searching.serve.batching:Limits"
):
    """The arguments of `serve`."""

    model: str | Path | Encoder | None = None
    _: KW_ONLY
    index: str | Path | None = optional(metavar="INDEX", panel=MODEL, main=True)
    against: str | Path | None = optional(metavar="INDEX", panel=MODEL, main=True)
    host: str = parameter(
        default="127.0.0.1", metavar="ADDRESS", panel=_SERVER, main=True
    )
    port: int = parameter(default=8000, short="-p", panel=_SERVER, main=True)
    name: str | None = optional(metavar="NAME", panel=MODEL)
    key_env: str | None = optional(metavar="NAME", panel=_SERVER, main=True)
    no_key: bool = parameter(default=False, panel=_SERVER)
    precision: str | None = None
    layers: int | None = None
    batch_tokens: int | None = optional(setting="batch_tokens", panel=RUN)
    max_texts: int | None = optional(setting="texts", panel=_LIMITS)
    max_queue: int | None = optional(setting="queue", panel=_LIMITS)
    max_body: int | None = optional(setting="body_mib", metavar="MIB", panel=_LIMITS)
    progress: bool | Listener = True


@takes(ServeRequest)
def serve(request: ServeRequest) -> EmbeddingServer:
    """Serve a model as OpenAI's /v1/embeddings, and an index as a search page at / and as /search.

    Requests that arrive while the model runs form the next batch. On SIGTERM or Ctrl-C, requests in progress
    are finished.

    Args:
        model: A folder, a Hub id, minilm or smollm2; also a static model. In Python also an `Encoder`.
            Default: the model that the index records.
        index: Index to search, built by `aoe index` with this model.
        against: Another index, such as of the same texts before training. The page shows its hits beside.
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        name: Model name for clients. Default: the model's own name.
        key_env: Environment variable with the key that clients must send.
        no_key: Allow other hosts than 127.0.0.1 without a key.

    Raises:
        ConfigError: No such model, index, address or key, a number out of range, or a public host without
            `key_env` or `no_key`.
        DataError: A damaged model or index.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import aoe_train, requests
        >>> with aoe_train.serve("model", port=0, progress=False) as server:
        ...     asked = {"input": ["A plane is taking off."], "model": server.model}
        ...     reply = requests.post(f"{server.url}/v1/embeddings", json=asked).json()
        >>> len(reply["data"])
        1
    """
    from pairkit.base.extras import needed_for

    with needed_for("`aoe serve`", "serve"):
        from aoe_train.searching.serve.embedding_server import (
            EmbeddingServer,
            check_open,
        )
    from aoe_train.searching.index import SearchIndex
    from aoe_train.searching.serve.batching import Limits
    from pairkit.base.settings import argument, load_settings

    limits = load_settings(Limits, request.flags())
    if request.model is None and request.index is None:
        raise ConfigError(
            "nothing to serve; give --model, or --index with an index of `aoe index`"
        )
    if request.against is not None and request.index is None:
        raise ConfigError(
            "--against: needs --index, the index to compare with; give it, too"
        )
    check_open(request.host, has_key=request.key_env is not None, no_key=request.no_key)
    key = _server_key(request.key_env)
    folders = {"index": request.index, "against": request.against}
    paths = [
        argument(name, folder, Path)
        for name, folder in folders.items()
        if folder is not None
    ]
    indexes = list(map(SearchIndex, paths))
    embedders = _served_models(request, indexes)
    for index, embedder in zip(indexes, embedders, strict=False):
        index.use(embedder)
    return EmbeddingServer(
        embedders,
        name=request.name or embedders[0].name,
        indexes=indexes,
        host=request.host,
        port=request.port,
        key=key,
        limits=limits,
    )


def _server_key(key_env: str | None) -> str | None:
    """The key that clients must send, from the environment."""
    from pydantic import AfterValidator

    from pairkit.base.openai_api.credentials import find_key, variable_name
    from pairkit.base.settings import argument

    variable = argument(
        "key_env", key_env, Annotated[str, AfterValidator(variable_name)] | None
    )
    if variable is None:
        return None
    return find_key("aoe serve", variable, os.environ, f"set {variable}").secret


def _served_models(request: ServeRequest, indexes: list[SearchIndex]) -> list[Embedder]:
    """The given model, and those that the other indexes record."""
    from aoe_train.encoding.embedders.cached import open_model
    from aoe_train.settings.train_settings import named_precision

    models: list[str | Path | Encoder] = as_list(request.model)
    models += [index.recorded_model() for index in indexes[len(models) :]]
    return [
        open_model(
            model,
            precision=named_precision(request.precision),
            layers=request.layers,
            say=notes(request.progress),
        )
        for model in models
    ]
