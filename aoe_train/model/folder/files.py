"""JSON and arrays of a model folder: read without running code, with one clear line if they are damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pairkit.app.errors import DataError
from pairkit.app.printable import one_line

if TYPE_CHECKING:
    import numpy as np

_REMEDY = "copy or download the model again"


class Foreign(BaseModel):
    """Base of untrusted JSON: exact types, and only listed keys."""

    # A run needs few of these, and to build them all takes a tenth of a second.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


F = TypeVar("F", bound=BaseModel)


def read_json(path: Path, remedy: str = _REMEDY) -> Any:
    """What a file of JSON holds."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"not readable as JSON ({error}); {remedy}", path=path) from error


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object that a file holds; an empty one where there is no file."""
    if not path.is_file():
        return {}
    found = read_json(path)
    if not isinstance(found, dict):
        raise DataError(f"expected a JSON object; {_REMEDY}", path=path)
    return found


def mapped_array(path: Path, remedy: str = _REMEDY) -> np.ndarray:
    """The array that a .npy file holds, mapped from the disk."""
    from numpy.lib.format import open_memmap

    try:
        found: np.ndarray = open_memmap(path, mode="r")
    except Exception as error:  # numpy reads a header as Python's own words
        raise DataError(f"not readable ({one_line(str(error))}); {remedy}", path=path) from error
    return found


def decode(model: type[F], values: Any, path: Path, remedy: str = _REMEDY) -> F:
    """What was read from `path` as a record of the kind `model`."""
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
