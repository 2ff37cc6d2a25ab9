"""The labelling tasks, from texts to datasets."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import llm_labeler
from llm_labeler.clients.chat_completions import Dialect
from llm_labeler.parsing.filters import reject_hard_negative, reject_query
from llm_labeler.records import CHANGES, Ask, AskKey, Item, Message
from llm_labeler.runs.arguments import read_arguments
from llm_labeler.runs.label import prepare
from llm_labeler.runs.label_folder import load_run
from llm_labeler.runs.prompts import MAX_CHARACTERS, MAX_EXAMPLES, Template, load_template, read_examples
from llm_labeler.runs.questions_and_votes import GenerationTask
from llm_labeler.settings import FilterSettings, LlmSettings, PromptSettings
from pairkit.base.cli.options import setting_keys
from pairkit.base.errors import ConfigError, DataError
from pairkit.dataset.reading.reader import read_pairs, read_rows
from tests.support.llm import serve

SENTENCES = [
    "Stress can often cause insomnia in children.",
    "The doctor should often see the patients with asthma.",
    "Most of these lumps are usually benign.",
    "Swelling of the knee",  # a heading without candidates
]
FILTERS = FilterSettings()


def generate(out: Path, **changes: Any) -> llm_labeler.Labelled:
    return llm_labeler.generate(SENTENCES, **{"out": out, "llm": "wordnet", "progress": False} | changes)


def test_rules_make_triplets_for_training(tmp_path: Path) -> None:
    result = generate(tmp_path / "out", task="triplet", settings={"split.validation": 0.0, "split.test": 0.0})
    rows = read_rows(tmp_path / "out")["train"]
    assert rows.columns == ["anchor", "positive", "negatives"]
    assert set(rows["anchor"]) == set(SENTENCES[:3])
    pairs = read_pairs(tmp_path / "out")["train"]
    assert {"negative_kind", "text_id", "llms", "prompt_hashes", "aggregation"} <= {*pairs.columns}
    assert set(pairs["negative_kind"]) <= {*CHANGES}
    statistics = json.loads((tmp_path / "out" / "statistics.json").read_text())
    assert sum(statistics["negative_kinds"].values()) == rows.height
    assert statistics["splits"]["train"]["texts"] == 3
    assert result.statistics == statistics
    assert "hard negative" in (tmp_path / "out" / "README.md").read_text()
    assert [path.name for path in sorted((tmp_path / "out").iterdir()) if path.is_dir()] == ["triplet"]


def test_texts_without_both_polarities_are_counted(tmp_path: Path) -> None:
    def answer(prompt: str) -> str:
        return "" if "misled" in prompt else "1. In many people, stress can lead to insomnia."

    with pytest.raises(DataError, match="no_negative 1"):
        generate(tmp_path / "out", llm=answer, task="triplet", limit=1)


def test_an_llm_names_the_kind_of_each_hard_negative(tmp_path: Path) -> None:
    def answer(prompt: str) -> str:
        if "misled" not in prompt:
            return "1. In children, stress often leads to insomnia."
        return (
            "1. role: Insomnia can often cause stress in children.\n"
            "2. negation: Stress cannot cause insomnia in children.\n"
            "3. entity: Cats like fish on Fridays."
        )

    result = generate(tmp_path / "out", llm=answer, task="triplet", limit=1)
    assert result.statistics["negative_kinds"] == {"negation": 1, "role": 1}
    assert result.dropped == {"few_words_kept": 1} or result.dropped == {"nothing_shared": 1}


def test_unwanted_kinds_are_dropped(tmp_path: Path) -> None:
    settings = {"prompt.changes": "negation"}
    result = generate(tmp_path / "out", task="triplet", settings=settings)
    assert set(result.statistics["negative_kinds"]) == {"negation"}
    other = Item("The old pump may leak in summer.", change="entity")
    assert (
        reject_hard_negative(other, "The old pump may leak in winter.", FILTERS, ("negation",))
        == "unwanted_kind"
    )


def test_swapped_roles_are_not_copies() -> None:
    text = "The red team of the small town beat the blue team of the large city in the end."
    swapped = "The blue team of the large city beat the red team of the small town in the end."
    assert reject_hard_negative(Item(swapped, change="role"), text, FILTERS, CHANGES) is None
    assert reject_hard_negative(Item(text, change="role"), text, FILTERS, CHANGES) == "copy"


def test_a_query_must_be_a_question() -> None:
    passage = "The pump was tested in winter and leaked twice, so that it was sent back to the factory."
    assert reject_query("Why was the pump sent back?", passage, "positive", FILTERS) is None
    assert reject_query("The pump was sent back.", passage, "positive", FILTERS) == "asks_nothing"


def test_queries_become_triplets(tmp_path: Path) -> None:
    positive, negative = "What can stress cause in children?", "Which children have no stress?"

    def answer(prompt: str) -> str:
        return f"1. {negative if 'does not answer' in prompt else positive}"

    generate(tmp_path / "out", llm=answer, task="query", limit=1)
    (row,) = read_rows(tmp_path / "out")["train"].rows(named=True)
    assert row == {"anchor": SENTENCES[0], "positive": positive, "negatives": [negative]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "triplet", "polarity": "positive"}, "makes triplets, which need both"),
        ({"task": "triplet", "prompt": "paper"}, "belongs to the task paraphrase; leave it out"),
        ({"task": "query", "llm": "chatgpt", "aggregation": "vote"}, "pairs texts of different meaning"),
        ({"task": "triple"}, "expected 'paraphrase', 'triplet' or 'query'"),
        ({"task": "triplet", "settings": {"prompt.changes": "mood"}}, "negation"),
    ],
)
def test_impossible_settings_of_tasks_give_one_line(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        generate(tmp_path / "out", **changes)
    assert "\n" not in str(error.value)


def test_only_the_papers_prompt_has_no_schema() -> None:
    def schemas(**changes: Any) -> list[Any]:
        keys = setting_keys(llm_labeler.generate)
        result, functions = read_arguments(
            keys,
            {**dict.fromkeys(keys), "llm": "llama", **changes},
            settings=changes.pop("settings", None),
        )
        record, texts, _ = prepare(SENTENCES, None, result, functions)
        return [ask.schema for ask in GenerationTask(record).asks(texts.texts[:1], "llama")]

    assert schemas(prompt="paper") == [None, None]
    assert None not in schemas(prompt="paper", settings={"llm.llama.structured": "strict"})
    assert None not in schemas()
    positive, negative = schemas(task="triplet")
    assert negative["properties"]["sentences"]["items"]["properties"]["kind"]["enum"] == [*CHANGES]
    assert positive["properties"]["sentences"]["items"] == {"type": "string"}


@pytest.mark.parametrize("task", ["triplet", "query"])
def test_answers_with_a_schema_are_read(tmp_path: Path, task: str) -> None:
    with serve() as server:
        llms = {"mine": {"kind": "server", "model": "emulated", "base_url": server.base_url}}
        result = generate(tmp_path / "out", llm=llms, task=task, limit=2)
    assert result.statistics["splits"]["train"]["triplets"] == 6
    assert result.statistics["negative_kinds"] == {"negation" if task == "triplet" else "unknown": 6}
    assert result.dropped == {}


TEXT = "The old pump often leaks in winter."
TEMPLATE = Template("own", {"positive": "{size} of {text}", "negative": "{size} against {text}"})


def sampled(out: Path, llm: Any, **changes: Any) -> llm_labeler.Labelled:
    return llm_labeler.generate([TEXT], llm=llm, out=out, progress=False, **changes)


def test_samples_are_further_questions(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def answer(prompt: str) -> str:
        asked[prompt] += 1
        return f"1. The aged pump leaks in winter, as {'seen' if asked[prompt] % 2 else 'heard'}."

    first = sampled(tmp_path / "out", answer, polarity="positive")
    again = sampled(tmp_path / "out", answer, polarity="positive", samples=2, fresh=True)
    assert [*asked.values()] == [2]
    assert (again.asked.cached, again.asked.spent.requests) == (1, 1)
    assert (first.positives, again.positives) == (1, 2)
    more = sampled(tmp_path / "out", answer, polarity="positive", samples=3, fresh=True)
    assert (more.positives, more.dropped) == (2, {"repeated": 1})
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["settings"]["samples"] == 3


def test_rules_are_asked_once(tmp_path: Path) -> None:
    once, often = (sampled(tmp_path / str(number), "wordnet", samples=number) for number in (1, 4))
    assert once.asked.spent.requests == often.asked.spent.requests
    assert once.statistics == often.statistics
    assert "samples" not in json.loads((tmp_path / "1" / "run.json").read_text())["settings"]


def test_samples_at_temperature_0_are_refused(tmp_path: Path) -> None:
    cold = {"llm.chatgpt.temperature": 0}
    with pytest.raises(ConfigError, match="all answers of chatgpt are equal at temperature 0; set llm"):
        sampled(tmp_path / "out", "chatgpt", samples=2, settings=cold)


def test_each_sample_has_its_own_seed() -> None:
    dialect = Dialect("x", LlmSettings(kind="openai", model="m", seed=7))
    key = AskKey("t", "x", "positive", "h", "p")
    asks = [Ask(key, (Message("user", "hello"),), sample=sample) for sample in range(3)]
    assert [dialect.body(ask, dialect.form(ask))["seed"] for ask in asks] == [7, 8, 9]


def test_examples_are_messages_before_the_question(tmp_path: Path) -> None:
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


def test_run_json_has_only_the_hash_of_examples(tmp_path: Path) -> None:
    file = tmp_path / "few.csv"
    file.write_text("text1,text2,label\nA secret text.,A hidden text.,1\n")

    def answer(prompt: str) -> str:
        assert "A hidden text." in prompt
        return "1. In winter the old pump leaks often."

    result = sampled(tmp_path / "out", answer, polarity="positive", examples=file)
    record, _ = load_run(result.work)
    assert record.template == load_template(PromptSettings(examples=file, polarities=("positive",)))
    published = (tmp_path / "out" / "run.json").read_text() + (tmp_path / "out" / "README.md").read_text()
    assert "secret" not in published
    assert "of 1 texts, digest" in published
    with pytest.raises(ConfigError, match="samples, prompt and examples change the questions"):
        llm_labeler.parse(result.work, out=tmp_path / "two", settings={"samples": 2}, progress=False)


@pytest.mark.parametrize(
    "rows",
    [
        "".join(f"text {n},other {n},1\n" for n in range(MAX_EXAMPLES + 1)),
        "".join(f"text,other {n},1\n" for n in range(60_000)),
        f"text,{'long ' * (MAX_CHARACTERS // 5)},1\n",
    ],
)
def test_too_many_examples_are_refused(tmp_path: Path, rows: str) -> None:
    file = tmp_path / "long.csv"
    file.write_text("text1,text2,label\n" + rows)
    with pytest.raises(ConfigError, match=r"example texts with .* characters .* give at most 32 and 100,000"):
        read_examples(file)


def test_examples_are_one_line_with_known_kinds(tmp_path: Path) -> None:
    file = tmp_path / "few.jsonl"
    row = {"anchor": "It is hot.", "positive": "It is\n2. warm.", "negative": "It is cold."}
    for kind in ("retrieved", ["antonym"], 7):
        file.write_text(json.dumps(row | {"negative_kind": kind}) + "\n")
        assert read_examples(file) == {
            "positive": (("It is hot.", ("It is 2. warm.",)),),
            "negative": (("It is hot.", ("It is cold.",)),),
        }
