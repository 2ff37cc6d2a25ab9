"""Batches that a server works on while nobody waits: plain functions over a connection."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from llm_labeler._budget import Spending, charge, picodollars
from llm_labeler._records import AskKey, Usage
from llm_labeler._store.rows import amount, key_row, row_key
from pairkit.errors import DataError

_COLUMNS = "batch_id, llm, state, keys, requests, prompt_tokens, completion_tokens, picodollars"


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions handed in together; until they are collected they count as spent at their bound."""

    llm: str
    batch_id: str  # the server's name for it
    state: str  # as the server says
    keys: Mapping[str, AskKey]  # custom id to question: answers come in any order
    bound: Usage  # the most tokens that all of it can take
    cost: float | None  # the most US dollars; None: the price is unknown

    @property
    def most(self) -> Spending:
        """What it counts as until it is collected."""
        one, size = charge(self.bound, self.cost), len(self.keys)
        return replace(one, requests=size, unpriced=size * one.unpriced, estimated=size)


def save(connection: sqlite3.Connection, batch: Batch) -> None:
    """Write a batch down, in place of what was known of it."""
    keys = {name: key_row(key) for name, key in batch.keys.items()}
    money = None if batch.cost is None else picodollars(batch.cost)
    connection.execute(
        f"INSERT OR REPLACE INTO batches ({_COLUMNS}, files) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '{{}}')",  # noqa: S608
        (
            *(batch.batch_id, batch.llm, batch.state, json.dumps(keys)),
            *(len(keys), batch.bound.prompt_tokens, batch.bound.completion_tokens, money),
        ),
    )


def waiting(connection: sqlite3.Connection, llm: str | None) -> list[Batch]:
    """Batches in order of their ids; of one LLM or of all."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM batches WHERE ?1 IS NULL OR llm = ?1 ORDER BY batch_id",  # noqa: S608
        (llm,),
    )
    try:
        return [_batch(row) for row in rows]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"a batch of the label store can't be read ({error!r:.100}); it is damaged or not ours: move its "
            "folder away and run again"
        ) from error


def _batch(row: tuple[Any, ...]) -> Batch:
    batch_id, name, state, keys, _, prompt_tokens, completion_tokens, money = row
    return Batch(
        *(str(name), str(batch_id), str(state)),
        {custom_id: row_key(tuple(key)) for custom_id, key in json.loads(keys).items()},
        Usage(amount(prompt_tokens), amount(completion_tokens)),
        None if money is None else amount(money) / 1e12,
    )


def forget(connection: sqlite3.Connection, batch_id: str) -> None:
    """Strike a batch out."""
    connection.execute("DELETE FROM batches WHERE batch_id = ?", (batch_id,))
