"""Searching an index by vectors, words or both, for a text or for each text of the index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aoe_train.encoding.embedders.cached import PROBE_TEXT, same_model
from aoe_train.encoding.embedders.embedder import Embedder
from aoe_train.encoding.source import joined
from aoe_train.model.collection import Collection
from aoe_train.model.similarity import scaled_to_one
from aoe_train.searching.index_rows import (
    HIDDEN,
    IN_MEMORY,
    as_json,
    read_index,
    row_ids,
    with_rows,
)
from aoe_train.searching.ranking import (
    RankedRows,
    Ranker,
    SearchQuery,
    allowed_rows,
    checked_query,
    search_options,
    sortable,
)
from pairkit.base.cli.progress import Display, Listener, Progress
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line
from pairkit.dataset.table_files import write_table

_BLOCK_TEXTS = 64  # that are encoded at a time
_SHOWN = 200  # characters of a text in a table
_STAGE = "search for each text"


@dataclass(frozen=True)
class IndexHit:
    """A search result.

    Attributes:
        place: Its position in the index, from 0; see `SearchIndex.texts`.
        score: The score by which it was ranked, higher is better; in [0, 1] if by both.
        cosine: The cosine of its vector and the query's, as searched; None if by words.
        words: Its BM25 score, relative to the highest possible one; None if by the model.
        text: The text.
        row: All columns of its row.
        key: What identifies it for people: the value of the key column, or its row number in the input.
        key_column: The name of the key column, or `row` for row numbers.
    """

    place: int
    score: float
    cosine: float | None
    words: float | None
    text: str
    row: Mapping[str, Any]
    key: Any
    key_column: str

    def to_dict(self) -> dict[str, Any]:
        """An object of `aoe search --json`."""
        return {**as_json(vars(self)), "row": as_json(self.row)}


class SearchHits(Printed, list[IndexHit]):
    """Search results, best first: a list that is displayed as a table."""

    def to_dict(self) -> dict[str, Any]:
        """The object of `aoe search --json`."""
        return {"hits": [hit.to_dict() for hit in self]}

    def notes(self) -> list[str]:
        """Why there are no hits."""
        if self:
            return []
        return ["nothing found: no row passes the filters, or none has these words"]

    def table(self) -> ResultTable:
        """Score, cosine, key and text of each hit."""
        key_column = self[0].key_column if self else "row"
        table = ResultTable("score", "cosine", key_column, "text", left=("text",))
        for hit in self:
            cosine = "" if hit.cosine is None else f"{hit.cosine:.3f}"
            key = one_line(str(hit.key), _SHOWN)
            table.add_row(f"{hit.score:.3f}", cosine, key, one_line(hit.text, _SHOWN))
        return table


@dataclass(frozen=True, eq=False)
class BatchSearch:
    """The hits of all texts of an index.

    Attributes:
        hits: A row for each hit, in order of place1 and rank: query `place1`, result `place2`, `rank` from 1,
            `score`, `cosine` and `words` (see `IndexHit`), and, with the suffixes _1 and _2, the key or row
            number and the time of both rows.
        texts: Number of queries.
        undated: Number of rows that were left out because they have no time.
    """

    hits: pl.DataFrame
    texts: int
    undated: int

    def to_dict(self) -> dict[str, Any]:
        """The object of `aoe search --every --json`."""
        return {"texts": self.texts, "hits": self.hits.height, "undated": self.undated}

    def write(self, out: str | Path) -> None:
        """Write the hits as .csv, .tsv, .jsonl or .parquet; the same hits give the same bytes.

        Raises:
            ConfigError: `out` exists, or can't be written.
        """
        write_table(Path(out), [self.hits], self.hits.schema)


class SearchIndex:
    """An open index.

    Attributes:
        folder: Its folder.
        about: Its manifest.
        rows: All rows, in index order.
        key_column: The column of keys; `row` if rows are identified by their number in the input.
        vectors: The model's vectors of its rows; `np.asarray` makes a float32 array of them.
        searched: The vectors that are searched: the same, or those of its purpose.
        probe: The vector of a fixed text, which identifies the model.
        ranker: Ranks its rows.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about, rows, self.vectors, self.searched, self.probe = read_index(folder)
        self.rows = rows.drop(HIDDEN, strict=False)
        self._ids = row_ids(rows, self.about.key)
        self.key_column = self._ids.name
        self._embedder: Embedder | None = None
        self.ranker = Ranker(folder, self.about, self.searched)

    def recorded_model(self) -> str:
        """The model that made its vectors; raises ConfigError if that is in another place now."""
        model = self.about.model
        if model != IN_MEMORY and not model.startswith(".."):
            return model
        path = self.folder / model  # it is relative to the index
        if not path.is_dir():
            raise ConfigError(
                f"{self.folder}: its model, {one_line(model)}, isn't there; give it as --model"
            )
        return str(path)

    def use(self, embedder: Embedder) -> None:
        """Encode queries with a model; raises ConfigError if another one made the vectors."""
        vector = embedder.encode([PROBE_TEXT], embedder.prompts.document)
        if not same_model(vector, self.probe):
            raise ConfigError(
                f"{self.folder}: its vectors, made with {one_line(self.about.model)}, differ from those of"
                f" {embedder.name}; give the same model, or build the index again"
            )
        self._embedder = embedder

    def __len__(self) -> int:
        """Number of texts."""
        return self.about.rows

    def __repr__(self) -> str:
        about = self.about
        size = f"{about.rows:,} texts, {about.dim} dimensions"
        return f"SearchIndex({str(self.folder)!r}, {size}, {about.kind})"

    @cached_property
    def collection(self) -> Collection | None:
        """What changes the model's vectors into those that are searched, if the index has a purpose."""
        purpose = self.about.purpose
        return None if purpose is None else Collection(self.vectors, purpose)

    def _transformed(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors to search with, of length 1, for the model's vectors (text, dim)."""
        units = scaled_to_one(np.array(vectors, np.float32))
        return units if self.collection is None else self.collection.transform(units)

    def texts(self, places: Sequence[int] | np.ndarray | None = None) -> list[str]:
        """The texts of all or some rows."""
        columns = self.about.text
        return joined(_rows_at(self.rows.select(columns), places), columns)

    def keys(self, places: Sequence[int] | np.ndarray | None = None) -> list[Any]:
        """What identifies all or some rows for people: keys, or row numbers in the input."""
        return _rows_at(self._ids.to_frame(), places).to_series().to_list()

    def keyed_rows(
        self, places: Sequence[int] | np.ndarray | None = None
    ) -> pl.DataFrame:
        """All or some rows, with their numbers in the input if they have no key."""
        rows = self.rows
        if self.key_column not in rows.columns:
            rows = rows.with_columns(self._ids)
        return _rows_at(rows, places)

    def search(
        self,
        text: str,
        *,
        top: int = 10,
        where: Mapping[str, object] | Sequence[str] | None = None,
        before: Mapping[str, object] | Sequence[str] | None = None,
        by: str = "both",
        weight: float | None = None,
    ) -> SearchHits:
        """Search for a text; the best result is first, and ties are in index order.

        Args:
            text: The query; the model's prompt for queries is added.
            top: Maximum number of results.
            where: Columns and the values that rows must have: `{"state": "open"}` or `["state=open"]`.
            before: Columns and values that rows must be below, such as `{"day": "2024"}`.
            by: model (vectors), words (BM25), or both (see `aoe_train.model.collection`).
            weight: Weight of vectors in both, from 0 to 1; by default the index's own.

        Raises:
            ConfigError: Unknown column or ranking, or a number out of its range.
            DataError: The text is blank, or the index is damaged.
        """
        query = checked_query(text, by, top, weight, where, before)
        (hits,) = self.search_together([query])
        return hits

    def search_together(self, queries: Sequence[SearchQuery]) -> list[SearchHits]:
        """The hits of several queries, in one pass over the index; texts without a vector are encoded.

        Raises:
            ConfigError: Unknown column, or the index was opened without its model.
            DataError: The index is damaged.
        """
        resolved = []
        for query in queries:
            rows = allowed_rows(self.rows, query)
            keyed = self._places_of_key.get(query.text.strip().lower(), [])
            if keyed and rows is not None:
                keyed = np.intersect1d(keyed, rows).tolist()
            vector = None if query.by == "words" else self._query_vector(query)
            resolved.append(query._replace(vector=vector, allowed=rows, keyed=keyed))
        return list(map(self._hits, self.ranker.ranked(resolved)))

    def _query_vector(self, query: SearchQuery) -> np.ndarray:
        """The vector to search with, of length 1."""
        vector = query.vector
        if vector is None:
            embedder = self._embedder
            if embedder is None:
                raise ConfigError(
                    f"{self.folder}: opened without its model; search by words, or open it with its model"
                )
            (vector,) = embedder.encode([query.text], embedder.prompts.query)
        return self._transformed(vector[None]).reshape(-1)

    @cached_property
    def _places_of_key(self) -> Mapping[str, list[int]]:
        """The rows of each key."""
        keyed = defaultdict(list)
        for place, key in enumerate(self.keys() if self.about.key else ()):
            keyed[str(key).strip().lower()].append(place)
        return keyed

    def _hits(self, ranked: RankedRows) -> SearchHits:
        places = ranked.places.tolist()
        hits = SearchHits()
        for place, scores, text, row, key in zip(
            places,
            _scores(ranked),
            self.texts(places),
            self.rows[places].iter_rows(named=True),
            self.keys(places),
            strict=True,
        ):
            hits.append(IndexHit(place, *scores, text, row, key, self.key_column))
        return hits

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
        options = search_options(by, top, weight)
        places = np.arange(len(self))
        ranks = None
        if before is not None:
            times = sortable(self.rows, before)
            if times.dtype.is_float():
                times = times.fill_nan(None)
            # Rows without a time have the rank NaN, which is last.
            ranks = times.rank("dense").to_numpy()
            places = np.argsort(ranks, kind="stable")[: times.count()]
        count = len(places)
        rankings = {}
        with Display(progress) as show:
            for start in range(0, count, _BLOCK_TEXTS):
                block = places[start : start + _BLOCK_TEXTS]
                for place, query in self._queries(block, ranks, options):
                    (rankings[place],) = self.ranker.ranked([query])
                show(Progress(_STAGE, len(rankings), count))
            show(Progress(_STAGE, count, count, ended=True))
        # Distinct columns, as keys may be times.
        columns = dict.fromkeys((self.key_column, before or self.key_column))
        hits = _hit_table(self.keyed_rows().select(*columns), rankings)
        return BatchSearch(hits, count, len(self) - count)

    def _queries(
        self, places: np.ndarray, ranks: np.ndarray | None, options: SearchQuery
    ) -> Iterator[tuple[int, SearchQuery]]:
        """Each row with its query, among the rows of lower ranks, or all others without ranks."""
        texts = self.texts(places)
        embedder = self._embedder
        vectors: Iterable[np.ndarray | None]
        if options.by == "words":
            vectors = [None] * len(places)
        elif embedder and embedder.prompts.query != embedder.prompts.document:
            vectors = self._transformed(embedder.encode(texts, embedder.prompts.query))
        else:
            vectors = self.searched[places]
        all_places = np.arange(len(self))
        for place, text, vector in zip(places.tolist(), texts, vectors, strict=True):
            is_allowed = all_places != place if ranks is None else ranks < ranks[place]
            rows = np.flatnonzero(is_allowed)
            yield place, options._replace(text=text, vector=vector, allowed=rows)


def _rows_at(
    rows: pl.DataFrame, places: Sequence[int] | np.ndarray | None
) -> pl.DataFrame:
    return rows if places is None else rows[list(map(int, places))]


def _hit_table(rows: pl.DataFrame, by_place: dict[int, RankedRows]) -> pl.DataFrame:
    """A row for each hit, with the columns `rows` of both texts."""
    hits = []
    for place, ranked in sorted(by_place.items()):
        scored = zip(ranked.places.tolist(), _scores(ranked), strict=True)
        for rank, (found, scores) in enumerate(scored, 1):
            hits.append((place, found, rank, *scores))
    integers = dict.fromkeys(("place1", "place2", "rank"), pl.Int64)
    floats = dict.fromkeys(("score", "cosine", "words"), pl.Float64)
    table = pl.DataFrame(hits, {**integers, **floats}, orient="row")
    return with_rows(table, rows[table["place1"]], rows[table["place2"]])


def _scores(
    ranked: RankedRows,
) -> Iterable[tuple[float, float | None, float | None]]:
    """Score, cosine and BM25 score of each hit; None for those that a ranking lacks."""
    unknown = [None] * len(ranked.places)
    cosines = unknown if ranked.cosines is None else ranked.cosines.tolist()
    words = unknown if ranked.words is None else ranked.words.tolist()
    return zip(ranked.scores.tolist(), cosines, words, strict=True)
