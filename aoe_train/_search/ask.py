"""Searching an index: by vectors, by words, or by both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from aoe_train._evaluate.embedders.cached import PROBE as TEXT
from aoe_train._evaluate.embedders.cached import same_model
from aoe_train._evaluate.embedders.embedder import Embedder
from aoe_train._hybrid import fused
from aoe_train._search.calibrate import (
    CALIBRATION_FILE,
    FEWEST,
    Calibration,
    fit,
    partners,
    queries,
    read_calibration,
    reliability,
)
from aoe_train._search.folder import DIGEST, WORDS, read_about, read_probe, read_rows_of, read_vectors
from aoe_train._search.nearest import Searcher, Vectors, read
from aoe_train._search.texts import joined, text_digest, told
from aoe_train._similarity import scaled_to_one
from pairkit.bm25 import Bm25, best
from pairkit.errors import ConfigError, DataError
from pairkit.files import write_json
from pairkit.in_memory import Source, source_name
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
        probability: That both say the same, as far as labelled pairs tell; None where the index was given
            none, or was searched by one ranking alone.
        text: The text.
        row: All its columns.
    """

    place: int
    score: float
    cosine: float | None
    probability: float | None
    text: str
    row: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe search --json`."""
        scores = {"place": self.place, "score": self.score, "cosine": self.cosine}
        return {**scores, "probability": self.probability, "row": told(self.row)}


class SearchIndex:
    """An index that is open.

    Attributes:
        folder: Where it lies.
        about: What it is of.
        calibration: What turns scores into probabilities; None before `calibrate`.
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
        self.calibration = read_calibration(folder)
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
            DataError: A text of blanks, or damaged vectors.
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
        found = self._ranked(text, top, allowed, by, share)
        if found.cosines is not None and not np.isfinite(found.cosines).all():
            raise DataError("holds vectors that are no numbers; build the index again", path=self.folder)
        frame = self._rows[found.places.tolist()]
        texts = joined(frame.select(self.about.text), self.about.text)
        count = len(found.places)
        cosines = [None] * count if found.cosines is None else found.cosines.tolist()
        likely: Sequence[float | None] = [None] * count
        if self.calibration is not None and isinstance(found, _Together):
            likely = self.calibration.probability(found.evidence).tolist()
        rows = frame.drop(DIGEST).iter_rows(named=True)
        return list(map(Hit, found.places.tolist(), found.scores.tolist(), cosines, likely, texts, rows))

    def calibrate(self, pairs: Source, top: int = 10) -> Calibration:
        """Learn from labelled pairs of its texts how probable it is that a hit says the same.

        The folder keeps what was learnt. Texts of the pairs that are in the index, letter by letter, are
        searched for; what people call the same and is not found tells nothing. The probability is that in a
        stream of texts as many of which have a partner as of the pairs' texts.

        Args:
            pairs: With labels 0 and 1. Those of validation teach, those of test tell how well; where there is
                one split only, it does both.
            top: Hits of each text that are looked at.

        Raises:
            ConfigError: No such pairs, or the folder can't be written.
            DataError: Too few texts with a partner are in the index, or labels are scores.
        """
        from pairkit.reader import read_pairs

        splits = read_pairs(pairs).splits
        taught = next((name for name in ("validation", "train") if name in splits), next(iter(splits)))
        judged = "test" if "test" in splits else taught
        scores, same, texts, partnered = self._hits_of(splits[taught], top, source_name(pairs))
        weights, hits = fit(scores, same), len(same)
        if judged != taught:
            scores, same, _, _ = self._hits_of(splits[judged], top, source_name(pairs))
        found = Calibration(
            weights=weights.tolist(),
            texts=texts,
            with_partner=partnered,
            hits=hits,
            split=taught,
            judged=judged,
            brier=0.0,
            reliability=[],
        )
        brier, bins = reliability(found.probability(scores), same)
        self.calibration = found.model_copy(update={"brier": brier, "reliability": bins})
        write_json(self.folder / CALIBRATION_FILE, self.calibration.model_dump(mode="json"))
        return self.calibration

    def _hits_of(self, frame: pl.DataFrame, top: int, where: str) -> tuple[np.ndarray, np.ndarray, int, int]:
        """Scores (hit, 2) and truth of what the texts of pairs find; how many texts, and with a partner."""
        if frame["label"].dtype != pl.Int64:
            raise DataError("labels are scores; expected 0 and 1", path=where)
        known = partners(list(frame.select("text1", "text2", "label").iter_rows()))
        digests = self._rows[DIGEST].to_list()
        first: dict[str, int] = {}  # where a text stands first; rows with the same text are one
        standing = np.array([first.setdefault(digest, place) for place, digest in enumerate(digests)])
        place_of = {text: first[key] for text in known if (key := text_digest(text)) in first}
        asked = list(queries(known, place_of))
        partnered = sum(bool(partner) for _, partner in asked)
        if partnered < FEWEST:
            raise DataError(
                f"{partnered:,} of the pairs' texts are in the index with a partner; expected at least"
                f" {FEWEST}: index the texts that the pairs are of",
                path=where,
            )
        scores, same = [], []
        for place, partner in asked:
            (text,), (vector,) = self.texts([place]), self.vectors.rows(np.array([place]))
            found = self._together(text, vector, top + 1, None, self.about.weight)
            places = standing[found.places]
            other = places != place
            scores.append(found.evidence[other])
            same.append(np.isin(places[other], list(partner)))
        return np.concatenate(scores), np.concatenate(same).astype(np.float64), len(asked), partnered

    def _ranked(self, text: str, top: int, allowed: np.ndarray | None, by: str, share: float) -> _Ranking:
        """What is found, best first."""
        if by == "words":
            scores = self._by_words(text, allowed)
            places = best(scores, top)
            return _Ranking(places, scores[places])
        query = self._vector(text)
        if by == "model":
            return self._nearest(query, top, allowed)
        return self._together(text, query, top, allowed, share)

    def _together(
        self, text: str, query: np.ndarray, top: int, allowed: np.ndarray | None, share: float
    ) -> _Together:
        """What is found by a text's words and its vector, best first."""
        # What neither ranking has among its first few hundred can't come first in both together.
        wide = max(_CANDIDATES, 4 * top)
        scores = self._by_words(text, allowed)
        candidates = np.union1d(self._nearest(query, wide, allowed).places, best(scores, wide))
        cosines = self.vectors.rows(candidates) @ query
        both = fused(cosines, scores[candidates], share)
        order = np.argsort(-both, kind="stable")[:top]
        most = self._word_index().most(text)
        shares = scores[candidates[order]] / most if most else np.zeros(len(order), np.float32)
        evidence = np.column_stack([cosines[order], shares])
        return _Together(candidates[order], both[order], cosines[order], evidence=evidence)

    def searcher(self) -> Searcher:
        """What finds the nearest of its vectors.

        Raises:
            ConfigError: It needs faiss, which is not installed.
            DataError: Damaged.
        """
        return Searcher(self.vectors, read(self.folder, self.about.kind, self.vectors.shape))

    def _nearest(self, query: np.ndarray, count: int, allowed: np.ndarray | None) -> _Ranking:
        if self._searcher is None:
            self._searcher = self.searcher()
        found = self._searcher.nearest(query[None], min(count, len(self)), allowed)
        there = found.places[0] >= 0
        cosines = found.scores[0][there]
        return _Ranking(found.places[0][there], cosines, cosines)

    def _by_words(self, text: str, allowed: np.ndarray | None) -> np.ndarray:
        scores = np.array(self._word_index().scores(text))
        if len(scores) != len(self):
            raise DataError(f"is of {len(scores):,} texts; build the index again", path=self.folder / WORDS)
        if allowed is not None:
            left_out = np.ones(len(self), bool)
            left_out[allowed] = False
            scores[left_out] = 0
        return scores

    def _word_index(self) -> Bm25:
        if self._words is None:
            self._words = Bm25.load(self.folder / WORDS)
        return self._words

    def _vector(self, text: str) -> np.ndarray:
        if self._embedder is None:
            raise ConfigError(
                f"{self.folder}: opened without its model; search by words, or open it with the model"
            )
        (vector,) = self._embedder.encode([text], self._embedder.prompts.query)
        (unit,) = scaled_to_one(vector[None])
        return np.asarray(unit)

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


@dataclass(frozen=True, eq=False)
class _Ranking:
    """What is found, best first: places, and the scores and cosines of each."""

    places: np.ndarray
    scores: np.ndarray
    cosines: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class _Together(_Ranking):
    """By both rankings; `evidence` (hit, 2) is what a probability rests on: cosines and shares of words."""

    evidence: np.ndarray = field(kw_only=True)


def _written(value: Any) -> str:
    """A value as polars writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
