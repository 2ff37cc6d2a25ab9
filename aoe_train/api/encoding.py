"""Vectors of texts and files, as `aoe encode` makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast, overload

if TYPE_CHECKING:
    import numpy as np

    from aoe_train.encoding import Embed, Encoded
    from aoe_train.encoding.on_ray import ActorPool
    from aoe_train.encoding.worker_spec import ModelInfo, WorkerSpec
    from aoe_train.encoding.workers import WorkerPool
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
    shard: str | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Encoded: ...


def encode(
    texts: str | Path | Iterable[str],
    *,
    model: str | Path | Encoder,
    out: str | Path | None = None,
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
    shard: str | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> np.ndarray | Encoded:
    """The vector of each text, in order.

    Texts give an array. A file, with `out`, gives a file; it may have any size, and the same call continues
    one that was stopped.

    Args:
        texts: Texts (a list, a column of a DataFrame); or, with `out`, a file: txt (one text per line), csv,
            tsv or jsonl, each also as .gz, or parquet; `-` is standard input.
        model: A model's folder, a Hub id, `minilm`, `smollm2`, or an `Encoder`.
        out: `.npy` for the vectors alone, `.parquet` for the file's columns and `vector`.
        text_column: A table's column; by default `text`, or the only one.
        prompt_name: A prompt that the model knows, such as `query`; by default its default one.
        prompt: Words before each text, or around `{text}`, instead; empty for none.
        normalize: Vectors of length 1; by default as the model says.
        layers: Use so many of the model's layers, the first ones, as a model trained with `layers` is made
            for.
        dim: Keep so many numbers of each vector, the first ones, as a model trained with `dims` is made for.
        quantize: In which numbers: float32; int8, a byte each; binary or ubinary, a bit each, eight of them
            in an int8 or uint8, as sentence-transformers packs them.
        calibration: Of int8: what its ranges are taken from, by default the vectors themselves. Vectors
            (any, dim) or a .npy of them; or an int8 output of `encode`, to get vectors of its ranges.
        precision: fp32, bf16, fp16, int8 (on a CPU) or auto.
        device: Such as `cuda:1`, by default the accelerator where there is one. For a file several, which get
            a worker each.
        batch_tokens: Tokens at once; less needs less memory.
        workers: Processes that encode a file together, in turn on `device`, or sharing the threads of a CPU.
            The vectors are those of one. A script that asks for them needs `if __name__ == "__main__":`. On a
            cluster, its actors, by default one for each GPU, or for each machine where there is none.
        engine: `local`, or `ray` for a file to be encoded on a Ray cluster.
        address: The cluster's, such as `10.0.0.1:6379`.
        shard: Encode a share of a file's texts alone, such as "2/8", into a file beside `out`, here or on
            another machine; see `merge_shards`.
        fresh: Replace `out`, and drop what an earlier run began.
        progress: Shown on stderr, or not, or told to a function.

    Returns:
        float32 (text, dim), or what `quantize` says; of a file, what was written. Beside it, `OUT.run.json`
        says `dim`, `quantize` and the `ranges` of int8.

    Raises:
        ConfigError: No such model, device, prompt or size; int8 of one text without calibration; `out` can't
            be written, or was begun or made otherwise; a file without `out`; a worker was killed; no cluster
            can be joined.
        DataError: A damaged model, a row without a text, a file that can't be read.
        RemoteError: The Hub could not be reached, or a cluster no more.

    Example:
        >>> import aoe_train
        >>> aoe_train.encode(["A plane is taking off."], model="model", progress=False).shape[0]
        1
        >>> aoe_train.encode("sentences.txt", model="model", out="vectors.npy", progress=False).texts
        4
    """
    from aoe_train.api.loading import loaded
    from aoe_train.api.notes import notes
    from aoe_train.encoding import VectorShard, encode_file
    from aoe_train.encoding.on_ray import checked_device
    from aoe_train.encoding.worker_spec import EncodingRequest, WorkerSpec, model_info
    from aoe_train.encoding.workers import workers_devices
    from aoe_train.model.quantization import named_quantize
    from pairkit.app.errors import ConfigError, DataError
    from pairkit.app.progress import Display, Progress
    from pairkit.app.settings import between_commas
    from pairkit.system.cluster import address_of

    if not isinstance(texts, Iterable | Path):
        raise DataError(f"expected a text, a list of texts or a file; found {type(texts).__name__}")
    if isinstance(texts, Path) and out is None:
        raise ConfigError(f"{texts}: a file of texts needs `out`, a file for its vectors")
    if out is not None and not isinstance(texts, str | Path):
        raise ConfigError(
            f"{out}: vectors of texts in memory are returned; leave `out` out, or give a file of texts"
        )
    how = named_quantize(quantize)
    if calibration is not None and how != "int8":
        raise ConfigError(f"--calibration is for --quantize int8, not {how}; leave it out")
    wanted = EncodingRequest(prompt_name, prompt, normalize, dim, batch_tokens)
    devices = between_commas(device)
    if out is None:
        for name, value in (
            *(("workers", workers), ("shard", shard), ("device", ",".join(devices[1:]))),
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
    part = None if shard is None else VectorShard.named(shard)
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
            shard=part,
            fresh=fresh,
            advance=lambda done, total: show(Progress("encode", done, total)),
        )


def merge_shards(texts: str | Path, *, out: str | Path, fresh: bool = False) -> Encoded:
    """Put the shards of an output together, to the bytes that one run would have made.

    Their input, model and settings have to be the same. The ranges of int8 are those of all shards. The files
    of the shards stay.

    Args:
        texts: The file that the shards were made of.
        out: What `encode` was given: the shards are beside it.
        fresh: Replace `out`.

    Raises:
        ConfigError: A shard of another model, input or settings; shards of several runs; `out` can't be
            written, or was made otherwise.
        DataError: A shard is missing, not finished or damaged.

    Example:
        >>> import aoe_train
        >>> for shard in ("1/2", "2/2"):  # on two machines
        ...     done = aoe_train.encode(
        ...         "sentences.txt", model="model", out="shared.npy", shard=shard, progress=False
        ...     )
        >>> aoe_train.merge_shards("sentences.txt", out="shared.npy").texts
        4
    """
    from aoe_train import encoding as _encode

    return _encode.merge_shards(texts, out, fresh=fresh)


@contextmanager
def _embedder(
    model: str | Path | Encoder,
    orders: WorkerSpec,
    cluster: str | None,
    workers: int | None,
    show: Listener,
    say: Callable[[str], None],
) -> Iterator[tuple[ModelInfo, Embed]]:
    """A model, or workers that have it, here or on a cluster; the orders' model is filled in."""
    from aoe_train.api.loading import loaded
    from aoe_train.encoding.worker_spec import model_info
    from pairkit.app.errors import ConfigError
    from pairkit.app.progress import Progress

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
    with _team(replace(orders, model=str(model)), cluster, workers, say) as team:
        show(Progress(name, ended=True))
        if team.described.slow:
            say(team.described.slow)
        yield team.described, team.vectors


@contextmanager
def _team(
    orders: WorkerSpec, cluster: str | None, workers: int | None, say: Callable[[str], None]
) -> Iterator[WorkerPool | ActorPool]:
    if cluster is None:
        from aoe_train.encoding.workers import WorkerPool

        with WorkerPool(orders) as team:
            yield team
        return
    from aoe_train.encoding.on_ray import ActorPool
    from pairkit.system.cluster import joined

    model = Path(orders.model)
    if model.exists():  # it is called the same on all machines, wherever they work
        orders = replace(orders, model=str(model.absolute()))
    with joined(cluster) as joined_cluster:
        yield ActorPool(joined_cluster, orders, workers, say)


def _ranges(calibration: str | Path | np.ndarray | None, dim: int) -> np.ndarray | None:
    from aoe_train.encoding import read_ranges
    from aoe_train.model.quantization import calibrated

    if calibration is None:
        return None
    if isinstance(calibration, str | Path):
        return read_ranges(Path(calibration), dim)
    return calibrated(calibration, dim)
