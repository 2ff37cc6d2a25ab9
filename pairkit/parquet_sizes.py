"""What a Parquet file holds, page by page, as its headers say: known before any of it is unpacked.

A column of one value may claim a billion rows in a few bytes, and a page may unpack to two gigabytes. Readers
take the headers' word for it, so it is enough to read those. They are Thrift structures in the compact
protocol: see https://github.com/apache/parquet-format, parquet.thrift, and Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

from pairkit.errors import DataError
from pairkit.lines import FREE_BYTES, MAX_RATIO

MAX_COLUMNS = 10_000
MAX_VALUES_PER_BYTE = 8  # a bit each, which is what values that hardly differ take
FREE_VALUES = 1 << 22  # as many may be in a column whatever the file's size
MIN_PAGE_BYTES = 256  # on average, its header included
FREE_PAGES = 1 << 16  # as many may be in a file whatever its size
_MAX_FOOTER_BYTES = 64 << 20
_MAX_DEPTH = 20
_TAIL_BYTES = 8  # the footer's length, and the magic number
_HEADER_BYTES = 1 << 12  # of a page; most are shorter by far

_MAX_VALUES = 1 << 22  # of a footer; a column takes some 40 in a row group
_MAX_STRUCTS = 1 << 18  # of a footer that are kept; a column takes two in a row group
_MAX_PAGE_VALUES = 1 << 10  # of a page's header; there are some 30

Fields = dict[int, Any]
Wanted = Mapping[int, "Wanted | None"]
"""Fields to keep: None for a number or a list's length; else what to keep of a structure, or of a list's."""

_FOOTER: Wanted = {2: None, 3: None, 4: {1: {3: {7: None, 9: None, 11: None}}, 3: None}}
_PAGE: Wanted = {2: None, 3: None, 5: {1: None}, 7: {}, 8: {1: None}}


@dataclass(frozen=True, slots=True)
class ParquetSizes:
    """Sizes of a file.

    Attributes:
        rows: How many it holds.
        largest_dictionary: Bytes of the largest dictionary, unpacked: a value may be as long in each row.
    """

    rows: int
    largest_dictionary: int


class _Chunk(NamedTuple):
    """Where a column's values of a row group are in the file."""

    start: int
    end: int
    column: int


class _MalformedError(ValueError):
    """Headers that are none."""


class _TooManyError(Exception):
    """Headers of more than they may hold."""


def check_parquet(file: IO[bytes], path: Path) -> ParquetSizes:
    """See that a file unpacks to what one of its size may.

    Args:
        file: The file, open for reading; it is left anywhere.
        path: Its name, for messages.

    Raises:
        DataError: More columns than `MAX_COLUMNS`, more values in a column than `MAX_VALUES_PER_BYTE` allow,
            more bytes than `MAX_RATIO` does, or smaller pages than `MIN_PAGE_BYTES` do; or headers that can't
            be read.
    """
    size = file.seek(0, 2)
    try:
        footer = _footer(file, size)
        if footer.get(2, 0) > MAX_COLUMNS:
            raise DataError(
                f"has more than {MAX_COLUMNS:,} columns; keep those that hold texts and labels", path=path
            )
        return _sizes(file, footer, size, path)
    except _TooManyError as error:
        raise DataError(
            "its headers hold more than those of any table of texts; write it anew in larger row groups",
            path=path,
        ) from error
    except (ValueError, IndexError, TypeError, AttributeError, KeyError, OverflowError) as error:
        raise DataError(
            "not readable as parquet (malformed headers); fix or convert the file", path=path
        ) from error


def _sizes(file: IO[bytes], footer: Fields, size: int, path: Path) -> ParquetSizes:
    most_values = max(FREE_VALUES, MAX_VALUES_PER_BYTE * size)
    most_bytes = max(FREE_BYTES, MAX_RATIO * size)
    pages_left = max(FREE_PAGES, size // MIN_PAGE_BYTES)
    values: dict[int, int] = {}
    unpacked = largest = 0
    for chunk in _chunks(footer, size):
        for header in _pages(file, chunk):
            pages_left -= 1
            if pages_left < 0:
                raise DataError(
                    f"has pages of less than {MIN_PAGE_BYTES} bytes on average, as no writer of texts makes"
                    " them; if it is sound, write it anew",
                    path=path,
                )
            unpacked += _natural(header[2])
            data = header.get(5) or header.get(8)
            if data is not None:
                values[chunk.column] = values.get(chunk.column, 0) + _natural(data[1])
            elif 7 in header:
                largest = max(largest, header[2])
            if unpacked > most_bytes:
                raise DataError(
                    f"unpacks to more than {MAX_RATIO} times its size, as no file of texts does; if it is"
                    " sound, write it anew without compression",
                    path=path,
                )
    rows = sum(_natural(group[3]) for group in footer.get(4, ()))
    if max(rows, *values.values(), 0) > most_values:
        raise DataError(
            f"claims more than {most_values:,} values in a column, which {size:,} bytes hold only"
            " if they are all alike; drop that column, or give CSV or JSON lines",
            path=path,
        )
    if rows != _natural(footer[3]):
        raise _MalformedError
    return ParquetSizes(rows, largest)


def _chunks(footer: Fields, size: int) -> list[_Chunk]:
    """A column's bytes in each row group, in the order of the file; they have no byte in common."""
    chunks = []
    for group in footer.get(4, ()):
        for column, fields in enumerate(group[1]):
            starts = [start for start in (fields[3].get(11), fields[3].get(9)) if start]
            start = _natural(min(starts))
            chunks.append(_Chunk(start, start + _natural(fields[3][7]), column))
    chunks.sort()
    for chunk, following in pairwise([*chunks, _Chunk(size, size, 0)]):
        if chunk.end > following.start:
            raise _MalformedError
    return chunks


def _footer(file: IO[bytes], size: int) -> Fields:
    file.seek(max(0, size - _TAIL_BYTES))
    tail = file.read(_TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != b"PAR1" or not 0 < length <= min(size - _TAIL_BYTES, _MAX_FOOTER_BYTES):
        raise _MalformedError
    file.seek(size - _TAIL_BYTES - length)
    return _Reader(file.read(length)).struct(_FOOTER)


def _pages(file: IO[bytes], chunk: _Chunk) -> Iterator[Fields]:
    """The headers of a chunk's pages."""
    place = chunk.start
    while place < chunk.end:
        header, length = _header(file, place, chunk.end)
        yield header
        place += length + _natural(header[3])


def _header(file: IO[bytes], place: int, end: int) -> tuple[Fields, int]:
    length = _HEADER_BYTES
    while True:
        file.seek(place)
        reader = _Reader(file.read(min(length, end - place)), _MAX_PAGE_VALUES)
        try:
            return reader.struct(_PAGE), reader.place
        except IndexError:  # statistics of long texts may stand in it
            if length >= end - place:
                raise
            length *= 16


def _natural(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise _MalformedError
    return number


class _Reader:
    """Thrift's compact protocol: the wanted fields of a structure, by number.

    What nobody wants is passed over without being built. What is cut off is an IndexError.
    """

    def __init__(self, data: bytes, most_values: int = _MAX_VALUES) -> None:
        self._data, self._values_left = data, most_values
        self._structs_left = _MAX_STRUCTS
        self.place = 0

    def struct(self, wanted: Wanted) -> Fields:
        """The wanted fields up to the end of the structure."""
        return self._fields(wanted, 0)

    def _fields(self, wanted: Wanted, depth: int) -> Fields:
        self._structs_left -= 1
        if self._structs_left < 0:
            raise _TooManyError
        fields: Fields = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            if number in wanted:
                fields[number] = self._value(head & 15, wanted[number], depth)
            else:
                self._skip(head & 15, depth)
        return fields

    def _value(self, kind: int, wanted: Wanted | None, depth: int) -> Any:
        """A number, a structure or a list of structures; of any other list how long it is."""
        if kind in (9, 10):
            count, of = self._list_head()
            if wanted is None or of != 12:
                self._skip_all(count, of, depth + 1)
                return count
            return [self._value(of, wanted, depth + 1) for _ in range(count)]
        if kind == 12 and wanted is not None and depth < _MAX_DEPTH:
            self._count_value()
            return self._fields(wanted, depth + 1)
        if kind in (4, 5, 6):
            self._count_value()
            return self._integer()
        return self._skip(kind, depth)

    def _skip(self, kind: int, depth: int, *, listed: bool = False) -> None:
        self._count_value()
        if depth > _MAX_DEPTH:
            raise _MalformedError
        match kind:
            case 1 | 2:
                self.place += listed
            case 3:
                self.place += 1
            case 4 | 5 | 6:
                self._varint()
            case 7:
                self.place += 8
            case 8:
                length = self._varint()
                self.place += length
            case 9 | 10:
                count, of = self._list_head()
                self._skip_all(count, of, depth + 1)
            case 11:
                count = self._varint()
                kinds = self._byte() if count else 0
                for _ in range(count):
                    self._skip(kinds >> 4, depth + 1, listed=True)
                    self._skip(kinds & 15, depth + 1, listed=True)
            case 12:
                while head := self._byte():
                    if not head >> 4:
                        self._varint()
                    self._skip(head & 15, depth + 1)
            case _:
                raise _MalformedError
        if self.place > len(self._data):
            raise IndexError

    def _skip_all(self, count: int, kind: int, depth: int) -> None:
        for _ in range(count):
            self._skip(kind, depth, listed=True)

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        return head >> 4 if head >> 4 < 15 else self._varint(), head & 15

    def _count_value(self) -> None:
        self._values_left -= 1
        if self._values_left < 0:
            raise _TooManyError

    def _byte(self) -> int:
        value = self._data[self.place]
        self.place += 1
        return value

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
