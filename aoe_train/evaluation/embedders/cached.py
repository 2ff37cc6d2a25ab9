"""Each text encoded once: within a call, and with a store in all runs of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from aoe_train.evaluation.embedders.embedder import Embedder, EmbedderWrapper, in_batches
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.progress import Display, Listener, Progress
from pairkit.app.terminal import say
from pairkit.system.database import Schema, database_errors, open_database, transaction

_SCHEMA = Schema(
    "cache of vectors",
    application=0x5645_4331,  # "VEC1": tells our file from any other SQLite file
    version=1,
    tables="CREATE TABLE vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL);",
)
_ASKED = 500  # keys in a query; SQLite allows 999 at least
_TEXTS, _CHARACTERS = 2048, 400_000  # encoded between two writings: seconds of work that a kill may cost
PROBE = "Nine clerks quietly filed the yellow maps, and a model is known again by how it reads this."
_APART = 0.045  # of its length, as far as other batches or precision move a vector: a cosine of 0.999


class CachedEmbedder(EmbedderWrapper):
    """Another embedder that repeats nothing and shows how far it is; see `Embedder`.

    A store holds the vector of one fixed text, by which a model is known again before the first of its kept
    vectors is used; those of another model by the same identity are forgotten.
    """

    def __init__(
        self,
        embedder: Embedder,
        store: VectorStore | None,
        *,
        progress: bool | Listener = True,
        say: Callable[[str], None] = say,
    ) -> None:
        """Wrap it."""
        super().__init__(embedder)
        self._store, self._progress, self._say = store, progress, say
        self._dim: int | None = None  # known once the model has been known again

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """Vectors, float32 (text, dim); what is new is kept batch by batch, so that a killed run goes on."""
        if not texts:
            return np.empty((0, 0), np.float32)
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        matrix, missing = self._known(rows, prompt)
        stage, done = f"encode with {self.name}", len(rows) - len(missing)
        with Display(self._progress) as show:
            show(Progress(stage, done, len(rows)))
            for batch in in_batches(sorted(missing, key=len, reverse=True), _TEXTS, _CHARACTERS):
                vectors = self._embedder.encode(batch, prompt)
                if matrix is None:
                    matrix = np.empty((len(rows), vectors.shape[1]), np.float32)
                if vectors.shape != (len(batch), matrix.shape[1]):
                    raise DataError(
                        f"{self.name}: {len(batch)} texts got vectors of shape {vectors.shape}; expected one"
                        f" each of {matrix.shape[1]} numbers, as before; run it again with --no-cache"
                    )
                if self._store is not None:
                    self._store.keep(_kept_as(batch, prompt), vectors)
                matrix[[rows[text] for text in batch]] = vectors
                done += len(batch)
                show(Progress(stage, done, len(rows)))
            show(Progress(stage, done, len(rows), ended=True))
        if matrix is None:  # for mypy: without a store all texts are missing
            return np.empty((0, 0), np.float32)
        return matrix if len(rows) == len(texts) else matrix[[rows[text] for text in texts]]

    def _known(self, rows: Mapping[str, int], prompt: str | None) -> tuple[np.ndarray | None, list[str]]:
        """Vectors (text, dim), of which only what the store has is filled in, and the texts that it lacks."""
        texts = list(rows)
        if self._store is None:
            return None, texts
        if self._dim is None:
            self._dim = self._recognise(self._store)
        matrix, missing = np.empty((len(rows), self._dim), np.float32), []
        for start in range(0, len(texts), _TEXTS):
            asked = texts[start : start + _TEXTS]
            keys = _kept_as(asked, prompt)
            found = self._store.find(keys)
            for text, key in zip(asked, keys, strict=True):
                if key in found:
                    matrix[rows[text]] = found[key]
                else:
                    missing.append(text)
        return matrix, missing

    def _recognise(self, store: VectorStore) -> int:
        """How many numbers a vector has; what is kept of another model is forgotten."""
        (now,) = self._embedder.encode([PROBE])
        kept = store.find([PROBE]).get(PROBE)
        if kept is None:
            store.clear()  # nothing is there, or nobody knows of which model
            store.keep([PROBE], now[None])
        elif not same_model(now, kept):
            self._say(f"{self.name}: gives other vectors than those kept of it, which are deleted")
            store.clear()
            store.keep([PROBE], now[None])
        return len(now)


def _kept_as(texts: list[str], prompt: str | None) -> list[str]:
    """The names that a store has for texts with a prompt; with the default one they are the texts."""
    return texts if prompt is None else [f"\0{len(prompt)}\0{prompt}{text}" for text in texts]


def same_model(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two vectors of `PROBE` are one model's, but for batches, precision and libraries' releases."""
    if one.shape != other.shape:
        return False
    return bool(np.linalg.norm(one - other) <= _APART * np.linalg.norm(other))


class VectorStore:
    """What is known of one model's vectors; float32, bit by bit as they were given."""

    def __init__(self, folder: Path, identity: str) -> None:
        """Open or make the model's file."""
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
        """Add vectors, all of them or none; those that are no numbers are left out."""
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
            raise type(error)(
                f"the cache of vectors can't be used ({error}); set AOE_CACHE to another folder, or give"
                " --no-cache"
            ) from error


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
