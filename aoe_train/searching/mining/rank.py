"""Rank candidates for texts, by cosine of a model's vectors or by BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from aoe_train.encoding.text_vectors import TextVectors
from aoe_train.searching.mining.mined_dataset import Indices
from aoe_train.searching.nearest import IndexVectors, nearest
from pairkit.base.cli.progress import Listener
from pairkit.similarity.bm25 import Bm25, best

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder

Scores = npt.NDArray[np.float32]


class VectorTable:
    """Vectors of unit length (row, dim), and the ascending text indices of the rows."""

    def __init__(self, matrix: Scores, indices: Indices) -> None:
        self.matrix, self.indices = matrix, indices

    def numbers(self, indices: Indices) -> Indices:
        """Row numbers of texts."""
        return np.searchsorted(self.indices, indices)

    def rows(self, indices: Indices) -> Scores:
        """Vectors of texts (text, dim)."""
        return np.asarray(self.matrix[self.numbers(indices)])


class MiningVectors(NamedTuple):
    """Vectors of anchors (queries), and of candidates and positives (documents)."""

    queries: VectorTable
    documents: VectorTable


def embed(
    encoder: Encoder,
    identity: Mapping[str, Any],
    texts: Sequence[str],
    *,
    queries: Indices,
    documents: Indices,
    work: Path,
    show: Listener,
) -> MiningVectors:
    """Encode texts with the model's prompts for queries and documents; only once if these are equal."""

    def table(indices: Indices, prompt: str) -> VectorTable:
        own = [texts[index] for index in indices.tolist()]
        made = TextVectors(own, identity, prompt, normalize=True, folder=work)
        return VectorTable(made.load_or_make(lambda: encoder, show), indices)

    prompts = encoder.settings.named_prompts
    if prompts.query == prompts.document:
        both = table(np.union1d(queries, documents), prompts.query)
        return MiningVectors(both, both)
    return MiningVectors(table(queries, prompts.query), table(documents, prompts.document))


class Ranked(Protocol):
    """Ranks candidates for a text."""

    def best(self, texts: Indices, count: int) -> tuple[Indices, Scores]:
        """The `count` best candidates of each text, padded with -1, and their scores (text, rank)."""
        ...

    def scores(self, text: int, others: Indices) -> Scores:
        """The scores of candidates or positives."""
        ...


class ByModel:
    """Exact search by cosine; ties are ordered by index."""

    def __init__(self, vectors: MiningVectors, candidates: Indices) -> None:
        self._vectors = vectors
        self._stored = IndexVectors(vectors.documents.matrix)
        self._candidates = vectors.documents.numbers(candidates)

    def best(self, texts: Indices, count: int) -> tuple[Indices, Scores]:
        """See `Ranked`."""
        found = nearest(self._stored, self._vectors.queries.rows(texts), count, self._candidates)
        return np.where(found.places < 0, -1, self._vectors.documents.indices[found.places]), found.scores

    def scores(self, text: int, others: Indices) -> Scores:
        """See `Ranked`."""
        found: Scores = self._vectors.documents.rows(others) @ self._vectors.queries.rows(np.array([text]))[0]
        return found


class ByWords:
    """BM25; candidates that share no word with the text are left out."""

    def __init__(self, texts: Sequence[str], candidates: Indices, positives: Indices) -> None:
        self._texts = texts
        self._indexed = np.union1d(candidates, positives)
        self._others = ~np.isin(self._indexed, candidates)
        self._index = Bm25([texts[index] for index in self._indexed.tolist()])

    def best(self, texts: Indices, count: int) -> tuple[Indices, Scores]:
        """See `Ranked`."""
        found = np.full((len(texts), count), -1, np.int64)
        scores = np.full((len(texts), count), -np.inf, np.float32)
        for row, text in enumerate(texts.tolist()):
            own = self._index.scores(self._texts[text])
            own[self._others] = 0
            indices = best(own, count)
            found[row, : len(indices)] = self._indexed[indices]
            scores[row, : len(indices)] = own[indices]
        return found, scores

    def scores(self, text: int, others: Indices) -> Scores:
        """See `Ranked`."""
        found = self._index.scores(self._texts[text])
        return found[np.searchsorted(self._indexed, others)]
