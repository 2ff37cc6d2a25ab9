"""The crawl store's tables and version."""

from __future__ import annotations

from pairkit.system.database import Schema

VERSION = 1
_APPLICATION = 0x47495331  # "GIS1": tells our file from any other SQLite file

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE repos (
  name TEXT PRIMARY KEY COLLATE NOCASE, outcome TEXT NOT NULL, full_name TEXT NOT NULL, detail TEXT NOT NULL,
  max_number INTEGER NOT NULL, issue_count INTEGER NOT NULL, created_at TEXT NOT NULL,
  newest_at TEXT NOT NULL, as_of TEXT NOT NULL, labels TEXT NOT NULL, listed INTEGER NOT NULL
) WITHOUT ROWID;
-- depth: 0 the issue alone, 1 its thread in part, 2 its whole thread
CREATE TABLE issues (
  repo TEXT NOT NULL, number INTEGER NOT NULL, depth INTEGER NOT NULL, title TEXT NOT NULL,
  body TEXT NOT NULL, state TEXT NOT NULL, state_reason TEXT, author TEXT, author_association TEXT NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, closed_at TEXT, closed_by TEXT,
  is_pull INTEGER NOT NULL, is_bot INTEGER NOT NULL, labels TEXT NOT NULL,
  duplicate_of_repo TEXT, duplicate_of_number INTEGER, PRIMARY KEY (repo, number)
);
CREATE TABLE comments (
  repo TEXT NOT NULL, number INTEGER NOT NULL, id INTEGER NOT NULL, author TEXT,
  author_association TEXT NOT NULL, created_at TEXT NOT NULL, body TEXT NOT NULL, is_bot INTEGER NOT NULL,
  PRIMARY KEY (repo, number, id)
);
-- place: -1 is the newest event of the issue, -2 the one before
CREATE TABLE events (
  repo TEXT NOT NULL, number INTEGER NOT NULL, place INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT,
  created_at TEXT NOT NULL, target_repo TEXT, target_number INTEGER, target_is_pull INTEGER NOT NULL,
  state_reason TEXT, PRIMARY KEY (repo, number, place)
) WITHOUT ROWID;
CREATE TABLE missing (
  repo TEXT NOT NULL, number INTEGER NOT NULL, status TEXT NOT NULL, detail TEXT NOT NULL,
  PRIMARY KEY (repo, number)
) WITHOUT ROWID;
CREATE TABLE wishes (
  repo TEXT NOT NULL, number INTEGER NOT NULL, with_thread INTEGER NOT NULL, PRIMARY KEY (repo, number)
) WITHOUT ROWID;
CREATE TABLE top_ups (
  repo TEXT NOT NULL, number INTEGER NOT NULL, part TEXT NOT NULL, before TEXT NOT NULL,
  have INTEGER NOT NULL,
  PRIMARY KEY (repo, number, part)
) WITHOUT ROWID;
CREATE TABLE tasks (
  repo TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, cursor TEXT, state TEXT NOT NULL,
  done INTEGER NOT NULL, PRIMARY KEY (repo, kind, key)
) WITHOUT ROWID;
CREATE TABLE warnings (repo TEXT NOT NULL, words TEXT NOT NULL, PRIMARY KEY (repo, words)) WITHOUT ROWID;
CREATE TABLE usage (
  repo TEXT PRIMARY KEY, points INTEGER NOT NULL, requests INTEGER NOT NULL, seconds REAL NOT NULL
) WITHOUT ROWID;
"""

SCHEMA = Schema("crawl store", _APPLICATION, VERSION, _TABLES)
