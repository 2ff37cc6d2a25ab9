"""Reads the file that declares a provider or a task."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def declared(folder: Path, name: str) -> dict[str, Any]:
    """The values of NAME.toml."""
    return tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
