"""The folder of figures, and figures.json, which holds the numbers that were drawn."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pairkit.folders import check_only, check_place, read_own

RECORD_FILE = "figures.json"
_FIGURE = re.compile(r"(curves|densities|halves[A-Za-z0-9._-]*)\.(png|svg)")


def check_folder(out: Path) -> None:
    """Refuse a folder that a new one may not replace: figures of ours and nothing else, or nothing at all.

    A figures.json may be a stranger's and name any file, so a file has to bear a figure's name, too.

    Raises:
        ConfigError: `out` has no name of its own, is a file, or holds other files.
    """
    check_place(out, "a set of figures", "figures")
    record = read_own(out / RECORD_FILE) or {}
    named = record.get("files")
    figures = {str(name) for name in named if _FIGURE.fullmatch(str(name))} if isinstance(named, list) else {}
    check_only(out, {RECORD_FILE, *figures} if figures else (), "a set of figures")


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
