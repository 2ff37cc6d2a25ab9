"""From keyword arguments to settings, and the functions among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llm_labeler.api import generate, judge, parse
from llm_labeler.runs.given import is_async, read_given
from pairkit.app.errors import ConfigError
from pairkit.app.flag import setting_keys

KEYS = setting_keys(generate)


def answer(prompt: str) -> str:
    return prompt


async def answer_later(prompt: str) -> str:
    return prompt


class Answering:
    async def __call__(self, prompt: str) -> str:
        return prompt


def test_each_keyword_sets_what_its_flag_sets() -> None:
    given: dict[str, Any] = {
        "task": "papers",
        "samples": 2,
        "examples": "few.csv",
        "llms": ["a", "b"],
        "judges": "b",
        "size": 5,
        "seed": 7,
        "local_only": True,
        "prompt": "hardened",
        "polarity": "negative",
        "strategy": "vote",
        "limit": 9,
        "draw": 8,
        "max_cost": 1.5,
        "max_tokens": 10,
        "max_requests": 3,
    }
    assert given.keys() == KEYS.keys()
    assert setting_keys(judge).items() | setting_keys(parse).items() < KEYS.items()
    entry = {"kind": "server", "model": "m", "base_url": "http://localhost:1/v1"}
    found, _ = read_given(KEYS, given, settings={"llm.a": entry, "llm.b": entry})
    assert (found.llms, found.judge.llms, found.size, found.seed) == (("a", "b"), ("b",), 5, 7)
    assert (found.local_only, found.prompt.template, found.prompt.polarities) == (
        True,
        "hardened",
        ("negative",),
    )
    assert (found.ensemble.strategy, found.input.limit) == ("vote", 9)
    assert (found.budget.max_cost, found.budget.max_tokens, found.budget.max_requests) == (1.5, 10, 3)


def test_defaults_then_the_file_then_settings_then_keywords(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text("size = 4\nseed = 4\n[input]\nlimit = 4\n")
    found, _ = read_given(
        KEYS, {"llms": "wordnet", "size": 6}, config=config, settings={"size": 5, "seed": 5}
    )
    assert (found.size, found.seed, found.input.limit, found.input.min_chars) == (6, 5, 4, 1)


@pytest.mark.parametrize(
    ("llms", "names"),
    [
        ("chatgpt, llama", ("chatgpt", "llama")),
        (("ensemble",), ("chatgpt", "llama", "chatglm")),
        (answer, ("answer",)),
        (["wordnet", answer, answer_later], ("wordnet", "answer", "answer_later")),
        (Answering(), ("Answering",)),
        ({"one": answer, "two": answer}, ("one", "two")),
        ({"one": {"kind": "wordnet"}}, ("one",)),
    ],
)
def test_llms_by_name_function_and_entry(llms: Any, names: tuple[str, ...]) -> None:
    found, own = read_given(KEYS, {"llms": llms})
    assert found.proposers == names
    functions = {name: found.llm[name] for name in own.llms}
    assert {entry.kind for entry in functions.values()} <= {"function"}
    for name, entry in functions.items():
        function = own.llms[name]
        assert entry.model.startswith("python:")
        assert entry.model.endswith(getattr(function, "__qualname__", type(function).__qualname__))
        assert entry.concurrency == (16 if is_async(function) else 1)


def test_a_function_may_be_called_more_often_at_a_time_if_settings_say_so() -> None:
    found, _ = read_given(KEYS, {"llms": answer}, settings=["llm.answer.concurrency=4"])
    assert found.llm["answer"].concurrency == 4


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"llms": lambda prompt: prompt}, "'<lambda>' is no name; .* llms={'mine': …}"),
        ({"llms": [answer, answer]}, "two functions have the same name"),
        ({"llms": [3]}, "'int' is int; expected a function"),
        ({"llms": {"a b": answer}}, "'a b' is no name"),
        ({"llms": "a,,b"}, "expected NAME or NAME,NAME"),
        ({"llms": "wordnet", "polarity": "up"}, "expected positive, negative or both"),
        ({"llms": "wordnet", "strategy": "best"}, "expected 'union', 'vote' or 'weighted'"),
    ],
)
def test_what_can_not_be_meant_is_one_line(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        read_given(KEYS, given)
    assert "\n" not in str(caught.value)
