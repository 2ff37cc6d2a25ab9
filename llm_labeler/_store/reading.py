"""Reading a store as a stream: a connection of its own, one snapshot, a row at a time in memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TypeVar

from llm_labeler._records import Answer, Ask, Failure, Task
from llm_labeler._store.rows import ANSWER, FAILURE, key_row, row_answer, row_failure
from llm_labeler._store.schema import KEY
from pairkit.database import connect, database_errors

T = TypeVar("T")

CHUNK = 256  # questions, or texts, looked up at a time

_ASKED = ", ".join(f"json_extract(value, '$[{i}]') AS {name}" for i, name in enumerate(KEY.split(", ")))
# CROSS JOIN keeps SQLite from reading all answers to look each up among the few that are asked about.
_ANSWERED = (
    f"WITH asked AS (SELECT key AS place, {_ASKED} FROM json_each(?1)) "  # noqa: S608 - constants
    f"SELECT place FROM asked CROSS JOIN answers USING ({KEY}) "
    f"UNION SELECT place FROM asked CROSS JOIN failures USING ({KEY}) WHERE final AND ?2"
)


def chunks(things: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Lists of at most `size` things, in order."""
    source = iter(things)
    while chunk := list(islice(source, size)):
        yield chunk


def unanswered(connection: sqlite3.Connection, asks: Sequence[Ask], *, retry_final: bool) -> list[Ask]:
    """Those of a few questions that have no answer yet, in order, each once."""
    by_key: dict[object, Ask] = {}
    for ask in asks:
        by_key.setdefault(ask.key, ask)
    distinct = list(by_key.values())
    keys = json.dumps([key_row(ask.key) for ask in distinct])
    answered = {place for (place,) in connection.execute(_ANSWERED, (keys, not retry_final))}
    return [ask for place, ask in enumerate(distinct) if place not in answered]


def answers(path: Path, tasks: Collection[Task], text_ids: Collection[str] | None = None) -> Iterator[Answer]:
    """Answers in order of text, task, LLM, prompt and parameters, as of the moment of the first one."""
    with database_errors(path), closing(connect(path, read_only=True)) as connection:
        connection.execute("BEGIN")  # one snapshot, however many queries
        wanted = json.dumps(sorted(tasks))
        sql = f"SELECT {ANSWER} FROM answers WHERE task IN (SELECT value FROM json_each(?))"  # noqa: S608
        if text_ids is None:
            yield from map(row_answer, connection.execute(f"{sql} ORDER BY {KEY}", (wanted,)))
            return
        for chunk in chunks(sorted(set(text_ids))):
            rows = connection.execute(
                f"{sql} AND text_id IN (SELECT value FROM json_each(?)) ORDER BY {KEY}",  # noqa: S608
                (wanted, json.dumps(chunk)),
            )
            yield from map(row_answer, rows)


def failures(path: Path) -> Iterator[Failure]:
    """Failures in the order of `answers`."""
    with database_errors(path), closing(connect(path, read_only=True)) as connection:
        yield from map(row_failure, connection.execute(f"SELECT {FAILURE} FROM failures ORDER BY {KEY}"))  # noqa: S608
