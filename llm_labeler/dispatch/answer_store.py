"""The SQLite store of a run: answers, failures, batches and spending, written after each call."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, Self

from llm_labeler.dispatch.budget import (
    MAX_AMOUNT,
    Spending,
    charge,
    charge_answer,
    picodollars,
)
from llm_labeler.records import (
    Ask,
    AskKey,
    Failure,
    LlmReply,
    StoredAnswer,
    Task,
    TokenUsage,
)
from pairkit.base.system.database import (
    Schema,
    database_errors,
    open_database,
    transaction,
)
from pairkit.base.system.machine import batched

_APPLICATION = 0x4C41_4231  # "LAB1": identifies the file type

# Also the order in which answers are read, so that it doesn't depend on the time of their arrival.
KEY = "text_id, task, llm, prompt_hash, parameters"
_KEY_COLUMNS = ", ".join(f"{column} TEXT NOT NULL" for column in KEY.split(", "))

# Untrusted texts are stored as BLOB, since TEXT can't have lone surrogates.
_TABLES = f"""
CREATE TABLE answers (
  {_KEY_COLUMNS}, raw BLOB NOT NULL, finish BLOB NOT NULL, prompt_tokens INTEGER, completion_tokens INTEGER,
  model BLOB NOT NULL, cost REAL, estimated INTEGER NOT NULL, PRIMARY KEY ({KEY})
);
CREATE TABLE failures (
  {_KEY_COLUMNS}, reason TEXT NOT NULL, detail BLOB NOT NULL, attempts INTEGER NOT NULL,
  final INTEGER NOT NULL, PRIMARY KEY ({KEY})
);
-- upper bounds of unfinished calls; after a kill, they may have been billed
CREATE TABLE in_flight (
  attempt INTEGER PRIMARY KEY, {_KEY_COLUMNS}, prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL, picodollars INTEGER
);
CREATE TABLE spending (
  llm TEXT PRIMARY KEY, requests INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL, picodollars INTEGER NOT NULL, unpriced INTEGER NOT NULL,
  estimated INTEGER NOT NULL
) WITHOUT ROWID;
-- submitted batches; prompt_tokens … picodollars are upper bounds; `files` is unused
CREATE TABLE batches (
  batch_id TEXT PRIMARY KEY, llm TEXT NOT NULL, state TEXT NOT NULL, files TEXT NOT NULL, keys TEXT NOT NULL,
  requests INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
  picodollars INTEGER
);
"""

# Fields of requests that a server doesn't know. Earlier stores of this version lack the table.
_REFUSED = "CREATE TABLE IF NOT EXISTS refused (llm, parameters, field, UNIQUE (llm, parameters, field))"

SCHEMA = Schema("label store", _APPLICATION, 1, _TABLES)

# Questions.
QUESTIONS = 256  # per query
_ASKED = ", ".join(
    f"json_extract(value, '$[{i}]') AS {name}" for i, name in enumerate(KEY.split(", "))
)
# CROSS JOIN makes SQLite look up each question instead of scanning all answers.
_ANSWERED = f"""
    WITH asked AS (SELECT key AS position, {_ASKED} FROM json_each(?1))
    SELECT position FROM asked CROSS JOIN answers USING ({KEY}) WHERE length(raw) OR ?2
    UNION SELECT position FROM asked CROSS JOIN failures USING ({KEY}) WHERE final AND ?2
"""  # noqa: S608 - constants
_USAGES = f"""
    WITH asked AS (SELECT key AS position, {_ASKED} FROM json_each(?))
    SELECT position, prompt_tokens, completion_tokens FROM asked CROSS JOIN answers USING ({KEY})
    WHERE prompt_tokens IS NOT NULL AND NOT estimated
"""  # noqa: S608 - constants
_BEGIN = f"""
    INSERT INTO in_flight ({KEY}, prompt_tokens, completion_tokens, picodollars)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""  # noqa: S608 - constants
_END = "DELETE FROM in_flight WHERE attempt = ?"

# Answers and failures.
_TEXTS = 16  # texts per query of answers
ANSWER = f"{KEY}, raw, finish, prompt_tokens, completion_tokens, model, cost, estimated"
FAILURE = f"{KEY}, reason, detail, attempts, final"
SAME_KEY = " AND ".join(f"{column} = ?" for column in KEY.split(", "))
_OF_TEXTS = f"""
    SELECT {ANSWER} FROM answers WHERE text_id IN (SELECT value FROM json_each(?))
    AND task IN (SELECT value FROM json_each(?)) ORDER BY {KEY}
"""  # noqa: S608 - constants
_OF_KEY = f"SELECT {ANSWER} FROM answers WHERE {SAME_KEY}"  # noqa: S608 - constants
_FAILURES = f"SELECT {FAILURE} FROM failures ORDER BY {KEY}"  # noqa: S608 - constants
_SAVE_ANSWER = (
    f"INSERT OR REPLACE INTO answers ({ANSWER}) VALUES ({', '.join('?' * 12)})"  # noqa: S608 - constants
)
_SAVE_FAILURE = (
    f"INSERT OR REPLACE INTO failures ({FAILURE}) VALUES ({', '.join('?' * 9)})"  # noqa: S608
)
_DELETE_FAILURE = f"DELETE FROM failures WHERE {SAME_KEY}"  # noqa: S608 - constants
_HAS_ANSWER = "SELECT 1 FROM answers WHERE llm = ? AND parameters = ? LIMIT 1"
_REFUSED_FIELDS = "SELECT field FROM refused WHERE llm = ? AND parameters = ?"
_ADD_REFUSED = "INSERT OR IGNORE INTO refused VALUES (?, ?, ?)"

# Batches.
_COLUMNS = "batch_id, llm, state, keys, requests, prompt_tokens, completion_tokens, picodollars"
_SAVE_BATCH = f"INSERT OR REPLACE INTO batches ({_COLUMNS}, files) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '{{}}')"  # noqa: S608
_BATCHES = (
    f"SELECT {_COLUMNS} FROM batches WHERE ?1 IS NULL OR llm = ?1 ORDER BY batch_id"  # noqa: S608
)
_DELETE_BATCH = "DELETE FROM batches WHERE batch_id = ?"

# Spending.
_ADDED = (
    "requests",
    "prompt_tokens",
    "completion_tokens",
    "picodollars",
    "unpriced",
    "estimated",
)
_ADD = (
    "INSERT INTO spending VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "  # noqa: S608 - constants
    + ", ".join(
        f"{column} = min({column} + excluded.{column}, {MAX_AMOUNT})"
        for column in _ADDED
    )
)
# Unfinished calls and batches at their upper bounds.
_BOUNDS = "prompt_tokens, completion_tokens, coalesce(picodollars, 0)"
_IN_FLIGHT = f"SELECT llm, 1, {_BOUNDS}, picodollars IS NULL, 1 FROM in_flight"  # noqa: S608 - constants
_IN_BATCHES = f"""
    SELECT llm, requests, {_BOUNDS}, iif(picodollars IS NULL, requests, 0), requests
    FROM batches
"""  # noqa: S608 - constants
_SPENT = f"""
    SELECT llm, {", ".join(_ADDED)} FROM spending
    UNION ALL {_IN_FLIGHT} UNION ALL {_IN_BATCHES}
"""  # noqa: S608 - constants

Row = tuple[Any, ...]


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _key_row(key: AskKey) -> Row:
    return key.text_id, key.task, key.llm, key.prompt_hash, key.parameters


def _row_key(row: Sequence[Any]) -> AskKey:
    text_id, task, llm, prompt_hash, parameters = row
    return AskKey(text_id, llm, task, prompt_hash, parameters)


def _keys_json(asks: Iterable[Ask]) -> str:
    return json.dumps([_key_row(ask.key) for ask in asks])


def _answer_row(answer: StoredAnswer) -> Row:
    reply = answer.reply
    tokens = astuple(reply.usage) if reply.usage else (None, None)
    return (
        *_key_row(answer.key),
        _encode(reply.raw),
        _encode(reply.finish),
        *tokens,
        _encode(reply.model),
        answer.cost,
        int(answer.estimated),
    )


def _row_answer(row: Row) -> StoredAnswer:
    *key, raw, finish, prompt_tokens, completion_tokens, model, cost, estimated = row
    usage = None
    if prompt_tokens is not None:
        usage = TokenUsage(prompt_tokens, completion_tokens)
    reply = LlmReply(_decode(raw), _decode(finish), usage, _decode(model))
    return StoredAnswer(_row_key(key), reply, cost, bool(estimated))


def _failure_row(failure: Failure) -> Row:
    return (
        *_key_row(failure.key),
        failure.reason,
        _encode(failure.detail),
        failure.attempts,
        int(failure.final),
    )


def _row_failure(row: Row) -> Failure:
    *key, reason, detail, attempts, final = row
    return Failure(_row_key(key), reason, _decode(detail), attempts, bool(final))


@dataclass(frozen=True, slots=True)
class SubmittedBatch:
    """A submitted batch of questions; it is charged at its upper bound until it is collected."""

    llm: str
    batch_id: str  # given by the server
    state: str  # reported by the server
    keys: Mapping[str, AskKey]  # by custom id, as results come in any order
    max_usage: TokenUsage  # upper bound of all questions together
    cost: float | None  # upper bound in US dollars; None: unknown price

    @property
    def max_spending(self) -> Spending:
        """The charge until it is collected."""
        single = charge(self.max_usage, self.cost)
        size = len(self.keys)
        return replace(
            single, requests=size, unpriced=size * single.unpriced, estimated=size
        )


def _batch_row(batch: SubmittedBatch) -> Row:
    keys = {name: _key_row(key) for name, key in batch.keys.items()}
    return (
        batch.batch_id,
        batch.llm,
        batch.state,
        json.dumps(keys),
        len(batch.keys),
        *astuple(batch.max_usage),
        None if batch.cost is None else picodollars(batch.cost),
    )


def _row_batch(row: Row) -> SubmittedBatch:
    batch_id, llm, state, keys, _, prompt_tokens, completion_tokens, money = row
    by_id = {custom_id: _row_key(key) for custom_id, key in json.loads(keys).items()}
    max_usage = TokenUsage(prompt_tokens, completion_tokens)
    cost = None if money is None else money / 1e12
    return SubmittedBatch(llm, batch_id, state, by_id, max_usage, cost)


def _add_spending(connection: sqlite3.Connection, llm: str, spent: Spending) -> None:
    amounts = (min(number, MAX_AMOUNT) for number in astuple(spent))
    connection.execute(_ADD, (llm, *amounts))


def _spending_by_llm(rows: Iterable[Row]) -> dict[str, Spending]:
    sums: dict[str, Spending] = {}
    for llm, *numbers in rows:
        sums[llm] = sums.get(llm, Spending()) + Spending(*numbers)
    return dict(sorted(sums.items()))


class AnswerStore:
    """The store of a run, for one thread at a time."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open the store at `path`."""
        self.path = path
        absent = "no such label store; run `label generate` first, or give its --work"
        self._connection = open_database(path, SCHEMA, create=create, absent=absent)

    def close(self) -> None:
        """Fold the write-ahead log into the file and close it."""
        with database_errors(self.path):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Calls.

    def unanswered(
        self, asks: Sequence[Ask], *, retry_final: bool = False
    ) -> list[Ask]:
        """The unanswered ones of a few questions in order, in one query and without repeats.

        With `retry_final`, final rejections and answers without text count as unanswered.
        """
        distinct = list({ask.key: ask for ask in asks}.values())
        rows = self._rows(_ANSWERED, _keys_json(distinct), not retry_final)
        answered = {index for (index,) in rows}
        return [ask for index, ask in enumerate(distinct) if index not in answered]

    def usages(self, asks: Sequence[Ask]) -> list[tuple[Ask, TokenUsage]]:
        """The answered questions, with the token usage that the server reported."""
        rows = self._rows(_USAGES, _keys_json(asks))
        return [(asks[index], TokenUsage(*tokens)) for index, *tokens in rows]

    def begin(self, key: AskKey, max_usage: TokenUsage, cost: float | None) -> int:
        """Record, before it is made, that a call begins; return the id of the attempt."""
        money = None if cost is None else picodollars(cost)
        row = (*_key_row(key), *astuple(max_usage), money)
        with database_errors(self.path):
            return int(self._connection.execute(_BEGIN, row).lastrowid or 0)

    def save_answer(self, answer: StoredAnswer, attempt: int | None = None) -> None:
        """Save and charge an answer in one transaction; an earlier failure is deleted."""
        with self._writing() as connection:
            _save_answer(connection, answer)
            connection.execute(_END, (attempt,))

    def end(self, attempt: int, llm: str, spent: Spending) -> None:
        """Close and charge an attempt without an answer."""
        with self._writing() as connection:
            _add_spending(connection, llm, spent)
            connection.execute(_END, (attempt,))

    def save_failure(self, failure: Failure) -> None:
        """Record a question without an answer, replacing an earlier failure."""
        with database_errors(self.path):
            self._connection.execute(_SAVE_FAILURE, _failure_row(failure))

    def recover(self) -> int:
        """Charge the calls that an earlier process left unfinished at their bound; return their number."""
        with self._writing() as connection:
            unfinished = _spending_by_llm(connection.execute(_IN_FLIGHT))
            for llm, spent in unfinished.items():
                _add_spending(connection, llm, spent)
            return connection.execute("DELETE FROM in_flight").rowcount

    # Results.

    def answers(
        self, tasks: Collection[Task], text_ids: Iterable[str]
    ) -> Iterator[StoredAnswer]:
        """Answers in order of text, task, LLM, prompt and parameters."""
        task_list = json.dumps(sorted(tasks))
        for batch in batched(sorted(set(text_ids)), _TEXTS):
            rows = self._rows(_OF_TEXTS, json.dumps(batch), task_list)
            yield from map(_row_answer, rows)

    def answer(self, key: AskKey) -> StoredAnswer | None:
        """The answer to one question."""
        rows = self._rows(_OF_KEY, *_key_row(key))
        return next(map(_row_answer, rows), None)

    def has_answer(self, llm: str, parameters: str) -> bool:
        """Whether an LLM ever answered under these parameters."""
        return self._rows(_HAS_ANSWER, llm, parameters) != []

    def refused(self, llm: str, parameters: str, more: Iterable[str] = ()) -> set[str]:
        """Fields that the server of an LLM doesn't know, after adding `more`."""
        with self._writing() as connection:
            connection.execute(_REFUSED)
            added = [(llm, parameters, field) for field in more]
            connection.executemany(_ADD_REFUSED, added)
            rows = connection.execute(_REFUSED_FIELDS, (llm, parameters))
            return {field for (field,) in rows}

    def failures(self) -> Iterator[Failure]:
        """Questions that failed, in the order of `answers`."""
        yield from map(_row_failure, self._rows(_FAILURES))

    def spent(self) -> Spending:
        """The spending of all calls; unfinished calls and batches count at their upper bound."""
        return sum(self.spent_by_llm().values(), Spending())

    def spent_by_llm(self) -> dict[str, Spending]:
        """`spent` by LLM, sorted by name."""
        return _spending_by_llm(self._rows(_SPENT))

    # Batches.

    def save_batch(self, batch: SubmittedBatch, *, replaces: str | None = None) -> None:
        """Save a new batch, or update one."""
        with self._writing() as connection:
            if replaces is not None:
                connection.execute(_DELETE_BATCH, (replaces,))
            connection.execute(_SAVE_BATCH, _batch_row(batch))

    def batches(self, llm: str | None = None) -> list[SubmittedBatch]:
        """Pending batches of one LLM or of all, sorted by id."""
        return [*map(_row_batch, self._rows(_BATCHES, llm))]

    def collect_batch(
        self,
        batch: SubmittedBatch,
        answers: Iterable[StoredAnswer],
        failures: Iterable[tuple[Failure, Spending]],
    ) -> None:
        """Save and charge all results of a batch, and delete the batch, in one transaction."""
        with self._writing() as connection:
            for answer in answers:
                _save_answer(connection, answer)
            for failure, spent in failures:
                connection.execute(_SAVE_FAILURE, _failure_row(failure))
                _add_spending(connection, batch.llm, spent)
            connection.execute(_DELETE_BATCH, (batch.batch_id,))

    def abandon_batch(self, batch: SubmittedBatch) -> None:
        """Delete a pending batch, and charge it at its bound."""
        with self._writing() as connection:
            _add_spending(connection, batch.llm, batch.max_spending)
            connection.execute(_DELETE_BATCH, (batch.batch_id,))

    def delete_batch(self, batch_id: str) -> None:
        """Delete a batch without results and cost."""
        with self._writing() as connection:
            connection.execute(_DELETE_BATCH, (batch_id,))

    def _rows(self, sql: str, *values: object) -> list[Row]:
        with database_errors(self.path):
            return self._connection.execute(sql, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with database_errors(self.path), transaction(self._connection) as connection:
            yield connection


def _save_answer(connection: sqlite3.Connection, answer: StoredAnswer) -> None:
    connection.execute(_SAVE_ANSWER, _answer_row(answer))
    connection.execute(_DELETE_FAILURE, _key_row(answer.key))
    _add_spending(connection, answer.key.llm, charge_answer(answer))
