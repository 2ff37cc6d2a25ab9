"""A file of texts to a file of vectors, in shards: bounded memory, and a kill costs a shard at most."""

from __future__ import annotations

import hashlib
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aoe_train._encode.codes import Codes, write_codes
from aoe_train._encode.partial import Partial, open_partial
from aoe_train._encode.record import read_finished, write_record
from aoe_train._encode.source import Source, open_source, texts
from aoe_train._encode.table import check_table, write_table
from aoe_train._small import Quantize, value_ranges
from pairkit.errors import ConfigError, DataError
from pairkit.files import open_own, sha256, write_errors

STDIN = "-"
SHARD_TEXTS = 10_000
SHARD_CHARACTERS = 8_000_000  # long texts make smaller shards
_FORMAT = 1  # of what is made; the next one does not go on with what this one began

Encode = Callable[[list[str]], np.ndarray]
"""Texts to float32 (text, dim), such as `Encoder.encode`; texts of one call may be batched together."""
Advance = Callable[[int, int], None]
"""Told how many texts are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """What a run left.

    Attributes:
        texts: All of them; `resumed` of these an earlier, killed run had done.
        dim: Numbers of a vector, however they are packed.
        seconds: Of this run, without loading the model.
        quantize: In which numbers the vectors are.
    """

    out: Path
    texts: int
    dim: int
    resumed: int
    seconds: float
    quantize: Quantize = "float32"

    @property
    def texts_per_s(self) -> float:
        """Texts this run encoded, by the second."""
        return (self.texts - self.resumed) / self.seconds if self.seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {**asdict(self), "out": str(self.out), "texts_per_s": round(self.texts_per_s, 2)}


def encode_file(
    path: str | Path,
    out: str | Path,
    encode: Encode,
    dim: int,
    settings: Mapping[str, Any],
    *,
    text_column: str | None = None,
    quantize: Quantize = "float32",
    ranges: np.ndarray | None = None,
    fresh: bool = False,
    shard_texts: int = SHARD_TEXTS,
    advance: Advance | None = None,
) -> Encoded:
    """Write the vector of each text, in the order of the input.

    The whole input is checked before the first text is encoded. `out` appears when it is complete; till then
    the vectors are in `OUT.partial`, and the same call goes on with them. `OUT.run.json` says what it is made
    of; the same call then finds it finished.

    Args:
        path: See `open_source`; `-` is standard input, one text per line, copied beside `out` first.
        out: `.npy` for the vectors alone, `.parquet` for the input's columns and `vector`.
        encode: The model.
        dim: Numbers of a vector.
        settings: Whatever decides the vectors, such as a hash of the model; JSON values by the names that
            messages give them. To go on with other settings is refused.
        text_column: See `open_source`.
        quantize: In which numbers; see `aoe_train._small`. Till all vectors are there they are float32.
        ranges: Of int8: float32 (2, dim), by default those of the vectors themselves.
        fresh: Replace `out`, and drop what an earlier run began.
        shard_texts: Texts that are sorted by length and encoded together.
        advance: Called after each shard.

    Raises:
        ConfigError: `out` can't be written, has another suffix, or was begun or made otherwise.
        DataError: A row without a text, a file that can't be read or was changed meanwhile, vectors with NaN.
    """
    began, out = time.monotonic(), Path(out)
    _check_name(out)
    with open_partial(out, fresh=fresh) as partial:
        file = _spooled(partial.folder / "stdin.txt") if str(path) == STDIN else Path(path)
        source = open_source(file, text_column)
        made_of = {
            "shard": [_FORMAT, shard_texts],
            "text column": source.column,
            "input": sha256(file),
            **settings,
            **_named(quantize, ranges),
        }
        if out.exists() and not fresh:
            finished = read_finished(out, made_of)
            partial.end()
            texts_, dim_ = finished["texts"], finished["dim"]
            return Encoded(out, texts_, dim_, resumed=texts_, seconds=0.0, quantize=quantize)
        own_ranges = quantize == "int8" and ranges is None
        _begin(partial, source, out, made_of, dim, fewest=2 if own_ranges else 1)
        done_before = partial.done
        _fill(partial, source, encode, shard_texts, advance or _silent)
        if own_ranges:
            ranges = value_ranges(partial.blocks())
        _finish(partial, source, out, made_of, Codes(quantize, ranges))
        seconds = round(time.monotonic() - began, 3)
        encoded = Encoded(out, partial.texts, partial.dim, done_before, seconds, quantize)
        partial.end()
    return encoded


def _check_name(out: Path) -> None:
    if out.suffix not in (".npy", ".parquet"):
        raise ConfigError(f"{out}: expected .npy or .parquet")
    if out.is_dir():
        raise ConfigError(f"{out}: is a folder; choose another --out")


def _begin(
    partial: Partial, source: Source, out: Path, made_of: Mapping[str, Any], dim: int, *, fewest: int
) -> None:
    """Check what was begun, or else the whole input; from then on `out` is there only when it is complete."""
    if partial.begun:
        if differences := partial.differences(made_of):
            raise ConfigError(
                f"{out}: was begun by a run which differs in {'; '.join(differences)}; continue as before, or"
                " give --fresh to start again"
            )
        return
    count = sum(1 for _ in texts(source))
    if not count:
        raise DataError("has no rows; expected at least one", path=source.path)
    if count < fewest:
        raise ConfigError(
            f"{source.path}: int8 of one text, whose vector spans no range of values; give --calibration"
        )
    if out.suffix == ".parquet":
        check_table(source)
    out.unlink(missing_ok=True)
    partial.begin(made_of, count, dim)


def _spooled(copy: Path) -> Path:
    with write_errors(copy), open_own(copy, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return copy


def _fill(
    partial: Partial,
    source: Source,
    encode: Encode,
    shard_texts: int,
    advance: Advance,
) -> None:
    advance(partial.done, partial.texts)
    end = 0
    for shard in _shards(texts(source), shard_texts):
        start, end = end, end + len(shard)
        if end <= partial.done:
            continue
        vectors = encode(shard)
        broken = ~np.isfinite(vectors).all(axis=1)
        if broken.any():
            row = source.first_row + start + int(broken.argmax())
            raise DataError(
                "the model gives this text a vector with NaN or infinity", path=source.path, row=row
            )
        partial.append(vectors)
        advance(partial.done, partial.texts)
    if end != partial.texts:
        raise DataError("was changed while it was being read; give --fresh to start again", path=source.path)


def _shards(lines: Iterable[str], shard_texts: int) -> Iterator[list[str]]:
    """Cut after so many texts or characters; where, depends on the texts alone."""
    shard: list[str] = []
    characters = 0
    for line in lines:
        shard.append(line)
        characters += len(line)
        if len(shard) == shard_texts or characters >= SHARD_CHARACTERS:
            yield shard
            shard, characters = [], 0
    if shard:
        yield shard


def _named(quantize: Quantize, ranges: np.ndarray | None) -> dict[str, Any]:
    """What a record of quantised vectors says of them; that of others is as it was before there were any."""
    if quantize == "float32":
        return {}
    given = None if ranges is None else hashlib.sha256(ranges.astype("<f4").tobytes()).hexdigest()
    return {"quantize": quantize, **({"calibration": given} if quantize == "int8" else {})}


def _finish(partial: Partial, source: Source, out: Path, made_of: Mapping[str, Any], codes: Codes) -> None:
    whole = partial.vectors
    if out.suffix == ".parquet":
        whole = partial.folder / "table.parquet"
        write_table(whole, source, partial, codes)
    elif codes.quantize != "float32":
        whole = partial.folder / "codes.npy"
        write_codes(whole, partial, codes)
    write_record(out, made_of, texts=partial.texts, dim=partial.dim, size=whole.stat().st_size, codes=codes)
    with write_errors(out):
        whole.replace(out)


def _silent(done: int, of: int) -> None:
    del done, of
