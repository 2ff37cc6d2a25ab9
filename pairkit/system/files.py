"""Files that are either whole or absent, whatever moment the process is killed at."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pairkit.app.errors import ConfigError, PairkitError
from pairkit.app.printable import half_escaped

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_FULL = "no space left on the device; free some and run the same command again"
_RUST = re.compile(r"\(os error (\d+)\)")  # how libraries in Rust end their own errors
_TORCH = re.compile(r"inline_container\.cc|PytorchStreamWriter")  # hides the system's error


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn refusals to write `path`, also those that libraries wrap, into a ConfigError."""
    try:
        yield
    except PairkitError:
        raise
    except OSError as error:
        raise _refusal(path, error.errno, str(error.strerror or error)) from error
    except Exception as error:
        if found := _RUST.search(str(error)):
            raise _refusal(path, number := int(found[1]), os.strerror(number)) from error
        if _TORCH.search(str(error)):
            raise ConfigError(f"{path}: can't be written to its end; most likely {_FULL}") from error
        raise


def _refusal(path: Path, number: int | None, words: str) -> ConfigError:
    if number in _DISK_FULL:
        return ConfigError(f"{path}: {_FULL}")
    if number == errno.EFBIG:
        return ConfigError(f"{path}: larger than a file may be there; raise its limit, or use another path")
    return ConfigError(f"{path}: can't be written ({words}); use another path or fix its permissions")


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 in one step: readers see the old file or the new one, never half."""
    write_bytes(path, text.encode(errors="backslashreplace"))  # an odd file name may be quoted in it


def write_bytes(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write `data` in one step, see `write_text`; a `private` file is its owner's alone to read."""
    with whole_file(path, private=private) as file:
        file.write(data)


@contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """A file to write piece by piece; once all went well it takes the place of `path`, else it is gone."""
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fchmod(file.fileno(), 0o600 if private else 0o666 & ~_umask())
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def open_own(path: Path, mode: str = "r+b", *, private: bool = False) -> IO[bytes]:
    """Open a file of ours to write into, in place; it is made where it is absent, "wb" empties it."""
    with write_errors(path):
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600 if private else 0o666)
        if private:
            os.fchmod(handle, 0o600)
        if mode == "wb":
            os.ftruncate(handle, 0)
        return os.fdopen(handle, "r+b")


def check_free(path: Path) -> None:
    """Refuse to write over what is there."""
    if path.exists():
        raise ConfigError(f"{path}: already exists; choose another file, or move it away")


def remove(path: Path) -> None:
    """Remove a file or folder, of a link the link alone; what is absent is removed already."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON with sorted keys, so that equal values give equal bytes."""
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    write_text(path, half_escaped(text) + "\n")


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """Yield a hidden sibling folder to fill; on success it takes `out`'s place, on failure it is removed."""
    partial = out.parent / f".{out.name}.partial"
    with write_errors(out):
        remove(partial)
        partial.mkdir(parents=True)
        try:
            yield partial
            _sync_tree(partial)
            old = out.parent / f".{out.name}.old"
            remove(old)
            if out.exists():
                out.replace(old)
            partial.replace(out)
            remove(old)
        except BaseException:
            remove(partial)
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
