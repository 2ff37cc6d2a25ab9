"""Texts that may be nearly the same: their MinHash sketches agree in a whole band.

The hashes of all bands take 128 bytes a text. Of many texts they lie on disk, in TMPDIR, and a band at a time
is in memory: sorted, equal hashes stand side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import IO

import numpy as np
from rensa import RMinHash

from pairkit.connected import Places, alone, connected, shared
from pairkit.files import temporary_folder, write_errors
from pairkit.jaccard_join import Hashes, mixed
from pairkit.shingles import CHUNK, MULTIPLIERS, Shingler, Texts

_BANDS, _ROWS = 16, 8
_SEED = 20240621
_IN_MEMORY = 64 << 20  # bytes of hashes; more lie on disk


def families(texts: Texts, rows: Places, shingler: Shingler) -> Iterator[Places]:
    """Texts whose sketches agree in a band, directly or through others; two or more at a time, ascending.

    Args:
        texts: Each is read when it is needed, so that they may lie on disk.
        rows: Which of them take part; each has a word.
        shingler: Makes sets of them.

    Yields:
        Rows of `texts`.

    Raises:
        ConfigError: The disk of temporary files is full.
    """
    with _bands(len(rows)) as bands:
        for start in range(0, len(rows), CHUNK):
            some = [texts[row] for row in rows[start : start + CHUNK].tolist()]
            bands.write(start, band_hashes(some, shingler))
        groups = joined(bands.read(band) for band in range(_BANDS)) if len(rows) else alone(0)
    for family in shared(groups):
        yield rows[family]


def joined(bands: Iterator[Hashes]) -> Places:
    """The least text of each text's family, given the hash of each text (text,) band by band."""
    groups = None
    for hashes in bands:
        order = np.argsort(hashes)
        ordered = hashes[order]
        same = np.flatnonzero(ordered[1:] == ordered[:-1])
        del hashes, ordered
        groups = connected(alone(len(order)) if groups is None else groups, order[same], order[same + 1])
    return alone(0) if groups is None else groups


def band_hashes(texts: Sequence[str], shingler: Shingler) -> Hashes:
    """A hash of each band of each text's sketch, (band, text)."""
    triples, ends = shingler.flat(texts)
    offsets = np.concatenate([[0], ends]).astype(np.uint64)
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(
        triples, offsets, num_perm=_BANDS * _ROWS, seed=_SEED
    )
    sketches = np.array(matrix.to_rows(), dtype=np.uint64).reshape(len(ends), _BANDS, _ROWS)
    hashes = np.zeros((len(ends), _BANDS), dtype=np.uint64)
    for row in range(_ROWS):
        hashes = mixed(hashes + sketches[:, :, row] + MULTIPLIERS[0])
    return np.ascontiguousarray(hashes.T)


class _Bands:
    """The hashes of each band, one band after the other in a file."""

    def __init__(self, file: IO[bytes], texts: int) -> None:
        self._file, self._texts = file, texts

    def write(self, start: int, hashes: Hashes) -> None:
        """Put down those (band, text) of texts from `start` on."""
        for band, some in enumerate(hashes):
            self._file.seek(8 * (band * self._texts + start))
            self._file.write(some.tobytes())

    def read(self, band: int) -> Hashes:
        """Those of one band, (text,)."""
        self._file.seek(8 * band * self._texts)
        return np.frombuffer(self._file.read(8 * self._texts), np.uint64)


@contextmanager
def _bands(texts: int) -> Iterator[_Bands]:
    with write_errors(temporary_folder()), SpooledTemporaryFile(_IN_MEMORY) as file:
        yield _Bands(file, texts)
