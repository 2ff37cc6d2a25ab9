"""Tokens on disk, so that a text is tokenised once and not once a run.

`<folder>/<key>/<name>.npy`, the key being a hash of everything the arrays depend on. A folder appears whole
or not at all, whoever else writes the same; one that can't be read or fails its checksum counts as absent.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from tokenize import TokenError

import numpy as np

from pairkit.files import write_errors

_LAYOUT = "2"  # raise it when the same settings give other arrays
_CHECKSUM = "checksum"


def cache_key(texts: Sequence[str], *settings: object) -> str:
    """Hex SHA-256 of texts and settings."""
    encoded = [text.encode(errors="surrogatepass") for text in texts]
    digest = hashlib.sha256(repr((_LAYOUT, *settings)).encode())
    digest.update(np.fromiter(map(len, encoded), np.int64, len(encoded)).tobytes())
    digest.update(b"".join(encoded))
    return digest.hexdigest()


def load_arrays(folder: Path, names: Sequence[str]) -> dict[str, np.ndarray] | None:
    """The arrays saved in `folder`, mapped into memory; None if they aren't there or have changed since."""
    try:
        # As plain arrays: indexing a memmap object costs more than the reading.
        arrays = {name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in names}
        checksum = np.load(folder / f"{_CHECKSUM}.npy")
    except (OSError, ValueError, EOFError, SyntaxError, TypeError, OverflowError, TokenError):
        return None  # numpy reads a header as Python's words
    return arrays if checksum.shape == () and checksum == _checksum(arrays) else None


def save_arrays(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Put the arrays into `folder`, in place of what is there, in one step.

    Raises:
        ConfigError: It can't be written.
    """
    with write_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            for name, array in {**arrays, _CHECKSUM: np.array(_checksum(arrays))}.items():
                np.save(partial / f"{name}.npy", array)
            if load_arrays(folder, list(arrays)) is None:
                shutil.rmtree(folder, ignore_errors=True)
            try:
                partial.rename(folder)
            except OSError:
                if not folder.is_dir():  # else another process was faster, with the same bytes
                    raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _checksum(arrays: Mapping[str, np.ndarray]) -> int:
    total = 0
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total = zlib.crc32(f"{name} {array.dtype} {array.shape}".encode(), total)
        total = zlib.crc32(array.view(np.uint8).data if array.ndim and array.size else array.tobytes(), total)
    return total
