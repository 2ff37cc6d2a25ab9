"""A digest of parts of our own code: what another version made is not what this one makes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable


@cache
def code_digest(*parts: str) -> str:
    """A digest of modules (`_records.py`) and whole rooms (`_detect`) of this package."""
    package = files("gis_builder")
    found = sorted((name, text) for part in parts for name, text in _sources(package / part))
    return hashlib.sha256(b"".join(name.encode() + text for name, text in found)).hexdigest()


def _sources(part: Traversable) -> Iterator[tuple[str, bytes]]:
    for source in part.iterdir() if part.is_dir() else (part,):
        if source.name.endswith(".py"):
            yield source.name, source.read_bytes()
