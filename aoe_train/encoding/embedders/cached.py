"""Opens models, and caches their vectors, so that each text is encoded once: in memory, and on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy import ndarray

from aoe_train.encoding.embedders.embedder import (
    Embedder,
    EmbedderWrapper,
    Endpoint,
    Function,
    FunctionEmbedder,
    LocalEmbedder,
    in_batches,
    load_encoder,
    refuse_options,
)
from aoe_train.model.run_folder import cache_dir
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.cli.terminal import say
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.database import (
    Schema,
    database_errors,
    open_database,
    transaction,
)

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.settings.train_settings import EncodingPrecision

_SCHEMA = Schema(
    "cache of vectors",
    application=0x5645_4331,  # "VEC1" identifies the file among SQLite files
    version=1,
    tables="CREATE TABLE vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL);",
)
_QUERY_KEYS = 500  # per query; SQLite allows at least 999
# Limits of a transaction. A kill loses the work of one: a few seconds.
_TEXTS = 2048
_CHARACTERS = 400_000
PROBE_TEXT = "Nine clerks quietly filed the yellow maps, and a model is known again by how it reads this."
_TOLERANCE = 0.045  # relative change of a vector by other batches or precision: a cosine of 0.999


class CachedEmbedder(EmbedderWrapper):
    """Encodes each text once; a fixed text's stored vector shows whether the cached ones are this model's."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        store: bool = True,
        show: Listener,
        say: Callable[[str], None] = say,
    ) -> None:
        super().__init__(embedder)
        self._store: VectorStore | None = None
        if store and embedder.identity:
            self._store = VectorStore(cache_dir("vectors"), embedder.identity)
        self._show = show
        self._say = say
        self._dim: int | None = None  # set after the model was checked

    def encode(self, texts: list[str], prompt: str | None = None) -> ndarray:
        """Vectors, float32 (text, dim); new ones are stored batch by batch, so that a killed run resumes."""
        if not texts:
            return np.empty((0, 0), np.float32)
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        matrix, missing = self._cached(rows, prompt)
        stage = f"encode with {self.name}"
        finished = len(rows) - len(missing)
        self._show(Progress(stage, finished, len(rows)))
        longest_first = sorted(missing, key=len, reverse=True)
        for batch in in_batches(longest_first, _TEXTS, _CHARACTERS):
            vectors = self._embedder.encode(batch, prompt)
            if matrix is None:
                matrix = np.empty((len(rows), vectors.shape[1]), np.float32)
            if vectors.shape != (len(batch), matrix.shape[1]):
                raise DataError(
                    f"{self.name}: returned vectors of shape {vectors.shape} for {len(batch)} texts;"
                    f" expected {matrix.shape[1]} dimensions each; run it again with --no-cache"
                )
            if self._store is not None:
                self._store.keep(_cache_keys(batch, prompt), vectors)
            matrix[[rows[text] for text in batch]] = vectors
            finished += len(batch)
            self._show(Progress(stage, finished, len(rows)))
        self._show(Progress(stage, finished, len(rows), ended=True))
        distinct = cast("ndarray", matrix)  # there is at least one text
        if len(rows) == len(texts):
            return distinct
        return distinct[[rows[text] for text in texts]]

    def _cached(
        self,
        rows: Mapping[str, int],
        prompt: str | None,
    ) -> tuple[ndarray | None, list[str]]:
        """A matrix (text, dim) with the cached vectors, and the texts that are not cached."""
        texts = list(rows)
        if self._store is None:
            return None, texts
        if self._dim is None:
            self._dim = self._check_model(self._store)
        matrix = np.empty((len(rows), self._dim), np.float32)
        missing = []
        for start in range(0, len(texts), _QUERY_KEYS):
            block = texts[start : start + _QUERY_KEYS]
            keys = _cache_keys(block, prompt)
            cached = self._store.find(keys)
            for text, key in zip(block, keys, strict=True):
                if key in cached:
                    matrix[rows[text]] = cached[key]
                else:
                    missing.append(text)
        return matrix, missing

    def _check_model(self, store: VectorStore) -> int:
        """Delete cached vectors of another model; returns the dimensions of a vector."""
        (probe,) = self._embedder.encode([PROBE_TEXT])
        cached = store.find([PROBE_TEXT]).get(PROBE_TEXT)
        if cached is None or not same_model(probe, cached):
            if cached is not None:
                self._say(
                    f"{self.name}: the model has changed, so its cached vectors are deleted"
                )
            store.clear()
            store.keep([PROBE_TEXT], probe[None])
        return len(probe)


def _cache_keys(texts: list[str], prompt: str | None) -> list[str]:
    """The keys of texts with a prompt; with the default prompt they are the texts."""
    if prompt is None:
        return texts
    return [f"\0{len(prompt)}\0{prompt}{text}" for text in texts]


def same_model(probe: ndarray, cached: ndarray) -> bool:
    """Whether two vectors of `PROBE_TEXT` are equal up to effects of batches, precision and releases."""
    if probe.shape != cached.shape:
        return False
    return bool(np.linalg.norm(probe - cached) <= _TOLERANCE * np.linalg.norm(cached))


class VectorStore:
    """A file of one model's float32 vectors."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._path = folder / f"{identity}.sqlite"
        with self._errors():
            self._connection = open_database(
                self._path, _SCHEMA, create=True, absent=""
            )

    def find(self, texts: Sequence[str]) -> dict[str, ndarray]:
        """The vectors of the stored texts among at most `_QUERY_KEYS`, float32 (dim,) each."""
        text_of = {_key(text): text for text in texts}
        marks = ",".join("?" * len(text_of))
        query = f"SELECT text, vector FROM vectors WHERE text IN ({marks})"  # noqa: S608 - placeholders
        with self._errors():
            rows = self._connection.execute(query, list(text_of))
            return {text_of[key]: np.frombuffer(vector, "<f4") for key, vector in rows}

    def keep(self, texts: Sequence[str], vectors: ndarray) -> None:
        """Add all vectors without NaN or infinity, in one transaction."""
        rows = []
        for text, vector in zip(texts, vectors, strict=True):
            if np.isfinite(vector).all():
                rows.append((_key(text), vector.astype("<f4").tobytes()))
        with self._errors(), transaction(self._connection):
            self._connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows
            )

    def clear(self) -> None:
        """Delete all vectors."""
        with self._errors(), transaction(self._connection):
            self._connection.execute("DELETE FROM vectors")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with database_errors(self._path):
                yield
        except (ConfigError, DataError) as error:
            raise type(error)(
                f"the cache of vectors is unusable ({error}); set AOE_CACHE to another folder, or give"
                " --no-cache"
            ) from error


def _key(text: str) -> bytes:
    encoded = text.encode(errors="surrogatepass")
    return hashlib.blake2b(encoded, digest_size=16).digest()


def open_model(
    model: str | Path | Encoder | Function,
    *,
    endpoint: Endpoint | None = None,
    precision: EncodingPrecision = "auto",
    layers: int | None = None,
    say: Callable[[str], None] = say,
) -> Embedder:
    """Open a model; `CachedEmbedder` adds a cache."""
    if not isinstance(model, str | Path):
        refuse_options(
            "a loaded model",
            layers=layers,
            precision=precision,
            endpoint=endpoint and endpoint.url,
        )
        if callable(model) and not hasattr(model, "encode"):
            return FunctionEmbedder(model)

        from aoe_train.model.encoder import Encoder  # imports torch

        if isinstance(model, Encoder):
            return LocalEmbedder(model, "encoder")
        raise ConfigError(
            f"model = {one_line(repr(model), 100)}: expected a folder, a Hub id, an Encoder (such as a run's"
            " `encoder`), or a function that returns vectors of texts (such as `encode` of a"
            " SentenceTransformer)"
        )
    name = str(model)
    if endpoint is None:
        encoder = load_encoder(name, precision, say, layers=layers)
        return LocalEmbedder(encoder, name)

    from aoe_train.encoding.embedders.endpoint import EndpointEmbedder

    refuse_options("an endpoint", layers=layers, precision=precision)
    return EndpointEmbedder(name, endpoint)
