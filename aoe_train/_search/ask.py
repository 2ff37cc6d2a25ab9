"""Searching an index: by vectors, by words, or by both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aoe_train._evaluate.embedders.cached import PROBE as TEXT
from aoe_train._evaluate.embedders.cached import same_model
from aoe_train._evaluate.embedders.embedder import Embedder
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
from aoe_train._search.every import Every, every
from aoe_train._search.filters import allowed
from aoe_train._search.folder import DIGEST, read_about, read_probe, read_rows_of, read_vectors
from aoe_train._search.nearest import Searcher, Vectors
from aoe_train._search.ranking import Ranker, checked
from aoe_train._search.texts import joined, naming_column, text_digest, told
from aoe_train._similarity import scaled_to_one
from pairkit.errors import ConfigError, DataError
from pairkit.files import write_json
from pairkit.in_memory import Source, source_name
from pairkit.printable import one_line

if TYPE_CHECKING:
    from pairkit.progress import Listener


@dataclass(frozen=True)
class Hit:
    """A text that was found.

    Attributes:
        place: Its row in the index, from 0.
        score: By which it was ranked, the higher the better: with both in [0, 1], over the candidates.
        cosine: Of its vector and that of the text that was searched for; None by words alone.
        words: The share that its words' score is of the most that a text could have; None by the model alone.
        probability: That both say the same, as far as labelled pairs tell; None where the index was given
            none, or was searched by one ranking alone.
        text: The text.
        row: All its columns.
    """

    place: int
    score: float
    cosine: float | None
    words: float | None
    probability: float | None
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
        return {**scores, "probability": self.probability, "row": told(self.row)}


class SearchIndex:
    """An index that is open.

    Attributes:
        folder: Where it lies.
        about: What it is of.
        calibration: What turns scores into probabilities; None before `calibrate`.
        vectors: Of its rows.
        ranker: What ranks them.
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
    ) -> list[Hit]:
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
        way = checked(top, by, weight)
        if not text.strip():
            raise DataError("the text is empty; give what to search for")
        rows = allowed(self._rows, where or {}, before or {})
        if rows is not None and not len(rows):
            return []
        vector = None if way == "words" else self._vector(text)
        found = self.ranker.ranked(text, vector, top, rows, by=way, weight=weight)
        frame = self._rows[found.places.tolist()]
        texts = joined(frame.select(self.about.text), self.about.text)
        likely = None
        if self.calibration is not None and found.evidence is not None:
            likely = self.calibration.probability(found.evidence)
        unknown = [None] * len(found.places)
        columns = [
            unknown if known is None else known.tolist() for known in (found.cosines, found.words, likely)
        ]
        told_rows = frame.drop(DIGEST).iter_rows(named=True)
        return list(map(Hit, found.places.tolist(), found.scores.tolist(), *columns, texts, told_rows))

    def search_every(
        self,
        *,
        before: str | None = None,
        top: int = 20,
        by: str = "both",
        weight: float | None = None,
        progress: bool | Listener = True,
    ) -> Every:
        """Search for every text of the index.

        By the vector that the index has of it; or by one that is made anew, where the index was opened with
        its model, and that has another prompt for what is searched for.

        Args:
            before: A column, such as `created_at`: a text finds only rows with a smaller value, so that the
                search is the one that was possible when the text was written. By default all other rows.
            top: Hits of each text, at most.
            by: See `search`.
            weight: See `search`.
            progress: Shown on stderr, or not, or told to a function.

        Raises:
            ConfigError: No such column or way, or a number out of its range.
            DataError: Damaged vectors or words.
        """
        from pairkit.progress import Display

        with Display(progress) as show:
            return every(self, before=before, top=top, by=by, weight=weight, show=show)

    def vectors_to_search(self, places: np.ndarray, texts: Sequence[str]) -> np.ndarray:
        """Vectors of length 1 by which some of its own texts are searched for, (text, dim)."""
        embedder = self._embedder
        if embedder is None or embedder.prompts.query == embedder.prompts.document:
            return self.vectors.rows(places)
        return np.asarray(scaled_to_one(embedder.encode(list(texts), embedder.prompts.query)))

    def searcher(self) -> Searcher:
        """What finds the nearest of its vectors; see `Ranker.searcher`."""
        return self.ranker.searcher()

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
            found = self.ranker.ranked(text, vector, top + 1, None, by="both")
            places = standing[found.places]
            other = places != place
            if found.evidence is not None:  # as it always is by both
                scores.append(found.evidence[other])
                same.append(np.isin(places[other], list(partner)))
        return np.concatenate(scores), np.concatenate(same).astype(np.float64), len(asked), partnered

    def _vector(self, text: str) -> np.ndarray:
        if self._embedder is None:
            raise ConfigError(
                f"{self.folder}: opened without its model; search by words, or open it with the model"
            )
        (vector,) = self._embedder.encode([text], self._embedder.prompts.query)
        (unit,) = scaled_to_one(vector[None])
        return np.asarray(unit)
