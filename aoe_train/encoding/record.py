"""`OUT.run.json`: what an output was made of, to explain it and to tell it from one of another run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aoe_train.encoding.codes import Codes
from pairkit import __version__
from pairkit.app.errors import ConfigError
from pairkit.system.files import write_json
from pairkit.system.folders import differing, read_own

_MADE_BY = "aoe encode"


def record_path(out: Path) -> Path:
    """Beside an output."""
    return out.with_name(out.name + ".run.json")


def write_record(
    out: Path,
    made_of: Mapping[str, Any],
    *,
    texts: int,
    dim: int,
    size: int,
    codes: Codes,
    shard: Mapping[str, Any] | None = None,
) -> None:
    """Write what an output of `size` bytes, which is about to appear, is made of, and how to read it."""
    counts = {"texts": texts, "dim": dim, "bytes": size, **codes.to_dict()}
    place = {} if shard is None else {"shard": shard}
    record = {"made_by": _MADE_BY, "version": __version__, "made_of": made_of, **counts, **place}
    write_json(record_path(out), record)


def read_finished(out: Path, made_of: Mapping[str, Any]) -> dict[str, Any]:
    """The record of an output that is there, if the same command made it."""
    record = read_record(out)
    if record is None:
        raise ConfigError(f"{out}: already exists; give --fresh to replace it, or choose another --out")
    if differences := differing(record["made_of"], made_of):
        raise ConfigError(
            f"{out}: already exists, made by a run which differs in {'; '.join(differences)}; give --fresh"
            " to replace it, or choose another --out"
        )
    return record


def read_record(out: Path) -> dict[str, Any] | None:
    """The record; None if it is not ours, or another file has taken the output's place."""
    record = read_own(record_path(out))
    if record is None:
        return None
    ours = (
        record.get("made_by") == _MADE_BY
        and isinstance(record.get("made_of"), dict)
        and all(type(record.get(name)) is int for name in ("texts", "dim", "bytes"))
    )
    return record if ours and record["bytes"] == out.stat().st_size else None
