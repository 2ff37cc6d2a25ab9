"""Folders of backbones that are made from another file once, and kept in the cache."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

from aoe_train._model_folder.files import read_object
from pairkit.errors import DataError
from pairkit.files import open_own, sha256, whole_folder, write_errors, write_json

_HASHES = "sha256.json"  # of each file beside it


def made_once(kept: Path, make: Callable[[Path], None]) -> Path:
    """The folder `kept`, made where it is absent or has changed since.

    Args:
        kept: Where the folder is, or will be, whole or not at all; other processes may ask for it as well.
        make: Fills a folder.

    Raises:
        ConfigError: `kept` can't be written; or see `make`.
    """
    if _is_whole(kept):
        return kept
    with write_errors(kept):
        kept.parent.mkdir(parents=True, exist_ok=True)
    with open_own(kept.with_name(f"{kept.name}.lock")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one makes it, and the others wait for it
        if not _is_whole(kept):
            with whole_folder(kept) as folder:
                make(folder)
                write_json(folder / _HASHES, {path.name: sha256(path) for path in folder.iterdir()})
    return kept


def _is_whole(folder: Path) -> bool:
    try:
        hashes = read_object(folder / _HASHES)
        return bool(hashes) and all(sha256(folder / name) == value for name, value in hashes.items())
    except (OSError, DataError):
        return False
