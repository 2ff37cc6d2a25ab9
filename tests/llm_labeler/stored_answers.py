"""Texts of questions, and the answers that a run has stored."""

import json
import re
import sqlite3
from contextlib import closing

import polars as pl

import llm_labeler


def text_of(prompt):
    """The text of a question."""
    text = re.findall(r'^(?:Sentence|Passage): (".*")$', prompt, re.MULTILINE)[-1]
    return str(json.loads(text))


def raw_answers(work):
    """The raw answers by text and task, of a run with one LLM."""
    texts = dict(
        pl.read_parquet(work / "texts.parquet").select("text_id", "text").iter_rows()
    )
    with closing(sqlite3.connect(work / "answers.sqlite")) as store:
        rows = store.execute("SELECT text_id, task, raw FROM answers").fetchall()
    return {(texts[text_id], task): raw.decode() for text_id, task, raw in rows}


def add_pending_batch(work, llm):
    """Record that an answered question of an LLM is also in a pending batch."""
    with closing(sqlite3.connect(work / "answers.sqlite")) as store, store:
        key = store.execute(
            "SELECT text_id, task, llm, prompt_hash, parameters FROM answers WHERE llm = ?",
            (llm,),
        ).fetchone()
        row = (
            "batch_1",
            llm,
            "in_progress",
            "{}",
            json.dumps({"a": key}),
            1,
            10,
            10,
            None,
        )
        store.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def by_rules(out, texts, **options):
    """The rules' sentences by text and polarity, the best first."""
    settings = {"input.max_chars": 10_000}
    given = {"size": 100, "settings": settings, **options}
    result = llm_labeler.generate(texts, llm="wordnet", out=out, **given)
    return {
        asked: [line.partition(". ")[2] for line in raw.splitlines()]
        for asked, raw in raw_answers(result.work).items()
    }
