"""The answers that a run has stored."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl


def raw_answers(work: Path) -> dict[tuple[str, str], str]:
    """The raw answers by text and task, of a run with one LLM."""
    texts = dict(pl.read_parquet(work / "texts.parquet").select("text_id", "text").iter_rows())
    with closing(sqlite3.connect(work / "answers.sqlite")) as store:
        rows = store.execute("SELECT text_id, task, raw FROM answers").fetchall()
    return {(texts[text_id], task): raw.decode() for text_id, task, raw in rows}
