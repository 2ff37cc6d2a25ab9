"""Taking one store into another: plain functions over a connection; the caller's transaction makes it a step.

What a store spent is added once, however often it is taken in: beside the sums stands, under the store's
identity, how much of them came from it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import astuple
from secrets import token_hex

from llm_labeler._budget import Spending
from llm_labeler._store import ledger
from llm_labeler._store.rows import ANSWER, FAILURE, amount, text
from llm_labeler._store.schema import KEY
from pairkit.errors import DataError

OTHER = "other"  # the name that the other store is attached under
_IDENTITY = "identity"

_ANSWERED = " AND ".join(f"answers.{column} = failures.{column}" for column in KEY.split(", "))
# What is answered here already keeps its answer; what failed there may be answered here.
_TAKE_IN = (
    f"INSERT OR IGNORE INTO answers ({ANSWER}) SELECT {ANSWER} FROM {OTHER}.answers",  # noqa: S608 - constants
    f"INSERT OR REPLACE INTO failures ({FAILURE}) SELECT {FAILURE} FROM {OTHER}.failures",  # noqa: S608
    f"DELETE FROM failures WHERE EXISTS (SELECT 1 FROM answers WHERE {_ANSWERED})",  # noqa: S608
    f"INSERT OR IGNORE INTO prompts SELECT * FROM {OTHER}.prompts",  # noqa: S608
    f"INSERT OR IGNORE INTO parameters SELECT * FROM {OTHER}.parameters",  # noqa: S608
)


def identity(connection: sqlite3.Connection) -> str:
    """What tells this store from any other; given to it when it is first asked for."""
    connection.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (_IDENTITY, token_hex(16).encode()))
    ((value,),) = connection.execute("SELECT value FROM meta WHERE key = ?", (_IDENTITY,))
    return text(value)


def take_in(connection: sqlite3.Connection, name: str, spent: Mapping[str, Spending]) -> None:
    """Take in what the attached store holds.

    Args:
        connection: Of the store that grows.
        name: The other's identity.
        spent: What the other spent, by LLM.

    Raises:
        DataError: What was taken in of it before can't be read.
    """
    for statement in _TAKE_IN:
        connection.execute(statement)
    key = f"taken in {name}"
    before = _before(connection, key)
    for llm in sorted({*spent, *before}):
        ledger.add(connection, llm, spent.get(llm, Spending()) - before.get(llm, Spending()))
    known = json.dumps({llm: astuple(each) for llm, each in spent.items()})
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, known.encode()))


def _before(connection: sqlite3.Connection, key: str) -> dict[str, Spending]:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    if row is None:
        return {}
    try:
        return {llm: Spending(*map(amount, numbers)) for llm, numbers in json.loads(text(row[0])).items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"the label store can't tell what was taken into it ({error!r:.100}); it is damaged or not ours:"
            " move its folder away and run again"
        ) from error
