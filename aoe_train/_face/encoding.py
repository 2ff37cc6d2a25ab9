"""Vectors of texts and files, as `aoe encode` makes them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast, overload

if TYPE_CHECKING:
    import numpy as np

    from aoe_train._encode import Encoded
    from aoe_train._encoder import Encoder
    from pairkit.progress import Listener


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
    batch_tokens: int | None = None,
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
    batch_tokens: int | None = None,
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
        precision: fp32, bf16, fp16 or auto.
        batch_tokens: Tokens at once; less needs less memory.
        fresh: Replace `out`, and drop what an earlier run began.
        progress: Shown on stderr, or not, or told to a function.

    Returns:
        float32 (text, dim), or what `quantize` says; of a file, what was written. Beside it, `OUT.run.json`
        says `dim`, `quantize` and the `ranges` of int8.

    Raises:
        ConfigError: No such model, prompt or size; int8 of one text without calibration; `out` can't be
            written, or was begun or made otherwise; a file without `out`.
        DataError: A damaged model, a row without a text, a file that can't be read.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import aoe_train
        >>> aoe_train.encode(["A plane is taking off."], model="model", progress=False).shape[0]
        1
        >>> aoe_train.encode("sentences.txt", model="model", out="vectors.npy", progress=False).texts
        4
    """
    from aoe_train._encode import encode_file, read_ranges
    from aoe_train._face.loading import loaded
    from aoe_train._face.notes import notes
    from aoe_train._small import calibrated, named_quantize
    from pairkit.errors import ConfigError, DataError
    from pairkit.progress import Display, Progress

    if not isinstance(texts, Iterable | Path):
        raise DataError(f"expected a text, a list of texts or a file; found {type(texts).__name__}")
    if isinstance(texts, Path) and out is None:
        raise ConfigError(f"{texts}: a file of texts needs `out`, a file for its vectors")
    if out is not None and not isinstance(texts, str | Path):
        raise ConfigError(
            f"{out}: vectors of texts in memory are returned; leave `out` out, or give a file of texts"
        )
    with Display(progress) as show:
        encoder = loaded(model, precision, show, notes(progress), layers=layers)
        if prompt is not None and prompt_name is not None:
            raise ConfigError("--prompt and --prompt-name: give one of them")
        words = encoder.settings.named_prompts.chosen(prompt=prompt, name=prompt_name)
        size, how = encoder.size(dim), named_quantize(quantize)
        if calibration is not None and how != "int8":
            raise ConfigError(f"--calibration is for --quantize int8, not {how}; leave it out")
        ranges = None
        if isinstance(calibration, str | Path):
            ranges = read_ranges(Path(calibration), size)
        elif calibration is not None:
            ranges = calibrated(calibration, size)
        make = partial(encoder.encode, prompt=words, normalize=normalize, dim=dim, batch_tokens=batch_tokens)
        if out is None:
            given = texts if isinstance(texts, str) else [*cast("Iterable[str]", texts)]
            return make(given, quantize=how, calibration=ranges, progress=show)
        return encode_file(
            str(texts),
            out,
            make,
            size,
            {
                "model": encoder.identity(),
                "prompt": words,
                "normalize": encoder.settings.normalize if normalize is None else normalize,
                "batch tokens": batch_tokens,
                **({} if size == encoder.dim else {"dim": size}),
            },
            text_column=text_column,
            quantize=how,
            ranges=ranges,
            fresh=fresh,
            advance=lambda done, total: show(Progress("encode", done, total)),
        )
