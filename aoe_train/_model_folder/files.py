"""Which files of a model's folder are read at all, and JSON and arrays that may come from a stranger."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pairkit.errors import ConfigError, DataError
from pairkit.printable import one_line

if TYPE_CHECKING:
    import numpy as np

_MIB = 1 << 20
_JSON_LIMIT = 16 * _MIB
_VOCABULARY_LIMIT = 256 * _MIB  # the largest that is published takes a seventh of it
_VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "merges.txt")
_ENTRIES_LIMIT = 20_000
_INDEX = "*.safetensors.index.json"
# A file in the Hub's cache is a link to models--NAME/blobs/HASH.
_SNAPSHOT = re.compile(r"(.*/models--[^/]+)/snapshots/[^/]+", re.DOTALL)
_REMEDY = "copy or download the model again"


class Foreign(BaseModel):
    """Base of what is read from a stranger's JSON: exact types, and no key that is not listed."""

    # A run needs few of these, and to build them all takes a tenth of a second.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


F = TypeVar("F", bound=BaseModel)


def check_files(folder: Path) -> None:
    """Refuse links that lead elsewhere, what is no file, and shards with a path; in subfolders too.

    Args:
        folder: Of a whole model: its parts may link to each other.

    Raises:
        ConfigError: A link leads out of the folder (but for the Hub's own cache), or a pipe or device stands
            there.
        DataError: A file of JSON or a vocabulary is too large, or the list of shards is damaged.
    """
    home, blobs = folder.resolve(), _blobs(folder)
    for number, path in enumerate(_entries(folder)):
        if number == _ENTRIES_LIMIT:
            raise ConfigError(f"{folder}: more than {_ENTRIES_LIMIT:,} files; expected the folder of a model")
        _check_entry(path, home, blobs)
        if path.match(_INDEX):
            _check_shards(path)


def read_json(path: Path, remedy: str = _REMEDY) -> Any:
    """What a file of JSON holds.

    Raises:
        DataError: It is absent, too large, too deep, or no JSON.
    """
    try:
        if path.stat().st_size > _limit(path):
            raise DataError(f"larger than {_limit(path) // _MIB} MiB; {remedy}", path=path)
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"not readable as JSON ({error}); {remedy}", path=path) from error


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object that a file holds; an empty one where there is no file.

    Raises:
        DataError: See `read_json`; or the file holds something else.
    """
    if not path.is_file():
        return {}
    found = read_json(path)
    if not isinstance(found, dict):
        raise DataError(f"expected a JSON object; {_REMEDY}", path=path)
    return found


def mapped_array(path: Path, remedy: str = _REMEDY) -> np.ndarray:
    """The array that a .npy file holds, mapped from the disk.

    Mapped, as a header may promise more numbers than the file has, or the memory.

    Raises:
        DataError: It is absent, or holds none.
    """
    from numpy.lib.format import open_memmap

    try:
        found: np.ndarray = open_memmap(path, mode="r")
    except Exception as error:  # numpy reads a header as Python's own words
        raise DataError(f"not readable ({one_line(str(error))}); {remedy}", path=path) from error
    return found


def decode(model: type[F], values: Any, path: Path, remedy: str = _REMEDY) -> F:
    """What was read from `path` as a record of the kind `model`.

    Raises:
        DataError: A key that is not listed, or a value of another type or out of its range.
    """
    try:
        return model.model_validate(values)
    except UnicodeEncodeError as error:
        raise DataError(f"holds half a surrogate pair; {remedy}", path=path) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        what = "is not known here" if first["type"] == "extra_forbidden" else first["msg"]
        shown = repr(first["input"])[:60]
        raise DataError(f"{key} = {shown}: {what[:1].lower()}{what[1:]}; {remedy}", path=path) from error


def _limit(path: Path) -> int:
    return _VOCABULARY_LIMIT if path.name in _VOCABULARIES else _JSON_LIMIT


def _blobs(folder: Path) -> Path | None:
    """Where the Hub's cache keeps the files of this snapshot, or part of one; None for any other folder."""
    found = _SNAPSHOT.match(folder.absolute().as_posix())
    return None if found is None else Path(found[1]).resolve() / "blobs"


def _entries(folder: Path) -> Iterator[Path]:
    for above, folders, files in os.walk(folder):
        yield from (Path(above, name) for name in (*folders, *files))


def _check_entry(path: Path, home: Path, blobs: Path | None) -> None:
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{path}: leads nowhere; {_REMEDY}") from error
    # A folder elsewhere is not walked through, be it among the blobs.
    is_blob = blobs is not None and real.is_relative_to(blobs) and not real.is_dir()
    if not (is_blob or real.is_relative_to(home)):
        raise ConfigError(
            f"{path}: a link out of the model's folder, to {real}; put the file itself there if you trust it"
        )
    if not (real.is_file() or real.is_dir()):
        raise ConfigError(f"{path}: no file (a pipe or a device); {_REMEDY}")
    is_text = path.suffix == ".json" or path.name in _VOCABULARIES
    if is_text and real.is_file() and real.stat().st_size > _limit(path):
        raise DataError(f"larger than {_limit(path) // _MIB} MiB; {_REMEDY}", path=path)


def _check_shards(path: Path) -> None:
    shards = read_object(path).get("weight_map")
    if not isinstance(shards, dict):
        raise DataError(f"no weight_map; {_REMEDY}", path=path)
    for name in set(map(str, shards.values())):
        if not re.fullmatch(r"[\w.-]+\.safetensors", name, re.ASCII):
            raise ConfigError(
                f"{path}: names the shard {name[:60]!r}; expected a .safetensors file of the same folder"
            )
