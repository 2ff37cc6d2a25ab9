"""A teacher for texts without labels: the backbone's own similarities, smoothed over its neighbour graph.

Each text's vector is averaged with those of its mutual nearest neighbours (semantic graph smoothing, Fettal
et al., 2024, arXiv 2402.12890). Similarities of words are added, as in lexicon-enlightened retrievers (Zhang
et al., 2022, arXiv 2208.13661). A student that has learned these similarities needs no graph (GLNN, Zhang et
al., 2022, arXiv 2110.08727). `objectives/distillation.py` has the loss.

With Z the centred unit vectors of N texts, X their unit rows of TF-IDF and w the lexical weight:

    G = (1 - w) Z Z' + w X X'              the neighbourhood of a text is its highest entries, without itself
    Y = unit((A + I) Z)                    A: which texts are among each other's k nearest by G
    T = (1 - w) (s Y Y' + (1 - s) Z Z') + w X X'       the teacher's similarities, with the smoothing s

The teacher's vectors are (sqrt((1 - w) s) Y, sqrt((1 - w) (1 - s)) Z, sqrt(w) X), whose products are T.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from aoe_train.data.defaults import FROM_NEIGHBOURHOOD, seeds_in
from aoe_train.data.token_batches import Batches
from aoe_train.model.similarity import scaled_to_one
from aoe_train.objectives.training_rows import ColumnVectors, Examples, TeacherVectors
from aoe_train.settings.run_settings import BatchSettings, TeacherSettings
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.seeded import keyed_hash
from pairkit.similarity.near_duplicates import without_near_duplicates
from pairkit.similarity.terms import terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Int
    from scipy.sparse import csr_matrix
    from torch import Tensor


# Twice as many texts made models no better on banking77.
MAX_TEXTS = 2000
_NEIGHBOURHOOD = 20
# Separates the choice of members from the shuffling of seeds, which has the same seed.
_MEMBER_STREAM = 1


@dataclass(frozen=True)
class NeighbourTeacher(TeacherVectors):
    """The teacher's vectors, in a dense part (`columns`) and a sparse one, and each text's neighbourhood."""

    lexical: csr_matrix
    nearest: Int[np.ndarray, "text rank"]

    def of_rows(self, rows: np.ndarray) -> Float[Tensor, "row column teacher"]:
        """The vectors of these rows; the sparse part has only the words of these rows."""
        import torch

        dense = super().of_rows(rows)
        words = self.lexical[rows]
        used = np.unique(words.indices)
        lexical = torch.from_numpy(words[:, used].toarray())
        lexical_columns = lexical[:, None].expand(-1, dense.shape[1], -1)
        return torch.cat([dense, lexical_columns], dim=-1)


def neighbour_teacher(
    texts: Sequence[str],
    vectors: Float[np.ndarray, "text dim"],
    settings: TeacherSettings,
) -> NeighbourTeacher:
    """The teacher of these texts, from the vectors of a model."""
    weight = settings.lexical_weight or 0.0
    smoothing = settings.smoothing or 0.0
    neighbours = settings.neighbours or 0

    centred = scaled_to_one(vectors - vectors.mean(axis=0))
    lexical = _tf_idf(texts)
    similarity = (1 - weight) * (centred @ centred.T)
    similarity += weight * (lexical @ lexical.T).toarray()
    np.fill_diagonal(similarity, -np.inf)
    order = np.argsort(-similarity, axis=1, kind="stable")
    others = order[:, :-1]  # the last is the text itself

    mutual = _mutual_neighbours(others[:, :neighbours])
    smoothed = scaled_to_one(mutual @ centred + centred)
    parts = []
    for share, part in ((smoothing, smoothed), (1 - smoothing, centred)):
        if share:
            parts.append(np.sqrt((1 - weight) * share) * part)
    dense = np.concatenate(parts, axis=1).astype(np.float32)
    sparse = (np.sqrt(weight) * lexical).astype(np.float32)
    column = ColumnVectors(dense, np.arange(len(texts)))
    # Two equal columns, because `collate` repeats a single text in two columns.
    nearest = others[:, : max(_NEIGHBOURHOOD, neighbours)]
    return NeighbourTeacher([column] * 2, sparse, nearest)


def _tf_idf(texts: Sequence[str]) -> csr_matrix:
    """Unit rows of TF-IDF; a text without words is a term of its own."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        analyzer=lambda text: terms(text) or [text], sublinear_tf=True, dtype=np.float32
    )
    return vectorizer.fit_transform(texts)


def _mutual_neighbours(
    nearest: Int[np.ndarray, "text rank"],
) -> Float[np.ndarray, "text text"]:
    """1 for two texts that are among each other's nearest, else 0."""
    linked = np.zeros((len(nearest), len(nearest)), np.bool_)
    np.put_along_axis(linked, nearest, values=True, axis=1)
    return (linked & linked.T).astype(np.float32)


def draw_texts(examples: Examples, seed: int) -> Examples:
    """At most `MAX_TEXTS` random texts, without near-duplicates, which would hide other neighbours."""
    hashes = [keyed_hash(seed, text) for text in examples.texts]
    order = sorted(range(len(hashes)), key=hashes.__getitem__)
    # In the order of the source.
    texts = [examples.texts[number] for number in sorted(order[:MAX_TEXTS])]
    kept = without_near_duplicates(texts)

    counts = {
        "not_drawn": len(order) - len(texts),
        "near_duplicate": len(texts) - len(kept),
    }
    left_out = {reason: count for reason, count in counts.items() if count}
    reading = replace(examples.reading, left_out=left_out)
    return replace(
        examples, texts=kept, rows=np.arange(len(kept))[:, None], reading=reading
    )


class NeighbourBatches(Batches):
    """Batches of seeds, each once an epoch, and random members of their neighbourhoods."""

    def __init__(
        self,
        examples: Examples,
        lengths: np.ndarray,
        batch_size: int,
        nearest: Int[np.ndarray, "text rank"],
        *,
        seed: int,
        world: int,
    ) -> None:
        """Plan batches; raises ConfigError for several processes, and DataError for fewer than two texts."""
        if world > 1:
            raise ConfigError(
                "the preset domain trains on plain texts in one process, which takes about a minute; start it"
                " without torchrun, or choose the preset simcse"
            )
        if len(examples) < 2:
            raise DataError("fewer than two distinct texts; expected hundreds")
        shuffle = BatchSettings(strategy="shuffle")
        super().__init__(
            examples, lengths, seeds_in(batch_size), shuffle, seed=seed, views=False
        )
        self._nearest = nearest

    def rows_seen(self, epochs: int) -> int:
        """Number of rows in this many epochs."""
        return sum(len(rows) for epoch in range(epochs) for rows in self.plan(epoch))

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The epoch's batches, each an int64 array of distinct row numbers."""
        random = np.random.default_rng([self._seed, epoch, _MEMBER_STREAM])
        members = random.permuted(self._nearest, axis=1)[:, :FROM_NEIGHBOURHOOD]
        batches = super().plan(epoch)
        return [np.union1d(seeds, members[seeds]) for seeds in batches]
