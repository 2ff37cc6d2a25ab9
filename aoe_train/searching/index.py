"""Searching an index: by vectors, by words, or by both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from aoe_train.evaluation.embedders.cached import PROBE as TEXT
from aoe_train.evaluation.embedders.cached import same_model
from aoe_train.evaluation.embedders.embedder import Embedder
from aoe_train.model.similarity import scaled_to_one
from aoe_train.searching.batch_search import BatchSearch, batch_search
from aoe_train.searching.folder import DIGEST, read_manifest, read_probe, read_rows_of, read_vectors
from aoe_train.searching.nearest import IndexVectors, Searcher
from aoe_train.searching.ranking import RankedRows, Ranker, allowed, candidates, checked
from aoe_train.searching.text_rows import as_json, joined, naming_column
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line

if TYPE_CHECKING:
    from pairkit.app.progress import Listener


@dataclass(frozen=True)
class IndexHit:
    """A text that was found.

    Attributes:
        place: Its row in the index, from 0.
        score: By which it was ranked, the higher the better: with both in [0, 1], over the candidates.
        cosine: Of its vector and that of the text that was searched for; None by words alone.
        words: The share that its words' score is of the most that a text could have; None by the model alone.
        text: The text.
        row: All its columns.
    """

    place: int
    score: float
    cosine: float | None
    words: float | None
    text: str
    row: Mapping[str, Any]

    @property
    def known(self) -> tuple[str, Any]:
        """The column by which people tell rows apart, such as a number, and its value; else the place."""
        name = naming_column(self.row)
        return ("row", self.place) if name is None else (name, self.row[name])

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe search --json`."""
        scores = {"place": self.place, "score": self.score, "cosine": self.cosine, "words": self.words}
        return {**scores, "row": as_json(self.row)}


class SearchQuery(NamedTuple):
    """What is searched for; see `SearchIndex.search`."""

    text: str
    top: int
    where: Mapping[str, Any]
    before: Mapping[str, Any]
    by: str
    weight: float | None


class SearchIndex:
    """An index that is open.

    Attributes:
        folder: Where it lies.
        about: What it is of.
        vectors: Of its rows.
        ranker: What ranks them.
    """

    def __init__(self, folder: Path, embedder: Embedder | None) -> None:
        """Open it."""
        self.folder, self.about = folder, read_manifest(folder)
        if embedder is not None:
            vector = embedder.encode([TEXT], embedder.prompts.document)
            if not same_model(vector, read_probe(folder)):
                raise ConfigError(
                    f"{folder}: its vectors are those of {one_line(self.about.model)} as it was then, and"
                    f" not of {embedder.name} as it is here; build the index again, or name its model"
                )
        self._embedder = embedder
        self._rows = read_rows_of(folder)
        self.vectors: IndexVectors = read_vectors(folder, self.about)
        self.ranker = Ranker(folder, self.about, self.vectors)

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
        before: Mapping[str, Any] | None = None,
        by: str = "both",
        weight: float | None = None,
    ) -> list[IndexHit]:
        """The texts that fit best, best first; ties in order of place.

        Args:
            text: What is searched for; the model's prompt for queries goes with it.
            top: How many, at most.
            where: Columns with the value that a row has to have, such as `{"state": "open"}`.
            before: Columns with a value that a row's has to be smaller than, such as `{"day": "2024"}`.
            by: both: vectors and BM25, see `Hybrid`; or model, or words alone.
            weight: How much vectors count beside words, from 0 to 1; by default what suits the model.

        Raises:
            ConfigError: No such column or way, or a number out of its range.
            DataError: A text of blanks, or damaged vectors.
        """
        query = SearchQuery(text, top, where or {}, before or {}, by, weight)
        vector = None if checked(top, by, weight) == "words" or not text.strip() else self._vector(text)
        return self.search_together([query], [vector])[0]

    def search_together(
        self, queries: Sequence[SearchQuery], vectors: Sequence[np.ndarray | None]
    ) -> list[list[IndexHit]]:
        """The hits of each query by its vector, which one by words lacks: one pass over the index for all.

        Raises:
            ConfigError, DataError: See `search`.
        """
        if any(not query.text.strip() for query in queries):
            raise DataError("the text is empty; give what to search for")
        ways = [checked(query.top, query.by, query.weight) for query in queries]
        rows = [allowed(self._rows, query.where, query.before) for query in queries]
        units = [None if vector is None else scaled_to_one(vector[None])[0] for vector in vectors]
        nearest: list[RankedRows | None] = [None] * len(queries)
        by_count: dict[int, dict[int, np.ndarray]] = {}  # vectors whose nearest are looked for together
        for place, (query, way, unit) in enumerate(zip(queries, ways, units, strict=True)):
            if way != "words" and rows[place] is None and unit is not None:
                by_count.setdefault(candidates(way, query.top), {})[place] = unit
        for count, some in by_count.items():
            for place, found in zip(
                some, self.ranker.nearest(np.stack([*some.values()]), count, None), strict=True
            ):
                nearest[place] = found
        return [
            self._hits(
                self.ranker.ranked(
                    query.text, unit, query.top, row, by=way, weight=query.weight, nearest=near
                )
            )
            for query, way, row, unit, near in zip(queries, ways, rows, units, nearest, strict=True)
        ]

    def _hits(self, found: RankedRows) -> list[IndexHit]:
        frame = self._rows[found.places.tolist()]
        texts = joined(frame.select(self.about.text), self.about.text)
        unknown = [None] * len(found.places)
        columns = [unknown if known is None else known.tolist() for known in (found.cosines, found.words)]
        own_rows = frame.drop(DIGEST).iter_rows(named=True)
        return list(map(IndexHit, found.places.tolist(), found.scores.tolist(), *columns, texts, own_rows))

    def search_every(
        self,
        *,
        before: str | None = None,
        top: int = 20,
        by: str = "both",
        weight: float | None = None,
        progress: bool | Listener = True,
    ) -> BatchSearch:
        """Search for every text of the index; see `aoe_train.search_every`.

        By the vector that the index has of a text; or by one that is made anew, if the index was opened with
        its model, and that has another prompt for queries.
        """
        from pairkit.app.progress import Display

        with Display(progress) as show:
            return batch_search(
                self.rows,
                self.texts,
                self.vectors_to_search,
                self.ranker,
                before=before,
                top=top,
                by=by,
                weight=weight,
                show=show,
            )

    def vectors_to_search(self, places: np.ndarray, texts: Sequence[str]) -> np.ndarray:
        """Vectors of length 1 by which some of its own texts are searched for, (text, dim)."""
        embedder = self._embedder
        if embedder is None or embedder.prompts.query == embedder.prompts.document:
            return self.vectors.rows(places)
        return np.asarray(scaled_to_one(embedder.encode(list(texts), embedder.prompts.query)))

    def searcher(self) -> Searcher:
        """What finds the nearest of its vectors; see `Ranker.searcher`."""
        return self.ranker.searcher()

    def _vector(self, text: str) -> np.ndarray:
        if self._embedder is None:
            raise ConfigError(
                f"{self.folder}: opened without its model; search by words, or open it with the model"
            )
        return np.asarray(self._embedder.encode([text], self._embedder.prompts.query)[0])
