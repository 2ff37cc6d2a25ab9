"""Searching an index: by vectors, by words, or by both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from aoe_train.evaluation.embedders.cached import PROBE as TEXT
from aoe_train.evaluation.embedders.cached import same_model
from aoe_train.evaluation.embedders.embedder import Embedder
from aoe_train.model.similarity import scaled_to_one
from aoe_train.searching.batch_search import BatchSearch, batch_search
from aoe_train.searching.folder import HASH, read_index
from aoe_train.searching.nearest import Searcher
from aoe_train.searching.ranking import RankedRows, Ranker, allowed, candidates, checked
from aoe_train.searching.text_rows import KEY, as_json, joined, naming_column
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line

if TYPE_CHECKING:
    from pairkit.base.cli.progress import Listener


@dataclass(frozen=True)
class IndexHit:
    """A search result.

    Attributes:
        place: Its row number in the index, from 0.
        score: The score by which it was ranked, higher is better; in [0, 1] if by both.
        cosine: The cosine of its vector and the query's; None if by words.
        words: Its BM25 score, relative to the highest possible one; None if by the model.
        text: The text.
        row: All columns of its row.
    """

    place: int
    score: float
    cosine: float | None
    words: float | None
    text: str
    row: Mapping[str, Any]

    @property
    def known(self) -> tuple[str, Any]:
        """The column that identifies the row for people, such as a number, and its value; else the place."""
        name = naming_column(self.row)
        return ("row", self.place) if name is None else (name, self.row[name])

    def to_dict(self) -> dict[str, Any]:
        """An object of `aoe search --json`."""
        scores = {"place": self.place, "score": self.score, "cosine": self.cosine, "words": self.words}
        return {**scores, "row": as_json(self.row)}


class SearchQuery(NamedTuple):
    """The arguments of `SearchIndex.search`."""

    text: str
    top: int
    where: Mapping[str, Any]
    before: Mapping[str, Any]
    by: str
    weight: float | None


class SearchIndex:
    """An open index.

    Attributes:
        folder: Its folder.
        about: Its manifest.
        vectors: The vectors of its rows.
        probe: The vector of a fixed text, which identifies the model.
        ranker: Ranks its rows.
    """

    def __init__(self, folder: Path, embedder: Embedder | None) -> None:
        self.folder = folder
        self.about, self._rows, self.vectors, self.probe = read_index(folder)
        if embedder is not None:
            vector = embedder.encode([TEXT], embedder.prompts.document)
            if not same_model(vector, self.probe):
                raise ConfigError(
                    f"{folder}: its vectors, made with {one_line(self.about.model)}, differ from those of"
                    f" {embedder.name}; give the same model, or build the index again"
                )
        self._embedder = embedder
        self.ranker = Ranker(folder, self.about, self.vectors)

    def __len__(self) -> int:
        """Number of texts."""
        return self.about.rows

    def __repr__(self) -> str:
        about = self.about
        return (
            f"SearchIndex({str(self.folder)!r}, {about.rows:,} texts, {about.dim} dimensions, {about.kind})"
        )

    @property
    def rows(self) -> pl.DataFrame:
        """All rows, in index order."""
        return self._rows.drop(HASH)

    def texts(self, places: Sequence[int] | np.ndarray) -> list[str]:
        """The texts of some rows."""
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
        """Search for a text; the best result is first, and ties are in index order.

        Args:
            text: The query; the model's prompt for queries is added.
            top: Maximum number of results.
            where: Columns and the values that rows must have, such as `{"state": "open"}`.
            before: Columns and values that rows must be below, such as `{"day": "2024"}`.
            by: model (vectors), words (BM25), or both (see `Hybrid`).
            weight: Weight of vectors in both, from 0 to 1; by default the index's own.

        Raises:
            ConfigError: Unknown column or ranking, or a number out of its range.
            DataError: The text is blank, or the index is damaged.
        """
        query = SearchQuery(text, top, where or {}, before or {}, by, weight)
        vector = None if checked(top, by, weight) == "words" or not text.strip() else self._vector(text)
        return self.search_together([(query, vector)])[0]

    def search_together(self, calls: Sequence[tuple[SearchQuery, np.ndarray | None]]) -> list[list[IndexHit]]:
        """The hits of several queries with their vectors (None if by words), in one pass over the index.

        Raises:
            ConfigError, DataError: See `search`.
        """
        queries = [query for query, _ in calls]
        if any(not query.text.strip() for query in queries):
            raise DataError("the text is empty; expected a search query")
        kinds = [checked(query.top, query.by, query.weight) for query in queries]
        rows = [allowed(self._rows, query.where, query.before) for query in queries]
        units = [None if vector is None else scaled_to_one(vector[None])[0] for _, vector in calls]
        nearest: list[RankedRows | None] = [None] * len(queries)
        by_count: dict[int, dict[int, np.ndarray]] = {}  # unfiltered queries that are searched together
        for number, (query, kind, unit) in enumerate(zip(queries, kinds, units, strict=True)):
            if kind != "words" and rows[number] is None and unit is not None:
                by_count.setdefault(candidates(kind, query.top), {})[number] = unit
        for count, group in by_count.items():
            ranked = self.ranker.nearest(np.stack([*group.values()]), count, None)
            for number, near in zip(group, ranked, strict=True):
                nearest[number] = near
        return [
            self._hits(
                self.ranker.ranked(
                    query.text,
                    unit,
                    query.top,
                    row,
                    by=kind,
                    weight=0.0 if query.text.strip().lower() in self._keys else query.weight,
                    nearest=near,
                )
            )
            for query, kind, row, unit, near in zip(queries, kinds, rows, units, nearest, strict=True)
        ]

    @cached_property
    def _keys(self) -> frozenset[str]:
        """The rows' keys in lower case. A search for a key is ranked only by words, as vectors blur keys."""
        keys = self._rows[KEY].cast(pl.String).drop_nulls() if KEY in self._rows.columns else ()
        return frozenset(str(key).lower() for key in keys)

    def _hits(self, ranked: RankedRows) -> list[IndexHit]:
        frame = self._rows[ranked.places.tolist()]
        texts = joined(frame.select(self.about.text), self.about.text)
        unknown = [None] * len(ranked.places)
        columns = [unknown if each is None else each.tolist() for each in (ranked.cosines, ranked.words)]
        own_rows = frame.drop(HASH).iter_rows(named=True)
        return list(map(IndexHit, ranked.places.tolist(), ranked.scores.tolist(), *columns, texts, own_rows))

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

        Queries use the vectors in the index. They are encoded again only if the index was opened with its
        model, and the model has a special prompt for queries.
        """
        from pairkit.base.cli.progress import Display

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
        """Query vectors of length 1 of some texts of the index, (text, dim)."""
        embedder = self._embedder
        if embedder is None or embedder.prompts.query == embedder.prompts.document:
            return self.vectors.rows(places)
        return np.asarray(scaled_to_one(embedder.encode(list(texts), embedder.prompts.query)))

    def searcher(self) -> Searcher:
        """See `Ranker.searcher`."""
        return self.ranker.searcher()

    def _vector(self, text: str) -> np.ndarray:
        if self._embedder is None:
            raise ConfigError(
                f"{self.folder}: opened without its model; search by words, or open it with its model"
            )
        return np.asarray(self._embedder.encode([text], self._embedder.prompts.query)[0])
