"""Prompts and the run's record."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_labeler.records import POLARITIES, Text
from llm_labeler.runs.label_folder import RUN_FILE, TEXTS_FILE, RunRecord, load_run, save_run
from llm_labeler.runs.prompts import Template, load_template
from llm_labeler.runs.questions_and_votes import GenerationTask
from llm_labeler.settings import LabelSettings, PromptSettings
from pairkit.base.errors import ConfigError, DataError

BOTH = POLARITIES


def test_the_papers_prompt_is_verbatim() -> None:
    template = load_template(PromptSettings(template="paper"))
    (message,) = template.messages("A man is playing a flute.", 3, "positive")
    assert message.role == "user"
    assert message.content == (
        "You are a highly smart same-meaning sentence-generating system. Your job is to generate 3 "
        "synonymous sentences of a given input sentence. Input sentence: A man is playing a flute.. Output:"
    )
    (message,) = template.messages("A man is playing a flute", 5, "negative")
    assert message.content == (
        "You are a highly smart opposite-meaning sentence-generating system. Your job is to generate 5 "
        "antonym sentences of a given input sentence. Input sentence: A man is playing a flute. Output:"
    )


@given(st.text(max_size=80))
def test_braces_of_a_text_are_kept(text: str) -> None:
    template = Template(
        "own", {"positive": 'Give {"a": {size}} for {text} and {other}', "negative": "{text}"}
    )
    (message,) = template.messages(text, 2, "positive")
    assert message.content == f'Give {{"a": 2}} for {text} and {{other}}'


@given(st.text(max_size=80))
def test_the_hardened_prompt_quotes_the_text(text: str) -> None:
    system, user = load_template(PromptSettings(template="hardened")).messages(text, 3, "negative")
    assert system.role == "system"
    quoted = user.content.partition("Sentence: ")[2]
    assert json.loads(quoted) == text


def test_the_prompt_hash_depends_on_template_and_size() -> None:
    paper, hardened = (load_template(PromptSettings(template=name)) for name in ("paper", "hardened"))
    hashes = [
        template.prompt_hash(size, polarity)
        for template in (paper, hardened)
        for size in (2, 3)
        for polarity in BOTH
    ]
    assert len(set(hashes)) == len(hashes)


def test_questions_are_identified_by_content() -> None:
    texts = [Text.of("One.", 1), Text.of("Two.", 2)]
    template = load_template(PromptSettings())
    record = RunRecord(LabelSettings(llms=("llama",)), template, {"llama": ("p", "{}")}, "", "", {})
    asks = list(GenerationTask(record).asks(texts, "llama"))
    assert [(ask.key.text_id, ask.key.task) for ask in asks] == [
        (text.text_id, polarity) for text in texts for polarity in BOTH
    ]
    reordered = list(GenerationTask(record).asks(texts[::-1], "llama"))
    assert {ask.key for ask in reordered} == {ask.key for ask in asks}


def test_templates_from_files(tmp_path: Path) -> None:
    plain = tmp_path / "own.txt"
    plain.write_text("{size} {polarity} for {text}\n")
    assert load_template(PromptSettings(template=str(plain))).messages("x", 2, "negative")[0].content == (
        "2 antonym for x"
    )
    table = tmp_path / "own.toml"
    table.write_text('system = "S"\npositive = "{size} same {text}"\nnegative = "{size} other {json_text}"')
    template = load_template(PromptSettings(template=str(table)))
    system, user = template.messages('"x"', 2, "negative")
    assert (system.content, user.content) == ("S", '2 other "\\"x\\""')


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", "{size} {polarity}", "no {text}"),
        ("a.txt", "{text} {polarity}", "no {size}"),
        ("a.txt", "{size} {text}", "no {polarity}"),
        ("a.toml", 'positive = "{size} {text}"', "no negative prompt"),
        ("a.toml", "positive = 1", "expected strings"),
        ("a.toml", "positive = ", "can't be read"),
        ("a.toml", 'other = "{text}"', "expected strings"),
        ("papr", None, "no such template"),
    ],
)
def test_unusable_templates(tmp_path: Path, name: str, content: str | None, says: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=says.replace("{", r"\{")) as caught:
        load_template(PromptSettings(template=str(path)))
    assert str(path) in str(caught.value)


KEPT_TEXTS = (Text.of("One.", 1), Text.of("Zwölf – two.", 7))


def a_record(**settings: object) -> RunRecord:
    label_settings = LabelSettings.model_validate({"llms": ["wordnet"], **settings})
    template = load_template(PromptSettings(template="hardened"))
    return RunRecord(label_settings, template, {"wordnet": ("d", "{}")}, "s.txt", "abc", {"empty": 2})


def test_only_the_owner_can_read_the_run(tmp_path: Path) -> None:
    record = a_record(size=4, filters={"min_differing_words": 5})
    save_run(tmp_path, record, KEPT_TEXTS)
    assert load_run(tmp_path) == (record, KEPT_TEXTS)
    for name in (RUN_FILE, TEXTS_FILE):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_only_answers_of_the_run_are_used() -> None:
    record = a_record(prompt={"polarities": ["negative"]}, size=4)
    task = GenerationTask(record)
    (ask,) = task.asks([Text.of("One.", 1)], "wordnet")
    assert (ask.key.llm, ask.key.task, ask.key.parameters) == ("wordnet", "negative", "d")
    assert ask.key.prompt_hash == record.template.prompt_hash(4, "negative")
    assert task.is_of_run(ask.key)
    for other in ({"llm": "x"}, {"task": "positive"}, {"prompt_hash": "h"}, {"parameters": "e"}):
        assert not task.is_of_run(replace(ask.key, **other))
    assert set(record.prompts) == {"system", "negative"}


def test_foreign_and_damaged_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a working folder"):
        load_run(tmp_path)
    (tmp_path / RUN_FILE).write_text('{"settings": {"size": 0}}')
    with pytest.raises(DataError, match="damaged"):
        load_run(tmp_path)
