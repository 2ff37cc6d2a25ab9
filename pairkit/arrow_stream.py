"""What an Arrow stream holds, message by message, as its headers say: known before any of it is decoded.

`Dataset.save_to_disk` of Hugging Face's `datasets` writes such files. It packs nothing, so that a file takes
as much memory as its size; one that claims more is refused. A header is a FlatBuffer: see
https://arrow.apache.org/docs/format/Columnar.html, Message.fbs, and FlatBuffers' internals.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pairkit.errors import DataError

_CONTINUES = 0xFFFFFFFF
_MAX_HEADER_BYTES = 16 << 20
_SCHEMA, _DICTIONARY, _ROWS = 1, 2, 3  # kinds of messages
_BATCH_ROWS, _BATCH_COMPRESSION, _DICTIONARY_BATCH = 0, 3, 1  # places of fields


def check_arrow_stream(file: IO[bytes], path: Path) -> None:
    """Refuse a stream that would take more memory than its file has bytes.

    Raises:
        DataError: Not such a stream, cut short, packed, or of more rows than bytes.
    """
    size = file.seek(0, 2)
    file.seek(0)
    rows = 0
    try:
        for header in _headers(file, size):
            rows += _rows(header)
    except (struct.error, IndexError, ValueError) as error:
        raise DataError("not readable as an Arrow stream; save the dataset again", path=path) from error
    if rows > size:
        raise DataError(f"claims {rows:,} rows in {size:,} bytes; save the dataset again", path=path)


def _headers(file: IO[bytes], size: int) -> Iterator[bytes]:
    while start := file.read(8):
        continues, length = struct.unpack("<II", start)
        if continues != _CONTINUES or length > _MAX_HEADER_BYTES:
            raise ValueError("no message")
        if length == 0:
            return
        header = file.read(length)
        end = file.tell() + _number(header, _root(header), 3, "<q")
        if not file.tell() <= end <= size:
            raise ValueError("a body beyond the file")
        yield header
        file.seek(end)


def _rows(header: bytes) -> int:
    """How many rows a message brings."""
    root = _root(header)
    kind = _number(header, root, 1, "<B")
    if kind == _SCHEMA:
        return 0
    batch = _table(header, root, 2)
    if kind == _DICTIONARY:
        batch = _table(header, batch, _DICTIONARY_BATCH)
    elif kind != _ROWS:
        raise ValueError("no rows")
    if _place(header, batch, _BATCH_COMPRESSION):
        raise ValueError("packed")
    found = _number(header, batch, _BATCH_ROWS, "<q")
    if found < 0:
        raise ValueError("fewer than no rows")
    return found


def _root(header: bytes) -> int:
    return int(struct.unpack_from("<I", header)[0])


def _place(header: bytes, table: int, field: int) -> int:
    """Where a table has a field; 0 where it has none."""
    layout = table - struct.unpack_from("<i", header, table)[0]
    if layout < 0:
        raise ValueError("a layout outside the header")
    if 4 + 2 * field >= struct.unpack_from("<H", header, layout)[0]:
        return 0
    offset = int(struct.unpack_from("<H", header, layout + 4 + 2 * field)[0])
    return table + offset if offset else 0


def _number(header: bytes, table: int, field: int, form: str) -> int:
    place = _place(header, table, field)
    return int(struct.unpack_from(form, header, place)[0]) if place else 0


def _table(header: bytes, table: int, field: int) -> int:
    place = _place(header, table, field)
    if not place:
        raise ValueError("a part is missing")
    return place + int(struct.unpack_from("<I", header, place)[0])
