"""The shards of an output, put together to the bytes that one run would have made."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from aoe_train.encoding.partial import open_partial
from aoe_train.encoding.parts import VectorShard, shards_beside
from aoe_train.encoding.record import read_record
from aoe_train.encoding.run import Encoded, already_there, check_name, finish, spooled
from aoe_train.encoding.source import TEXT, open_source
from aoe_train.encoding.vector_file import JoinedFiles, VectorFile
from aoe_train.model.quantization import named_quantize
from pairkit.app.errors import ConfigError, DataError
from pairkit.system.files import sha256
from pairkit.system.folders import differing


class _ShardRecord(BaseModel, extra="forbid", frozen=True):
    """What the record of a shard says of where it belongs."""

    number: int = Field(ge=1)
    of: int = Field(ge=1)
    first: int = Field(ge=0)
    texts: int = Field(ge=1)
    ranges: tuple[tuple[float, ...], tuple[float, ...]] | None = None


@dataclass(frozen=True)
class _Made:
    """A shard that is there."""

    path: Path
    made_of: Mapping[str, Any]
    place: _ShardRecord
    vectors: VectorFile


def merge_shards(path: str | Path, out: str | Path, *, fresh: bool = False) -> Encoded:
    """Make an output of its shards, which stay where they are.

    Args:
        path: The input that the shards were made of.
        out: `.npy` or `.parquet`, as for one run; the shards are beside it.
        fresh: Replace `out`.

    Raises:
        ConfigError: Shards of several runs, of another input, or an output that something else made.
        DataError: A shard is missing, not finished or damaged.
    """
    began, out = time.monotonic(), Path(out)
    check_name(out)
    made = _all_alike(out)
    made_of, first = made[0].made_of, made[0]
    quantize = named_quantize(made_of.get("quantize"))
    with open_partial(out, fresh=fresh) as partial:
        file = spooled(partial, path)
        column = made_of["text column"]
        source = open_source(file, None if column == TEXT else column)
        if sha256(file) != made_of["input"]:
            raise ConfigError(f"{file}: is not the input that {first.path} was made of; give that one")
        if out.exists() and not fresh:
            return already_there(partial, out, made_of, quantize)
        if partial.begun:
            raise ConfigError(f"{out}: was begun by a run of its own; end that, or give --fresh to drop it")
        ranges = None if first.place.ranges is None else np.array(first.place.ranges, np.float32)
        vectors = JoinedFiles([shard.vectors for shard in made])
        finish(partial, vectors, source, out, made_of, quantize, ranges)
        seconds = round(time.monotonic() - began, 3)
    return Encoded(out, vectors.texts, vectors.dim, resumed=0, seconds=seconds, quantize=quantize)


def _all_alike(out: Path) -> list[_Made]:
    """All shards, in order, of one input, model and settings."""
    counts = sorted({shard.of for shard in shards_beside(out)})
    if not counts:
        raise DataError(
            f"no shards, such as {VectorShard(1, 4).path(out).name}; make them by --shard", path=out
        )
    if len(counts) > 1:
        raise ConfigError(
            f"{out}: beside it are shards of {' and of '.join(map(str, counts))}; remove those that are not"
            " to be merged"
        )
    shards = [VectorShard(number, counts[0]) for number in range(1, counts[0] + 1)]
    made = [_read(shard, out) for shard in shards]
    for one in made[1:]:
        if differences := differing(made[0].made_of, one.made_of):
            raise ConfigError(
                f"{one.path}: differs from {made[0].path.name} in {'; '.join(differences)}; make both alike"
            )
    _check_whole(made)
    return made


def _read(shard: VectorShard, out: Path) -> _Made:
    path, again = shard.path(out), f"run the same command with --shard {shard}"
    if not path.is_file():
        begun = path.with_name(path.name + ".partial").is_dir()
        raise DataError(f"is not finished; {again}" if begun else f"is missing; {again}", path=path)
    record = read_record(path) or {}
    try:
        place = _ShardRecord.model_validate(record.get("shard"))
    except ValidationError as error:
        raise DataError(f"is no shard as its record has it; {again} and --fresh", path=path) from error
    if (place.number, place.of) != (shard.number, shard.of):
        raise DataError(f"is another shard by its record; {again} and --fresh", path=path)
    return _Made(path, record["made_of"], place, VectorFile(path, record["texts"], record["dim"]))


def _check_whole(made: Sequence[_Made]) -> None:
    first = 0
    for shard in made:
        if shard.place.first != first or shard.place.texts != made[0].place.texts:
            raise DataError("begins at another text than the shard before it ends", path=shard.path)
        first += shard.vectors.texts
    if first != made[0].place.texts:
        raise DataError(f"the shards have {first:,} of {made[0].place.texts:,} texts", path=made[-1].path)
