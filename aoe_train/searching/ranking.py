"""The one ranking of an index: by words, by vectors, or by both, over all rows or those allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import polars as pl

from aoe_train.model.hybrid import fused
from aoe_train.searching.folder import DIGEST, WORDS, IndexManifest
from aoe_train.searching.nearest import IndexVectors, Searcher, read
from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line
from pairkit.similarity.bm25 import Bm25, best

if TYPE_CHECKING:
    from jaxtyping import Float, Int

By = Literal["both", "model", "words"]
_CANDIDATES = 200  # of each ranking, at least


@dataclass(frozen=True, eq=False)
class RankedRows:
    """What is found, best first."""

    places: Int[np.ndarray, " hit"]
    scores: Float[np.ndarray, " hit"]
    cosines: Float[np.ndarray, " hit"] | None = None
    words: Float[np.ndarray, " hit"] | None = None


class Ranker:
    """Ranks the rows of an index; what it needs is read when it is first asked."""

    def __init__(self, folder: Path, about: IndexManifest, vectors: IndexVectors) -> None:
        self._folder, self._about, self._vectors = folder, about, vectors
        self._words: Bm25 | None = None
        self._searcher: Searcher | None = None

    def ranked(
        self,
        text: str,
        vector: Float[np.ndarray, " dim"] | None,
        top: int,
        allowed: Int[np.ndarray, " row"] | None,
        *,
        by: By,
        weight: float | None = None,
        nearest: RankedRows | None = None,
    ) -> RankedRows:
        """What is found, best first; ties in order of place. `nearest` are the vector's, if known."""
        if allowed is not None and not len(allowed):
            return _NOTHING
        if by == "words":
            scores = self._by_words(text, allowed)
            places = best(scores, top)
            return RankedRows(places, scores[places], words=self._shares(text, scores[places]))
        if vector is None:
            raise ValueError("a ranking by vectors needs one")
        if nearest is None:
            (nearest,) = self.nearest(vector[None], candidates(by, top), allowed)
        if by == "model":
            return nearest
        return self._by_both(
            text, vector, top, allowed, self._about.weight if weight is None else weight, nearest
        )

    def nearest(
        self, vectors: Float[np.ndarray, "query dim"], count: int, allowed: Int[np.ndarray, " row"] | None
    ) -> list[RankedRows]:
        """The `count` nearest of each vector."""
        found = self.searcher().nearest(vectors, min(count, self._about.rows), allowed)
        rows = [(places[places >= 0], scores[places >= 0]) for scores, places in zip(*found, strict=True)]
        return [RankedRows(places, cosines, cosines) for places, cosines in rows]

    def searcher(self) -> Searcher:
        """What finds the nearest of its vectors."""
        if self._searcher is None:
            index = read(self._folder, self._about.kind)
            self._searcher = Searcher(self._vectors, index)
        return self._searcher

    def _by_both(
        self,
        text: str,
        vector: np.ndarray,
        top: int,
        allowed: np.ndarray | None,
        weight: float,
        nearest: RankedRows,
    ) -> RankedRows:
        scores = self._by_words(text, allowed)
        places = np.union1d(nearest.places, best(scores, candidates("both", top)))
        cosines = self._vectors.rows(places) @ vector
        both = fused(cosines, scores[places], weight)
        order = np.argsort(-both, kind="stable")[:top]
        places = places[order]
        return RankedRows(places, both[order], cosines[order], self._shares(text, scores[places]))

    def _by_words(self, text: str, allowed: np.ndarray | None) -> np.ndarray:
        scores = np.array(self._word_index().scores(text))
        if allowed is not None:
            left_out = np.ones(len(scores), bool)
            left_out[allowed] = False
            scores[left_out] = 0
        return scores

    def _shares(self, text: str, scores: np.ndarray) -> np.ndarray:
        most = self._word_index().most(text)
        return scores / most if most else np.zeros(len(scores), np.float32)

    def _word_index(self) -> Bm25:
        if self._words is None:
            self._words = Bm25.load(self._folder / WORDS)
        return self._words


def candidates(by: By, top: int) -> int:
    """How many are ranked: what both rankings have behind their first few hundred can't come first."""
    return top if by == "model" else max(_CANDIDATES, 4 * top)


def checked(top: int, by: str, weight: float | None) -> By:
    """The ranking that a person named."""
    found: By | None = next((known for known in get_args(By) if known == by), None)
    if found is None:
        raise ConfigError(f"by {by!r}: expected {', '.join(get_args(By))}")
    if top < 1:
        raise ConfigError(f"top {top}: expected at least 1")
    if weight is not None and not 0 <= weight <= 1:
        raise ConfigError(f"weight {weight}: expected 0 to 1")
    return found


def allowed(
    rows: pl.DataFrame, where: Mapping[str, Any], before: Mapping[str, Any]
) -> Int[np.ndarray, " row"] | None:
    """Ascending places of the rows that may be found; None where nothing is asked for."""
    if not where and not before:
        return None
    keep = pl.lit(value=True)
    for name, value in where.items():
        check_column(rows, "where", name)
        keep = keep & _is_value(name, rows.schema[name], value)
    for name, value in before.items():
        check_column(rows, "before", name)
        keep = keep & (pl.col(name) < _of_column(rows, name, value))
    return rows.select(keep.fill_null(value=False).arg_true()).to_series().to_numpy().astype(np.int64)


def _is_value(column: str, dtype: pl.DataType, value: Any) -> pl.Expr:
    """Whether a row has `value` in a column: 1 and 1.0 are one number, and all else is compared as text."""
    given = str(value).lower() if isinstance(value, bool) else str(value)
    if not dtype.is_numeric():
        return pl.col(column).cast(pl.String) == given
    return pl.col(column) == pl.lit(pl.Series([given]).cast(dtype, strict=False)).first()


def check_column(rows: pl.DataFrame, what: str, name: str) -> None:
    """Refuse a column that is not there."""
    names = [known for known in rows.columns if known != DIGEST]
    if name not in names:
        raise ConfigError(f"{what} {name}: no such column; there are {one_line(', '.join(names))}")


def _of_column(rows: pl.DataFrame, name: str, value: Any) -> pl.Expr:
    """A value as the column has them, whether it came as a word or not."""
    kind = rows.schema[name]
    try:
        return pl.lit(pl.Series([value]).cast(kind)).first()
    except (pl.exceptions.PolarsError, TypeError, OverflowError, UnicodeError) as error:
        raise ConfigError(
            f"before {name}={one_line(str(value), 100)}: no value of this column, which holds {kind}"
        ) from error


_NOTHING = RankedRows(np.empty(0, np.int64), np.empty(0, np.float32))
