"""What a working folder remembers."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from llm_labeler.prompts import load_template
from llm_labeler.records import Text
from llm_labeler.runs.tasks import GenerationTask
from llm_labeler.settings import LabelSettings, PromptSettings
from llm_labeler.store.run_folder import (
    RUN_FILE,
    TEXTS_FILE,
    RunRecord,
    format_counts,
    load_run,
    read_private,
    save_run,
)
from pairkit.app.errors import ConfigError, DataError
from pairkit.dataset.parquet import write_parquet

TEXTS = (Text.of("One.", 1), Text.of("Zwölf – two.", 7))


def a_record(**settings: object) -> RunRecord:
    found = LabelSettings.model_validate({"llms": ["wordnet"], **settings})
    template = load_template(PromptSettings(template="hardened"))
    return RunRecord(found, template, {"wordnet": ("d", "{}")}, "s.txt", "abc", {"empty": 2})


def test_it_remembers_the_run_and_its_sentences_for_the_owner_alone(tmp_path: Path) -> None:
    record = a_record(size=4, filters={"min_differing_words": 5})
    save_run(tmp_path, record, TEXTS)
    assert load_run(tmp_path) == (record, TEXTS)
    for name in (RUN_FILE, TEXTS_FILE):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_the_answers_that_a_run_is_made_from() -> None:
    record = a_record(prompt={"polarities": ["negative"]}, size=4)
    task = GenerationTask(record)
    (ask,) = task.asks([Text.of("One.", 1)], "wordnet")
    assert (ask.key.llm, ask.key.task, ask.key.parameters) == ("wordnet", "negative", "d")
    assert ask.key.prompt_hash == record.template.prompt_hash(4, "negative")
    assert task.is_of_run(ask.key)
    for other in ({"llm": "x"}, {"task": "positive"}, {"prompt_hash": "h"}, {"parameters": "e"}):
        assert not task.is_of_run(replace(ask.key, **other))
    assert set(record.prompts) == {"system", "negative"}


def test_folders_that_are_none_of_ours_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a working folder"):
        load_run(tmp_path)
    (tmp_path / RUN_FILE).write_text('{"settings": {"size": 0}}')
    with pytest.raises(DataError, match="damaged"):
        load_run(tmp_path)


def test_private_tables(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1, 2]})
    write_parquet(tmp_path / "t.parquet", frame, private=True)
    assert read_private(tmp_path / "t.parquet").equals(frame)
    with pytest.raises(ConfigError, match="not there"):
        read_private(tmp_path / "u.parquet")


def test_counts_as_a_phrase() -> None:
    assert format_counts({"b": 1200, "a": 3}) == "a 3, b 1,200"
