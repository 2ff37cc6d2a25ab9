"""Each text encoded once: within a call, and with a store in all runs of a model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aoe_train.evaluate.embedders.embedder import Embedder
from aoe_train.evaluate.embedders.vector_store import VectorStore
from pairkit.terminal import progress, say

_TEXTS, _CHARACTERS = 2048, 400_000  # encoded between two writings: seconds of work that a kill may cost
_SAME = 0.999  # cosine of a text's vectors, made in other batches or precision


class CachedEmbedder:
    """Another embedder that repeats nothing and shows how far it is; see `Embedder`."""

    def __init__(self, embedder: Embedder, store: VectorStore | None, *, quiet: bool = False) -> None:
        """Wrap it.

        Args:
            embedder: Makes the vectors.
            store: Keeps them; None repeats the work in each call.
            quiet: No progress bar, no notes.
        """
        self.name, self.identity, self.separator = embedder.name, embedder.identity, embedder.separator
        self._embedder, self._store, self._quiet = embedder, store, quiet

    def encode(self, texts: list[str]) -> np.ndarray:
        """Vectors, float32 (text, dim); what is new is kept batch by batch, so that a killed run goes on.

        Raises:
            DataError: See the embedder; or the store is damaged.
            ConfigError: The store can't be written.
            RemoteError: See the embedder.
        """
        distinct = list(dict.fromkeys(texts))
        found = self._known(distinct)
        missing = sorted((text for text in distinct if text not in found), key=len, reverse=True)
        with progress(quiet=self._quiet) as bar:
            task = bar.add_task(
                f"encode with {self.name}", total=len(distinct), completed=len(found), note=""
            )
            for batch in _batches(missing):
                vectors = self._embedder.encode(batch)
                if self._store is not None:
                    self._store.keep(batch, vectors)
                found.update(zip(batch, vectors, strict=True))
                bar.advance(task, len(batch))
        return np.stack([found[text] for text in texts]) if texts else np.empty((0, 0), np.float32)

    def _known(self, texts: list[str]) -> dict[str, np.ndarray]:
        """What the store has, unless the model behind the name has become another since."""
        found = {} if self._store is None else self._store.find(texts)
        if self._store is None or not found:
            return found
        text = min(found, key=lambda text: (len(text), text))
        (now,) = self._embedder.encode([text])
        if _alike(now, found[text]):
            return found
        say(f"{self.name}: gives other vectors than those kept of it, which are forgotten", quiet=self._quiet)
        self._store.clear()
        return {}


def _alike(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape:
        return False
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return bool(one @ other >= _SAME * lengths)


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
