"""The tasks of `label`, from texts to datasets: what is asked, kept, written and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import llm_labeler
from llm_labeler.parsing.filters import hard_turned_down, query_turned_down
from llm_labeler.records import CHANGES, Item
from llm_labeler.runs.arguments import read_arguments
from llm_labeler.runs.label import prepare
from llm_labeler.runs.tasks import GenerationTask
from llm_labeler.settings import FilterSettings
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.flag import setting_keys
from pairkit.dataset.reader import read_pairs, read_rows
from tests.support.llm import serve

SENTENCES = [
    "Stress can often cause insomnia in children.",
    "The doctor should often see the patients with asthma.",
    "Most of these lumps are usually benign.",
    "Swelling of the knee",  # a heading: nothing comes of it
]
FILTERS = FilterSettings()


def made(out: Path, **given: Any) -> llm_labeler.Labelled:
    return llm_labeler.generate(SENTENCES, **{"out": out, "llms": "wordnet", "progress": False} | given)


def test_rules_make_triplets_that_training_reads_as_they_are(tmp_path: Path) -> None:
    found = made(tmp_path / "out", task="triplet", settings={"split.validation": 0.0, "split.test": 0.0})
    rows = read_rows(tmp_path / "out")["train"]
    assert rows.columns == ["anchor", "positive", "negatives"]
    assert set(rows["anchor"]) == set(SENTENCES[:3])
    pairs = read_pairs(tmp_path / "out")["train"]
    assert {"negative_kind", "text_id", "llms", "prompt_hashes", "strategy"} <= {*pairs.columns}
    assert set(pairs["negative_kind"]) <= {*CHANGES}
    statistics = json.loads((tmp_path / "out" / "statistics.json").read_text())
    assert sum(statistics["negative_kinds"].values()) == rows.height
    assert statistics["splits"]["train"]["texts"] == 3
    assert found.statistics == statistics
    assert "hard negative" in (tmp_path / "out" / "README.md").read_text()
    assert [path.name for path in sorted((tmp_path / "out").iterdir()) if path.is_dir()] == ["triplet"]


def test_a_text_without_both_gives_no_triplet_and_is_counted(tmp_path: Path) -> None:
    def mine(prompt: str) -> str:
        return "" if "misled" in prompt else "1. In many people, stress can lead to insomnia."

    with pytest.raises(DataError, match="no_negative 1"):
        made(tmp_path / "out", llms=mine, task="triplet", limit=1)


def test_an_llm_names_the_kind_of_each_hard_negative(tmp_path: Path) -> None:
    def mine(prompt: str) -> str:
        if "misled" not in prompt:
            return "1. In children, stress often leads to insomnia."
        return (
            "1. role: Insomnia can often cause stress in children.\n"
            "2. negation: Stress cannot cause insomnia in children.\n"
            "3. entity: Cats like fish on Fridays."
        )

    found = made(tmp_path / "out", llms=mine, task="triplet", limit=1)
    assert found.statistics["negative_kinds"] == {"negation": 1, "role": 1}
    assert found.dropped == {"few_words_kept": 1} or found.dropped == {"nothing_shared": 1}


def test_kinds_that_nobody_asked_for_are_dropped(tmp_path: Path) -> None:
    settings = {"prompt.changes": "negation"}
    found = made(tmp_path / "out", task="triplet", settings=settings)
    assert set(found.statistics["negative_kinds"]) == {"negation"}
    other = Item("The old pump may leak in summer.", change="entity")
    assert (
        hard_turned_down(other, "The old pump may leak in winter.", FILTERS, ("negation",)) == "unwanted_kind"
    )


def test_swapped_roles_are_no_copies() -> None:
    text = "The red team of the small town beat the blue team of the large city in the end."
    swapped = "The blue team of the large city beat the red team of the small town in the end."
    assert hard_turned_down(Item(swapped, change="role"), text, FILTERS, CHANGES) is None
    assert hard_turned_down(Item(text, change="role"), text, FILTERS, CHANGES) == "copy"


def test_a_query_has_to_ask() -> None:
    passage = "The pump was tested in winter and leaked twice, so that it was sent back to the factory."
    assert query_turned_down("Why was the pump sent back?", passage, "positive", FILTERS) is None
    assert query_turned_down("The pump was sent back.", passage, "positive", FILTERS) == "asks_nothing"


def test_queries_become_triplets(tmp_path: Path) -> None:
    positive, negative = "What can stress cause in children?", "Which children have no stress?"

    def mine(prompt: str) -> str:
        return f"1. {negative if 'does not answer' in prompt else positive}"

    made(tmp_path / "out", llms=mine, task="query", limit=1)
    (row,) = read_rows(tmp_path / "out")["train"].rows(named=True)
    assert row == {"anchor": SENTENCES[0], "positive": positive, "negatives": [negative]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": "triplet", "polarity": "positive"}, "makes triplets, which need both"),
        ({"task": "triplet", "prompt": "paper"}, "it is of the task papers; leave it out"),
        ({"task": "query", "llms": "chatgpt", "strategy": "vote"}, "pairs texts that never say the same"),
        ({"task": "triple"}, "expected 'papers', 'triplet' or 'query'"),
        ({"task": "triplet", "settings": {"prompt.changes": "mood"}}, "negation"),
    ],
)
def test_what_no_task_can_do_is_refused_in_one_line(
    tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        made(tmp_path / "out", **given)
    assert "\n" not in str(error.value)


def test_the_papers_prompt_goes_alone_and_others_with_a_schema() -> None:
    def schemas(**given: Any) -> list[Any]:
        found, functions = read_arguments(
            setting_keys(llm_labeler.generate),
            {"llms": "llama", **given},
            settings=given.pop("settings", None),
        )
        record, texts, _ = prepare(SENTENCES, None, found, functions)
        return [ask.schema for ask in GenerationTask(record).asks(texts.texts[:1], "llama")]

    assert schemas(prompt="paper") == [None, None]
    assert None not in schemas(prompt="paper", settings={"llm.llama.structured": "strict"})
    assert None not in schemas()
    positive, negative = schemas(task="triplet")
    assert negative["properties"]["sentences"]["items"]["properties"]["kind"]["enum"] == [*CHANGES]
    assert positive["properties"]["sentences"]["items"] == {"type": "string"}


@pytest.mark.parametrize("task", ["triplet", "query"])
def test_a_server_that_keeps_to_the_schema_is_understood(tmp_path: Path, task: str) -> None:
    with serve() as server:
        mine = {"mine": {"kind": "server", "model": "emulated", "base_url": server.base_url}}
        found = made(tmp_path / "out", llms=mine, task=task, limit=2)
    assert found.statistics["splits"]["train"]["triplets"] == 6
    assert found.statistics["negative_kinds"] == {"negation" if task == "triplet" else "unknown": 6}
    assert found.dropped == {}
