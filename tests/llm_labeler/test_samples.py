"""Asking the same several times, and examples that go along with a question."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import llm_labeler
from llm_labeler.clients.chat_completions import Dialect
from llm_labeler.records import Ask, AskKey, Message
from llm_labeler.runs.prompts import MOST, MOST_CHARACTERS, Template, load_template, read_examples
from llm_labeler.runs.run_folder import load_run
from llm_labeler.settings import LlmSettings, PromptSettings
from pairkit.app.errors import ConfigError

TEXT = "The old pump often leaks in winter."
TEMPLATE = Template("own", {"positive": "{size} of {text}", "negative": "{size} against {text}"})


def made(out: Path, llm: Any, **given: Any) -> llm_labeler.Labelled:
    return llm_labeler.generate([TEXT], llms=llm, out=out, progress=False, **given)


def test_each_sample_is_another_question_and_the_first_is_the_one_asked_before(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def mine(prompt: str) -> str:
        asked[prompt] += 1
        return f"1. The aged pump leaks in winter, as {'seen' if asked[prompt] % 2 else 'heard'}."

    first = made(tmp_path / "out", mine, polarity="positive")
    again = made(tmp_path / "out", mine, polarity="positive", samples=2, fresh=True)
    assert [*asked.values()] == [2]
    assert (again.asked.cached, again.spent.requests) == (1, 1)
    assert (first.positives, again.positives) == (1, 2)
    more = made(tmp_path / "out", mine, polarity="positive", samples=3, fresh=True)
    assert (more.positives, more.dropped) == (2, {"repeated": 1})
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["settings"]["samples"] == 3


def test_rules_are_asked_once(tmp_path: Path) -> None:
    once, often = (made(tmp_path / str(number), "wordnet", samples=number) for number in (1, 4))
    assert once.asked.spent.requests == often.asked.spent.requests
    assert once.statistics == often.statistics
    assert "samples" not in json.loads((tmp_path / "1" / "run.json").read_text())["settings"]


def test_samples_of_one_that_always_answers_alike_are_refused(tmp_path: Path) -> None:
    cold = {"llm.chatgpt.temperature": 0}
    with pytest.raises(ConfigError, match="chatgpt always answers alike; set llm"):
        made(tmp_path / "out", "chatgpt", samples=2, settings=cold)


def test_each_sample_has_a_seed_of_its_own() -> None:
    dialect = Dialect("x", LlmSettings(kind="openai", model="m", seed=7))
    key = AskKey("t", "x", "positive", "h", "p")
    asks = [Ask(key, (Message("user", "hello"),), sample=sample) for sample in range(3)]
    assert [dialect.body(ask, dialect.form)["seed"] for ask in asks] == [7, 8, 9]


def test_examples_stand_before_the_question_as_turns(tmp_path: Path) -> None:
    file = tmp_path / "few.jsonl"
    cold = {"anchor": "It is hot.", "negative": "It is cold.", "negative_kind": "antonym"}
    rows = [cold | {"positive": positive} for positive in ("It is warm.", "Heat is felt.")]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shots = read_examples(file)
    assert shots == {
        "positive": (("It is hot.", ("It is warm.", "Heat is felt.")),),
        "negative": (("It is hot.", ("antonym: It is cold.",)),),
    }
    template = Template("own", TEMPLATE.user, "Be brief.", shots)
    assert [(turn.role, turn.content) for turn in template.messages(TEXT, 3, "positive")] == [
        ("system", "Be brief."),
        ("user", "2 of It is hot."),
        ("assistant", "1. It is warm.\n2. Heat is felt."),
        ("user", f"3 of {TEXT}"),
    ]
    assert template.prompt_hash(3, "positive") != Template("own", TEMPLATE.user, "Be brief.").prompt_hash(
        3, "positive"
    )
    assert load_template(PromptSettings(examples=file)).examples == shots


def test_a_run_remembers_its_examples_and_tells_no_more_than_their_digest(tmp_path: Path) -> None:
    file = tmp_path / "few.csv"
    file.write_text("text1,text2,label\nA secret text.,A hidden text.,1\n")

    def mine(prompt: str) -> str:
        assert "A hidden text." in prompt
        return "1. In winter the old pump leaks often."

    found = made(tmp_path / "out", mine, polarity="positive", examples=file)
    record, _ = load_run(found.work)
    assert record.template == load_template(PromptSettings(examples=file, polarities=("positive",)))
    told = (tmp_path / "out" / "run.json").read_text() + (tmp_path / "out" / "README.md").read_text()
    assert "secret" not in told
    assert "of 1 texts, digest" in told
    with pytest.raises(ConfigError, match="samples, prompt and examples are what the LLMs were asked"):
        llm_labeler.parse(found.work, out=tmp_path / "two", settings={"samples": 2}, progress=False)


@pytest.mark.parametrize(
    "rows",
    [
        "".join(f"text {n},other {n},1\n" for n in range(MOST + 1)),
        "".join(f"text,other {n},1\n" for n in range(60_000)),
        f"text,{'long ' * (MOST_CHARACTERS // 5)},1\n",
    ],
)
def test_too_many_examples_are_refused(tmp_path: Path, rows: str) -> None:
    file = tmp_path / "long.csv"
    file.write_text("text1,text2,label\n" + rows)
    with pytest.raises(ConfigError, match=r"examples of .* characters, .* give at most 32 and 100,000"):
        read_examples(file)


def test_an_example_is_one_line_and_has_no_kind_that_answers_have_not(tmp_path: Path) -> None:
    file = tmp_path / "few.jsonl"
    row = {"anchor": "It is hot.", "positive": "It is\n2. warm.", "negative": "It is cold."}
    for kind in ("retrieved", ["antonym"], 7):
        file.write_text(json.dumps(row | {"negative_kind": kind}) + "\n")
        assert read_examples(file) == {
            "positive": (("It is hot.", ("It is 2. warm.",)),),
            "negative": (("It is hot.", ("It is cold.",)),),
        }
