"""A mistake in a call from Python is one line that names the argument, not a traceback from deep inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import llm_labeler
from pairkit import ConfigError

ANY: Any = llm_labeler  # called as no type checker lets one


def mine(prompt: str) -> str:
    return f"1. {len(prompt)} planes are taking off."


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ANY.generate(["A plane."], llms=mine, out=None, progress=False), "out = None: "),
        (lambda: ANY.generate(["A plane."], llms=mine, work=5, progress=False), "work = 5: "),
        (lambda: ANY.generate(["A plane."], llms=mine, settings=5, progress=False), "settings = 5: "),
        (lambda: ANY.plan(["A plane."], llms=mine, out=None), "out = None: "),
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
