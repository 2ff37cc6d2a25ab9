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
_KEY_LIMIT = 4096
_RANK_LIMIT = 8
_FOOTER = 48  # bytes
_MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
# Field numbers of TensorFlow's protocol buffers.
_HEADER_SHARDS = 1
_HEADER_ENDIANNESS = 2
_ENTRY_TYPE = 1
_ENTRY_SHAPE = 2
_ENTRY_SHARD = 3
_ENTRY_OFFSET = 4
_ENTRY_SIZE = 5
_ENTRY_SLICES = 7
_SHAPE_DIMENSION = 2
_DIMENSION_SIZE = 1
# Types of tensors.
_STRING = 7
_DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 6: "i1", 9: "<i8", 10: "?", 19: "<f2"}
# Wire types of protocol buffers.
_VARINT = 0
_BYTES = 2
_FIXED = {1: 8, 5: 4}  # with their number of bytes


def read_bundle(prefix: Path) -> dict[str, np.ndarray]:
    """All numeric tensors of a checkpoint by name, memory-mapped; strings are skipped."""
    index = Path(f"{prefix}.index")
    try:
        return _tensors(prefix, index)
    except OSError as error:
        raise DataError(
            f"not readable ({error.strerror or error}); a checkpoint is NAME.index and NAME.data-…",
            path=error.filename or index,
        ) from error
    except (
        IndexError,
        KeyError,
        ValueError,
        TypeError,
        OverflowError,
        struct.error,
    ) as error:
        raise DataError(
            f"damaged index ({type(error).__name__}: {error}); download the file again",
            path=index,
        ) from error


def _tensors(prefix: Path, index: Path) -> dict[str, np.ndarray]:
    if index.stat().st_size > _INDEX_LIMIT:
        raise DataError(
            f"larger than {_INDEX_LIMIT >> 20} MiB; not a checkpoint index", path=index
        )
    entries = dict(_entries(index))
    header = _message(entries.pop(b""))
    if _number(header, _HEADER_ENDIANNESS):
        raise DataError(
            "big-endian; save the checkpoint again on a little-endian machine",
            path=index,
        )
    shards = _number(header, _HEADER_SHARDS, default=1)
    tensors = {}
    for key, data in sorted(entries.items()):
        name = key.decode()
        entry = _message(data)
        if _number(entry, _ENTRY_TYPE) != _STRING:
            tensors[name] = _tensor(prefix, name, entry, shards)
    return tensors


def _tensor(
    prefix: Path, name: str, entry: dict[int, list[int | bytes]], shards: int
) -> np.ndarray:
    shard = _number(entry, _ENTRY_SHARD)
    offset = _number(entry, _ENTRY_OFFSET)
    size = _number(entry, _ENTRY_SIZE)
    kind = _number(entry, _ENTRY_TYPE)
    path = Path(f"{prefix}.data-{shard:05d}-of-{shards:05d}")
    if _ENTRY_SLICES in entry or kind not in _DTYPES:
        raise DataError(
            f"{name}: sliced, or of type {kind}; expected a whole numeric tensor",
            path=path,
        )
    dtype = np.dtype(_DTYPES[kind])
    dims = _message(_text(entry, _ENTRY_SHAPE)).get(_SHAPE_DIMENSION, [])
    shape = tuple(
        _number(_message(dim), _DIMENSION_SIZE)
        for dim in dims
        if isinstance(dim, bytes)
    )
    # The product of many large dimensions would take minutes.
    is_whole = len(shape) <= _RANK_LIMIT and math.prod(shape) * dtype.itemsize == size
    is_within = offset + size <= path.stat().st_size
    if not is_whole or not is_within:
        raise DataError(
            f"{name}: {size} bytes at {offset} are not shape {shape[:_RANK_LIMIT]} of"
            f" {dtype} within the file; download the file again",
            path=path,
        )
    if size == 0:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, mode="r", offset=offset, shape=shape)


def _entries(index: Path) -> Iterator[tuple[bytes, bytes]]:
    data = index.read_bytes()
    footer = data[-_FOOTER:]
    if len(footer) < _FOOTER or not footer.endswith(_MAGIC):
        raise DataError(
            "not the index of a TensorFlow checkpoint; expected NAME.index", path=index
        )
    _, _, at = _handle(footer, 0)  # a metadata block, which is empty in bundles
    offset, size, _ = _handle(footer, at)
    read = 0
    for _, handle in _block(data, offset, size, index):
        offset, size, _ = _handle(handle, 0)
        read += size
        if read > len(data):
            raise IndexError("blocks overlap")
        yield from _block(data, offset, size, index)


def _block(
    data: bytes, offset: int, size: int, index: Path
) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a block; a key shares a prefix with the previous one."""
    end = offset + size
    if end > len(data):
        raise IndexError("a block outside the file")
    kind, expected = struct.unpack_from("<BI", data, end)
    if kind:
        raise DataError(
            "compressed; save the checkpoint again without compression", path=index
        )
    if _masked_crc32c(data[offset : end + 1]) != expected:
        raise DataError(
            f"damaged: wrong checksum at byte {end}; download it again", path=index
        )
    block = data[offset:end]
    (restarts,) = struct.unpack("<I", block[-4:])
    entries_end = len(block) - 4 - 4 * restarts
    at = 0
    key = b""
    while at < entries_end:
        shared, at = _varint(block, at)
        fresh, at = _varint(block, at)
        if shared + fresh > _KEY_LIMIT:
            raise IndexError(f"a name of more than {_KEY_LIMIT} bytes")
        length, at = _varint(block, at)
        value_at = at + fresh
        key = key[:shared] + block[at:value_at]
        at = value_at + length
        yield key, block[value_at:at]


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
        wire = tag & 7
        value: int | bytes
        if wire == _VARINT:
            value, at = _varint(data, at)
        elif wire == _BYTES:
            length, at = _varint(data, at)
            value = data[at : at + length]
            at += length
        elif wire in _FIXED:
            length = _FIXED[wire]
            value = int.from_bytes(data[at : at + length], "little")
            at += length
        else:
            raise KeyError(f"wire type {wire}")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _number(message: dict[int, list[int | bytes]], field: int, default: int = 0) -> int:
    """A number of a message; protocol buffers omit zeros."""
    first, *_ = message.get(field, [default])
    return int(first)


def _text(message: dict[int, list[int | bytes]], field: int) -> bytes:
    first, *_ = message.get(field, [b""])
    return first if isinstance(first, bytes) else b""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise IndexError("a number of more than 64 bits")


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
