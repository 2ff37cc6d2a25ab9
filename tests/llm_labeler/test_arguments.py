"""From arguments to settings; a mistake is one line that names the argument, not a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import llm_labeler
from llm_labeler.api import generate
from llm_labeler.clients.function import is_async
from llm_labeler.runs.arguments import read_arguments
from pairkit.app.errors import ConfigError
from pairkit.app.flag import setting_keys

KEYS = setting_keys(generate)
ANY: Any = llm_labeler  # called as no type checker lets one


def answer(prompt: str) -> str:
    return prompt


async def answer_later(prompt: str) -> str:
    return prompt


class Answering:
    async def __call__(self, prompt: str) -> str:
        return prompt


def test_defaults_then_the_file_then_settings_then_keywords(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text("size = 4\nseed = 4\n[input]\nlimit = 4\n")
    found, _ = read_arguments(
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
    found, functions = read_arguments(KEYS, {"llms": llms})
    assert found.proposers == names
    entries = {name: found.llm[name] for name in functions}
    assert {entry.kind for entry in entries.values()} <= {"function"}
    for name, entry in entries.items():
        function = functions[name]
        assert entry.model.startswith("python:")
        assert entry.model.endswith(getattr(function, "__qualname__", type(function).__qualname__))
        assert entry.concurrency == (16 if is_async(function) else 1)


def test_a_function_may_be_called_more_often_at_a_time_if_settings_say_so() -> None:
    found, _ = read_arguments(KEYS, {"llms": answer}, settings=["llm.answer.concurrency=4"])
    assert found.llm["answer"].concurrency == 4


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"llms": lambda prompt: prompt}, "'<lambda>' is not a name; .* llms={'mine': …}"),
        ({"llms": [answer, answer]}, "two functions have the same name"),
        ({"llms": [3]}, "'int' is int; expected a function"),
        ({"llms": {"a b": answer}}, "'a b' is not a name"),
        ({"llms": "a,,b"}, "expected NAME or NAME,NAME"),
        ({"llms": "wordnet", "polarity": "up"}, "expected positive, negative or both"),
        ({"llms": "wordnet", "strategy": answer}, "strategy"),
        ({"llms": "wordnet", "strategy": "best"}, "expected 'union', 'vote' or 'weighted'"),
    ],
)
def test_what_can_not_be_meant_is_one_line(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        read_arguments(KEYS, given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ANY.generate(["A plane."], llms=answer, out=None, progress=False), "out = None: "),
        (lambda: ANY.generate(["A plane."], llms=answer, work=5, progress=False), "work = 5: "),
        (lambda: ANY.generate(["A plane."], llms=answer, settings=5, progress=False), "settings = 5: "),
        (lambda: ANY.plan(["A plane."], llms=answer, out=None), "out = None: "),
        (lambda: ANY.parse(None), "work = None: "),
        (lambda: ANY.report(None), "work = None: "),
        (lambda: ANY.show(5, work="work"), "sentence = 5: "),
        (lambda: ANY.score([], work="work", threshold="x"), "threshold = 'x': "),
    ],
)
def test_a_wrong_argument_is_named(
    call: Callable[[], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as raised:
        call()
    assert str(raised.value).startswith(message)
    assert not [*tmp_path.iterdir()]
