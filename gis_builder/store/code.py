"""A hash of parts of our own code, so that results of another version are not reused."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable


@cache
def code_digest(*parts: str) -> str:
    """A hash of modules (`store/records.py`) and folders (`detection`) of this package."""
    package = files("gis_builder")
    found = sorted((name, text) for part in parts for name, text in _sources(package / part))
    return hashlib.sha256(b"".join(name.encode() + text for name, text in found)).hexdigest()


def _sources(part: Traversable) -> Iterator[tuple[str, bytes]]:
    for source in part.iterdir() if part.is_dir() else (part,):
        if source.name.endswith(".py"):
            yield source.name, source.read_bytes()
