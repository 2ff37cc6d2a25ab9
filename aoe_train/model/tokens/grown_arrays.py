"""Arrays on disk that are made once, a stretch at a time, and then mapped into memory.

`<folder>/<name>.npy`, the folder being named by a hash of everything that the arrays depend on. It appears
whole or not at all; one that can't be read or fails its checksum counts as absent. While arrays grow, they
lie in `.<folder>.partial`, with a note of how much of them is safely on disk and of what their maker needs to
go on after a kill. What was written behind the note is cut off again. One process makes them, others wait.
"""

from __future__ import annotations

import fcntl
import io
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, Self

import numpy as np

from pairkit.app.errors import DataError
from pairkit.system.files import open_own, remove, write_errors, write_json
from pairkit.system.folders import LOCK_FILE, read_own

_CHECKSUM = "checksum"
_READ_AT_ONCE = 1 << 20


class ArrayLayout:
    """What an array holds."""

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self.dtype, self.width = np.dtype(dtype), width

    def header(self, rows: int) -> bytes:
        """What stands before the numbers; of the same length however many rows there are."""
        file = io.BytesIO()
        shape = (rows,) if self.width is None else (rows, self.width)
        descr = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, descr)
        return file.getvalue()

    def size(self, rows: int) -> int:
        """Bytes of the file."""
        row = self.dtype.itemsize if self.width is None else self.dtype.itemsize * self.width
        return len(self.header(rows)) + rows * int(row)


class GrowingArrays:
    """Arrays that grow together in a folder."""

    def __init__(self, folder: Path, name: str, layouts: Mapping[str, ArrayLayout]) -> None:
        """Go on with them, or begin."""
        self._note_file, self._layouts = folder / f"{name}.json", layouts
        noted = read_own(self._note_file) or {}
        self.rows: dict[str, int] = noted.get("rows") or dict.fromkeys(layouts, 0)
        self.note: dict[str, Any] = noted.get("note") or {}
        self._paths = {array: folder / f"{array}.npy" for array in layouts}
        self._files: dict[str, IO[bytes]] = {}
        if not all(self._has(array) for array in layouts):
            self.rows, self.note = dict.fromkeys(layouts, 0), {}

    def __enter__(self) -> Self:
        for array, layout in self._layouts.items():
            with write_errors(self._paths[array]):
                self._files[array] = file = open_own(self._paths[array])
                file.truncate(layout.size(self.rows[array]))
                file.seek(0)
                file.write(layout.header(self.rows[array]))
                file.seek(0, io.SEEK_END)
        return self

    def __exit__(self, *_: object) -> None:
        for array, file in self._files.items():
            with write_errors(self._paths[array]):
                file.close()

    def add(self, array: str, rows: np.ndarray) -> None:
        """Put rows behind those that are there."""
        with write_errors(self._paths[array]):
            self._files[array].write(rows.astype(self._layouts[array].dtype, copy=False).tobytes())
        self.rows[array] += len(rows)

    def keep(self, **note: Any) -> None:
        """See to it that all of it is on disk, and note so; what is not kept is not there."""
        for array, file in self._files.items():
            with write_errors(self._paths[array]):
                file.seek(0)
                file.write(self._layouts[array].header(self.rows[array]))
                file.seek(0, io.SEEK_END)
                file.flush()
                os.fsync(file.fileno())
        self.note = note
        write_json(self._note_file, {"rows": self.rows, "note": note})

    def _has(self, array: str) -> bool:
        """Whether there is as much as was noted."""
        rows, path = self.rows.get(array), self._paths[array]
        if not isinstance(rows, int):
            return False
        return not rows or (path.is_file() and path.stat().st_size >= self._layouts[array].size(rows))


def made_arrays(folder: Path, names: Sequence[str], make: Callable[[Path], None]) -> dict[str, np.ndarray]:
    """The arrays in a folder, mapped into memory; they are made first where they aren't there."""
    while True:
        if (found := load_arrays(folder, names)) is not None:
            return found
        partial = folder.with_name(f".{folder.name}.partial")
        with _held(partial) as is_there:
            if not is_there:
                continue  # another process has made them, or given up
            if load_arrays(folder, names) is not None:
                remove(partial)
                continue
            try:
                make(partial)
            except DataError:  # it would be the same again
                remove(partial)
                raise
            _finish(partial, folder, names)


def load_arrays(folder: Path, names: Sequence[str]) -> dict[str, np.ndarray] | None:
    """The arrays saved in `folder`, mapped into memory; None if they aren't there or have changed since."""
    try:
        arrays = {name: mapped(folder / f"{name}.npy") for name in names}
        checksum = np.load(folder / f"{_CHECKSUM}.npy")
        is_whole = checksum.shape == () and checksum == _checksum(folder, names)
    except (OSError, ValueError, EOFError, SyntaxError, TypeError, OverflowError, TokenError):
        return None  # numpy reads a header as Python's words
    return arrays if is_whole else None


def mapped(path: Path) -> np.ndarray:
    """Open an array on disk; plain, as indexing a memmap costs more than reading."""
    return np.asarray(np.load(path, mmap_mode="r"))


@contextmanager
def _held(partial: Path) -> Iterator[bool]:
    """Hold a folder alone, once others let it go; False where it is another one by then, or gone."""
    with write_errors(partial):
        partial.mkdir(parents=True, exist_ok=True)
        try:
            lock = os.open(partial / LOCK_FILE, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            lock = -1
    if lock < 0:
        yield False
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield _is_open(partial / LOCK_FILE, lock)
    finally:
        os.close(lock)


def _is_open(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except OSError:
        return False


def _finish(partial: Path, folder: Path, names: Sequence[str]) -> None:
    """Put the arrays, which are complete, in their place."""
    with write_errors(folder):
        np.save(partial / f"{_CHECKSUM}.npy", np.array(_checksum(partial, names)))
        remove(folder)  # a damaged one
        (partial / LOCK_FILE).unlink()
        partial.rename(folder)


def _checksum(folder: Path, names: Sequence[str]) -> int:
    """Of the files, which are read and not mapped: what is mapped and looked at counts as memory in use."""
    total = 0
    for name in sorted(names):
        total = zlib.crc32(name.encode(), total)
        with (folder / f"{name}.npy").open("rb") as file:
            while block := file.read(_READ_AT_ONCE):
                total = zlib.crc32(block, total)
    return total
