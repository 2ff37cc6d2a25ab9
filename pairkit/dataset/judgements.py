"""Judgements of pairs in an SQLite file; they are never deleted, only marked as undone."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, NamedTuple, Self

import polars as pl
from pydantic import Field

from pairkit.base.errors import DataError, PairkitError
from pairkit.base.settings import Settings
from pairkit.base.system.database import (
    Schema,
    database_errors,
    open_database,
    transaction,
)
from pairkit.dataset.records import QUERY_COLUMNS, RANK, LabelKind

ENDING = ".review"
UNSURE = "unsure"
SKIP = "skip"
LABELS: Mapping[str, float] = {"yes": 1.0, "no": 0.0}
GRADES: Mapping[str, float] = {str(grade): float(grade) for grade in range(6)}
TOP_GRADE = 5.0
_TOLERANCE = 1  # grades that differ by at most this are not disputed
_TABLES = """
CREATE TABLE settings (json TEXT NOT NULL);
CREATE TABLE strata (stratum TEXT PRIMARY KEY NOT NULL, pairs INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE pairs (
  pair_id TEXT PRIMARY KEY NOT NULL, text1 TEXT NOT NULL, text2 TEXT NOT NULL, label REAL NOT NULL,
  stratum TEXT NOT NULL REFERENCES strata, facts TEXT NOT NULL, origin TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE people (name TEXT PRIMARY KEY NOT NULL, token TEXT NOT NULL UNIQUE) WITHOUT ROWID;
CREATE TABLE judgements (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, pair_id TEXT NOT NULL REFERENCES pairs,
  person TEXT NOT NULL REFERENCES people, answer TEXT NOT NULL, relation TEXT NOT NULL, note TEXT NOT NULL,
  seconds REAL NOT NULL, at TEXT NOT NULL, undone INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX one_answer ON judgements (pair_id, person) WHERE NOT undone;
"""
SCHEMA = Schema("review", 0x5052_5631, 2, _TABLES, journal="DELETE")  # "PRV1"


class ReviewSettings(Settings):
    """The settings of a review, fixed when it begins."""

    dataset: str
    digest: str  # of the pairs and labels
    pairs: int  # distinct pairs of the dataset
    label_kind: LabelKind
    top: float  # the highest label of the scale: 1, or 5 for some scores
    asked: Literal["labels", "grades"]  # yes or no, or grades from 0 to 5
    question: str
    # Possible relations of two texts, if these are asked for.
    relations: tuple[str, ...] = ()
    strata: tuple[str, ...] = ()  # the facts that define strata
    seed: int = 42
    each: Annotated[int, Field(ge=1)] | None = (
        None  # people who judge each pair; None for all
    )
    common: tuple[str, ...] = ()  # words of many texts, which are not marked
    # Whether pairs are queries and results, with `QUERY_COLUMNS`.
    is_search: bool = False

    @property
    def by_query(self) -> bool:
        """Whether all results of a query are judged together."""
        return self.is_search and self.asked == "labels"

    @property
    def answers(self) -> Mapping[str, float]:
        """Answers that decide a pair, with their numbers."""
        return LABELS if self.asked == "labels" else GRADES


class JudgedPair(NamedTuple):
    """A pair of the sample; `facts` define its stratum, `origin` is its provenance."""

    pair_id: str  # a hash of both texts
    text1: str
    text2: str
    label: float
    stratum: str
    facts: Mapping[str, str]
    origin: Mapping[str, str]


class Person(NamedTuple):
    """A reviewer; the token is part of this person's link."""

    name: str
    token: str


class ReviewJudgement(NamedTuple):
    """One person's answer on a pair."""

    key: str  # made by the page; judgements that are sent twice are saved once
    pair_id: str
    person: str
    answer: str  # yes, no, or a grade; unsure, or skip
    relation: str  # may be empty
    note: str
    seconds: float  # how long the pair was in view
    at: str  # ISO 8601, UTC


_FIELDS = ", ".join(ReviewJudgement._fields)


class PairDecision(NamedTuple):
    """The result of all judgements of a pair."""

    state: Literal["decided", "unsure", "disputed"]
    value: float | None
    people: tuple[str, ...]
    relation: str
    differs: bool  # yes and no, or grades more than one apart


class AnsweredError(PairkitError):
    """The person has already judged the pair, in another tab."""


class ReviewStore:
    """The open file of a review."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open the file; raises ConfigError if there is none, unless `create`."""
        self.path = path
        absent = "no such review; begin one with `pairs review DATASET`"
        self._connection = open_database(path, SCHEMA, create=create, absent=absent)
        self._connection.execute("PRAGMA foreign_keys = ON")
        # A judgement is on disk before the server responds, even if the machine fails.
        self._connection.execute("PRAGMA synchronous = FULL")
        self._pairs: dict[str, JudgedPair] | None = None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(
        self,
        settings: ReviewSettings,
        strata: Mapping[str, int],
        pairs: Iterable[JudgedPair],
    ) -> None:
        """Save the settings and pairs in one transaction, replacing earlier ones without judgements."""
        self._pairs = None
        rows = [
            (*pair[:-2], _to_json(pair.facts), _to_json(pair.origin)) for pair in pairs
        ]
        with database_errors(self.path), transaction(self._connection) as connection:
            for table in ("settings", "pairs", "strata"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - constant names
            connection.execute(
                "INSERT INTO settings VALUES (?)", [settings.model_dump_json()]
            )
            connection.executemany("INSERT INTO strata VALUES (?, ?)", strata.items())
            connection.executemany(
                "INSERT INTO pairs VALUES (?, ?, ?, ?, ?, ?, ?)", rows
            )

    @property
    def is_begun(self) -> bool:
        """Whether the review has settings and pairs."""
        return bool(self._fetch_rows("SELECT 1 FROM settings"))

    @property
    def settings(self) -> ReviewSettings:
        """The settings of the review."""
        rows = self._fetch_rows("SELECT json FROM settings")
        if not rows:
            raise DataError(
                "a review without settings; move it away or use another --store",
                path=self.path,
            )
        ((text,),) = rows
        return ReviewSettings.model_validate_json(text)

    @property
    def strata(self) -> dict[str, int]:
        """The number of the dataset's pairs in each stratum."""
        return dict(self._fetch_rows("SELECT * FROM strata"))

    @property
    def pairs(self) -> Mapping[str, JudgedPair]:
        """The sample by id; it doesn't change."""
        if self._pairs is None:
            self._pairs = {}
            for *columns, facts, origin in self._fetch_rows(
                "SELECT * FROM pairs ORDER BY pair_id"
            ):
                pair = JudgedPair._make([*columns, *map(json.loads, (facts, origin))])
                self._pairs[pair.pair_id] = pair
        return self._pairs

    def people(self) -> list[Person]:
        """All reviewers, sorted by name."""
        return [
            Person(*row)
            for row in self._fetch_rows("SELECT name, token FROM people ORDER BY name")
        ]

    def invite(self, names: Sequence[str]) -> list[Person]:
        """Add the names that are new, and return these people with their tokens."""
        tokens = [(name, secrets.token_urlsafe(24)) for name in names]
        with database_errors(self.path), transaction(self._connection) as connection:
            connection.executemany("INSERT OR IGNORE INTO people VALUES (?, ?)", tokens)
        return [person for person in self.people() if person.name in names]

    def judgements(self, person: Person | None = None) -> list[ReviewJudgement]:
        """All judgements that were not undone, or those of a person, in order."""
        of_person = "AND person = ?" if person else ""
        query = f"SELECT {_FIELDS} FROM judgements WHERE NOT undone {of_person} ORDER BY number"  # noqa: S608
        values = [person.name] if person else []
        return [ReviewJudgement(*row) for row in self._fetch_rows(query, *values)]

    def add(self, judgements: Sequence[ReviewJudgement]) -> None:
        """Save judgements together, unless they are already saved (by the key of the first one).

        Raises AnsweredError if the person has judged a pair with another key.
        """
        first = judgements[0]
        with database_errors(self.path), transaction(self._connection) as connection:
            saved = connection.execute(
                "SELECT pair_id, person FROM judgements WHERE key = ?", [first.key]
            ).fetchone()
            if saved is not None:
                if saved != (first.pair_id, first.person):
                    raise AnsweredError("the key belongs to another judgement")
                return
            try:
                connection.executemany(
                    f"INSERT INTO judgements ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                    judgements,
                )
            except sqlite3.IntegrityError as error:
                raise AnsweredError(
                    "this pair was already judged in another tab"
                ) from error

    def undo(self, person: Person, *keys: str) -> None:
        """Mark judgements of this person as undone."""
        update = "UPDATE judgements SET undone = 1 WHERE key = ? AND person = ?"
        with database_errors(self.path), transaction(self._connection) as connection:
            connection.executemany(update, [(key, person.name) for key in keys])

    def _fetch_rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with database_errors(self.path):
            return self._connection.execute(query, values).fetchall()


def _to_json(values: Mapping[str, str]) -> str:
    return json.dumps(dict(values), ensure_ascii=False)


def decide(judgements: Iterable[ReviewJudgement]) -> dict[str, PairDecision]:
    """The decision on each judged pair by id: the majority or the mean grade, without skips."""
    by_pair = defaultdict[str, list[ReviewJudgement]](list)
    for judgement in judgements:
        if judgement.answer != SKIP:
            by_pair[judgement.pair_id].append(judgement)
    return {pair_id: _decide_pair(by_pair[pair_id]) for pair_id in sorted(by_pair)}


def _decide_pair(judgements: Sequence[ReviewJudgement]) -> PairDecision:
    people = tuple(sorted({judgement.person for judgement in judgements}))
    relations = Counter(
        judgement.relation for judgement in judgements if judgement.relation
    )
    relation = max(sorted(relations), key=relations.__getitem__, default="")
    numbers = {**LABELS, **GRADES}
    values = [
        numbers[judgement.answer]
        for judgement in judgements
        if judgement.answer in numbers
    ]
    unsure = PairDecision("unsure", None, people, relation, differs=False)
    if not values:
        return unsure
    mean = fmean(values)
    apart = max(values) - min(values)
    if any(judgement.answer in GRADES for judgement in judgements):
        differs = apart > _TOLERANCE
        return unsure._replace(state="decided", value=mean, differs=differs)
    if mean == 0.5:
        return unsure._replace(state="disputed", differs=True)
    value = float(mean > 0.5)
    return unsure._replace(state="decided", value=value, differs=apart > 0)


def judged_pairs(path: Path) -> pl.DataFrame:
    """The decided pairs of a review: text1, text2, people's label, reviewers; the columns of a search.

    Raises DataError if no pair is decided.
    """
    with ReviewStore(path) as store:
        binary = store.settings.asked == "labels"
        is_search = store.settings.is_search
        pairs = store.pairs
        decisions = decide(store.judgements())
    rows = []
    for pair_id, decision in decisions.items():
        if decision.value is None:
            continue
        pair = pairs[pair_id]
        row = {
            "text1": pair.text1,
            "text2": pair.text2,
            "label": decision.value,
            "reviewers": [*decision.people],
        }
        for name, value in pair.origin.items():
            if is_search and name.startswith((*QUERY_COLUMNS, RANK)):
                row[name] = float(value) if value else None
        rows.append(row)
    if not rows:
        raise DataError(
            "no pair is decided yet; judge some with `pairs review`", path=path
        )
    kind = pl.Int64 if binary else pl.Float32
    table = pl.DataFrame(rows, infer_schema_length=None)
    return table.with_columns(pl.col("label").cast(kind))
