"""The candidates nearest to some texts, in blocks: by a model's vectors, made in parts, or by BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from aoe_train.encoding.text_vectors import TextVectors
from aoe_train.searching.mining.dataset import Places
from aoe_train.searching.nearest import IndexVectors, nearest
from pairkit.app.progress import Listener
from pairkit.similarity.bm25 import Bm25, best

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder

Scores = npt.NDArray[np.float32]


class VectorTable:
    """Vectors of length 1 (row, dim), and the places of their rows, ascending."""

    def __init__(self, matrix: Scores, places: Places) -> None:
        self.matrix, self.places = matrix, places

    def numbers(self, places: Places) -> Places:
        """The rows of some of the places."""
        return np.searchsorted(self.places, places)

    def rows(self, places: Places) -> Scores:
        """(text, dim) of some of the places."""
        return np.asarray(self.matrix[self.numbers(places)])


class MiningVectors(NamedTuple):
    """Vectors of anchors, and of the candidates and positives that are searched for them."""

    queries: VectorTable
    documents: VectorTable


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

    def table(places: Places, prompt: str) -> VectorTable:
        own = [texts[place] for place in places.tolist()]
        made = TextVectors(own, identity, prompt, normalize=True, folder=work)
        return VectorTable(made.load_or_make(lambda: encoder, show), places)

    prompts = encoder.settings.named_prompts
    if prompts.query == prompts.document:
        both = table(np.union1d(queries, documents), prompts.query)
        return MiningVectors(both, both)
    return MiningVectors(table(queries, prompts.query), table(documents, prompts.document))


class Ranked(Protocol):
    """Candidates in order of their scores for a text."""

    def best(self, texts: Places, count: int) -> tuple[Places, Scores]:
        """The `count` best candidates of each text, -1 where there are fewer; and scores. (text, rank)."""
        ...

    def scores(self, text: int, others: Places) -> Scores:
        """The scores of any candidates or positives."""
        ...


class ByModel:
    """Cosines of vectors; every candidate is looked at, and equal scores are in order of place."""

    def __init__(self, vectors: MiningVectors, candidates: Places) -> None:
        self._vectors = vectors
        self._stored = IndexVectors(vectors.documents.matrix)
        self._candidates = vectors.documents.numbers(candidates)

    def best(self, texts: Places, count: int) -> tuple[Places, Scores]:
        """See `Ranked`."""
        found = nearest(self._stored, self._vectors.queries.rows(texts), count, self._candidates)
        return np.where(found.places < 0, -1, self._vectors.documents.places[found.places]), found.scores

    def scores(self, text: int, others: Places) -> Scores:
        """See `Ranked`."""
        found: Scores = self._vectors.documents.rows(others) @ self._vectors.queries.rows(np.array([text]))[0]
        return found


class ByWords:
    """BM25; a candidate without a word of the text is none."""

    def __init__(self, texts: Sequence[str], candidates: Places, positives: Places) -> None:
        """Index them."""
        self._texts = texts
        self._indexed = np.union1d(candidates, positives)
        self._others = ~np.isin(self._indexed, candidates)
        self._index = Bm25([texts[place] for place in self._indexed.tolist()])

    def best(self, texts: Places, count: int) -> tuple[Places, Scores]:
        """See `Ranked`."""
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
