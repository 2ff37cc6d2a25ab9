"""Reading a store as a stream, a few rows at a time in memory: plain functions over a connection."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import TypeVar

from llm_labeler._records import Answer, Ask, Failure, Task
from llm_labeler._store.rows import ANSWER, FAILURE, key_row, row_answer, row_failure
from llm_labeler._store.schema import KEY

T = TypeVar("T")

CHUNK = 256  # questions looked up at a time
_TEXTS = 16  # whose answers are in memory at a time

_ASKED = ", ".join(f"json_extract(value, '$[{i}]') AS {name}" for i, name in enumerate(KEY.split(", ")))
# CROSS JOIN keeps SQLite from reading all answers to look each up among the few that are asked about.
_ANSWERED = (
    f"WITH asked AS (SELECT key AS place, {_ASKED} FROM json_each(?1)) "  # noqa: S608 - constants
    f"SELECT place FROM asked CROSS JOIN answers USING ({KEY}) "
    f"UNION SELECT place FROM asked CROSS JOIN failures USING ({KEY}) WHERE final AND ?2"
)
_NEXT_TEXTS = "SELECT DISTINCT text_id FROM answers WHERE text_id > ? ORDER BY text_id LIMIT ?"


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


def answers(
    connection: sqlite3.Connection, tasks: Collection[Task], text_ids: Collection[str] | None = None
) -> Iterator[Answer]:
    """Answers in order of text, task, LLM, prompt and parameters, those of a few texts at a time in memory.

    Nothing is left open between two chunks: SQLite's log could not be folded in while calls go on beside it.
    """
    sql = (
        f"SELECT {ANSWER} FROM answers WHERE text_id IN (SELECT value FROM json_each(?)) "  # noqa: S608
        f"AND task IN (SELECT value FROM json_each(?)) ORDER BY {KEY}"
    )
    wanted = json.dumps(sorted(tasks))
    for chunk in _answered(connection) if text_ids is None else chunks(_each_once(text_ids), _TEXTS):
        yield from map(row_answer, connection.execute(sql, (json.dumps(chunk), wanted)).fetchall())


def _each_once(text_ids: Iterable[str]) -> Iterator[str]:
    """In order; without a set, as there may be millions."""
    return (text_id for text_id, _ in groupby(sorted(text_ids)))


def failures(connection: sqlite3.Connection) -> Iterator[Failure]:
    """Failures in the order of `answers`."""
    yield from map(row_failure, connection.execute(f"SELECT {FAILURE} FROM failures ORDER BY {KEY}"))  # noqa: S608


def _answered(connection: sqlite3.Connection) -> Iterator[list[str]]:
    """The texts with answers, in order."""
    chunk = [""]
    while chunk:
        found = connection.execute(_NEXT_TEXTS, (chunk[-1], _TEXTS)).fetchall()
        if chunk := [text_id for (text_id,) in found]:
            yield chunk
