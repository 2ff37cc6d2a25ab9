"""Encode texts and files: the function behind `aoe encode`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, overload

from aoe_train.api.parameters import (
    MODEL,
    Calibration,
    Layers,
    Number,
    OutFile,
    Precision,
    Prompt,
    PromptName,
    TextColumn,
    loaded,
    notes,
)
from pairkit.app.flag import OUTPUT, RUN, Flag
from pairkit.dataset.flags import Fresh

if TYPE_CHECKING:
    import numpy as np

    from aoe_train.encoding.run import Embed, Encoded
    from aoe_train.encoding.workers import ModelInfo, WorkerSpec
    from aoe_train.model.encoder import Encoder
    from pairkit.app.progress import Listener


@overload
def encode(
    texts: Iterable[str],
    *,
    model: str | Path | Encoder,
    out: None = None,
    prompt_name: str | None = None,
    prompt: str | None = None,
    normalize: bool | None = None,
    layers: int | None = None,
    dim: int | None = None,
    quantize: str | None = None,
    calibration: str | Path | np.ndarray | None = None,
    precision: str | None = None,
    device: str | None = None,
    batch_tokens: int | None = None,
    progress: bool | Listener = True,
) -> np.ndarray: ...


@overload
def encode(
    texts: str | Path,
    *,
    model: str | Path | Encoder,
    out: str | Path,
    text_column: str | None = None,
    prompt_name: str | None = None,
    prompt: str | None = None,
    normalize: bool | None = None,
    layers: int | None = None,
    dim: int | None = None,
    quantize: str | None = None,
    calibration: str | Path | np.ndarray | None = None,
    precision: str | None = None,
    device: str | Sequence[str] | None = None,
    batch_tokens: int | None = None,
    workers: int | None = None,
    engine: str = "local",
    address: str | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Encoded: ...


def encode(
    texts: Annotated[str | Path | Iterable[str], Flag(metavar="INPUT", positional=True)],
    *,
    model: Annotated[str | Path | Encoder, Flag("--model -m", metavar="MODEL", panel=MODEL, main=True)],
    out: Annotated[str | Path | None, replace(OutFile, required=True)] = None,
    text_column: Annotated[str | None, replace(TextColumn, main=True)] = None,
    prompt_name: PromptName = None,
    prompt: Prompt = None,
    normalize: Annotated[bool | None, Flag(panel=RUN)] = None,
    layers: Layers = None,
    dim: Annotated[int | None, Flag(metavar="N", panel=OUTPUT, main=True)] = None,
    quantize: Annotated[str | None, Flag(metavar="NAME", panel=OUTPUT, main=True)] = None,
    calibration: Calibration = None,
    precision: Precision = None,
    device: Annotated[str | Sequence[str] | None, Flag(metavar="NAME,…", panel=RUN)] = None,
    batch_tokens: Annotated[int | None, Number] = None,
    workers: Annotated[int | None, Number] = None,
    engine: Annotated[str, Flag(metavar="NAME", panel=RUN)] = "local",
    address: Annotated[str | None, Flag(metavar="HOST:PORT", panel=RUN)] = None,
    fresh: Fresh = False,
    progress: bool | Listener = True,
) -> np.ndarray | Encoded:
    """Write the vector of each text, in order. Run it again to continue.

    To continue with a pipe, send the same texts again; finished ones are not encoded twice. In Python, texts
    return an array; a file needs `out` and writes a file.

    Args:
        texts: A txt (one text per line), csv, tsv, jsonl or parquet file, also .gz; - for a pipe. In Python
            also texts: a list, a column of a DataFrame; a file needs `out`.
        model: A folder, a Hub id, minilm or smollm2. In Python also an `Encoder`.
        out: .npy, or .parquet with the input's columns and `vector`.
        text_column: A table's column. Default: text, or the only one.
        prompt_name: Name of one of the model's prompts, such as query. Default: its default prompt.
        prompt: Words before each text, or around {text}, instead; '' for none.
        normalize: Scale vectors to length 1. Default: the model's setting.
        layers: Use the first N layers of the model. For a model trained with `layers`. Default: all.
        dim: Keep the first N numbers of each vector. For a model trained with `dims`. Default: all.
        quantize: float32, int8, binary or ubinary (bits). int8 takes a byte for each number, binary or
            ubinary a bit, eight of them in an int8 or uint8, as sentence-transformers packs them. Default:
            float32.
        calibration: Vectors, or an int8 output, that give int8 its ranges. Vectors (any, dim) or a .npy of
            them; or an int8 output of `encode`, to get vectors of its ranges. Default: the vectors
            themselves.
        precision: See `serve`.
        device: cpu, cuda:1, or several such as cuda:0,cuda:1. Several are for a file, and get a worker each.
            Default: the best.
        batch_tokens: Tokens of a batch; fewer need less memory.
        workers: Processes that encode a file together. They take turns on `device`, or share the threads of a
            CPU, and give the same vectors as one process. A script that starts workers needs `if __name__ ==
            "__main__":`. On a cluster they are Ray actors, one for each GPU if there is any. Default: one for
            each device, or each machine of a cluster.
        engine: local, or ray for a file to be encoded on a Ray cluster.
        address: Address of the Ray cluster, such as 10.0.0.1:6379.
        fresh: Replace `out`, and discard an unfinished earlier run.
        progress: Whether to show progress on stderr, or a function to be told of it.

    Returns:
        An array (text, dim), float32 unless quantised; for a file, a summary of the output. `OUT.run.json`
        next to it records `dim`, `quantize` and the `ranges` of int8.

    Raises:
        ConfigError: No such model, device, prompt or size; int8 of one text without calibration; `out` can't
            be written, or belongs to a run with other settings; a file without `out`; a worker was killed; no
            cluster can be joined.
        DataError: A damaged model, a row without a text, a file that can't be read.
        RemoteError: The Hub could not be reached, or the cluster was lost.

    Example:
        >>> import aoe_train
        >>> aoe_train.encode(["A plane is taking off."], model="model", progress=False).shape[0]
        1
        >>> aoe_train.encode("sentences.txt", model="model", out="vectors.npy", progress=False).texts
        4
    """
    from pydantic import PositiveInt

    from aoe_train.encoding.on_ray import checked_device
    from aoe_train.encoding.run import encode_file
    from aoe_train.encoding.workers import EncodingRequest, WorkerSpec, model_info, workers_devices
    from aoe_train.model.quantization import named_quantize
    from pairkit.app.errors import ConfigError, DataError
    from pairkit.app.progress import Display, Progress
    from pairkit.app.settings import argument, between_commas
    from pairkit.system.cluster import address_of

    if not isinstance(texts, Iterable | Path):
        raise DataError(f"expected a text, a list of texts or a file; found {type(texts).__name__}")
    if isinstance(texts, Path) and out is None:
        raise ConfigError(f"{texts}: a file of texts needs `out`, a file for its vectors")
    if out is not None and not isinstance(texts, str | Path):
        raise ConfigError(
            f"{out}: vectors of texts in memory are returned; leave `out` out, or give a file of texts"
        )
    for name, number in (("dim", dim), ("workers", workers), ("batch_tokens", batch_tokens)):
        argument(name, number, PositiveInt | None)
    how = named_quantize(quantize)
    if calibration is not None and how != "int8":
        raise ConfigError(f"--calibration is for --quantize int8, not {how}; leave it out")
    wanted = EncodingRequest(prompt_name, prompt, normalize, dim, batch_tokens)
    devices = between_commas(device)
    if out is None:
        for name, value in (
            ("workers", workers),
            ("device", ",".join(devices[1:])),
            ("engine", engine.removeprefix("local")),
        ):
            if value:
                raise ConfigError(f"{name} {value}: for a file of texts with `out`; leave it out")
        with Display(progress) as show:
            described, make = model_info(
                loaded(model, precision, show, notes(progress), *devices, layers=layers), wanted
            )
            ranges = _ranges(calibration, described.dim)
            given = texts if isinstance(texts, str) else [*cast("Iterable[str]", texts)]
            return make(given, quantize=how, calibration=ranges, progress=show)
    cluster = address_of(engine, address)
    given_devices = workers_devices(workers, devices) if cluster is None else [checked_device(devices)]
    with (
        Display(progress) as show,
        _embedder(
            model,
            WorkerSpec("", precision, wanted, given_devices, layers),
            cluster,
            workers,
            show,
            notes(progress),
        ) as (described, embed),
    ):
        return encode_file(
            str(texts),
            out,
            embed,
            described.dim,
            described.settings,
            text_column=text_column,
            quantize=how,
            ranges=_ranges(calibration, described.dim),
            fresh=fresh,
            advance=lambda done, total: show(Progress("encode", done, total)),
        )


@contextmanager
def _embedder(
    model: str | Path | Encoder,
    orders: WorkerSpec,
    cluster: str | None,
    workers: int | None,
    show: Listener,
    say: Callable[[str], None],
) -> Iterator[tuple[ModelInfo, Embed]]:
    """A loaded model, or workers that load it, here or on a cluster; fills in the model of `orders`."""
    from aoe_train.encoding.on_ray import ActorPool
    from aoe_train.encoding.workers import WorkerPool, model_info
    from pairkit.app.errors import ConfigError
    from pairkit.app.progress import Progress
    from pairkit.system.cluster import joined

    devices = orders.devices
    if cluster is None and len(devices) == 1:
        encoder = loaded(model, orders.precision, show, say, devices[0], layers=orders.layers)
        described, make = model_info(encoder, orders.wanted)
        yield described, partial(map, make)
        return
    if not isinstance(model, str | Path):
        whose = "--engine ray" if cluster else f"{len(devices)} workers"
        raise ConfigError(f"{whose}: each loads the model, so give its folder or name")
    show(Progress(name := f"load {model}"))
    # An absolute path, which is valid on all machines whatever their working folder is.
    path = str(Path(model).absolute()) if cluster and Path(model).exists() else str(model)
    orders = replace(orders, model=path)
    with ExitStack() as stack:
        team: WorkerPool | ActorPool
        if cluster is None:
            team = stack.enter_context(WorkerPool(orders))
        else:
            team = ActorPool(stack.enter_context(joined(cluster)), orders, workers, say)
        show(Progress(name, ended=True))
        if team.described.slow:
            say(team.described.slow)
        yield team.described, team.vectors


def _ranges(calibration: str | Path | np.ndarray | None, dim: int) -> np.ndarray | None:
    from aoe_train.encoding.record import read_ranges
    from aoe_train.model.quantization import calibrated

    if calibration is None:
        return None
    if isinstance(calibration, str | Path):
        return read_ranges(Path(calibration), dim)
    return calibrated(calibration, dim)
