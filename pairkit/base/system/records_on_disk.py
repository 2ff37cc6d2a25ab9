"""A sequence of values in a temporary file; only offsets are in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Generic, NamedTuple, TypeVar

import msgspec

from pairkit.base.system.files import write_errors

T = TypeVar("T")


class Scratch(NamedTuple):
    """An unnamed file and its folder."""

    folder: Path
    file: IO[bytes]


@contextmanager
def scratch_file(folder: Path) -> Iterator[Scratch]:
    """An unnamed temporary file, which is deleted even if the process is killed."""
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = TemporaryFile(dir=folder)  # noqa: SIM115
    try:
        yield Scratch(folder, file)
    finally:
        # Closing flushes again what could not be written, which was reported.
        with suppress(OSError):
            file.close()


class RecordsOnDisk(Generic[T]):
    """Values in the order in which they were added."""

    def __init__(self, scratch: Scratch, kind: type[T]) -> None:
        self._folder, self._file = scratch
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> T:
        start = self._ends[place]
        end = self._ends[place + 1]
        self._file.seek(start)
        return self._decoder.decode(self._file.read(end - start))

    def extend(self, values: Iterable[T]) -> None:
        """Append values."""
        with write_errors(self._folder):
            self._file.seek(self._ends[-1])
            for value in values:
                packed = self._encoder.encode(value)
                self._file.write(packed)
                self._ends.append(self._ends[-1] + len(packed))
            self._file.flush()
