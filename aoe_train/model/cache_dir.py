"""Where what was computed once is kept for the next run."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir(kind: str) -> Path:
    """`$AOE_CACHE/<kind>`, else `~/.cache/aoe-toolkit/<kind>`; whatever lies there may be deleted."""
    folder = os.environ.get("AOE_CACHE")
    return (Path(folder) if folder else Path.home() / ".cache/aoe-toolkit") / kind
