"""What a Parquet file holds, page by page, as its headers say: known before any of it is unpacked.

A column of one value may claim a billion rows in a few bytes, and a page may unpack to two gigabytes. Readers
take the headers' word for it, so it is enough to read those. They are Thrift structures in the compact
protocol: see https://github.com/apache/parquet-format, parquet.thrift, and Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pairkit.errors import DataError
from pairkit.lines import FREE_BYTES, MAX_RATIO

MAX_COLUMNS = 10_000
MAX_VALUES_PER_BYTE = 8  # a bit each, which is what values that hardly differ take
FREE_VALUES = 1 << 22  # as many may be in a column whatever the file's size
_MAX_FOOTER_BYTES = 64 << 20
_MAX_DEPTH = 20
_TAIL_BYTES = 8  # the footer's length, and the magic number
_HEADER_BYTES = 1 << 12  # of a page; most are shorter by far

Fields = dict[int, Any]


@dataclass(frozen=True, slots=True)
class ParquetSizes:
    """Sizes of a file.

    Attributes:
        rows: How many it holds.
        largest_dictionary: Bytes of the largest dictionary, unpacked: a value may be as long in each row.
    """

    rows: int
    largest_dictionary: int


class _MalformedError(ValueError):
    """Headers that are none."""


def check_parquet(file: IO[bytes], path: Path) -> ParquetSizes:
    """See that a file unpacks to what one of its size may.

    Args:
        file: The file, open for reading; it is left anywhere.
        path: Its name, for messages.

    Raises:
        DataError: More columns than `MAX_COLUMNS`, more values in a column than `MAX_VALUES_PER_BYTE` allow,
            or more bytes than `MAX_RATIO` does; or headers that can't be read.
    """
    size = file.seek(0, 2)
    try:
        footer = _footer(file, size)
        if len(footer.get(2, ())) > MAX_COLUMNS:
            raise DataError(
                f"has more than {MAX_COLUMNS:,} columns; keep those that hold texts and labels", path=path
            )
        return _sizes(file, footer, size, path)
    except (ValueError, IndexError, TypeError, AttributeError, KeyError, OverflowError) as error:
        raise DataError(
            "not readable as parquet (malformed headers); mend or convert the file", path=path
        ) from error


def _sizes(file: IO[bytes], footer: Fields, size: int, path: Path) -> ParquetSizes:
    most_values = max(FREE_VALUES, MAX_VALUES_PER_BYTE * size)
    most_bytes = max(FREE_BYTES, MAX_RATIO * size)
    values: dict[int, int] = {}
    rows = unpacked = largest = 0
    for group in footer.get(4, ()):
        rows += _natural(group[3])
        for column, chunk in enumerate(group[1]):
            for header in _pages(file, chunk[3], size):
                unpacked += _natural(header[2])
                data = header.get(5) or header.get(8)
                if data is not None:
                    values[column] = values.get(column, 0) + _natural(data[1])
                elif 7 in header:
                    largest = max(largest, header[2])
                if unpacked > most_bytes:
                    raise DataError(
                        f"unpacks to more than {MAX_RATIO} times its size, as no file of texts does; if it is"
                        " sound, write it anew without compression",
                        path=path,
                    )
        if max(rows, *values.values(), 0) > most_values:
            raise DataError(
                f"claims more than {most_values:,} values in a column, which {size:,} bytes hold only"
                " if they are all alike; drop that column, or give CSV or JSON lines",
                path=path,
            )
    if rows != _natural(footer[3]):
        raise _MalformedError
    return ParquetSizes(rows, largest)


def _footer(file: IO[bytes], size: int) -> Fields:
    file.seek(max(0, size - _TAIL_BYTES))
    tail = file.read(_TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != b"PAR1" or not 0 < length <= min(size - _TAIL_BYTES, _MAX_FOOTER_BYTES):
        raise _MalformedError
    file.seek(size - _TAIL_BYTES - length)
    return _Reader(file.read(length)).struct()


def _pages(file: IO[bytes], chunk: Fields, size: int) -> Iterator[Fields]:
    """The headers of a column's pages in a row group."""
    starts = [start for start in (chunk.get(11), chunk.get(9)) if start]
    place = _natural(min(starts))
    end = place + _natural(chunk[7])
    if end > size:
        raise _MalformedError
    while place < end:
        header, length = _header(file, place, end)
        yield header
        place += length + _natural(header[3])


def _header(file: IO[bytes], place: int, end: int) -> tuple[Fields, int]:
    length = _HEADER_BYTES
    while True:
        file.seek(place)
        reader = _Reader(file.read(min(length, end - place)))
        try:
            return reader.struct(), reader.place
        except IndexError:  # statistics of long texts may stand in it
            if length >= end - place:
                raise
            length *= 16


def _natural(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise _MalformedError
    return number


class _Reader:
    """Thrift's compact protocol: a structure as its fields by number. What is cut off is an IndexError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0

    def struct(self, depth: int = 0) -> Fields:
        """The fields up to the end of the structure."""
        fields: Fields = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int, *, listed: bool = False) -> Any:
        if depth > _MAX_DEPTH:
            raise _MalformedError
        match kind:
            case 1 | 2:
                return self._byte() == 1 if listed else kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7:
                return self._bytes(8)
            case 8:
                return self._bytes(self._varint())
            case 9 | 10:
                head = self._byte()
                count = head >> 4 if head >> 4 < 15 else self._varint()
                return [self._value(head & 15, depth + 1, listed=True) for _ in range(count)]
            case 11:
                count = self._varint()
                kinds = self._byte() if count else 0
                return [
                    (
                        self._value(kinds >> 4, depth + 1, listed=True),
                        self._value(kinds & 15, depth + 1, listed=True),
                    )
                    for _ in range(count)
                ]
            case 12:
                return self.struct(depth + 1)
        raise _MalformedError

    def _byte(self) -> int:
        value = self._data[self.place]
        self.place += 1
        return value

    def _bytes(self, count: int) -> bytes:
        start, self.place = self.place, self.place + count
        if self.place > len(self._data):
            raise IndexError
        return self._data[start : self.place]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise _MalformedError
        return value | byte << shift

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
