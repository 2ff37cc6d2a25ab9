"""What the LLMs are asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_labeler.prompts import Template, load_template
from llm_labeler.records import POLARITIES, Text
from llm_labeler.runs.tasks import GenerationTask
from llm_labeler.settings import LabelSettings, PromptSettings
from llm_labeler.store.run_folder import RunRecord
from pairkit.app.errors import ConfigError

BOTH = POLARITIES


def test_the_papers_prompt_word_for_word() -> None:
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
def test_a_text_is_never_read_as_a_template(text: str) -> None:
    template = Template("own", {"positive": "<{size}|{text}>", "negative": "{text}"})
    (message,) = template.messages(text, 2, "positive")
    assert message.content == f"<2|{text}>"


def test_braces_of_a_template_mean_themselves() -> None:
    template = Template(
        "own", {"positive": 'Give {"a": {size}} for {text} and {other}', "negative": "{text}"}
    )
    (message,) = template.messages("{size} {text}", 2, "positive")
    assert message.content == 'Give {"a": 2} for {size} {text} and {other}'


@given(st.text(max_size=80))
def test_hardened_quotes_the_text(text: str) -> None:
    system, user = load_template(PromptSettings(template="hardened")).messages(text, 3, "negative")
    assert system.role == "system"
    quoted = user.content.partition("Sentence: ")[2]
    assert json.loads(quoted) == text


def test_the_hash_stands_for_template_and_size_and_not_for_the_text() -> None:
    paper, hardened = (load_template(PromptSettings(template=name)) for name in ("paper", "hardened"))
    hashes = [
        template.prompt_hash(size, polarity)
        for template in (paper, hardened)
        for size in (2, 3)
        for polarity in BOTH
    ]
    assert len(set(hashes)) == len(hashes)


def test_asks_are_known_by_what_they_say() -> None:
    texts = [Text.of("One.", 1), Text.of("Two.", 2)]
    template = load_template(PromptSettings())
    record = RunRecord(LabelSettings(llms=("llama",)), template, {"llama": ("p", "{}")}, "", "", {})
    asks = list(GenerationTask(record).asks(texts, "llama"))
    assert [(ask.key.text_id, ask.key.task) for ask in asks] == [
        (text.text_id, polarity) for text in texts for polarity in BOTH
    ]
    turned = list(GenerationTask(record).asks(texts[::-1], "llama"))
    assert {ask.key for ask in turned} == {ask.key for ask in asks}


def test_templates_of_ones_own(tmp_path: Path) -> None:
    plain = tmp_path / "mine.txt"
    plain.write_text("{size} {polarity} for {text}\n")
    assert load_template(PromptSettings(template=str(plain))).messages("x", 2, "negative")[0].content == (
        "2 antonym for x"
    )
    table = tmp_path / "mine.toml"
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
        ("a.toml", "positive = 1", "expected texts"),
        ("a.toml", "positive = ", "not readable"),
        ("a.toml", 'other = "{text}"', "expected texts"),
    ],
)
def test_unusable_templates(tmp_path: Path, name: str, content: str, says: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ConfigError, match=says.replace("{", r"\{")) as caught:
        load_template(PromptSettings(template=str(path)))
    assert str(path) in str(caught.value)


def test_no_such_template() -> None:
    with pytest.raises(ConfigError, match="no such template"):
        load_template(PromptSettings(template="papr"))
