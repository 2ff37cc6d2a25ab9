"""Models that are functions: judged as others, and run for nobody but who named them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import aoe_train
from aoe_train.evaluation.embedders.function import imported_model
from aoe_train.model.backbones.load import find_folder
from pairkit.app.errors import ConfigError, DataError

MODULE = """
import pathlib
pathlib.Path(__file__).with_name("was-imported").touch()

def embed(texts):
    return [[1.0, len(text)] for text in texts]

class Models:
    @staticmethod
    def nested(texts):
        return [[2.0] for _ in texts]

def one_short(texts):
    return [[1.0] for _ in texts[1:]]

def endless(texts):
    return [[float("nan")] for _ in texts]

def ragged(texts):
    return [[1.0] * (1 + place) for place, _ in enumerate(texts)]

size = 7
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_models", raising=False)
    (tmp_path / "my_models.py").write_text(MODULE)
    return tmp_path / "was-imported"


def test_a_function_is_judged_as_any_model(tmp_path: Path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("text1\ttext2\tscore\na\tb\t5\na\tfour\t3\na\tfar too long\t0\n")
    found = aoe_train.evaluate("python:my_models:embed", data=pairs, resamples=0, progress=False)
    (scores,) = found.to_dict().values()
    assert scores["spearman"] == pytest.approx(1)
    own = aoe_train.evaluate(lambda texts: [[1.0, len(text)] for text in texts], data=pairs, resamples=0)
    assert own.to_dict() == found.to_dict()
    assert not list((tmp_path / "cache").rglob("*lambda*"))


def test_prompts_are_part_of_the_texts():
    model = imported_model("python:my_models:embed")
    assert model.encode(["ab"], "query: ").tolist() == [[1, 9]]
    assert imported_model("python:my_models:Models.nested").encode(["a", "b"]).tolist() == [[2], [2]]


def test_another_module_is_another_model(tmp_path: Path):
    before = imported_model("python:my_models:embed").identity
    assert (
        imported_model("python:my_models:embed").identity
        == before
        != imported_model("python:my_models:one_short").identity
    )
    del sys.modules["my_models"]
    (tmp_path / "my_models.py").write_text(MODULE + "\nmore = 1\n")
    import linecache

    linecache.checkcache()
    assert imported_model("python:my_models:embed").identity != before


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("python:", "expected python:package.module:function"),
        ("python:my_models", "expected python:package.module:function"),
        ("python:no_such_module:embed", "No module named 'no_such_module'"),
        ("python:my_models:nothing", "my_models has no function nothing"),
        ("python:my_models:size", "my_models has no function size"),
    ],
)
def test_a_function_that_is_not_there_is_named(name: str, words: str):
    with pytest.raises(ConfigError, match=words):
        imported_model(name)


@pytest.mark.parametrize("name", ["one_short", "endless", "ragged"])
def test_what_is_no_row_for_each_text_is_refused(name: str):
    with pytest.raises(DataError, match=f"python:my_models:{name}: "):
        imported_model(f"python:my_models:{name}").encode(["a", "b", "c"])


def test_no_settings_file_runs_code(tmp_path: Path, module: Path):
    """A guide, a teacher, a backbone: what a file names is looked for, never imported."""
    name = "python:my_models:embed"
    with pytest.raises(ConfigError, match="no such folder"):
        find_folder(name)
    rows = [{"anchor": f"a {n}", "positive": f"b {n}"} for n in range(8)]
    for settings in ({"guide.model": name}, {"teacher.model": name, "objective.weights.embed_distill": 1}):
        with pytest.raises(ConfigError, match="no such folder"):
            aoe_train.train(rows, out=tmp_path / "m", settings=settings, progress=False)
    with pytest.raises(ConfigError, match="no such folder"):
        aoe_train.train(rows, backbone=name, out=tmp_path / "m", progress=False)
    assert not module.exists()
    imported_model(name)
    assert module.exists()
