"""The folder of figures, and figures.json, which holds the numbers that were drawn."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pairkit.folders import check_only, check_place

RECORD_FILE = "figures.json"


def check_folder(out: Path) -> None:
    """Refuse a folder that a new one may not replace: figures of ours and nothing else, or nothing at all.

    Raises:
        ConfigError: `out` has no name of its own, is a file, or holds other files.
    """
    check_place(out, "a set of figures", "figures")
    check_only(out, _ours(out), "a set of figures")


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
