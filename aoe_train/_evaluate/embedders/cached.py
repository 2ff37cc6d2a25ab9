"""Each text encoded once: within a call, and with a store in all runs of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from aoe_train._evaluate.embedders.embedder import Around, Embedder
from aoe_train._evaluate.embedders.vector_store import VectorStore
from pairkit.errors import DataError
from pairkit.progress import Display, Listener, Progress
from pairkit.terminal import say

_TEXTS, _CHARACTERS = 2048, 400_000  # encoded between two writings: seconds of work that a kill may cost
PROBE = "Nine clerks quietly filed the yellow maps, and a model is known again by how it reads this."
_APART = 0.045  # of its length, as far as other batches or precision move a vector: a cosine of 0.999


class CachedEmbedder(Around):
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
        """Wrap it.

        Args:
            embedder: Makes the vectors.
            store: Keeps them; None repeats the work in each call.
            progress: Shown on stderr, or told to a function.
            say: Told what is forgotten.
        """
        super().__init__(embedder)
        self._store, self._progress, self._say = store, progress, say
        self._dim: int | None = None  # known once the model has been known again

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """Vectors, float32 (text, dim); what is new is kept batch by batch, so that a killed run goes on.

        Raises:
            DataError: See the embedder; or its vectors change their length; or the store is damaged.
            ConfigError: The store can't be written.
            RemoteError: See the embedder.
        """
        if not texts:
            return np.empty((0, 0), np.float32)
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        matrix, missing = self._known(rows, prompt)
        stage, done = f"encode with {self.name}", len(rows) - len(missing)
        with Display(self._progress) as show:
            show(Progress(stage, done, len(rows)))
            for batch in _batches(sorted(missing, key=len, reverse=True)):
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
            if any(len(vector) != self._dim for vector in found.values()):
                self._forget(self._store, "vectors of several lengths are kept of it")
                return matrix, texts
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
            self._forget(store, "gives other vectors than those kept of it")
            store.keep([PROBE], now[None])
        return len(now)

    def _forget(self, store: VectorStore, why: str) -> None:
        self._say(f"{self.name}: {why}, which are forgotten")
        store.clear()


def _kept_as(texts: list[str], prompt: str | None) -> list[str]:
    """The names that a store has for texts with a prompt; with the default one they are the texts."""
    return texts if prompt is None else [f"\0{len(prompt)}\0{prompt}{text}" for text in texts]


def same_model(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two vectors of `PROBE` are one model's, but for batches, precision and libraries' releases."""
    if one.shape != other.shape:
        return False
    return bool(np.linalg.norm(one - other) <= _APART * np.linalg.norm(other))


def _batches(texts: list[str]) -> Iterator[list[str]]:
    """Some texts at a time, of which long ones make fewer."""
    start = characters = 0
    for place, text in enumerate(texts):
        characters += len(text)
        if place - start == _TEXTS or (place > start and characters > _CHARACTERS):
            yield texts[start:place]
            start, characters = place, len(text)
    if start < len(texts):
        yield texts[start:]
