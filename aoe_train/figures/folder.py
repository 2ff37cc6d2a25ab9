"""The folder of figures, and figures.json, which holds the numbers that were drawn."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pairkit.errors import ConfigError

RECORD_FILE = "figures.json"


def check_folder(out: Path) -> None:
    """Refuse a folder that a new one may not replace: figures of ours and nothing else, or nothing at all.

    Raises:
        ConfigError: `out` has no name of its own, is a file, or holds other files.
    """
    if out.name in ("", ".."):
        raise ConfigError(f"{out}: figures need a folder of their own; give --out a name, such as figures")
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out}: is a file; choose another --out")
    if out.is_dir() and (others := sorted({path.name for path in out.iterdir()} - _ours(out))):
        raise ConfigError(
            f"{out}: holds {others[0]}, which is no figure of ours and would be deleted; choose another --out"
        )


def _ours(out: Path) -> set[str]:
    try:
        record = json.loads((out / RECORD_FILE).read_text(encoding="utf-8"))
        return {RECORD_FILE, *record["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def plain(value: Any) -> Any:
    """Dataclasses and arrays as JSON has them; floats have six digits, finer than ink, or are None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
