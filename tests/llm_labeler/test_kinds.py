"""The tables of kinds: each line names something that is there, and that does what its room asks for."""

from __future__ import annotations

import inspect
from typing import get_type_hints

import pytest

from llm_labeler._ensemble.strategies import union
from llm_labeler._kinds import LLM_KINDS, OWN, STRATEGIES, TASKS, load, own_name, strategy_of
from llm_labeler._provider import Provider
from llm_labeler._tasks import LabellingTask


@pytest.mark.parametrize("kind", LLM_KINDS)
def test_each_kind_of_llm_is_a_provider(kind: str) -> None:
    found = load("_providers", LLM_KINDS[kind].place)
    methods = {name for name, _ in inspect.getmembers(Provider, inspect.isfunction) if name[0] != "_"}
    assert methods == {"bound", "check", "reply", "close"}
    for name in methods:
        assert inspect.iscoroutinefunction(getattr(found, name)) == (name != "bound")


@pytest.mark.parametrize("name", STRATEGIES)
def test_each_strategy_decides_alike(name: str) -> None:
    found = load("_ensemble", strategy_of(name).place)
    assert len(inspect.signature(found).parameters) == len(inspect.signature(union).parameters)
    settings = {"min_sources": 2, "strategy": name}
    assert "{" not in strategy_of(name).meaning.format(**settings)


@pytest.mark.parametrize("name", TASKS)
def test_each_task_asks_and_reads(name: str) -> None:
    found = load("_tasks", TASKS[name].place)
    for wanted in ("asks", "is_of_run", "screen"):
        protocol = inspect.signature(getattr(LabellingTask, wanted))
        assert [*inspect.signature(getattr(found, wanted)).parameters] == [*protocol.parameters]
        assert get_type_hints(getattr(found, wanted))["return"] is not None


def test_functions_that_people_give_go_by_their_qualified_names() -> None:
    assert own_name(union) == "python:llm_labeler._ensemble.strategies.union"
    assert own_name(object()) == "python:builtins.object"
    mine = strategy_of(f"{OWN}mine.keep")
    assert (mine.is_judged, mine.is_graded) == (False, False)
    with pytest.raises(KeyError):
        strategy_of("best")
