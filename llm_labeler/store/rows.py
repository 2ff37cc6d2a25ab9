"""The label store's tables, and records as rows and back."""

from __future__ import annotations

from typing import Any

from llm_labeler.records import AskKey, Failure, LlmReply, StoredAnswer, TokenUsage
from pairkit.system.database import Schema

_APPLICATION = 0x4C41_4231  # "LAB1": tells our file from any other SQLite file

# Also the order in which answers are read: it does not depend on when they came.
KEY = "text_id, task, llm, prompt_hash, parameters"
_KEY_COLUMNS = ", ".join(f"{column} TEXT NOT NULL" for column in KEY.split(", "))

# What servers and people wrote is a BLOB: UTF-8 that may hold lone surrogates, which TEXT can't.
_TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE prompts (prompt_hash TEXT PRIMARY KEY, template BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE parameters (digest TEXT PRIMARY KEY, json BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE answers (
  {_KEY_COLUMNS}, raw BLOB NOT NULL, finish BLOB NOT NULL, prompt_tokens INTEGER, completion_tokens INTEGER,
  model BLOB NOT NULL, cost REAL, estimated INTEGER NOT NULL, PRIMARY KEY ({KEY})
);
CREATE TABLE failures (
  {_KEY_COLUMNS}, reason TEXT NOT NULL, detail BLOB NOT NULL, attempts INTEGER NOT NULL,
  final INTEGER NOT NULL, PRIMARY KEY ({KEY})
);
-- calls that have left and not come back, at the most they can take; after a kill, what may be on the bill
CREATE TABLE in_flight (
  attempt INTEGER PRIMARY KEY, {_KEY_COLUMNS}, prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL, picodollars INTEGER
);
CREATE TABLE spending (
  llm TEXT PRIMARY KEY, requests INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL, picodollars INTEGER NOT NULL, unpriced INTEGER NOT NULL,
  estimated INTEGER NOT NULL
) WITHOUT ROWID;
-- questions that a server answers within a day; prompt_tokens … picodollars: the most they can take; `files`
-- holds nothing
CREATE TABLE batches (
  batch_id TEXT PRIMARY KEY, llm TEXT NOT NULL, state TEXT NOT NULL, files TEXT NOT NULL, keys TEXT NOT NULL,
  requests INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
  picodollars INTEGER
);
"""

SCHEMA = Schema("label store", _APPLICATION, 1, _TABLES)
Row = tuple[Any, ...]

ANSWER = f"{KEY}, raw, finish, prompt_tokens, completion_tokens, model, cost, estimated"
FAILURE = f"{KEY}, reason, detail, attempts, final"
SAME_KEY = " AND ".join(f"{column} = ?" for column in KEY.split(", "))


def blob(text: str) -> bytes:
    """UTF-8 that keeps lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def text(data: bytes) -> str:
    """The text of a `blob`."""
    return data.decode("utf-8", "surrogatepass")


def key_row(key: AskKey) -> Row:
    """The columns of `KEY`."""
    return (key.text_id, key.task, key.llm, key.prompt_hash, key.parameters)


def row_key(row: Row) -> AskKey:
    """The key of a row that begins with `KEY`."""
    text_id, task, llm, prompt_hash, parameters = row[:5]
    return AskKey(text_id, llm, task, prompt_hash, parameters)


def answer_row(answer: StoredAnswer) -> Row:
    """The columns of `ANSWER`."""
    reply, usage = answer.reply, answer.reply.usage
    tokens = (None, None) if usage is None else (usage.prompt_tokens, usage.completion_tokens)
    return (
        *key_row(answer.key),
        *(blob(reply.raw), blob(reply.finish), *tokens, blob(reply.model)),
        *(answer.cost, int(answer.estimated)),
    )


def row_answer(row: Row) -> StoredAnswer:
    """The answer of a row with the columns of `ANSWER`."""
    raw, finish, prompt_tokens, completion_tokens, model, cost, estimated = row[5:]
    usage = None if prompt_tokens is None else TokenUsage(prompt_tokens, completion_tokens)
    return StoredAnswer(
        row_key(row), LlmReply(text(raw), text(finish), usage, text(model)), cost, bool(estimated)
    )


def failure_row(failure: Failure) -> Row:
    """The columns of `FAILURE`."""
    return (*key_row(failure.key), failure.reason, blob(failure.detail), failure.attempts, int(failure.final))


def row_failure(row: Row) -> Failure:
    """The failure of a row with the columns of `FAILURE`."""
    reason, detail, attempts, final = row[5:]
    return Failure(row_key(row), reason, text(detail), attempts, bool(final))
