"""What was spent, by LLM: plain functions over a connection; the caller's transaction makes them one step."""

from __future__ import annotations

import sqlite3
from dataclasses import astuple

from llm_labeler.budget import Spending

_ADDED = ("requests", "prompt_tokens", "completion_tokens", "picodollars", "unpriced", "estimated")
_UPSERT = f"ON CONFLICT DO UPDATE SET {', '.join(f'{n} = {n} + excluded.{n}' for n in _ADDED)}"
_ADD = f"INSERT INTO spending VALUES (?, ?, ?, ?, ?, ?, ?) {_UPSERT}"  # noqa: S608 - constants
_CUT_OFF = (
    "SELECT llm, count(*) AS requests, sum(prompt_tokens) AS prompt_tokens, "
    "sum(completion_tokens) AS completion_tokens, coalesce(sum(picodollars), 0) AS picodollars, "
    "sum(picodollars IS NULL) AS unpriced, count(*) AS estimated FROM in_flight GROUP BY llm"
)
_WAITING = (
    "SELECT llm, requests, prompt_tokens, completion_tokens, coalesce(picodollars, 0), "
    "iif(picodollars IS NULL, requests, 0), requests FROM batches"
)
_ALL = (
    f"SELECT llm, {', '.join(f'sum({name})' for name in _ADDED)} FROM (SELECT * FROM spending "  # noqa: S608
    f"UNION ALL SELECT * FROM ({_CUT_OFF}) UNION ALL {_WAITING}) GROUP BY llm ORDER BY llm"
)


def add(connection: sqlite3.Connection, llm: str, spent: Spending) -> None:
    """Add to what an LLM has cost."""
    connection.execute(_ADD, (llm, *astuple(spent)))


def totals(connection: sqlite3.Connection) -> dict[str, Spending]:
    """By LLM; calls in flight and batches that are waited for count at the most they can take."""
    return {llm: Spending(*numbers) for llm, *numbers in connection.execute(_ALL)}


def charge_cut_off(connection: sqlite3.Connection) -> int:
    """Charge the calls that never came back at their bound; how many there were."""
    # SQLite needs the WHERE to tell this ON CONFLICT from a join's ON.
    connection.execute(f"INSERT INTO spending SELECT * FROM ({_CUT_OFF}) WHERE true {_UPSERT}")  # noqa: S608
    return connection.execute("DELETE FROM in_flight").rowcount
