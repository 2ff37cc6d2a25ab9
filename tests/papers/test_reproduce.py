"""Recipes: validation, the planned runs, and tables of tiny trainings."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import polars as pl
import pytest
from scipy import stats

import aoe_train
from pairkit import ConfigError, PairkitError
from papers.__main__ import app
from papers.reproduce.plan import Folders, list_actions, plan
from papers.reproduce.recipe import Source, Texts, read_recipe, recipe_names
from papers.reproduce.reproduce import Options, reproduce
from papers.reproduce.runner import Record
from papers.reproduce.table import markdown, summary
from papers.reproduce.training_data import TrainingData, prepare, training_data
from tests import forked
from tests.aoe_train.tiny import save_words, write_pairs
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    parametrize,
    raises,
    table,
    values,
)

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
def root(tmp_path, shallow):
    """A data folder with a recipe beside it."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "bert").symlink_to(shallow)
    write_pairs(data / "train.tsv", 64, 1)
    write_pairs(data / "dev.tsv", 24, 2)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    return tmp_path


@pytest.fixture
def recipe(root):
    """The recipe."""
    return read_recipe(str(root / "tiny.toml"))


def no_output(_):
    pass


def options(root, **given):
    """Options for all runs at scale small."""
    return Options("small", root / "data", root / "out", **given)


def seeds_by_row(found):
    return {row["row"]: row["seeds"] for row in found["rows"]}


def modified(root, old, new):
    """The recipe with a replacement."""
    (root / "changed.toml").write_text(RECIPE.replace(old, new, 1))
    return read_recipe(str(root / "changed.toml"))


def test_runs_are_ordered_by_seed_and_settings_by_layer(root, recipe):
    given = ["optim.epochs=2", "optim.scheduler=cosine"]
    runs, skipped = plan(recipe, "small", FOLDERS, assignments=given)
    names = [f"{run.row} {run.seed}" for run in runs]
    assert names == ["none 0", "CoSENT 0", "CT 0", "CoSENT 1", "CT 1"]
    assert not skipped
    assert runs[3].settings == tomllib.loads("""
        preset = "cosent-paper"
        seed = 1
        encoder.max_length = 16
        optim = { batch_size = 8, lr = 1e-3, epochs = 2, scheduler = "cosine" }
        """)
    assert runs[4].settings["preset"] == "auto"
    assert [run.train for run in runs] == [False, True, True, True, True]
    runs, skipped = plan(recipe, "full", FOLDERS)
    assert skipped == {"CT": "needs a larger machine"}
    assert {run.row for run in runs} == {"none", "CoSENT"}
    at = recipe.at("smoke")  # small, with little of everything
    assert (at.seeds, at.source.rows) == ((0,), 16)
    runs, _ = plan(recipe, "smoke", FOLDERS)
    assert runs[1].settings["optim"]["epochs"] == 1
    runs, _ = plan(
        modified(root, "optim.lr = 1e-3\n", ""), "small", FOLDERS, only=["CT"]
    )
    assert runs[0].settings["optim"]["lr"] == 1e-5  # which the method brings


def test_a_row_has_its_own_data_and_seed_and_the_encoder_of_its_backbone(root):
    own = 'seed = 42\nscales.small = { data = ["{data}/a.tsv", "{data}/b.tsv"], labels = { yes = 1 } }'
    made = modified(
        root, 'method = "ct"', f'method = "infersent"\nbackbone = "{{data}}/ran"\n{own}'
    )
    of_scale = {"encoder": {"pooling": "cls"}}
    at = made.scales["small"].model_copy(update={"settings": of_scale})
    runs, _ = plan(made.model_copy(update={"scales": {"small": at}}), "small", FOLDERS)
    settings = {run.row: run.settings for run in runs}
    assert settings["CoSENT"]["encoder"] == {"max_length": 16, "pooling": "cls"}
    assert settings["CT"]["encoder"] == {"max_length": 16, "pooling": "max"}
    assert {run.settings["seed"] for run in runs if run.row == "CT"} == {42}
    found = next(run.source for run in runs if run.row == "CT")
    there = Path("d").absolute()
    assert found.train == (str(there / "a.tsv"), str(there / "b.tsv"))
    assert found.labels == {"yes": 1}


def test_samples_of_rows_and_single_texts(root):
    data = root / "data"

    def read(source, texts=None):
        return training_data(source, Folders(data, root / "work"), texts)

    def trained_on(*given):
        return pl.read_parquet(read(*given).train)

    source = Source(train="{data}/train.tsv", dev="{data}/dev.tsv", rows=10)
    rows = trained_on(source)
    assert (rows.columns, rows.height) == (["text1", "text2", "label"], 10)
    assert read(source).dev == str(data / "dev.tsv")
    assert read(source) == read(source)
    whole = source.model_copy(update={"rows": None})
    assert read(whole) == TrainingData(str(data / "train.tsv"), str(data / "dev.tsv"))
    assert trained_on(whole, Texts())["text"].is_unique().all()
    rows = "body,more\nfirst text,x\nsecond text,y\nthird text,z\n"
    (data / "own.csv").write_text(rows)
    first = Texts(of="{data}/own.csv", columns={"text": "body"}, first=2)
    assert trained_on(whole, first)["text"].to_list() == ["first text", "second text"]
    row = '{"anchor": "a", "positive": "b", "negatives": ["c", "d"]}\n'
    (data / "triplets.jsonl").write_text(row)
    bare = trained_on(Source(train="{data}/triplets.jsonl"), Texts())
    assert sorted(bare["text"]) == ["a", "b", "c", "d"]
    # Words for labels, which are replaced in held-out rows too.
    for name in ("words", "held"):
        rows = [f"a {name} {n}\tb {n}\t{'yes' if n % 2 else 'no'}\n" for n in range(8)]
        (data / f"{name}.tsv").write_text("text1\ttext2\tlabel\n" + "".join(rows))
    source = Source(
        train="{data}/words.tsv", dev="{data}/held.tsv", labels={"yes": 1, "no": 0}
    )
    assert read(source).labels == {"yes": 1, "no": 0}
    cut = read(source.model_copy(update={"rows": 4}))
    assert cut.labels is None
    assert {*pl.read_parquet(cut.dev)["label"]} == {0, 1}
    both = {"train": ("{data}/words.tsv", "{data}/held.tsv")}
    assert trained_on(source.model_copy(update=both)).height == 16


def test_reproduce_writes_a_table_and_skips_finished_runs(root, recipe, monkeypatch):
    found = reproduce(recipe, options(root), say=no_output)
    assert seeds_by_row(found) == {"none": 1, "CoSENT": 2, "CT": 2}
    cosent = found["rows"][1]["figures"]
    assert cosent["held"]["paper"] == 81.5
    assert cosent["held"]["deviation"] is not None
    # the best weights were chosen on the very rows that the column shows
    assert cosent["dev"]["mean"] == approx(cosent["held"]["mean"], abs=0.01)
    assert not list((root / "out" / "models").iterdir())
    text = (root / "out" / "table.md").read_text()
    assert "| CoSENT |" in text
    assert "(81.50)" in text
    # all rows are in the table again, whichever are asked for
    some = reproduce(recipe, options(root, only=("CoSENT",), seeds=(1,)), say=no_output)
    assert some["rows"] == found["rows"]
    monkeypatch.setattr(aoe_train, "train", None)  # would fail if it were called
    assert reproduce(recipe, options(root), say=no_output) == found
    path = root / "data" / "train.tsv"
    rows = path.read_text()
    for assignments in (("optim.lr=0.5",), ()):  # other settings, then other data
        with raises(TypeError):
            reproduce(recipe, options(root, assignments=assignments), say=no_output)
        path.write_text(rows + rows.splitlines()[-1] + "\n")
    path.write_text(rows)
    fresh = reproduce(recipe, options(root, only=("none",), fresh=True), say=no_output)
    assert seeds_by_row(fresh) == {"none": 1}


def test_a_failed_run_does_not_stop_the_remaining_runs(root, recipe):
    messages = []
    given = {"seeds": (0,), "assignments": ("optim.lr=1e30",)}
    hot = options(root, only=("none", "CoSENT"), **given)
    words = "1 of 2 runs failed, first CoSENT: training diverged at step "
    with raises(PairkitError, match=words):
        reproduce(recipe, hot, say=messages.append)
    assert any(words.startswith("none, seed 0: held") for words in messages)
    text = (root / "out" / "table.md").read_text()
    assert "| none |" in text
    assert "Changed: optim.lr=1e30." in text


@table(
    r"""
    row, differs
    whiten = { dim = 4 } | True
    flow = {} | True
    'method = "promptbert"\nsettings.encoder.max_length = 40' | True
    settings.encoder.pooling = "max" | True
    # as it is in any case
    settings.encoder.pooling = "cls" | False
    """,
)
def test_rows_without_training_can_change_how_texts_are_encoded(root, row, differs):
    other = f'{NONE}\n\n[[runs]]\nname = "other"\ntrain = false\n{row}'
    made = modified(root, NONE, other)
    found = reproduce(made, options(root, only=("none", "other")), say=no_output)
    none, other = (each["figures"]["held"]["mean"] for each in found["rows"])
    assert (none != other) == differs


def test_averaged_word_vectors_are_a_row(root):
    words = save_words(root / "words.txt")
    made = modified(root, NONE, f'{NONE}\nbackbone = "{words}"')
    found = reproduce(made, options(root, only=("none",)), say=no_output)
    assert seeds_by_row(found) == {"none": 1}


@table(
    r"""
    old, new, says
    name = "held" | name = "dev" | two columns would be named 'dev'
    name = "held" | 'name = "held"\nmetric = "roc"' | metric 'roc': dev.tsv has spearman, pearson
    name = "held" | 'name = "held"\nmean = true' | a column with a name has one task
    '"Tiny"' | '3' | title
    name = "CT" | name = "CoSENT" | two runs have the same or similar names
    seeds = [0, 1] | sedes = [0, 1] | unknown setting
    paper = { held = 81.5 } | paper = "AoE, Table 1: X" | no published scores 'AoE, Table 1: X'
    '"ct"' | '"bow"' | CT: method 'bow': expected one of
    '"ct"' | '"diffcse"' | CT: DiffCse.__init__() missing 1 required positional argument
    """,
)
def test_bad_recipes_fail_before_training(root, old, new, says):
    with raises(ConfigError) as caught:
        reproduce(modified(root, old, new), options(root), say=no_output)
    assert says in str(caught.value)
    assert not (root / "out" / "runs").exists()


def test_errors_name_missing_recipes_rows_and_files(root, recipe):
    folders = Folders(root, root)
    for given, words in values("""
            {'only': ['BERT']} | has the rows none, CoSENT, CT
            {'seeds': [0, 0]} | --seeds 0,0: a seed is given twice
            {'assignments': ['seed=3']} | --set seed=3: rows and runs differ in it
            {'assignments': ['optim.lr']} | expected key=value
            """):
        with config_error(words):
            plan(recipe, "small", folders, **given)
    messages = []
    lost = modified(root, 'name = "CoSENT"', 'name = "CoSENT"\nbackbone = "{data}/ran"')
    reproduce(lost, options(root, only=("none", "CoSENT")), say=messages.append)
    assert messages[0] == f"skipped CoSENT: no backbone at {root / 'data' / 'ran'}"
    (root / "data" / "train.tsv").unlink()
    with data_error(r"train\.tsv: no such file"):
        reproduce(recipe, options(root), say=no_output)


def test_prepare_runs_only_our_own_commands(tmp_path, monkeypatch):
    folders = Folders(None, tmp_path)
    with config_error("`rm -r x` is not one of gis import, gis detect"):
        prepare(Source(train="x", prepare=(("rm", "-r", "x"),)), folders, no_output)
    messages = []
    command = "gis pair --work {work}/w --out {work}/pairs"
    source = Source(train="x", prepare=[command.split()])
    with data_error(r"`gis pair .*` failed with exit code [23]"):
        prepare(source, folders, messages.append)
    done = subprocess.CompletedProcess[str]([], 0)
    monkeypatch.setattr(
        "papers.reproduce.training_data.subprocess.run", lambda *_, **__: done
    )
    prepare(source, folders, messages.append)
    prepare(source, folders, messages.append)
    # Done once.
    assert messages == [f"$ gis pair --work {tmp_path}/w --out {tmp_path}/pairs"] * 2


PAGE = json.loads(
    '{"scale": "small", "backbone": "b", "about": "", "changed": [], "left_out": {"X": "why"}}'
)


def records(**scores):
    """A record for each score of the last of two columns."""
    return [
        Record(row, seed, "k", "b", {"first": 0.0, "held": value})
        for row, values in scores.items()
        for seed, value in enumerate(values)
    ]


def test_mean_and_deviation_by_hand(recipe):
    rows = summary(recipe, records(CoSENT=[0.8, 0.9]), ["first", "held"])
    figure = rows[0]["figures"]["held"]
    assert figure == {"mean": approx(85), "deviation": approx(50**0.5), "paper": 81.5}
    page = markdown(recipe, {**PAGE, "rows": rows})
    assert "85.00 ± 7.07 (81.50)" in page
    assert "* X is skipped: why" in page
    scores = {"A": 0.1, "mean": 0.2, "Z": 0.3, "Z long": 0.4}
    record = Record("CoSENT", 0, "k", "b", scores, dev=0.5)
    (row,) = summary(recipe, [record], ["Z", "A", "mean"])
    # parts behind their whole
    assert list(row["figures"]) == ["dev", "Z", "Z long", "A", "mean"]


def test_differences_are_tested_over_the_seeds(root):
    made = modified(root, "about =", 'compare = "CoSENT"\nabout =')
    scores = {"none": [0.5], "CoSENT": [0.80, 0.82, 0.81], "CT": [0.70, 0.74, 0.73]}
    rows = summary(made, records(**scores), ["first", "held"])
    expected = stats.ttest_rel(scores["CT"], scores["CoSENT"]).pvalue
    assert [row["p"] for row in rows] == [None, None, approx(expected)]
    page = markdown(made, {**PAGE, "rows": rows})
    assert f"| {expected:.2g} | 3 |" in page
    assert "p: paired t-test of held against CoSENT over the seeds." in page
    with config_error("compare: no row 'BERT'; expected none, CoSENT, CT"):
        modified(root, "about =", 'compare = "BERT"\nabout =')


def papers(*arguments):
    """Run the command in this process; errors are raised."""
    app(["reproduce", *map(str, arguments)], standalone_mode=False)


def test_list_dry_run_and_usage_errors(root, monkeypatch, capsys):
    papers("--list", "--json")
    assert list(json.loads(capsys.readouterr().out)) == recipe_names()
    given = (root / "tiny.toml", "--data-dir", root / "data", "--out", root / "out")
    papers(*given, "--dry-run")
    assert "CoSENT, seed 1: " in capsys.readouterr().out
    papers(*given, "--only", "none", "--json")
    assert seeds_by_row(json.loads(capsys.readouterr().out)) == {"none": 1}
    monkeypatch.chdir(root)
    for arguments, words in values("""
            () | name a recipe; `python -m papers reproduce --list` lists them
            ('stsb', '--scale', 'huge') | --scale huge: expected smoke, small, full
            ('stsb', '--seeds', 'one') | --seeds one: expected numbers
            ('nothing',) | 'nothing: no such recipe; expected '
            ('stsb',) | needs --data-dir
            """):
        with config_error(re.escape(words)):
            papers(*arguments)


@parametrize("place", ["out", "out/*/models/*"])
def test_sigterm_ends_the_command(root, place):
    """While data is read, and while a model is trained."""
    given = "papers reproduce tiny.toml --data-dir data --out out --only CoSENT --set optim.epochs=400"
    process = forked.begin(*given.split(), cwd=root, err=str(root / "err"))
    while not [*root.glob(place)]:
        assert process.is_alive(), (root / "err").read_text()
        time.sleep(0.01)
    process.terminate()
    process.join(60)
    assert process.exitcode == 130
    assert "run the same command again to continue" in (root / "err").read_text()


def test_an_untrusted_recipe_lists_its_actions_and_needs_consent(
    root, monkeypatch, capsys
):
    command = 'prepare = [["gis", "detect", "--work", "{work}/w"]]\nrows = 16'
    found = modified(root, "rows = 16", command)
    assert list_actions(found, "small") == ["runs    gis detect --work {work}/w"]
    expected = ["loads   somebody/bert", "loads   somebody/pairs"]
    assert list_actions(found, "full") == expected
    assert "loads   mteb" in list_actions(read_recipe("mteb"), "full")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    given = root / "changed.toml", "--data-dir", root / "data", "--out", root / "out"
    with config_error("nothing was run; check the actions above and add --yes"):
        papers(*given)
    assert "runs    gis detect --work {work}/w" in capsys.readouterr().err
    assert not (root / "out").exists()
    outside = modified(root, '"{data}/train.tsv"', '"{data}/../train.tsv"')
    with config_error("expected a path below"):
        list_actions(outside, "small")
    with config_error("without control characters"):
        modified(root, '"somebody/bert"', '"some\\u001bbody/bert"')
    quoted = 'log = { report_to = "wandb" }\n"guide.model" = "any/guide"\noptim.lr'
    expected = ["loads   any/guide", "reports to wandb"]
    assert list_actions(modified(root, "optim.lr", quoted), "small") == expected
