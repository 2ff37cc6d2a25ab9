"""Vectors of texts on disk, made in parts, so that a run that was stopped goes on."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
