"""The review's file: judgements are only ever added, each in a transaction that is on disk at once."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from pairkit.database import Schema, database_errors, open_database, transaction
from pairkit.errors import DataError, PairkitError
from pairkit.judgements.records import JudgedPair, Judgement, Person, ReviewSettings, Role

ENDING = ".review"
_KINDS = "'yes', 'no', 'unsure', 'skip', '0', '1', '2', '3', '4', '5'"
# The checks are looked at again whenever a file is opened, so that what is read is what they say.
_TABLES = f"""
CREATE TABLE settings (json TEXT NOT NULL CHECK (typeof(json) = 'text'));
CREATE TABLE strata (
  stratum TEXT PRIMARY KEY NOT NULL, pairs INTEGER NOT NULL CHECK (typeof(pairs) = 'integer' AND pairs > 0)
) WITHOUT ROWID;
CREATE TABLE pairs (
  pair_id TEXT PRIMARY KEY NOT NULL, text1 TEXT NOT NULL CHECK (typeof(text1) = 'text'),
  text2 TEXT NOT NULL CHECK (typeof(text2) = 'text'), label REAL NOT NULL CHECK (typeof(label) = 'real'),
  stratum TEXT NOT NULL REFERENCES strata, facts TEXT NOT NULL CHECK (typeof(facts) = 'text'),
  origin TEXT NOT NULL CHECK (typeof(origin) = 'text')
) WITHOUT ROWID;
CREATE TABLE people (
  name TEXT NOT NULL CHECK (typeof(name) = 'text'),
  role TEXT NOT NULL CHECK (role IN ('reviewer', 'adjudicator')),
  token TEXT NOT NULL UNIQUE CHECK (typeof(token) = 'text'), PRIMARY KEY (name, role)
) WITHOUT ROWID;
CREATE TABLE judgements (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE CHECK (typeof(key) = 'text'),
  pair_id TEXT NOT NULL REFERENCES pairs, person TEXT NOT NULL, role TEXT NOT NULL,
  turn INTEGER NOT NULL CHECK (turn IN (0, 1)), answer TEXT NOT NULL CHECK (answer IN ({_KINDS})),
  relation TEXT NOT NULL CHECK (typeof(relation) = 'text'), note TEXT NOT NULL CHECK (typeof(note) = 'text'),
  seconds REAL NOT NULL CHECK (typeof(seconds) = 'real'), at TEXT NOT NULL CHECK (typeof(at) = 'text'),
  undone INTEGER NOT NULL DEFAULT 0 CHECK (undone IN (0, 1)),
  FOREIGN KEY (person, role) REFERENCES people (name, role)
);
CREATE UNIQUE INDEX one_answer ON judgements (pair_id, person, role, turn) WHERE NOT undone;
"""
SCHEMA = Schema("review", 0x5052_5631, 1, _TABLES)  # "PRV1"
_FIELDS = ", ".join(Judgement._fields)
_REMEDY = "move the file away, or give another (--store, store=)"


class AnsweredError(PairkitError):
    """The person has judged the pair already, in another tab."""


class Store:
    """A review's file, open."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open it.

        Raises:
            ConfigError: It is absent (without `create`), or can't be opened.
            DataError: It is damaged, or no review.
        """
        self.path = path
        absent = "no such review; `pairs review DATASET` begins one"
        self._connection = open_database(path, SCHEMA, create=create, absent=absent)
        self._connection.execute("PRAGMA foreign_keys = ON")
        # What a person said is on disk before the page hears of it, whatever happens to the machine.
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
        told = [
            (*pair[:3], float(pair.label), pair.stratum, _json(pair.facts), _json(pair.origin))
            for pair in pairs
        ]
        with database_errors(self.path), transaction(self._connection) as connection:
            for table in ("settings", "pairs", "strata"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - ours
            connection.execute("INSERT INTO settings VALUES (?)", [settings.model_dump_json()])
            connection.executemany("INSERT INTO strata VALUES (?, ?)", strata.items())
            connection.executemany("INSERT INTO pairs VALUES (?, ?, ?, ?, ?, ?, ?)", told)

    @property
    def is_begun(self) -> bool:
        """Whether `begin` was done."""
        return bool(self._rows("SELECT 1 FROM settings"))

    @property
    def settings(self) -> ReviewSettings:
        """What the review was begun with.

        Raises:
            DataError: It holds none that we know.
        """
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
        """The sample, by id; it does not change.

        Raises:
            DataError: A row holds what we do not write.
        """
        if self._pairs is None:
            rows = self._rows("SELECT * FROM pairs ORDER BY pair_id")
            self._pairs = {
                row[0]: JudgedPair._make((*row[:5], self._object(row[5]), self._object(row[6])))
                for row in rows
            }
        return self._pairs

    def people(self) -> list[Person]:
        """Everybody who was given a link, by name."""
        return [
            Person(*row) for row in self._rows("SELECT name, role, token FROM people ORDER BY name, role")
        ]

    def invite(self, names: Sequence[str], role: Role) -> list[Person]:
        """These people; those who have no link yet get one."""
        with database_errors(self.path), transaction(self._connection) as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO people VALUES (?, ?, ?)",
                [(name, role, secrets.token_urlsafe(24)) for name in names],
            )
        return [person for person in self.people() if person.name in names and person.role == role]

    def judgements(self) -> list[Judgement]:
        """All that stands, in the order in which it was said."""
        return self._judgements("TRUE")

    def judgements_of(self, person: Person) -> list[Judgement]:
        """What this person says."""
        return self._judgements("person = ? AND role = ?", person.name, person.role)

    def add(self, judgement: Judgement) -> None:
        """Keep a judgement; one that is here already, by its key, is not kept again.

        Raises:
            AnsweredError: The person said something else of the pair, or the key is another's.
        """
        with database_errors(self.path), transaction(self._connection) as connection:
            known = connection.execute(
                f"SELECT {_FIELDS} FROM judgements WHERE key = ?",  # noqa: S608 - ours
                [judgement.key],
            ).fetchone()
            if known is not None:
                if (known[1], known[2], known[3]) != judgement[1:4]:
                    raise AnsweredError("the key belongs to another judgement")
                return
            try:
                connection.execute(
                    f"INSERT INTO judgements ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                    judgement,
                )
            except sqlite3.IntegrityError as error:
                raise AnsweredError("this pair was judged already, in another tab") from error

    def undo(self, person: Person, *keys: str) -> None:
        """Take judgements of this person back; what is taken back already stays so."""
        with database_errors(self.path), transaction(self._connection) as connection:
            connection.executemany(
                "UPDATE judgements SET undone = 1 WHERE key = ? AND person = ? AND role = ?",
                [(key, person.name, person.role) for key in keys],
            )

    def _judgements(self, which: str, *values: str) -> list[Judgement]:
        query = f"SELECT {_FIELDS} FROM judgements WHERE NOT undone AND {which} ORDER BY number"  # noqa: S608
        return [Judgement(*row) for row in self._rows(query, *values)]

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with database_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    def _object(self, text: str) -> dict[str, str]:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"a pair's facts are no JSON: {_REMEDY}", path=self.path) from error
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise DataError(f"a pair's facts are no object of texts: {_REMEDY}", path=self.path)
        return found


def _json(values: Mapping[str, str]) -> str:
    return json.dumps(dict(values), ensure_ascii=False)
