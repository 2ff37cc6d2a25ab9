"""The candidates nearest to some texts, in blocks: by a model's vectors, made in parts, or by BM25."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from aoe_train.encoding.text_vectors import TextVectors
from aoe_train.searching.mining.known_positives import Places
from pairkit.app.progress import Listener

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aoe_train.model.encoder import Encoder


class MiningVectors:
    """Vectors of length 1: of anchors, and of the candidates and positives that are searched for them."""

    def __init__(self, queries: VectorTable, documents: VectorTable) -> None:
        self._queries, self._documents = queries, documents
        self.dim = documents.matrix.shape[1]

    def queries(self, places: Places) -> npt.NDArray[np.float32]:
        """(text, dim) of anchors."""
        return self._queries.rows(places)

    def documents(self, places: Places) -> npt.NDArray[np.float32]:
        """(text, dim) of candidates and positives."""
        return self._documents.rows(places)


class VectorTable:
    """A matrix of vectors, and the places of its rows, ascending."""

    def __init__(self, matrix: npt.NDArray[np.float32], places: Places) -> None:
        self.matrix, self._places = matrix, places

    def rows(self, places: Places) -> npt.NDArray[np.float32]:
        """(text, dim) of some of the places."""
        return np.asarray(self.matrix[np.searchsorted(self._places, places)])


def embed(
    encoder: Encoder,
    identity: Mapping[str, Any],
    texts: Sequence[str],
    *,
    queries: Places,
    documents: Places,
    work: Path,
    show: Listener,
) -> MiningVectors:
    """Encode texts by the model's prompts for queries and documents, once where these are equal."""
    prompts = encoder.settings.named_prompts
    make = partial(_table, encoder, identity, texts, work=work, show=show)
    if prompts.query == prompts.document:
        both = make(np.union1d(queries, documents), prompt=prompts.query)
        return MiningVectors(both, both)
    return MiningVectors(make(queries, prompt=prompts.query), make(documents, prompt=prompts.document))


def _table(
    encoder: Encoder,
    identity: Mapping[str, Any],
    texts: Sequence[str],
    places: Places,
    *,
    prompt: str,
    work: Path,
    show: Listener,
) -> VectorTable:
    own = [texts[place] for place in places.tolist()]
    made = TextVectors(own, identity, prompt, normalize=True, folder=work)
    return VectorTable(made.load_or_make(lambda: encoder, show), places)


Scores = npt.NDArray[np.float32]
_BLOCK = 32_768  # candidates whose scores are made at once
_LARGE = 200_000  # candidates from which faiss, where it is installed, searches faster


class Ranked(Protocol):
    """Candidates in order of their scores for a text."""

    def best(self, texts: Places, count: int) -> tuple[Places, Scores]:
        """The `count` best candidates of each text, -1 where there are fewer; and scores. (text, rank)."""
        ...

    def scores(self, text: int, others: Places) -> Scores:
        """The scores of any candidates or positives."""
        ...


class ByModel:
    """Cosines of vectors; every candidate is looked at."""

    def __init__(self, vectors: MiningVectors, candidates: Places, *, block: int = _BLOCK) -> None:
        self._vectors, self._candidates, self._block = vectors, candidates, block
        self._index = _faiss_index(vectors, candidates) if len(candidates) >= _LARGE else None

    def best(self, texts: Places, count: int) -> tuple[Places, Scores]:
        """See `Ranked`; equal scores in order of place, but where the last one is cut."""
        queries = self._vectors.queries(texts)
        if self._index is not None:
            scores, places = self._index.search(queries, count)
            return np.where(places < 0, -1, self._candidates[places]), scores
        scores = np.empty((len(texts), 0), np.float32)
        found = np.empty((len(texts), 0), np.int64)
        for start in range(0, len(self._candidates), self._block):
            some = self._candidates[start : start + self._block]
            products = queries @ self._vectors.documents(some).T
            best, places = _highest(products, np.broadcast_to(some, products.shape), count)
            both = np.concatenate([scores, best], axis=1), np.concatenate([found, places], axis=1)
            scores, found = _highest(*both, count)
        order = np.lexsort((found, -scores), axis=1)
        return np.take_along_axis(found, order, axis=1), np.take_along_axis(scores, order, axis=1)

    def scores(self, text: int, others: Places) -> Scores:
        """See `Ranked`."""
        found: Scores = self._vectors.documents(others) @ self._vectors.queries(np.array([text]))[0]
        return found


class ByWords:
    """BM25; a candidate without a word of the text is none."""

    def __init__(self, texts: Sequence[str], candidates: Places, positives: Places) -> None:
        """Index them."""
        from pairkit.similarity.bm25 import Bm25

        self._texts = texts
        self._indexed = np.union1d(candidates, positives)
        self._others = ~np.isin(self._indexed, candidates)
        self._index = Bm25([texts[place] for place in self._indexed.tolist()])

    def best(self, texts: Places, count: int) -> tuple[Places, Scores]:
        """See `Ranked`."""
        from pairkit.similarity.bm25 import best

        found = np.full((len(texts), count), -1, np.int64)
        scores = np.full((len(texts), count), -np.inf, np.float32)
        for row, text in enumerate(texts.tolist()):
            own = self._index.scores(self._texts[text])
            own[self._others] = 0
            places = best(own, count)
            found[row, : len(places)] = self._indexed[places]
            scores[row, : len(places)] = own[places]
        return found, scores

    def scores(self, text: int, others: Places) -> Scores:
        """See `Ranked`."""
        found = self._index.scores(self._texts[text])
        return found[np.searchsorted(self._indexed, others)]


def _highest(scores: Scores, places: Places, count: int) -> tuple[Scores, Places]:
    """The `count` highest scores of each row, in any order, and their places."""
    if scores.shape[1] <= count:
        return scores, places
    kept = np.argpartition(scores, -count, axis=1)[:, -count:]
    return np.take_along_axis(scores, kept, axis=1), np.take_along_axis(places, kept, axis=1)


def _faiss_index(vectors: MiningVectors, candidates: Places) -> Any:
    """An exact index of faiss; None where it is not installed."""
    try:
        import faiss
    except ImportError:
        return None
    index = faiss.IndexFlatIP(vectors.dim)
    for start in range(0, len(candidates), _BLOCK):
        index.add(vectors.documents(candidates[start : start + _BLOCK]))
    return index
