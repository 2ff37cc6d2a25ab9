"""The texts of all issues that may stand in a pair, on disk; in memory is only where each lies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from gis_builder._records import IssueRef, IssueText
from pairkit.files import write_errors


class _Spot(NamedTuple):
    start: int
    length: int
    created_at: str


class TextsOnDisk(Mapping[IssueRef, IssueText]):
    """Texts by issue, each read when it is asked for; what rendering took out of them is not kept."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file = path, file
        self._spots: dict[IssueRef, _Spot] = {}
        self._end = 0

    def add(self, texts: Iterable[IssueText]) -> None:
        """Take further texts in.

        Raises:
            ConfigError: The disk is full.
        """
        with write_errors(self._path):
            self._file.seek(self._end)
            for text in texts:
                encoded = text.text.encode()
                self._file.write(encoded)
                self._spots[text.ref] = _Spot(self._end, len(encoded), text.created_at)
                self._end += len(encoded)
            self._file.flush()

    def __getitem__(self, ref: IssueRef) -> IssueText:
        start, length, created_at = self._spots[ref]
        self._file.seek(start)
        return IssueText(ref, self._file.read(length).decode(), created_at)

    def __iter__(self) -> Iterator[IssueRef]:
        return iter(self._spots)

    def __len__(self) -> int:
        return len(self._spots)


@contextmanager
def texts_on_disk(path: Path) -> Iterator[TextsOnDisk]:
    """Texts in a file that lasts as long as they are needed.

    Raises:
        ConfigError: The file can't be written.
    """
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w+b")
    path.unlink()  # so that it is gone even if this process is killed
    with file:
        yield TextsOnDisk(path, file)
