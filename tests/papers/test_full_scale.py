"""Scale `full` of every recipe, from the Hub's data to the printed table, on tiny models."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import aoe_train
from aoe_train.settings.train_settings import TrainSettings
from pairkit.base.settings import load_settings
from papers.methods.word_vectors import write_bilstm
from papers.reproduce import training_data
from papers.reproduce.plan import Folders, plan
from papers.reproduce.recipe import read_recipe, recipe_names
from papers.reproduce.reproduce import Options, reproduce
from papers.reproduce.scoring import Scoring
from papers.suites.mteb import evaluate_mteb
from tests.docs.test_commands_are_known import tree
from tests.papers import hub
from tests.support.shorthand import (
    config_error,
    module_fixture,
    parametrize,
    table,
    values,
)


@module_fixture
def root(tmp_path_factory):
    """A folder with the models at their Hub ids, and the data."""
    root = tmp_path_factory.mktemp("full")
    hub.write_models(root)
    hub.write_data(root / "data")
    return root


@pytest.fixture
def full(root, tmp_path, monkeypatch):
    """A function that runs a recipe, or some rows of it."""
    train = aoe_train.train

    def without_bitsandbytes(*arguments, settings, **more):
        if lora := settings.get("lora"):
            settings = {**settings, "lora": {**lora, "four_bit": False}}
        return train(*arguments, settings=settings, **more)

    def without_llms(command, **_):
        name, *arguments = command[4:]
        # Checks the options.
        tree("label").commands[name].make_context(name, [*arguments])
        hub.write_labelled(Path(arguments[arguments.index("--out") + 1]))
        return SimpleNamespace(returncode=0)

    monkeypatch.chdir(root)
    monkeypatch.setattr("datasets.load_dataset", hub.load_dataset)
    monkeypatch.setattr(write_bilstm, "__defaults__", (6,))
    monkeypatch.setattr(aoe_train, "train", without_bitsandbytes)
    monkeypatch.setattr(training_data, "subprocess", SimpleNamespace(run=without_llms))
    monkeypatch.setattr("papers.reproduce.scoring.mteb_tasks", lambda *_: [])
    monkeypatch.setattr(
        "papers.reproduce.scoring.evaluate_mteb", lambda *_, **__: {"STS12": 0.5}
    )
    # Slow, and not new.
    monkeypatch.setattr("papers.suites.probe.predict", lambda *parts: 0 * parts[-1][1])
    hub.few_rows(monkeypatch)

    def run(name, *only):
        options = Options(
            "full", root / "data", tmp_path / "out", seeds=(0,), only=only
        )
        return reproduce(read_recipe(name), options, say=print)

    return run


def rows_of(name):
    return [row.name for row in read_recipe(name).runs if row.at("full").skip is None]


def check(name, found, rows):
    """All rows have scores, and the published ones are of columns that exist."""
    assert [row["row"] for row in found["rows"]] == rows
    published = {row.name: row.published for row in read_recipe(name).runs}
    for row in found["rows"]:
        columns = {*row["figures"]} - {"dev"}
        assert columns
        if published[row["row"]] and name != "unsupervised":
            assert columns & {*published[row["row"]]}


@parametrize("name", recipe_names())
def test_recipes_run_on_data_of_the_hub(name, full):
    last = rows_of(name)[-1:]
    check(name, full(name, *last), last)


@pytest.mark.slow
@parametrize("name", recipe_names())
def test_every_row_runs_on_data_of_the_hub(name, full):
    check(name, full(name), rows_of(name))


def test_mteb_is_named_before_a_model_is_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "mteb", None)  # as if it were not installed
    with config_error(r"suite mteb needs mteb.*pip install 'aoe-toolkit\[mteb\]'"):
        Scoring(read_recipe("mteb").at("full").evaluate, Folders(None, Path("w")))


def test_mteb_tasks(root, monkeypatch):
    mteb = pytest.importorskip("mteb", reason="extra: mteb is not installed")
    from mteb.mocks import mock_tasks

    monkeypatch.chdir(root)
    tasks = [mock_tasks.MockSTSTask(), mock_tasks.MockRetrievalTask()]
    monkeypatch.setattr(mteb, "get_tasks", lambda tasks: tasks and known)
    known = tasks
    found = evaluate_mteb("google-bert/bert-base-uncased", ["any"])
    assert set(found) == {"MockSTSTask", "MockRetrievalTask"}
    assert all(-1 <= score <= 1 for score in found.values())


# The settings of rows at scale `full`, as the papers or the authors' code have them; see papers/settings.md.
BERT = "encoder.pooling=cls; encoder.max_length=128; optim.lr=5e-5; batches.strategy=shuffle"
ADAPTERS = 'lora={rank = 32, alpha = 32, dropout = 0.1, targets = ["q_proj", "v_proj"], four_bit = true}'
LLAMA = f"encoder.pooling=last; optim.lr=1e-4; {ADAPTERS}"
LLAMA_NLI = f"{LLAMA}; encoder.max_length=50; optim.batch_size=120; optim.accumulation=4; optim.epochs=1"
THREE = "objective.weights={cosent = 1, in_batch = 1, angle = 1, contrastive = 0, sbert = 0}"
TAUS = "objective.tau={cosent = 0.05, in_batch = 0.05, angle = 1.0}"
ANGLE = f"{THREE}; {TAUS}; objective.duplicates=positive"
TRIPLE = f"{ANGLE}; objective.weights.in_batch=35"
TAU = "objective.tau={angle = 0.05, contrastive = 0.05}"
AOE = f"objective.weights={{cosent = 0, in_batch = 0, angle = 1, contrastive = 1, sbert = 0}}; {TAU}"
SIMCSE = "encoder.max_length=32; optim.batch_size=512; optim.epochs=3; objective.duplicates=negative"
SETTINGS = f"""
stsb | AnglE | {BERT}; {ANGLE}
stsb | AoE | {BERT}; {AOE}
gis | AoE | {BERT}; {AOE}; encoder.max_length=512
mrpc | AnglE | {BERT}; {ANGLE}
qqp | AnglE | {BERT}; {ANGLE}
qnli | AnglE | {BERT}; {ANGLE}
retrieval | AnglE | {BERT}; {ANGLE}
retrieval | AoE | {BERT}; {AOE}
nli | SBERT, own settings | {BERT}; encoder.pooling=avg; optim.lr=2e-5; optim.batch_size=16; optim.epochs=1
nli | SimCSE, own settings | {BERT}; {SIMCSE}
nli | AnglE | {BERT}; {ANGLE}
nli | AoE | {BERT}; {AOE}
nli-llama | AnglE | {LLAMA_NLI}; {TRIPLE}
nli-llama | AnglE, quoted prompt | prompts=Summarize sentence "{{text}}" in one word:"
nli-llama | AoE | {LLAMA_NLI}; {AOE}; prompts=Summarize sentence {{text}} in one word:
stsb-llama | AoE | {LLAMA}; {AOE}
transfer | AoE, LLaMA 7B | {LLAMA_NLI}; {AOE}
transfer | AnglE, LLaMA 7B | {LLAMA_NLI}; {TRIPLE}
transfer | SimCSE, RoBERTa | encoder.pooling=cls; optim.lr=1e-5; optim.batch_size=512; optim.accumulation=1
ablation | AnglE, copies are negatives | {BERT}; {ANGLE}; objective.duplicates=negative
ablation-nli | only angle | {BERT}; {AOE}; objective.weights.contrastive=0
seeds | AoE, seed 42 | {BERT}; {AOE}; seed=42
unsupervised | whitening | encoder.pooling=first-last-avg
unsupervised | CT | encoder.pooling=avg; optim.lr=1e-5
unsupervised | IS-BERT | encoder.pooling=avg; optim.lr=2e-5
unsupervised | SimCSE | encoder.pooling=cls; optim.lr=3e-5; optim.batch_size=64; optim.epochs=1
"""


def resolved(name, scale="full"):
    """The first run of each row."""
    runs, _ = plan(read_recipe(name), scale, Folders(Path("d"), Path("w")))
    return {run.row: run for run in reversed(runs)}


@parametrize("name, row, assignments", values(SETTINGS))
def test_settings_are_the_papers(name, row, assignments):
    """The papers' values change nothing."""
    given = resolved(name)[row].settings
    papers = load_settings(TrainSettings, below=given, settings=assignments.split("; "))
    assert papers == TrainSettings.model_validate(given)


@table(
    """
    name, row, data
    retrieval | AnglE | all-nli:pair-class
    retrieval | AoE | nli-for-simcse:triplet
    nli | AnglE | all-nli:pair-class
    transfer | AnglE, LLaMA 7B | all-nli:pair-class
    """
)
def test_data_are_the_papers(name, row, data):
    assert resolved(name)[row].source.train == (f"sentence-transformers/{data}",)


@parametrize("name", recipe_names())
def test_rows_differ(name):
    for scale in read_recipe(name).scales:
        runs = resolved(name, scale).values()
        assert len({repr(replace(run, row="", seed=0)) for run in runs}) == len(runs)
