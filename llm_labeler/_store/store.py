"""Writing a labelling run's store call by call, and the questions that a run asks it to go on."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from llm_labeler._budget import Spending, charge, picodollars
from llm_labeler._records import Answer, Ask, AskKey, Failure, Task, Usage
from llm_labeler._store import batches, ledger, merging, reading
from llm_labeler._store.batches import Batch
from llm_labeler._store.reading import chunks
from llm_labeler._store.rows import (
    ANSWER,
    FAILURE,
    SAME_KEY,
    answer_row,
    blob,
    failure_row,
    key_row,
    row_answer,
    text,
)
from llm_labeler._store.schema import KEY, SCHEMA
from pairkit.database import database_errors, open_database, transaction

_SAVE_ANSWER = f"INSERT OR REPLACE INTO answers ({ANSWER}) VALUES ({', '.join('?' * 12)})"  # noqa: S608 - constants
_SAVE_FAILURE = f"INSERT OR REPLACE INTO failures ({FAILURE}) VALUES ({', '.join('?' * 9)})"  # noqa: S608
_FORGET_FAILURE = f"DELETE FROM failures WHERE {SAME_KEY}"  # noqa: S608 - constants
_HAS_ANSWER = "SELECT 1 FROM answers WHERE llm = ? AND parameters = ? LIMIT 1"
_BEGIN = (
    f"INSERT INTO in_flight ({KEY}, prompt_tokens, completion_tokens, picodollars) "  # noqa: S608
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


class Store:
    """A labelling run's store, for one thread at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path, *, create: bool = False) -> Store:
        """Open the store at `path`.

        Args:
            path: The SQLite file.
            create: Make it where it is absent, readable by its owner alone.

        Raises:
            ConfigError: it is absent (without `create`), unreadable, or in use.
            DataError: it is damaged, another program's, or of a newer version.
        """
        absent = "no label store there; run `label generate` first or name its folder"
        return cls(path, open_database(path, SCHEMA, create=create, absent=absent))

    def close(self) -> None:
        """Fold the write-ahead log into the file and close it."""
        with database_errors(self.path):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Calls.

    def missing(self, asks: Iterable[Ask], *, retry_final: bool = False) -> Iterator[Ask]:
        """The questions that have no answer yet, in order, a few at a time in memory.

        Args:
            asks: All questions.
            retry_final: Ask again what a server rejected for good; otherwise that counts as answered.
        """
        for chunk in chunks(asks):
            yield from self.unanswered(chunk, retry_final=retry_final)

    def unanswered(self, asks: Sequence[Ask], *, retry_final: bool = False) -> list[Ask]:
        """Like `missing` for a few questions, in one query; one that occurs twice is returned once."""
        with database_errors(self.path):
            return reading.unanswered(self._connection, asks, retry_final=retry_final)

    def begin(self, key: AskKey, bound: Usage, cost: float | None) -> int:
        """Write down that a call is about to leave; committed when this returns.

        Args:
            key: What is asked.
            bound: The most tokens the call can take.
            cost: The most US dollars it can cost; None: unknown.

        Returns:
            The attempt, for whichever of `save_answer` and `end` follows. An attempt that none follows was
            cut off, may be on the bill, and counts as spent at its bound.
        """
        money = None if cost is None else picodollars(cost)
        row = (*key_row(key), bound.prompt_tokens, bound.completion_tokens, money)
        with database_errors(self.path):
            return int(self._connection.execute(_BEGIN, row).lastrowid or 0)

    def save_answer(self, answer: Answer, attempt: int | None = None) -> None:
        """Keep an answer and charge it, in one step; a failure noted earlier is forgotten.

        Args:
            answer: Its usage and cost are what is charged.
            attempt: The attempt that brought it, which is over; None where none was begun.
        """
        with self._writing() as connection:
            _keep(connection, answer)
            _end(connection, attempt)

    def end(self, attempt: int, llm: str, usage: Usage | None, cost: float | None) -> None:
        """Close an attempt that brought no answer.

        Args:
            attempt: From `begin`.
            llm: Who was asked.
            usage: The bound, where the server may have charged; None: only the request counts.
            cost: US dollars of that; None: unknown.
        """
        with self._writing() as connection:
            ledger.add(connection, llm, charge(usage, cost, estimated=True))
            _end(connection, attempt)

    def save_failure(self, failure: Failure) -> None:
        """Note that a question got no answer; the latest note stands."""
        with database_errors(self.path):
            self._connection.execute(_SAVE_FAILURE, failure_row(failure))

    def recover(self) -> int:
        """Charge, at their bound, the calls that an earlier process left in flight; how many there were.

        For the process that holds the run's folder, before its first call.
        """
        with self._writing() as connection:
            return ledger.charge_cut_off(connection)

    # What came of them.

    def answers(self, tasks: Collection[Task], text_ids: Collection[str] | None = None) -> Iterator[Answer]:
        """Answers in order of text, task, LLM, prompt and parameters, whatever order they came in.

        Args:
            tasks: Only of these.
            text_ids: Only of these texts; None: of all.
        """
        with database_errors(self.path):
            yield from reading.answers(self._connection, tasks, text_ids)

    def answer(self, key: AskKey) -> Answer | None:
        """The answer to one question."""
        row = self._one(f"SELECT {ANSWER} FROM answers WHERE {SAME_KEY}", *key_row(key))  # noqa: S608
        return None if row is None else row_answer(row)

    def has_answer(self, llm: str, parameters: str) -> bool:
        """Whether an LLM ever answered under these parameters."""
        return self._one(_HAS_ANSWER, llm, parameters) is not None

    def failures(self) -> Iterator[Failure]:
        """Questions without an answer that were asked, in the order of `answers`."""
        with database_errors(self.path):
            yield from reading.failures(self._connection)

    def spent(self) -> Spending:
        """What all calls cost; those in flight, or in a batch, at the most they can."""
        return sum(self.spent_by_llm().values(), Spending())

    def spent_by_llm(self) -> dict[str, Spending]:
        """The same by LLM, in order of names."""
        with database_errors(self.path):
            return ledger.totals(self._connection)

    # Stores of shards.

    def identity(self) -> str:
        """What tells this store and its copies from any other; given to it when it is first asked for."""
        with self._writing() as connection:
            return merging.identity(connection)

    def take_in(self, other: Store) -> None:
        """Take in all that another store holds, in one step; its batches aside.

        No answer stands twice, and what was spent counts once, however often a store is taken in.

        Args:
            other: Nobody writes to it meanwhile.
        """
        name, spent = other.identity(), other.spent_by_llm()
        attach = f"ATTACH DATABASE ? AS {merging.OTHER}"
        with database_errors(self.path):
            self._connection.execute(attach, (f"{other.path.absolute().as_uri()}?mode=rw",))
            try:
                with transaction(self._connection) as connection:
                    merging.take_in(connection, name, spent)
            finally:
                self._connection.execute(f"DETACH DATABASE {merging.OTHER}")

    # What answers were made from.

    def save_prompt(self, prompt_hash: str, template: str) -> None:
        """Keep the template that a prompt hash stands for."""
        self._put("INSERT OR REPLACE INTO prompts VALUES (?, ?)", prompt_hash, template)

    def prompt(self, prompt_hash: str) -> str | None:
        """The template that a prompt hash stands for."""
        return self._text("SELECT template FROM prompts WHERE prompt_hash = ?", prompt_hash)

    def save_parameters(self, digest: str, json: str) -> None:
        """Keep what a digest of parameters stands for."""
        self._put("INSERT OR REPLACE INTO parameters VALUES (?, ?)", digest, json)

    def parameters(self, digest: str) -> str | None:
        """The JSON that a digest of parameters stands for."""
        return self._text("SELECT json FROM parameters WHERE digest = ?", digest)

    # Batches.

    def save_batch(self, batch: Batch, *, replaces: str | None = None) -> None:
        """Write a batch down, or what is new of it.

        Args:
            batch: Known by its id.
            replaces: The id it was written down under before the server gave it one.
        """
        with self._writing() as connection:
            if replaces is not None:
                batches.forget(connection, replaces)
            batches.save(connection, batch)

    def batches(self, llm: str | None = None) -> list[Batch]:
        """Batches that are not collected yet, in order of their ids; of one LLM or of all."""
        with database_errors(self.path):
            return batches.waiting(self._connection, llm)

    def collect_batch(self, batch: Batch, answers: Iterable[Answer], failures: Iterable[Failure]) -> None:
        """Keep and charge all that a batch brought and strike it out, in one step: a kill repeats nothing."""
        with self._writing() as connection:
            for answer in answers:
                _keep(connection, answer)
            for failure in failures:
                connection.execute(_SAVE_FAILURE, failure_row(failure))
                ledger.add(connection, batch.llm, charge(None, None))
            batches.forget(connection, batch.batch_id)

    def give_up_batch(self, batch: Batch) -> None:
        """Strike out a batch that nobody collects, and charge it at its bound."""
        with self._writing() as connection:
            ledger.add(connection, batch.llm, batch.most)
            batches.forget(connection, batch.batch_id)

    def forget_batch(self, batch_id: str) -> None:
        """Strike out a batch that brought nothing and cost nothing."""
        with self._writing() as connection:
            batches.forget(connection, batch_id)

    def _put(self, sql: str, key: str, value: str) -> None:
        with database_errors(self.path):
            self._connection.execute(sql, (key, blob(value)))

    def _text(self, sql: str, key: str) -> str | None:
        row = self._one(sql, key)
        return None if row is None else text(row[0])

    def _one(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        with database_errors(self.path):
            row: tuple[Any, ...] | None = self._connection.execute(sql, values).fetchone()
            return row

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with database_errors(self.path), transaction(self._connection) as connection:
            yield connection


def _keep(connection: sqlite3.Connection, answer: Answer) -> None:
    connection.execute(_SAVE_ANSWER, answer_row(answer))
    connection.execute(_FORGET_FAILURE, key_row(answer.key))
    spent = charge(answer.reply.usage, answer.cost, estimated=answer.estimated)
    ledger.add(connection, answer.key.llm, spent)


def _end(connection: sqlite3.Connection, attempt: int | None) -> None:
    connection.execute("DELETE FROM in_flight WHERE attempt = ?", (attempt,))
