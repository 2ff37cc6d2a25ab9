"""The label store's tables and version."""

from __future__ import annotations

from pairkit.database import Schema

VERSION = 1
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

SCHEMA = Schema("label store", _APPLICATION, VERSION, _TABLES)
