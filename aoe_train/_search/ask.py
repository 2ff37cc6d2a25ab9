"""Searching an index: by vectors, by words, or by both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from aoe_train._evaluate.embedders.cached import PROBE as TEXT
from aoe_train._evaluate.embedders.cached import same_model
from aoe_train._evaluate.embedders.embedder import Embedder
from aoe_train._hybrid import fused
from aoe_train._search.folder import DIGEST, WORDS, read_about, read_probe, read_rows_of, read_vectors
from aoe_train._search.nearest import Searcher, Vectors, read
from aoe_train._search.texts import joined
from pairkit.bm25 import Bm25, best
from pairkit.errors import ConfigError, DataError
from pairkit.printable import one_line

By = Literal["both", "model", "words"]
_CANDIDATES = 200  # of each ranking, at least
_SHOWN = 20  # values that a message names


@dataclass(frozen=True)
class Hit:
    """A text that was found.

    Attributes:
        place: Its row in the index, from 0.
        score: By which it was ranked, the higher the better: with both in [0, 1], over the candidates.
        cosine: Of its vector and that of the text that was searched for; None by words alone.
        text: The text.
        row: All its columns.
    """

    place: int
    score: float
    cosine: float | None
    text: str
    row: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe search --json`."""
        return {"place": self.place, "score": self.score, "cosine": self.cosine, "row": dict(self.row)}


class SearchIndex:
    """An index that is open.

    Attributes:
        folder: Where it lies.
        about: What it is of.
    """

    def __init__(self, folder: Path, embedder: Embedder | None) -> None:
        """Open it.

        Args:
            folder: What `aoe index` made.
            embedder: The model that made its vectors; None to search by words alone.

        Raises:
            ConfigError: No index, or vectors of another model.
            DataError: A damaged one.
        """
        self.folder, self.about = folder, read_about(folder)
        if embedder is not None:
            vector = embedder.encode([TEXT], embedder.prompts.document)
            if not same_model(vector, read_probe(folder, self.about)):
                raise ConfigError(
                    f"{folder}: its vectors are those of {one_line(self.about.model)} as it was then, and"
                    f" not of {embedder.name} as it is here; build the index again, or name its model"
                )
        self._embedder = embedder
        self._rows = read_rows_of(folder, self.about)
        self.vectors: Vectors = read_vectors(folder, self.about)
        self._words: Bm25 | None = None
        self._searcher: Searcher | None = None

    def __len__(self) -> int:
        """How many texts it has."""
        return self.about.rows

    def __repr__(self) -> str:
        about = self.about
        return (
            f"SearchIndex({str(self.folder)!r}, {about.rows:,} texts, {about.dim} dimensions, {about.kind})"
        )

    @property
    def rows(self) -> pl.DataFrame:
        """All rows, in the order of their places."""
        return self._rows.drop(DIGEST)

    def texts(self, places: Sequence[int] | np.ndarray) -> list[str]:
        """The texts at some places."""
        return joined(self._rows[list(map(int, places))].select(self.about.text), self.about.text)

    def search(
        self,
        text: str,
        *,
        top: int = 10,
        where: Mapping[str, Any] | None = None,
        by: str = "both",
        weight: float | None = None,
    ) -> list[Hit]:
        """The texts that fit best, best first; ties in order of place.

        Args:
            text: What is searched for; the model's prompt for queries goes with it.
            top: How many, at most.
            where: Columns with the value that a row has to have, such as `{"state": "open"}`.
            by: both: vectors and BM25, see `Hybrid`; or model, or words alone.
            weight: How much vectors count beside words, from 0 to 1; by default what suits the model.

        Raises:
            ConfigError: No such column or way, or a number out of its range.
            DataError: A text of blanks.
        """
        if by not in get_args(By):
            raise ConfigError(f"by {by!r}: expected {', '.join(get_args(By))}")
        if top < 1:
            raise ConfigError(f"top {top}: expected at least 1")
        share = self.about.weight if weight is None else weight
        if not 0 <= share <= 1:
            raise ConfigError(f"weight {weight}: expected 0 to 1")
        if not text.strip():
            raise DataError("the text is empty; give what to search for")
        allowed = self._allowed(where or {})
        if allowed is not None and not len(allowed):
            return []
        places, scores, cosines = self._ranked(text, top, allowed, by, share)
        frame = self._rows[places.tolist()]
        texts = joined(frame.select(self.about.text), self.about.text)
        return [
            Hit(int(place), float(score), None if cosines is None else float(cosines[rank]), texts[rank], row)
            for rank, (place, score, row) in enumerate(
                zip(places, scores, frame.drop(DIGEST).iter_rows(named=True), strict=True)
            )
        ]

    def _ranked(
        self, text: str, top: int, allowed: np.ndarray | None, by: str, share: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Places, scores and cosines, best first."""
        if by == "words":
            scores = self._by_words(text, allowed)
            places = best(scores, top)
            return places, scores[places], None
        query = self._vector(text)
        if by == "model":
            found = self._nearest(query, top, allowed)
            return found.places, found.scores, found.scores
        # What neither ranking has among its first few hundred can't come first in both together.
        wide = max(_CANDIDATES, 4 * top)
        scores = self._by_words(text, allowed)
        candidates = np.union1d(self._nearest(query, wide, allowed).places, best(scores, wide))
        cosines = self.vectors.rows(candidates) @ query
        both = fused(cosines, scores[candidates], share)
        order = np.argsort(-both, kind="stable")[:top]
        return candidates[order], both[order], cosines[order]

    def searcher(self) -> Searcher:
        """What finds the nearest of its vectors.

        Raises:
            ConfigError: It needs faiss, which is not installed.
            DataError: Damaged.
        """
        return Searcher(self.vectors, read(self.folder, self.about.kind, self.vectors.shape))

    def _nearest(self, query: np.ndarray, count: int, allowed: np.ndarray | None) -> _Ranked:
        if self._searcher is None:
            self._searcher = self.searcher()
        found = self._searcher.nearest(query[None], min(count, len(self)), allowed)
        there = found.places[0] >= 0
        return _Ranked(found.places[0][there], found.scores[0][there])

    def _by_words(self, text: str, allowed: np.ndarray | None) -> np.ndarray:
        if self._words is None:
            self._words = Bm25.load(self.folder / WORDS)
        scores = np.array(self._words.scores(text))
        if len(scores) != len(self):
            raise DataError(f"is of {len(scores):,} texts; build the index again", path=self.folder / WORDS)
        if allowed is not None:
            scores[np.isin(np.arange(len(self)), allowed, invert=True)] = 0
        return scores

    def _vector(self, text: str) -> np.ndarray:
        if self._embedder is None:
            raise ConfigError(
                f"{self.folder}: opened without its model; search by words, or open it with the model"
            )
        (vector,) = self._embedder.encode([text], self._embedder.prompts.query)
        length = float(np.linalg.norm(vector))
        unit: np.ndarray = vector / length if length else vector
        return unit

    def _allowed(self, where: Mapping[str, Any]) -> np.ndarray | None:
        """Ascending places of rows that have certain values; None where nothing is asked for."""
        if not where:
            return None
        names = [name for name in self._rows.columns if name != DIGEST]
        keep = pl.lit(value=True)
        for name, value in where.items():
            if name not in names:
                raise ConfigError(f"where {name}: no such column; there are {one_line(', '.join(names))}")
            keep = keep & (pl.col(name).cast(pl.String) == _written(value))
        return (
            self._rows.select(keep.fill_null(value=False).arg_true()).to_series().to_numpy().astype(np.int64)
        )


@dataclass(frozen=True)
class _Ranked:
    places: np.ndarray
    scores: np.ndarray


def _written(value: Any) -> str:
    """A value as polars writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
