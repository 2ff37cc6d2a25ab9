"""Write files and folders atomically: complete or absent, even if the process is killed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pairkit.base.errors import ConfigError, PairkitError
from pairkit.base.printable import escape_surrogates, without_keys

# The number of a system error in the messages of polars, safetensors and tokenizers.
_ERROR_NUMBER = re.compile(r"\(os error (\d+)\)")
# Messages of torch and numpy that hide the system's.
_FAILED_WRITE = re.compile(
    r"inline_container\.cc|PytorchStreamWriter|\d requested and \d+ written"
)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 atomically: readers see the old file or the new one."""
    # File names may have lone surrogates.
    write_bytes(path, text.encode(errors="backslashreplace"))


def write_json(path: Path, value: object) -> None:
    """Write indented JSON, without secrets and with sorted keys, so that equal values give equal bytes."""
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    write_text(path, without_keys(escape_surrogates(text)) + "\n")


def write_bytes(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write `data` atomically; a `private` file is readable only by its owner."""
    with whole_file(path, private=private) as file:
        file.write(data)


@contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """A temporary file that replaces `path`, or what it links to, at the end, or is deleted on errors."""
    with write_errors(path):
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}."
        )
        partial = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if not private:
                apply_umask(partial)
            partial.replace(target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A hidden folder that replaces `out`, or what it links to, at the end, or is deleted on errors.

    Its files are on disk before it is renamed, so that a power cut leaves no truncated files in `out`.
    """
    with write_errors(out):
        target = out.resolve()
        partial = target.parent / f".{target.name}.partial"
        remove(partial)
        partial.mkdir(parents=True)
        try:
            yield partial
            for path in partial.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    apply_umask(path)
                    with path.open("rb") as file:
                        os.fsync(file.fileno())
            old = target.parent / f".{target.name}.old"
            remove(old)
            if target.exists():
                target.replace(old)
            partial.replace(target)
            remove(old)
        except BaseException:
            remove(partial)
            raise


def open_in_place(path: Path, *, empty: bool = False) -> IO[bytes]:
    """Open a file to read and write, without its content if `empty`; a missing one is made."""
    flags = os.O_CREAT | os.O_RDWR
    if empty:
        flags |= os.O_TRUNC
    with write_errors(path):
        return os.fdopen(os.open(path, flags, 0o666), "r+b")


def remove(path: Path) -> None:
    """Remove a file, folder or link, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Convert an OSError while writing `path`, also one wrapped by a library, to a ConfigError."""
    try:
        yield
    except PairkitError:
        raise
    except Exception as error:
        if _FAILED_WRITE.search(str(error)):
            reason = "most likely no space left on device"
        elif isinstance(error, OSError):
            reason = str(error.strerror or error)
        elif number := _ERROR_NUMBER.search(str(error)):
            reason = os.strerror(int(number[1]))
        else:
            raise
        raise ConfigError(
            f"{path}: can't be written ({reason}); free space, fix its permissions or use another path"
        ) from error


def apply_umask(path: Path) -> None:
    """Give a file or folder that a library made for its owner only the usual permissions."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def sha256(path: Path) -> str:
    """The SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
