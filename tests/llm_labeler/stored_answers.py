"""The answers that a run has stored, and those of rules over WordNet."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl

import llm_labeler

RuleAnswers = dict[tuple[str, str], list[str]]


def raw_answers(work: Path) -> dict[tuple[str, str], str]:
    """The raw answers by text and task, of a run with one LLM."""
    texts = dict(pl.read_parquet(work / "texts.parquet").select("text_id", "text").iter_rows())
    with closing(sqlite3.connect(work / "answers.sqlite")) as store:
        rows = store.execute("SELECT text_id, task, raw FROM answers").fetchall()
    return {(texts[text_id], task): raw.decode() for text_id, task, raw in rows}


def by_rules(out: Path, texts: Sequence[str], **options: Any) -> RuleAnswers:
    """The rules' sentences by text and polarity, the best first."""
    settings = {"input.max_chars": 10_000}
    given = {"size": 100, "progress": False, "settings": settings, **options}
    result = llm_labeler.generate(texts, llm="wordnet", out=out, **given)
    return {
        asked: [line.partition(". ")[2] for line in raw.splitlines()]
        for asked, raw in raw_answers(result.work).items()
    }
