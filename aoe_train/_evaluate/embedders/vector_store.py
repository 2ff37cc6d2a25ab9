"""Vectors of one model on disk: a SQLite file for each model, in it a row for each text."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from pairkit.database import Schema, database_errors, open_database, transaction
from pairkit.errors import ConfigError, DataError

_SCHEMA = Schema(
    "cache of vectors",
    application=0x5645_4331,  # "VEC1": tells our file from any other SQLite file
    version=1,
    tables="CREATE TABLE vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL);",
)
_ASKED = 500  # keys in a query; SQLite allows 999 at least


class VectorStore:
    """What is known of one model's vectors; float32, bit by bit as they were given."""

    def __init__(self, folder: Path, identity: str) -> None:
        """Open or make the model's file.

        Args:
            folder: Holds a file for each model.
            identity: The model's; see `Embedder`.

        Raises:
            ConfigError: The file can't be written, or another process keeps it locked.
            DataError: It is damaged.
        """
        self._path = folder / f"{identity}.sqlite"
        with self._errors():
            self._connection = open_database(self._path, _SCHEMA, create=True, absent="")

    def find(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """The vectors of those of `texts` that are there, float32 (dim,) each."""
        names = {_key(text): text for text in texts}
        found: dict[str, np.ndarray] = {}
        keys = list(names)
        for start in range(0, len(keys), _ASKED):
            asked = keys[start : start + _ASKED]
            marks = ",".join("?" * len(asked))
            query = f"SELECT text, vector FROM vectors WHERE text IN ({marks})"  # noqa: S608 - marks alone
            with self._errors():
                for key, vector in self._connection.execute(query, asked):
                    found[names[key]] = np.frombuffer(vector, "<f4")
        return found

    def keep(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        """Add vectors, all of them or none; those that are no numbers are left out.

        Args:
            texts: Distinct.
            vectors: float32 (text, dim)
        """
        rows = [
            (_key(text), vector.astype("<f4").tobytes())
            for text, vector in zip(texts, vectors, strict=True)
            if np.isfinite(vector).all()
        ]
        with self._errors(), transaction(self._connection):
            self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def clear(self) -> None:
        """Forget all vectors."""
        with self._errors(), transaction(self._connection):
            self._connection.execute("DELETE FROM vectors")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with database_errors(self._path):
                yield
        except (ConfigError, DataError) as error:
            if _is_busy(error.__cause__):
                raise ConfigError(
                    f"{self._path}: another process writes to this cache of vectors; wait until it has ended,"
                    " set AOE_CACHE to another folder, or give --no-cache"
                ) from error
            cause = error.__cause__ if isinstance(error.__cause__, (sqlite3.Error, OSError)) else error
            raise type(error)(
                f"{self._path}: the cache of vectors can't be used ({cause}); delete it, set AOE_CACHE to"
                " another folder, or give --no-cache"
            ) from error


def _is_busy(cause: BaseException | None) -> bool:
    code = getattr(cause, "sqlite_errorcode", None)
    # Extended codes keep the plain code in their low byte.
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
