"""Values of one kind in a file, each read when it is asked for; in memory is only where each begins."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Generic, NamedTuple, TypeVar

import msgspec

from pairkit.files import write_errors

T = TypeVar("T")


class Scratch(NamedTuple):
    """A file without a name, and where it was made."""

    path: Path
    file: IO[bytes]


@contextmanager
def scratch_file(path: Path) -> Iterator[Scratch]:
    """A file that lasts as long as it is needed.

    Raises:
        ConfigError: It can't be written.
    """
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w+b")
    path.unlink()  # so that it is gone even if this process is killed
    try:
        yield Scratch(path, file)
    finally:
        with suppress(OSError):  # of a disk that is full, as was told before
            file.close()


class RecordsOnDisk(Generic[T]):
    """Values by the order in which they were added.

    Args:
        scratch: Where they go.
        kind: Their type, which msgspec can pack.
    """

    def __init__(self, scratch: Scratch, kind: type[T]) -> None:
        self._path, self._file = scratch
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> T:
        start, end = self._ends[place], self._ends[place + 1]
        self._file.seek(start)
        return self._decoder.decode(self._file.read(end - start))

    def extend(self, values: Iterable[T]) -> None:
        """Take further values in.

        Raises:
            ConfigError: The disk is full.
        """
        with write_errors(self._path):
            self._file.seek(self._ends[-1])
            for value in values:
                packed = self._encoder.encode(value)
                self._file.write(packed)
                self._ends.append(self._ends[-1] + len(packed))
            self._file.flush()
