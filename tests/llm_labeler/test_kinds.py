"""The tables of kinds: each line names something that is there, and that does what its room asks for."""

from __future__ import annotations

import inspect

import pytest

from llm_labeler.clients.provider import Provider
from llm_labeler.judging.ensemble import union
from llm_labeler.settings import LLM_KINDS, OWN, STRATEGIES, load, own_name, strategy_of


@pytest.mark.parametrize("kind", LLM_KINDS)
def test_each_kind_of_llm_is_a_provider(kind: str) -> None:
    found = load(LLM_KINDS[kind].place)
    methods = {name for name, _ in inspect.getmembers(Provider, inspect.isfunction) if name[0] != "_"}
    assert methods == {"bound", "check", "reply", "close"}
    for name in methods:
        assert inspect.iscoroutinefunction(getattr(found, name)) == (name != "bound")


@pytest.mark.parametrize("name", STRATEGIES)
def test_each_strategy_decides_alike(name: str) -> None:
    found = load(strategy_of(name).place)
    assert len(inspect.signature(found).parameters) == len(inspect.signature(union).parameters)
    settings = {"strategy": name}
    assert "{" not in strategy_of(name).meaning.format(**settings)


def test_functions_that_people_give_go_by_their_qualified_names() -> None:
    assert own_name(union) == "python:llm_labeler.judging.ensemble.union"
    assert own_name(object()) == "python:builtins.object"
    mine = strategy_of(f"{OWN}mine.keep")
    assert (mine.is_judged, mine.is_graded) == (False, False)
    with pytest.raises(KeyError):
        strategy_of("best")
