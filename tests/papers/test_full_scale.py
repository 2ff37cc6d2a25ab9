"""Scale `full` of every recipe, from the Hub's data to the printed table, on tiny models."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aoe_train
from papers.methods.bilstm import write_bilstm
from papers.reproduce.recipe import read_recipe, recipe_names
from papers.reproduce.reproduce import Options, reproduce
from papers.suites.mteb import evaluate_mteb
from tests.docs.test_commands_are_known import tree
from tests.papers import hub

Reproduce = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """A folder with the models at their Hub ids, and the data."""
    root = tmp_path_factory.mktemp("full")
    hub.write_models(root)
    hub.write_data(root / "data")
    return root


@pytest.fixture
def full(root: Path, tmp_path: Path, monkeypatch) -> Reproduce:
    """A function that runs a recipe, or some rows of it."""
    train = aoe_train.train

    def without_bitsandbytes(*arguments: Any, settings: Any, **more: Any) -> Any:
        if lora := settings.get("lora"):
            settings = {**settings, "lora": {**lora, "four_bit": False}}
        return train(*arguments, settings=settings, **more)

    def without_llms(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        name, *arguments = command[4:]
        tree("label").commands[name].make_context(name, [*arguments])  # checks the options
        hub.write_labelled(Path(arguments[arguments.index("--out") + 1]))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.chdir(root)
    monkeypatch.setattr("datasets.load_dataset", hub.load_dataset)
    monkeypatch.setattr(write_bilstm, "__defaults__", (6,))
    monkeypatch.setattr(aoe_train, "train", without_bitsandbytes)
    monkeypatch.setattr("papers.reproduce.training_data.subprocess.run", without_llms)
    monkeypatch.setattr("papers.reproduce.scoring.evaluate_mteb", lambda *_: {"STS12": 0.5})
    monkeypatch.setattr("papers.suites.probe.predict", lambda *parts: 0 * parts[-1][1])  # slow, and not new
    hub.few_rows(monkeypatch)

    def run(name: str, *only: str) -> dict[str, Any]:
        options = Options("full", root / "data", tmp_path / "out", seeds=(0,), only=only)
        return reproduce(read_recipe(name), options, say=print)

    return run


def rows_of(name: str) -> list[str]:
    return [row.name for row in read_recipe(name).runs if row.at("full").skip is None]


def check(name: str, found: dict[str, Any], rows: list[str]) -> None:
    """All rows have scores, and the published ones are of columns that exist."""
    assert [row["row"] for row in found["rows"]] == rows
    published = {row.name: row.paper for row in read_recipe(name).runs}
    for row in found["rows"]:
        columns = set(row["figures"]) - {"dev"}
        assert columns
        assert set(published[row["row"]]) <= columns or name == "unsupervised"


@pytest.mark.parametrize("name", recipe_names())
def test_recipes_run_on_data_of_the_hub(name: str, full: Reproduce):
    last = rows_of(name)[-1:]
    check(name, full(name, *last), last)


@pytest.mark.slow
@pytest.mark.parametrize("name", recipe_names())
def test_every_row_runs_on_data_of_the_hub(name: str, full: Reproduce):
    check(name, full(name), rows_of(name))


def test_mteb_tasks(root: Path, monkeypatch):
    mteb = pytest.importorskip("mteb", reason="extra: mteb is not installed")
    from mteb.mocks import mock_tasks

    monkeypatch.chdir(root)
    tasks = [mock_tasks.MockSTSTask(), mock_tasks.MockRetrievalTask()]
    monkeypatch.setattr(mteb, "get_tasks", lambda tasks: tasks and known)
    known = tasks
    found = evaluate_mteb("google-bert/bert-base-uncased", ["any"])
    assert set(found) == {"MockSTSTask", "MockRetrievalTask"}
    assert all(-1 <= score <= 1 for score in found.values())
