"""Reads TensorFlow's tensor bundles (`NAME.index` + `NAME.data-00000-of-00001`) without TensorFlow.

The index is a LevelDB table: blocks of (name, entry) sorted by name, a block of (last name, block) that lists
them, and a 48-byte footer with the position of the latter. An entry is a protocol buffer with a tensor's
type, shape and position in a data file. Blocks are checked against their CRC-32C, tensors against the size of
their type, shape and file.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pairkit.base.errors import DataError

_INDEX_LIMIT = 16 << 20  # bytes; the published index has 30 kB
_KEY_LIMIT, _RANK_LIMIT = 4096, 8
_FOOTER, _TRAILER, _MAGIC = 48, 5, 0xDB4775248B80FB57
_STRING = 7
_DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 6: "i1", 9: "<i8", 10: "?", 19: "<f2"}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def read_bundle(prefix: Path) -> dict[str, np.ndarray]:
    """All numeric tensors of a checkpoint by name, memory-mapped; strings are skipped."""
    index = Path(f"{prefix}.index")
    try:
        if index.stat().st_size > _INDEX_LIMIT:
            raise DataError(
                f"larger than {_INDEX_LIMIT >> 20} MiB; not a checkpoint index", path=index
            )
        entries = dict(_entries(index))
        header = _message(entries.pop(b""))
        if header.get(2, [0])[0]:
            raise DataError(
                "big-endian; save the checkpoint again on a little-endian machine", path=index
            )
        shards = int(header.get(1, [1])[0])
        tensors = {name.decode(): _message(entry) for name, entry in entries.items()}
        return {
            name: _tensor(prefix, name, entry, shards)
            for name, entry in sorted(tensors.items())
            if entry[1][0] != _STRING
        }
    except OSError as error:
        raise DataError(
            f"not readable ({error.strerror or error}); a checkpoint is NAME.index and NAME.data-…",
            path=error.filename or index,
        ) from error
    except (IndexError, KeyError, ValueError, TypeError, OverflowError, struct.error) as error:
        raise DataError(
            f"damaged index ({type(error).__name__}: {error}); download the file again", path=index
        ) from error


def _tensor(
    prefix: Path, name: str, entry: dict[int, list[int | bytes]], shards: int
) -> np.ndarray:
    shard, offset, size = (_number(entry, field) for field in (3, 4, 5))
    path = Path(f"{prefix}.data-{shard:05d}-of-{shards:05d}")
    if 7 in entry or _number(entry, 1) not in _DTYPES:
        raise DataError(
            f"{name}: sliced, or of type {_number(entry, 1)}; expected a whole numeric tensor",
            path=path,
        )
    dtype = np.dtype(_DTYPES[_number(entry, 1)])
    dims = _message(_text(entry, 2)).get(2, [])
    shape = tuple(_number(_message(dim), 1) for dim in dims if isinstance(dim, bytes))
    if (
        len(shape) > _RANK_LIMIT
        or math.prod(shape) * dtype.itemsize != size
        or offset + size > path.stat().st_size
    ):
        raise DataError(
            f"{name}: {size} bytes at {offset} are not shape {shape} of {dtype} within the file; "
            "download the file again",
            path=path,
        )
    if size == 0:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, mode="r", offset=offset, shape=shape)


def _entries(index: Path) -> Iterator[tuple[bytes, bytes]]:
    data = index.read_bytes()
    footer = data[-_FOOTER:]
    if len(footer) < _FOOTER or struct.unpack("<Q", footer[-8:])[0] != _MAGIC:
        raise DataError("not the index of a TensorFlow checkpoint; expected NAME.index", path=index)
    _, _, at = _handle(footer, 0)  # a metadata block, which is empty in bundles
    offset, size, _ = _handle(footer, at)
    read = 0
    for _, handle in _block(data, offset, size, index):
        offset, size, _ = _handle(handle, 0)
        read += size
        if read > len(data):
            raise IndexError("blocks overlap")
        yield from _block(data, offset, size, index)


def _block(data: bytes, offset: int, size: int, index: Path) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a block; a key shares a prefix with the previous one."""
    if offset + size > len(data):
        raise IndexError("a block outside the file")
    kind, expected = struct.unpack_from("<BI", data, offset + size)
    if kind:
        raise DataError("compressed; save the checkpoint again without compression", path=index)
    if _masked_crc32c(data[offset : offset + size + 1]) != expected:
        raise DataError(
            f"damaged: wrong checksum at byte {offset + size}; download it again", path=index
        )
    block = data[offset : offset + size]
    (restarts,) = struct.unpack("<I", block[-4:])
    at, end, key = 0, len(block) - 4 - 4 * restarts, b""
    while at < end:
        shared, at = _varint(block, at)
        fresh, at = _varint(block, at)
        if shared + fresh > _KEY_LIMIT:
            raise IndexError(f"a name of more than {_KEY_LIMIT} bytes")
        length, at = _varint(block, at)
        key = key[:shared] + block[at : at + fresh]
        at += fresh + length
        yield key, block[at - length : at]


def _handle(data: bytes, at: int) -> tuple[int, int, int]:
    offset, at = _varint(data, at)
    size, at = _varint(data, at)
    return offset, size, at


def _message(data: bytes) -> dict[int, list[int | bytes]]:
    """The values of a protocol buffer by field number; nested messages stay bytes."""
    fields: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        field, wire = tag >> 3, tag & 7
        value: int | bytes
        if wire == _VARINT:
            value, at = _varint(data, at)
        elif wire == _BYTES:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        elif wire in (_FIXED32, _FIXED64):
            length = 4 if wire == _FIXED32 else 8
            value, at = int.from_bytes(data[at : at + length], "little"), at + length
        else:
            raise KeyError(f"wire type {wire}")
        fields.setdefault(field, []).append(value)
    return fields


def _number(message: dict[int, list[int | bytes]], field: int) -> int:
    """A number of a message; protocol buffers omit zeros."""
    return int(message.get(field, [0])[0])


def _text(message: dict[int, list[int | bytes]], field: int) -> bytes:
    value = message.get(field, [b""])[0]
    return value if isinstance(value, bytes) else b""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        if shift > 63:
            raise IndexError("a number of more than 64 bits")
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _crc_table() -> list[int]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


_CRC = _crc_table()


def _masked_crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), rotated and shifted as in LevelDB."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
