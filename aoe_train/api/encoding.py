"""The function behind `aoe encode`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import KW_ONLY, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast, overload

from aoe_train.api.parameters import FILE, MODEL, loaded, notes, optional, options
from pairkit.base.cli.options import OUTPUT, RUN, Request, parameter, takes
from pairkit.base.cli.progress import Display, Listener, stage
from pairkit.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    import numpy as np

    from aoe_train.encoding.encode_run import Embed, Encoded
    from aoe_train.encoding.encode_workers import EncodeOptions, ModelInfo, WorkerSpec
    from aoe_train.model.collection import Collection
    from aoe_train.model.encoder import Encoder


class EncodeRequest(Request, shared=options):
    """The arguments of `encode`."""

    texts: str | Path | Iterable[str]
    _: KW_ONLY
    model: str | Path | Encoder = parameter(options["model"], panel=MODEL)
    out: str | Path | None = optional(FILE, required=True)
    columns: Mapping[str, str] | None = None
    prompt_name: str | None = None
    prompt: str | None = None
    normalize: bool | None = optional(panel=RUN)
    layers: int | None = None
    dim: int | None = None
    quantize: str | None = optional(metavar="NAME", panel=OUTPUT, main=True)
    calibration: str | Path | np.ndarray | None = None
    collection: str | Path | None = optional(metavar="INDEX", panel=OUTPUT, main=True)
    precision: str | None = None
    device: str | Sequence[str] | None = optional(metavar="NAME,…", panel=RUN)
    batch_tokens: int | None = optional(panel=RUN)
    workers: int | None = optional(panel=RUN)
    engine: str = parameter(default="local", metavar="NAME", panel=RUN)
    address: str | None = optional(metavar="HOST:PORT", panel=RUN)
    fresh: bool = False
    progress: bool | Listener = True


class _Options(TypedDict, total=False):
    prompt_name: str | None
    prompt: str | None
    normalize: bool | None
    layers: int | None
    dim: int | None
    quantize: str | None
    calibration: str | Path | np.ndarray | None
    collection: str | Path | None
    precision: str | None
    batch_tokens: int | None
    progress: bool | Listener


@overload
def encode(
    texts: Iterable[str],
    *,
    model: str | Path | Encoder,
    out: None = None,
    device: str | None = None,
    **given: Unpack[_Options],
) -> np.ndarray: ...


@overload
def encode(
    texts: str | Path,
    *,
    model: str | Path | Encoder,
    out: str | Path,
    columns: Mapping[str, str] | None = None,
    device: str | Sequence[str] | None = None,
    workers: int | None = None,
    engine: str = "local",
    address: str | None = None,
    fresh: bool = False,
    **given: Unpack[_Options],
) -> Encoded: ...


@takes(EncodeRequest)
def encode(request: EncodeRequest) -> np.ndarray | Encoded:
    """Write the vector of each text, in order. Run it again to continue.

    To continue with a pipe, send the same texts again; finished ones are not encoded twice.

    Args:
        texts: A .txt file (one text per line) or a table such as CSV; - for a pipe. In Python
            also texts in memory, such as a list or a column of a DataFrame.
        out: Output file: .npy, or .parquet with the input's columns and `vector`.
        columns: Column with the text, as text=NAME. Default: recognised.
        normalize: Scale vectors to length 1. Default: the model's setting.
        layers: Use only the first N layers of a model trained with `layers`. Default: all.
        dim: Keep the first N dimensions of each vector, for a model trained with `dims`. Default: all.
        quantize: Format of the vectors: float32, int8, binary or ubinary. int8 takes a byte per number,
            binary and ubinary a bit, packed as in sentence-transformers. Default: float32.
        calibration: Vectors that set the ranges of int8: a .npy, or an int8 output to reuse its ranges. In
            Python also an array (any, dim). Default: the encoded vectors themselves.
        collection: Index of this model with a purpose. The vectors are then those that it compares, centred
            or moved by its texts, with the model's prompt for documents unless another is given. Default: the
            model's vectors.
        device: Devices to use: cpu, cuda:1, or several such as cuda:0,cuda:1, each with its own worker.
            Several are for files only. Default: the best.
        batch_tokens: Maximum number of tokens in a batch; smaller batches need less memory.
        workers: Number of processes that encode a file. The vectors are those of a single process. Workers
            share `device` or the threads of the CPU. A script that starts workers needs `if __name__ ==
            "__main__":`. On a cluster workers are Ray actors, one per GPU if there are any. Default: one per
            device, or per machine of a cluster.
        engine: Where to encode a file: local, or ray for a Ray cluster.
        address: Address of the Ray cluster, such as 10.0.0.1:6379.
        fresh: Replace `out`, and discard an unfinished earlier run.

    Returns:
        An array (text, dim), float32 unless quantised; for a file, which needs `out`, a summary of the
        output. `OUT.run.json` next to it records `dim`, `quantize` and the `ranges` of int8.

    Raises:
        ConfigError: No such model, device, prompt or size; int8 of one text without calibration; `out` can't
            be written, or belongs to a run with other settings; a file without `out`; a worker was killed; no
            cluster can be joined.
        DataError: A damaged model, a row without text, or an unreadable file.
        RemoteError: The Hub could not be reached, or the cluster was lost.

    Example:
        >>> import aoe_train
        >>> aoe_train.encode(["A plane is taking off."], model="model", progress=False).shape[0]
        1
        >>> aoe_train.encode("sentences.txt", model="model", out="vectors.npy", progress=False).texts
        4
    """
    request = _checked(request)
    with Display(request.progress) as show:
        if request.out is None:
            return _encode_in_memory(request, show)
        return _encode_file(request, Path(request.out), show)


def _checked(request: EncodeRequest) -> EncodeRequest:
    """The request with arguments of the right types, which must fit together."""
    from pydantic import PositiveInt

    from aoe_train.model.quantization import named_quantize
    from pairkit.base.settings import argument

    kinds: dict[str, Any] = {
        "out": Path,
        "columns": dict[str, str],
        "prompt_name": str,
        "prompt": str,
        "dim": PositiveInt,
        "batch_tokens": PositiveInt,
        "workers": PositiveInt,
    }
    checked = {
        name: argument(name, getattr(request, name), kind | None)
        for name, kind in kinds.items()
    }
    texts = request.texts
    out = checked["out"]
    if not isinstance(texts, Iterable | Path):
        raise DataError(
            f"expected a text, a list of texts or a file; found {type(texts).__name__}"
        )
    # `Path.is_file` raises an error if the text is too long for a path.
    is_file = isinstance(texts, str) and os.path.isfile(texts)  # noqa: PTH113
    if out is None and (is_file or isinstance(texts, Path)):
        raise ConfigError(
            f"{texts}: a file of texts needs `out`, the file for its vectors"
        )
    if out is not None and not isinstance(texts, str | Path):
        raise ConfigError(
            f"{out}: `out` is for a file of texts; leave it out to get an array"
        )
    named_quantize(request.quantize, request.calibration)
    return replace(request, **checked)


def _encode_in_memory(request: EncodeRequest, show: Listener) -> np.ndarray:
    from aoe_train.encoding.embedders.embedder import refuse_options
    from aoe_train.model.quantization import named_quantize, quantized

    devices = _devices(request)
    refuse_options(
        "texts in memory",
        columns=request.columns,
        workers=request.workers,
        device=",".join(devices[1:]) or None,
        engine=None if request.engine == "local" else request.engine,
        address=request.address,
    )
    texts = cast("Iterable[str]", request.texts)
    if isinstance(texts, str):
        texts = [texts]
    elif not hasattr(texts, "__getitem__"):  # such as a generator
        texts = [*texts]
    info, encode_texts = _encoding(request, show, *devices)
    ranges = _ranges(request.calibration, info.dim)
    vectors = encode_texts(texts, progress=show)
    codes = quantized(vectors, named_quantize(request.quantize), ranges)
    return codes[0] if isinstance(request.texts, str) else codes


def _encode_file(request: EncodeRequest, out: Path, show: Listener) -> Encoded:
    from aoe_train.encoding.encode_run import check_files, encode_file
    from aoe_train.encoding.vector_file import Quantization
    from aoe_train.model.quantization import named_quantize

    texts = cast("str | Path", request.texts)
    check_files(Path(texts), out)
    with _embedder(request, show) as (info, embed):
        ranges = _ranges(request.calibration, info.dim)
        return encode_file(
            texts,
            out,
            embed,
            info.dim,
            info.settings,
            columns=request.columns,
            quantization=Quantization(named_quantize(request.quantize), ranges),
            fresh=request.fresh,
            show=show,
        )


def _devices(request: EncodeRequest) -> list[str]:
    """The names of devices, which may end in a comma."""
    from pairkit.base.settings import between_commas

    return [*filter(None, between_commas(request.device))]


@contextmanager
def _embedder(
    request: EncodeRequest, show: Listener
) -> Iterator[tuple[ModelInfo, Embed]]:
    """A loaded model, or local or remote workers that load it."""
    from aoe_train.encoding.encode_workers import (
        ActorPool,
        EncoderPool,
        WorkerPool,
        checked_device,
        workers_devices,
    )
    from pairkit.base.system.cluster import address_of, joined

    cluster = address_of(request.engine, request.address)
    named = _devices(request)
    if cluster is None:
        devices = workers_devices(request.workers, named)
        if len(devices) == 1:
            info, encode_texts = _encoding(request, show, devices[0])
            yield info, partial(map, encode_texts)
            return
        spec = _worker_spec(request, devices, f"{len(devices)} workers")
    else:
        spec = _worker_spec(request, [checked_device(named)], "--engine=ray")
    count = request.workers
    if not request.fresh and Path(str(request.out)).exists():
        # Nothing is encoded: one worker identifies the model.
        count = 1
        spec = replace(spec, devices=spec.devices[:1])

    say = notes(request.progress)
    with ExitStack() as stack:
        pool: EncoderPool
        with stage(f"load {request.model}", show):
            if cluster is None:
                pool = stack.enter_context(WorkerPool(spec))
            else:
                pool = ActorPool(stack.enter_context(joined(cluster)), spec, count, say)
        for note in pool.model_info.notes:
            say(note)
        yield pool.model_info, pool.vectors


def _worker_spec(
    request: EncodeRequest, devices: list[str | None], option: str
) -> WorkerSpec:
    """What workers load; `option` is the reason for workers."""
    from aoe_train.encoding.encode_workers import WorkerSpec

    model = request.model
    if request.collection is not None:
        raise ConfigError(
            "--collection encodes in one process; leave out --workers, --engine and further devices"
        )
    if not isinstance(model, str | Path):
        raise ConfigError(
            f"{option}: each worker loads the model, so give its folder or name"
        )
    if Path(model).exists():
        # Workers on other machines may have another working folder.
        model = Path(model).absolute()
    return WorkerSpec(
        str(model),
        request.precision,
        _encode_options(request),
        devices,
        request.layers,
    )


def _encode_options(request: EncodeRequest) -> EncodeOptions:
    from aoe_train.encoding.encode_workers import EncodeOptions

    return EncodeOptions(
        request.prompt_name,
        request.prompt,
        request.normalize,
        request.dim,
        request.batch_tokens,
    )


def _encoding(
    request: EncodeRequest, show: Listener, device: str | None = None
) -> tuple[ModelInfo, Callable[..., np.ndarray]]:
    """The function that encodes as the model or an index does, and what determines its vectors."""
    from aoe_train.encoding.encode_workers import model_info

    encoder = loaded(
        request.model,
        request.precision,
        show,
        notes(request.progress),
        device,
        layers=request.layers,
    )
    options = _encode_options(request)
    if request.collection is None:
        return model_info(encoder, options)
    if request.normalize is False:
        raise ConfigError(
            "--collection: its vectors have length 1; leave it out to keep the model's lengths"
        )
    if request.prompt is None and request.prompt_name is None:
        # The texts are like those of the index.
        document = encoder.settings.named_prompts.document
        options = replace(options, prompt=document or None)
    info, encode_texts = model_info(encoder, options)
    collection = _collection(request.collection, encoder, info.dim)
    settings = {**info.settings, "collection": collection.identity}
    encode_in = partial(_encode_in, collection, encode_texts)
    return replace(info, settings=settings), encode_in


def _collection(folder: str | Path, encoder: Encoder, dim: int) -> Collection:
    """The collection of an index whose vectors have `dim` dimensions."""
    from aoe_train.api.searching import open_index

    index = open_index(folder, model=encoder)
    if index.collection is None:
        raise ConfigError(
            f"{folder}: has no purpose, so it compares the model's vectors; leave --collection out"
        )
    if dim != index.about.dim:
        raise ConfigError(
            f"--dim {dim}: {folder} has {index.about.dim} dimensions; leave --dim out"
        )
    return index.collection


def _encode_in(
    collection: Collection,
    encode_texts: Callable[..., np.ndarray],
    texts: list[str],
    **options: Any,
) -> np.ndarray:
    """The vectors of texts in a collection."""
    from aoe_train.model.similarity import scaled_to_one

    vectors = encode_texts(texts, **options)
    return collection.transform(scaled_to_one(vectors))


def _ranges(calibration: str | Path | np.ndarray | None, dim: int) -> np.ndarray | None:
    """The ranges of int8 that a calibration set has."""
    from aoe_train.encoding.vector_file import read_ranges
    from aoe_train.model.quantization import calibrated

    if calibration is None:
        return None
    if isinstance(calibration, str | Path):
        return read_ranges(Path(calibration), dim)
    return calibrated(calibration, dim)
