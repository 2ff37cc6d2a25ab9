"""Scale `full` of every recipe, from the Hub's data to the printed table, on tiny models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import aoe_train
from papers.methods.bilstm import write_bilstm
from papers.reproduce.recipe import read_recipe, recipe_names
from papers.reproduce.reproduce import Options, reproduce
from tests.papers import hub


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """A folder with the models at their Hub ids, and the data."""
    root = tmp_path_factory.mktemp("full")
    hub.write_models(root)
    hub.write_data(root / "data")
    return root


@pytest.fixture
def full(root: Path, tmp_path: Path, monkeypatch) -> Any:
    """A function that runs rows of a recipe."""
    monkeypatch.chdir(root)
    monkeypatch.setattr("datasets.load_dataset", hub.load_dataset)
    monkeypatch.setattr(write_bilstm, "__defaults__", (6,))
    train = aoe_train.train

    def without_bitsandbytes(*arguments: Any, settings: Any, **more: Any) -> Any:
        lora = settings.get("lora")
        return train(
            *arguments,
            settings={**settings, **({"lora": {**lora, "four_bit": False}} if lora else {})},
            **more,
        )

    monkeypatch.setattr(aoe_train, "train", without_bitsandbytes)

    def run(name: str, *only: str) -> dict[str, Any]:
        options = Options("full", root / "data", tmp_path / "out", seeds=(0,), only=only)
        return reproduce(read_recipe(name), options, say=print)

    return run


@pytest.mark.parametrize("name", recipe_names())
def test_every_row(name: str, full: Any, tmp_path: Path):
    found = full(name)
    recipe = read_recipe(name)
    skipped = [row.name for row in recipe.runs if row.at("full").skip]
    assert list(found["left_out"]) == skipped
    assert [row["row"] for row in found["rows"]] == [
        row.name for row in recipe.runs if row.name not in skipped
    ]
    for row in found["rows"]:
        assert set(row["figures"]) - {"dev"}, row
