"""Judgements of pairs in one SQLite file; they are only added, and saved before the server responds."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import Annotated, Any, Literal, NamedTuple, Self

import polars as pl
from pydantic import Field, ValidationError

from pairkit.app.errors import DataError, PairkitError
from pairkit.app.settings import Settings
from pairkit.dataset.records import LabelKind
from pairkit.system.database import Schema, database_errors, open_database, transaction

ENDING = ".review"
UNSURE, SKIP = "unsure", "skip"
LABELS: Mapping[str, float] = {"yes": 1.0, "no": 0.0}
GRADES: Mapping[str, float] = {str(grade): float(grade) for grade in range(6)}
TOP_GRADE = 5.0
_APART = 1  # grades that differ by no more are no dispute
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
SCHEMA = Schema("review", 0x5052_5631, 2, _TABLES)  # "PRV1"
_REMEDY = "move the file away, or give another (--store, store=)"


class ReviewSettings(Settings):
    """What a review was begun with."""

    dataset: str
    digest: str  # of its pairs and labels
    pairs: int  # how many different ones it has
    label_kind: LabelKind
    top: float  # the highest label of their scale: 1, or of some scores 5
    asked: Literal["labels", "grades"]  # yes or no, or a number from 0 to 5
    question: str
    relations: tuple[str, ...] = ()  # what two texts may be to each other, if that is asked as well
    strata: tuple[str, ...] = ()  # what strata differ in
    seed: int = 42
    each: Annotated[int, Field(ge=1)] | None = None  # how many people judge each pair; None: all
    common: tuple[str, ...] = ()  # words that many texts have

    @property
    def answers(self) -> Mapping[str, float]:
        """What decides a pair, and the number that it stands for."""
        return LABELS if self.asked == "labels" else GRADES


class JudgedPair(NamedTuple):
    """A pair of the sample; `facts` and `origin` tell what is known of it, and where it is from."""

    pair_id: str  # a digest of both texts
    text1: str
    text2: str
    label: float
    stratum: str
    facts: Mapping[str, str]
    origin: Mapping[str, str]


class Person(NamedTuple):
    """Somebody who judges; the token is the person's own link."""

    name: str
    token: str


class ReviewJudgement(NamedTuple):
    """What one person says of a pair."""

    key: str  # made by the page, so that a judgement that is sent twice is kept once
    pair_id: str
    person: str
    answer: str  # yes, no, or a grade; unsure, or skip
    relation: str  # empty if nothing was said
    note: str
    seconds: float  # how long the pair was in view
    at: str  # ISO 8601, UTC


_FIELDS = ", ".join(ReviewJudgement._fields)


class PairDecision(NamedTuple):
    """The outcome of a pair."""

    state: Literal["decided", "unsure", "disputed"]
    value: float | None
    people: tuple[str, ...]
    relation: str


class AnsweredError(PairkitError):
    """The person has judged the pair already, in another tab."""


class ReviewStore:
    """A review's file, open."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open it."""
        self.path = path
        absent = "no such review; `pairs review DATASET` begins one"
        self._connection = open_database(path, SCHEMA, create=create, absent=absent)
        self._connection.execute("PRAGMA foreign_keys = ON")
        # A judgement is on disk before the page gets its response, even if the machine fails.
        self._connection.execute("PRAGMA synchronous = FULL")
        self._pairs: dict[str, JudgedPair] | None = None
        self._settings: ReviewSettings | None = None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(self, settings: ReviewSettings, strata: Mapping[str, int], pairs: Iterable[JudgedPair]) -> None:
        """Keep what the review is about, in place of what it was before anybody judged: all or nothing."""
        self._pairs = self._settings = None
        rows = [
            (*pair[:3], float(pair.label), pair.stratum, _json(pair.facts), _json(pair.origin))
            for pair in pairs
        ]
        with database_errors(self.path), transaction(self._connection) as connection:
            for table in ("settings", "pairs", "strata"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - ours
            connection.execute("INSERT INTO settings VALUES (?)", [settings.model_dump_json()])
            connection.executemany("INSERT INTO strata VALUES (?, ?)", strata.items())
            connection.executemany("INSERT INTO pairs VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    @property
    def is_begun(self) -> bool:
        """Whether `begin` was done."""
        return bool(self._rows("SELECT 1 FROM settings"))

    @property
    def settings(self) -> ReviewSettings:
        """What the review was begun with."""
        if self._settings is None:
            rows = self._rows("SELECT json FROM settings")
            try:
                ((text,),) = rows
                self._settings = ReviewSettings.model_validate_json(text)
            except (ValueError, ValidationError) as error:
                raise DataError(f"a review without settings: {_REMEDY}", path=self.path) from error
        return self._settings

    @property
    def strata(self) -> dict[str, int]:
        """How many pairs of the dataset each stratum has."""
        return {str(stratum): int(pairs) for stratum, pairs in self._rows("SELECT * FROM strata")}

    @property
    def pairs(self) -> Mapping[str, JudgedPair]:
        """The sample, by id; it does not change."""
        if self._pairs is None:
            rows = self._rows("SELECT * FROM pairs ORDER BY pair_id")
            self._pairs = {
                row[0]: JudgedPair._make((*row[:5], json.loads(row[5]), json.loads(row[6]))) for row in rows
            }
        return self._pairs

    def people(self) -> list[Person]:
        """Everybody who was given a link, by name."""
        return [Person(*row) for row in self._rows("SELECT name, token FROM people ORDER BY name")]

    def invite(self, names: Sequence[str]) -> list[Person]:
        """These people; those who have no link yet get one."""
        with database_errors(self.path), transaction(self._connection) as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO people VALUES (?, ?)",
                [(name, secrets.token_urlsafe(24)) for name in names],
            )
        return [person for person in self.people() if person.name in names]

    def judgements(self) -> list[ReviewJudgement]:
        """All judgements that were not undone, in their order."""
        return self._judgements("TRUE")

    def judgements_of(self, person: Person) -> list[ReviewJudgement]:
        """The judgements of this person."""
        return self._judgements("person = ?", person.name)

    def add(self, judgement: ReviewJudgement) -> None:
        """Keep a judgement; one that is here already, by its key, is not kept again."""
        with database_errors(self.path), transaction(self._connection) as connection:
            known = connection.execute(
                "SELECT pair_id, person FROM judgements WHERE key = ?", [judgement.key]
            ).fetchone()
            if known is not None:
                if known != (judgement.pair_id, judgement.person):
                    raise AnsweredError("the key belongs to another judgement")
                return
            try:
                connection.execute(
                    f"INSERT INTO judgements ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                    judgement,
                )
            except sqlite3.IntegrityError as error:
                raise AnsweredError("this pair was judged already, in another tab") from error

    def undo(self, person: Person, *keys: str) -> None:
        """Take judgements of this person back; what is taken back already stays so."""
        with database_errors(self.path), transaction(self._connection) as connection:
            connection.executemany(
                "UPDATE judgements SET undone = 1 WHERE key = ? AND person = ?",
                [(key, person.name) for key in keys],
            )

    def _judgements(self, which: str, *values: str) -> list[ReviewJudgement]:
        query = f"SELECT {_FIELDS} FROM judgements WHERE NOT undone AND {which} ORDER BY number"  # noqa: S608
        return [ReviewJudgement(*row) for row in self._rows(query, *values)]

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with database_errors(self.path):
            return self._connection.execute(query, values).fetchall()


def _json(values: Mapping[str, str]) -> str:
    return json.dumps(dict(values), ensure_ascii=False)


def decide(judgements: Iterable[ReviewJudgement]) -> dict[str, PairDecision]:
    """The outcome of each pair that anybody judged, by pair id: what most said; skips have no part in it."""
    return {pair_id: _decision(said) for pair_id, said in sorted(_by_pair(judgements).items())}


def disputed(judgements: Iterable[ReviewJudgement]) -> set[str]:
    """Pairs on which reviewers disagree: yes and no, or grades more than one apart."""
    return {pair_id for pair_id, said in _by_pair(judgements).items() if _differ(said)}


def _by_pair(judgements: Iterable[ReviewJudgement]) -> dict[str, list[ReviewJudgement]]:
    said = defaultdict[str, list[ReviewJudgement]](list)
    for judgement in judgements:
        if judgement.answer != SKIP:
            said[judgement.pair_id].append(judgement)
    return said


def _differ(said: Sequence[ReviewJudgement]) -> bool:
    numbers = _numbers(said)
    apart = _APART if any(judgement.answer in GRADES for judgement in said) else 0
    return bool(numbers) and max(numbers) - min(numbers) > apart


def _decision(said: Sequence[ReviewJudgement]) -> PairDecision:
    people = tuple(sorted({judgement.person for judgement in said}))
    relations = Counter(judgement.relation for judgement in said if judgement.relation)
    relation = max(sorted(relations), key=relations.__getitem__, default="")
    values = _numbers(said)
    if not values:
        return PairDecision("unsure", None, people, relation)
    mean = fmean(values)
    if any(judgement.answer in GRADES for judgement in said):
        return PairDecision("decided", mean, people, relation)
    if mean == 0.5:
        return PairDecision("disputed", None, people, relation)
    return PairDecision("decided", float(mean > 0.5), people, relation)


def _numbers(said: Sequence[ReviewJudgement]) -> list[float]:
    numbers = {**LABELS, **GRADES}
    return [numbers[judgement.answer] for judgement in said if judgement.answer in numbers]


def judged_pairs(path: Path) -> pl.DataFrame:
    """A review's decided pairs with people's labels: text1, text2, label, reviewers."""
    with ReviewStore(path) as store:
        whole = store.settings.asked == "labels"
        pairs, decisions = store.pairs, decide(store.judgements())
    rows = [
        {
            "text1": pairs[pair_id].text1,
            "text2": pairs[pair_id].text2,
            "label": found.value,
            "reviewers": [*found.people],
        }
        for pair_id, found in decisions.items()
        if found.value is not None
    ]
    if not rows:
        raise DataError("no pair is decided yet; judge some with `pairs review`", path=path)
    kind = pl.Int64 if whole else pl.Float32
    return pl.DataFrame(rows).with_columns(pl.col("label").cast(kind))
