"""Recipes: what a file may say, which runs that makes, and a table from tiny trainings."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import aoe_train
from pairkit.app.errors import ConfigError, DataError
from papers.__main__ import app
from papers.methods.bilstm import write_bilstm
from papers.reproduce.consent import list_actions
from papers.reproduce.plan import Folders, merged, plan
from papers.reproduce.recipe import Recipe, Source, Texts, read_recipe, recipe_names
from papers.reproduce.reproduce import Options, reproduce
from papers.reproduce.runner import Record
from papers.reproduce.table import markdown, summary
from papers.reproduce.training_data import TrainingData, prepare, training_data
from tests.aoe_train.test_train import write_pairs
from tests.aoe_train.tiny import save_words

RECIPE = """
title = "Tiny"
paper = "Nobody 2026, Table 9"
about = "Two rows."

[settings]
optim.batch_size = 8
optim.lr = 1e-3
encoder.max_length = 16

[[runs]]
name = "none"
train = false

[[runs]]
name = "CoSENT"
settings = { preset = "cosent-paper" }
paper = { held = 81.5 }

[[runs]]
name = "CT"
texts = {}
method = "ct"
scales.full = { skip = "needs a larger machine" }

[scales.small]
backbone = "{data}/bert"
seeds = [0, 1]

[scales.small.source]
train = "{data}/train.tsv"
dev = "{data}/dev.tsv"
rows = 16

[[scales.small.evaluate]]
suite = "pairs"
data = "{data}/dev.tsv"
name = "held"

[scales.full]
backbone = "somebody/bert"
source = { train = "somebody/pairs" }
evaluate = [{ suite = "sts" }]
"""
FOLDERS = Folders(Path("d"), Path("w"))
NONE = 'name = "none"\ntrain = false'


@pytest.fixture
def place(tmp_path: Path, shallow: Path) -> Path:
    """A data folder with a recipe beside it."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "bert").symlink_to(shallow)
    write_pairs(data / "train.tsv", 64, 1)
    write_pairs(data / "dev.tsv", 24, 2)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    return tmp_path


@pytest.fixture
def recipe(place: Path) -> Recipe:
    """The recipe."""
    return read_recipe(str(place / "tiny.toml"))


def silent(_: str) -> None:
    pass


def options(place: Path, **given: Any) -> Options:
    """All of the recipe at scale small."""
    return Options("small", place / "data", place / "out", **given)


def changed(place: Path, old: str, new: str) -> Recipe:
    """The recipe with other words."""
    (place / "changed.toml").write_text(RECIPE.replace(old, new, 1))
    return read_recipe(str(place / "changed.toml"))


def test_our_recipes_are_sound():
    for name in recipe_names():
        found = read_recipe(name)
        assert "full" in found.scales
        for scale in found.scales:
            runs, _ = plan(found, scale, FOLDERS)
            assert runs
            assert all("{" not in run.backbone for run in runs)


def test_rows_come_seed_by_seed_and_layers_in_order(place: Path, recipe: Recipe):
    given = ["optim.epochs=2", "optim.scheduler=cosine"]
    runs, skipped = plan(recipe, "small", FOLDERS, assignments=given)
    rows = [("none", 0), ("CoSENT", 0), ("CT", 0), ("CoSENT", 1), ("CT", 1)]
    assert [(run.row, run.seed) for run in runs] == rows
    assert not skipped
    assert runs[3].settings == {
        "preset": "cosent-paper",
        "seed": 1,
        "encoder": {"max_length": 16},
        "optim": {"batch_size": 8, "lr": 1e-3, "epochs": 2, "scheduler": "cosine"},
    }
    assert runs[4].settings["preset"] == "auto"
    assert [run.train for run in runs] == [False, True, True, True, True]
    below = {"a": {"x": 1, "y": 2}, "b": 1}
    assert merged(below, {"a": {"y": 3}, "b": {"z": 1}}) == {"a": {"x": 1, "y": 3}, "b": {"z": 1}}
    runs, skipped = plan(recipe, "full", FOLDERS)
    assert skipped == {"CT": "needs a larger machine"}
    assert {run.row for run in runs} == {"none", "CoSENT"}
    at = recipe.at("smoke")  # small, with little of everything
    assert (at.seeds, at.source.rows) == ((0,), 16)
    runs, _ = plan(recipe, "smoke", FOLDERS)
    assert runs[1].settings["optim"]["epochs"] == 1
    runs, _ = plan(changed(place, "optim.lr = 1e-3\n", ""), "small", FOLDERS, only=["CT"])
    assert runs[0].settings["optim"]["lr"] == 1e-5  # which the method brings


def table(path: Path, *rows: str) -> None:
    path.write_text("\n".join(rows) + "\n")


def test_some_rows_and_bare_texts(place: Path):
    data, places = place / "data", Folders(place / "data", place / "work")
    source = Source(train="{data}/train.tsv", dev="{data}/dev.tsv", rows=10)
    found = training_data(source, places)
    rows = pl.read_parquet(found.train)
    assert (rows.columns, rows.height) == (["text1", "text2", "label"], 10)
    assert found.dev == str(data / "dev.tsv")
    assert training_data(source, places) == found
    whole = source.model_copy(update={"rows": None})
    assert training_data(whole, places) == TrainingData(str(data / "train.tsv"), str(data / "dev.tsv"))
    assert pl.read_parquet(training_data(whole, places, Texts()).train)["text"].is_unique().all()
    table(data / "own.csv", "body,more", "first text,x", "second text,y", "third text,z")
    chosen = training_data(whole, places, Texts(of="{data}/own.csv", columns={"text": "body"}, first=2)).train
    assert pl.read_parquet(chosen)["text"].to_list() == ["first text", "second text"]
    table(data / "triplets.jsonl", json.dumps({"anchor": "a", "positive": "b", "negatives": ["c", "d"]}))
    bare = training_data(Source(train="{data}/triplets.jsonl"), places, Texts()).train
    assert sorted(pl.read_parquet(bare)["text"]) == ["a", "b", "c", "d"]
    for name in ("words", "held"):  # words for labels, which are replaced in held-out rows too
        rows_ = [f"a {name} {n}\tb {n}\t{'yes' if n % 2 else 'no'}" for n in range(8)]
        table(data / f"{name}.tsv", "text1\ttext2\tlabel", *rows_)
    source = Source(train="{data}/words.tsv", dev="{data}/held.tsv", labels={"yes": 1, "no": 0})
    assert training_data(source, places).labels == {"yes": 1, "no": 0}
    cut = training_data(source.model_copy(update={"rows": 4}), places)
    assert cut.labels is None
    assert set(pl.read_parquet(str(cut.dev))["label"]) == {0, 1}


def test_a_cut_dataset_keeps_its_validation_split_and_none_means_none(tmp_path: Path):
    for split in ("train", "validation", "test"):
        table(
            tmp_path / f"{split}.csv", "text1,text2,label", *(f"{split} {n},b {n},{n % 2}" for n in range(6))
        )
    places = Folders(tmp_path, tmp_path / "work")
    assert training_data(Source(train="{data}"), places) == TrainingData(str(tmp_path), None)
    assert training_data(Source(train="{data}", rows=3), places).dev == str(tmp_path)
    bare = training_data(Source(train="{data}", dev="none"), places)
    assert bare.dev is None
    assert pl.read_parquet(bare.train).height == 6


def test_a_table_is_made_and_finished_runs_are_not_repeated(place: Path, recipe: Recipe, monkeypatch):
    told: list[str] = []
    found = reproduce(recipe, options(place), say=told.append)
    assert [(row["row"], row["seeds"]) for row in found["rows"]] == [("none", 1), ("CoSENT", 2), ("CT", 2)]
    cosent = found["rows"][1]["figures"]
    assert cosent["held"]["paper"] == 81.5
    assert cosent["held"]["deviation"] is not None
    # the best weights were chosen on the very rows that the column shows
    assert cosent["dev"]["mean"] == pytest.approx(cosent["held"]["mean"], abs=0.01)
    assert not list((place / "out" / "models").iterdir())
    text = (place / "out" / "table.md").read_text()
    assert "| CoSENT |" in text
    assert "(81.50)" in text
    # all rows are in the table again, whichever are asked for
    some = reproduce(recipe, options(place, only=("CoSENT",), seeds=(1,)), say=silent)
    assert some["rows"] == found["rows"]
    monkeypatch.setattr(aoe_train, "train", None)  # would fail if it were called
    assert reproduce(recipe, options(place), say=silent) == found
    for assignments in (("optim.lr=0.5",), ()):  # other settings, then other data
        with pytest.raises(TypeError):
            reproduce(recipe, options(place, assignments=assignments), say=silent)
        path = place / "data" / "train.tsv"
        path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")


def test_a_lost_record_is_made_again_with_the_same_figures(place: Path, recipe: Recipe):
    only = options(place, only=("CT",), seeds=(1,), keep_models=True)
    first = reproduce(recipe, only, say=silent)
    (record,) = (place / "out" / "runs").iterdir()
    record.write_text("{")
    told: list[str] = []
    assert reproduce(recipe, only, say=told.append)["rows"] == first["rows"]
    assert "unreadable record" in told[0]
    fresh = options(place, only=("none",), fresh=True, seeds=(7,))
    assert [row["row"] for row in reproduce(recipe, fresh, say=silent)["rows"]] == ["none"]


def test_one_run_that_fails_does_not_stop_the_others(place: Path, recipe: Recipe):
    told: list[str] = []
    hot = options(place, seeds=(0,), only=("none", "CoSENT"), assignments=("optim.lr=1e30",))
    with pytest.raises(ConfigError, match="1 of 2 runs failed, first CoSENT: training diverged at step "):
        reproduce(recipe, hot, say=told.append)
    assert any(words.startswith("none, seed 0: held") for words in told)
    text = (place / "out" / "table.md").read_text()
    assert "| none |" in text
    assert "Changed: optim.lr=1e30." in text


@pytest.mark.parametrize(
    ("row", "differs"),
    [
        ("whiten = { dim = 4 }", True),
        ("flow = {}", True),
        ('method = "promptbert"\nsettings.encoder.max_length = 40', True),
        ('settings.encoder.pooling = "max"', True),
        ('settings.encoder.pooling = "cls"', False),  # as it is in any case
    ],
)
def test_rows_may_read_the_backbone_otherwise(place: Path, row: str, differs: bool):
    made = changed(place, NONE, f'{NONE}\n\n[[runs]]\nname = "other"\ntrain = false\n{row}')
    found = reproduce(made, options(place, only=("none", "other")), say=silent)
    none, other = (each["figures"]["held"]["mean"] for each in found["rows"])
    assert (none != other) == differs


def test_a_row_may_begin_with_word_vectors(place: Path, monkeypatch):
    monkeypatch.setattr(write_bilstm, "__defaults__", (6,))
    words = save_words(place / "words.txt")
    row = f'name = "words"\nbackbone = "{words}"\nmethod = "infersent"\n'
    row += f'\n[[runs]]\nname = "average"\ntrain = false\nbackbone = "{words}"'
    made = changed(place, NONE, row)
    scores = pl.read_csv(place / "data/train.tsv", separator="\t")
    binary = scores.select("sentence1", "sentence2", label=(pl.col("score") > 2).cast(pl.Int64))
    binary.write_csv(place / "data/train.tsv", separator="\t")
    found = reproduce(made, options(place, only=("words", "average"), seeds=(0,)), say=silent)
    assert [row["row"] for row in found["rows"]] == ["words", "average"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "held"', 'name = "dev"', "two columns would be named 'dev'"),
        ('name = "held"', 'name = "held"\nmetric = "roc"', "metric 'roc': dev.tsv has spearman, pearson"),
        ('name = "held"', 'name = "held"\nmean = true', "a column with a name has one task"),
        ('"Tiny"', "3", "title"),
        ('name = "CT"', 'name = "CoSENT"', "two runs have the same or similar names"),
        ("seeds = [0, 1]", "sedes = [0, 1]", "unknown setting"),
        ('"ct"', '"bow"', "CT: method 'bow': expected one of"),
        ('"ct"', '"diffcse"', "CT: DiffCse.__init__() missing 1 required positional argument"),
    ],
)
def test_bad_recipes_are_found_before_anything_is_trained(place: Path, old: str, new: str, says: str):
    with pytest.raises(ConfigError) as caught:
        reproduce(changed(place, old, new), options(place), say=silent)
    assert says in str(caught.value)
    assert not (place / "out" / "runs").exists()


def test_what_is_absent_is_named(place: Path, recipe: Recipe):
    with pytest.raises(ConfigError, match=r"no such recipe; expected .*stsb"):
        read_recipe("nothing")
    places = Folders(place, place)
    for given, words in (
        ({"only": ["BERT"]}, "has the rows none, CoSENT, CT"),
        ({"seeds": [0, 0]}, "--seeds 0,0: a seed is given twice"),
        ({"assignments": ["seed=3"]}, "--set seed=3: rows and runs differ in it"),
        ({"assignments": ["optim.lr"]}, "expected key=value"),
    ):
        with pytest.raises(ConfigError, match=words):
            plan(recipe, "small", places, **given)
    with pytest.raises(ConfigError, match="needs --data-dir"):
        reproduce(recipe, Options("small", None, place / "out"), say=silent)
    told: list[str] = []
    lost = changed(place, 'name = "CoSENT"', 'name = "CoSENT"\nbackbone = "{data}/ran"')
    reproduce(lost, options(place, only=("none", "CoSENT")), say=told.append)
    assert told[0] == f"skipped CoSENT: no backbone at {place / 'data' / 'ran'}"
    (place / "data" / "train.tsv").unlink()
    with pytest.raises(DataError, match=r"train\.tsv: no such file"):
        reproduce(recipe, options(place), say=silent)


def test_data_may_be_made_by_our_own_commands_only(tmp_path: Path, monkeypatch):
    places = Folders(None, tmp_path)
    with pytest.raises(ConfigError, match="`rm -r x` is not one of gis import, gis detect"):
        prepare(Source(train="x", prepare=(("rm", "-r", "x"),)), places, silent)
    told: list[str] = []
    source = Source(train="x", prepare=(("gis", "pair", "--work", "{work}/w", "--out", "{work}/pairs"),))
    with pytest.raises(DataError, match=r"`gis pair .*` failed with exit code [23]"):
        prepare(source, places, told.append)
    done = subprocess.CompletedProcess[str]([], 0)
    monkeypatch.setattr("papers.reproduce.training_data.subprocess.run", lambda *_, **__: done)
    prepare(source, places, told.append)
    prepare(source, places, told.append)
    assert told == [f"$ gis pair --work {tmp_path}/w --out {tmp_path}/pairs"] * 2  # done once


def test_mean_and_deviation_by_hand(recipe: Recipe):
    records = [Record("CoSENT", seed, "k", "b", {"held": value}) for seed, value in enumerate((0.8, 0.9))]
    (row,) = summary(recipe, records, ["held"])
    assert row["figures"]["held"]["mean"] == pytest.approx(85)
    assert row["figures"]["held"]["deviation"] == pytest.approx(50**0.5)
    found = {"scale": "small", "backbone": "b", "about": "", "changed": [], "left_out": {"X": "why"}}
    page = markdown(recipe, {**found, "rows": [row]})
    assert "85.00 ± 7.07 (81.50)" in page
    assert "* X is skipped: why" in page
    scores = {"A": 0.1, "mean": 0.2, "Z": 0.3, "Z long": 0.4}
    (row,) = summary(recipe, [Record("CoSENT", 0, "k", "b", scores, dev=0.5)], ["Z", "A", "mean"])
    assert list(row["figures"]) == ["dev", "Z", "Z long", "A", "mean"]  # parts behind their whole


def papers(*arguments: object) -> None:
    """Run the command in this process; errors come as they are raised."""
    app(["reproduce", *map(str, arguments)], standalone_mode=False)


def test_the_command_lists_recipes_and_shows_runs(place: Path, monkeypatch, capsys):
    papers("--list", "--json")
    assert list(json.loads(capsys.readouterr().out)) == recipe_names()
    given = (place / "tiny.toml", "--data-dir", place / "data", "--out", place / "out")
    papers(*given, "--dry-run")
    assert "CoSENT, seed 1: " in capsys.readouterr().out
    papers(*given, "--only", "none", "--json")
    assert [row["row"] for row in json.loads(capsys.readouterr().out)["rows"]] == ["none"]
    monkeypatch.chdir(place)
    for arguments, words in (
        ((), "name a recipe; `python -m papers reproduce --list` lists them"),
        (("stsb", "--scale", "huge"), "--scale huge: expected smoke, small, full"),
        (("stsb", "--seeds", "one"), "--seeds one: expected numbers"),
        (("nothing",), "nothing: no such recipe"),
        (("stsb",), "needs --data-dir"),
    ):
        with pytest.raises(ConfigError, match=re.escape(words)):
            papers(*arguments)


def test_a_recipe_of_others_shows_what_it_runs_and_loads_and_waits_for_consent(
    place: Path, monkeypatch, capsys
):
    command = 'prepare = [["gis", "detect", "--work", "{work}/w"]]\nrows = 16'
    found = changed(place, "rows = 16", command)
    assert list_actions(found, "small") == ["runs    gis detect --work {work}/w"]
    assert list_actions(found, "full") == ["loads   somebody/bert", "loads   somebody/pairs"]
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(ConfigError, match="nothing was run; check the actions above and add --yes"):
        papers(place / "changed.toml", "--data-dir", place / "data", "--out", place / "out")
    assert "runs    gis detect --work {work}/w" in capsys.readouterr().err
    assert not (place / "out").exists()
    outside = changed(place, '"{data}/train.tsv"', '"{data}/../train.tsv"')
    with pytest.raises(ConfigError, match="expected a path below"):
        list_actions(outside, "small")
    with pytest.raises(ConfigError, match="without control characters"):
        changed(place, '"somebody/bert"', '"some\\u001bbody/bert"')
