"""What was spent, by LLM: plain functions over a connection; the caller's transaction makes them one step.

Amounts are decoded as they are read, and summed here: a sum of SQLite's would fail, or drift, above 2^63.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import astuple

from llm_labeler._budget import MOST, Spending
from llm_labeler._store.rows import amount, name

_ADDED = ("requests", "prompt_tokens", "completion_tokens", "picodollars", "unpriced", "estimated")
_ADD = (
    "INSERT INTO spending VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "  # noqa: S608 - constants
    + ", ".join(f"{column} = min({column} + excluded.{column}, {MOST})" for column in _ADDED)
)
_SPENT = f"SELECT llm, {', '.join(_ADDED)} FROM spending"  # noqa: S608 - constants
# At the most that they can take; what has no price counts as unpriced.
_BOUNDS = "prompt_tokens, completion_tokens, coalesce(picodollars, 0)"
_CUT_OFF = f"SELECT llm, 1, {_BOUNDS}, picodollars IS NULL, 1 FROM in_flight"  # noqa: S608 - constants
_WAITING = (
    f"SELECT llm, requests, {_BOUNDS}, iif(picodollars IS NULL, requests, 0), requests "  # noqa: S608
    "FROM batches"
)


def add(connection: sqlite3.Connection, llm: str, spent: Spending) -> None:
    """Add to what an LLM has cost."""
    connection.execute(_ADD, (llm, *(min(number, MOST) for number in astuple(spent))))


def totals(connection: sqlite3.Connection) -> dict[str, Spending]:
    """By LLM, in order of names; calls in flight and batches that are waited for count at their most.

    Raises:
        DataError: an amount is none.
    """
    return _summed(connection, (_SPENT, _CUT_OFF, _WAITING))


def charge_cut_off(connection: sqlite3.Connection) -> int:
    """Charge the calls that never came back at their bound; how many there were.

    Raises:
        DataError: an amount is none, in what is added or in what it is added to.
    """
    totals(connection)
    for llm, spent in _summed(connection, (_CUT_OFF,)).items():
        add(connection, llm, spent)
    return connection.execute("DELETE FROM in_flight").rowcount


def _summed(connection: sqlite3.Connection, queries: Iterable[str]) -> dict[str, Spending]:
    sums: dict[str, Spending] = {}
    for query in queries:
        for llm, *numbers in connection.execute(query):
            spent = Spending(*map(amount, numbers))
            sums[name(llm)] = sums.get(llm, Spending()) + spent
    return dict(sorted(sums.items()))
