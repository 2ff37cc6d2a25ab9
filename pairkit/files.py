"""Files that are either whole or absent, whatever moment the process is killed at."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pairkit.errors import ConfigError

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals to write `path` into a ConfigError that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL:
            raise ConfigError(
                f"{path}: no space left on the device; free some and run the same command again"
            ) from error
        raise ConfigError(
            f"{path}: can't be written ({error.strerror or error}); use another path or mend its permissions"
        ) from error


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 in one step: readers see the old file or the new one, never half."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write `data` in one step, see `write_text`; a `private` file is its owner's alone to read."""
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o600 if private else 0o666 & ~_umask())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON with sorted keys, so that equal values give equal bytes."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """Yield a hidden sibling folder to fill; on success it takes `out`'s place, on failure it is removed.

    A folder that stood at `out` is replaced, and only once the new one is complete. A killed process may
    leave the hidden sibling; the next run of the same command clears it.
    """
    partial = out.parent / f".{out.name}.partial"
    with write_errors(out):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            yield partial
            _sync_tree(partial)
            old = out.parent / f".{out.name}.old"
            shutil.rmtree(old, ignore_errors=True)
            if out.exists():
                out.replace(old)
            partial.replace(out)
            shutil.rmtree(old, ignore_errors=True)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _sync_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
