"""Recipes: what a file may say, which runs that makes, and a table from tiny trainings."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

from aoe_train._backbones.bilstm import write_bilstm
from aoe_train._reproduce import execute
from aoe_train._reproduce.execute import Bench, Record
from aoe_train._reproduce.material import Material, material, prepare
from aoe_train._reproduce.plan import Places, plan
from aoe_train._reproduce.recipe import Recipe, Source, Texts, read_recipe, recipe_names
from aoe_train._reproduce.reproduce import Wanted, reproduce
from aoe_train._reproduce.scoring import read_scorings
from aoe_train._reproduce.table import markdown, summary
from aoe_train._settings import merged
from pairkit.errors import ConfigError, DataError
from pairkit.files import sha256
from pairkit.reader import read_rows
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
name = "SimCSE"
texts = {}
settings = { preset = "simcse-paper" }
scales.full = { skip = "needs a larger machine" }

[scales.small]
backbone = "{data}/bert"
seeds = [0, 1]

[scales.small.source]
train = "{data}/train.tsv"
dev = "{data}/dev.tsv"
rows = 32

[[scales.small.evaluate]]
suite = "pairs"
data = "{data}/dev.tsv"
name = "held"

[scales.full]
backbone = "somebody/bert"
source = { train = "somebody/pairs" }
evaluate = [{ suite = "sts" }]
"""


@pytest.fixture(scope="module")
def bert(shallow: Path) -> Path:
    """Of one layer: a run takes as long as there are layers, which are alike."""
    return shallow


@pytest.fixture
def place(tmp_path: Path, bert: Path) -> Path:
    """A data folder with a recipe beside it."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "bert").symlink_to(bert)
    write_pairs(data / "train.tsv", 64, 1)
    write_pairs(data / "dev.tsv", 24, 2)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    return tmp_path


@pytest.fixture
def recipe(place: Path) -> Recipe:
    """The recipe."""
    return read_recipe(str(place / "tiny.toml"))


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))


def wanted(place: Path, **given: object) -> Wanted:
    """All of the recipe at scale small."""
    return Wanted("small", place / "data", place / "out", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", recipe_names())
def test_the_recipes_that_come_along_are_sound(name: str) -> None:
    found = read_recipe(name)
    assert "full" in found.scales
    for scale in found.scales:
        runs, _ = plan(found, scale, Places(Path("data"), Path("work")))
        assert runs
        assert all("{" not in run.backbone for run in runs)


def test_each_row_of_the_ablation_has_the_objective_that_it_names() -> None:
    runs, _ = plan(read_recipe("ablation"), "small", Places(Path("data"), Path("work")), seeds=[0])
    parts = {run.row: set(run.settings.objective.weights.wanted) for run in runs if run.train}
    assert parts == {
        "cosine": {"cosine"},
        "ibn": {"ibn"},
        "angle, reference": {"angle"},
        "angle, phase": {"angle"},
        "cosine + ibn": {"cosine", "ibn"},
        "cosine + angle": {"cosine", "angle"},
        "AnglE (cosine + ibn + angle)": {"cosine", "ibn", "angle"},
        "AoE (angle + contrastive)": {"angle", "contrastive"},
        "contrastive": {"contrastive"},
    }


def test_rows_come_seed_by_seed_and_layers_in_order(recipe: Recipe) -> None:
    runs, skipped = plan(recipe, "small", Places(Path("d"), Path("w")), assignments=["optim.epochs=2"])
    assert [(run.row, run.seed) for run in runs] == [
        ("none", 0),
        ("CoSENT", 0),
        ("SimCSE", 0),
        ("CoSENT", 1),
        ("SimCSE", 1),
    ]
    assert not skipped
    settings = runs[3].settings
    assert (settings.seed, settings.optim.batch_size, settings.optim.epochs) == (1, 8, 2)
    assert settings.objective.weights.wanted == {"cosine": 1}
    assert [run.train for run in runs] == [False, True, True, True, True]


def test_a_row_may_be_left_out_at_a_scale_with_its_reason(recipe: Recipe) -> None:
    runs, skipped = plan(recipe, "full", Places(None, Path("w")))
    assert skipped == {"SimCSE": "needs a larger machine"}
    assert {run.row for run in runs} == {"none", "CoSENT"}


def test_smoke_is_small_with_little_of_everything(recipe: Recipe) -> None:
    at = recipe.at("smoke")
    assert (at.seeds, at.source.rows) == ((0,), 32)
    runs, _ = plan(recipe, "smoke", Places(Path("d"), Path("w")))
    assert [run.row for run in runs] == ["none", "CoSENT", "SimCSE"]
    assert runs[1].settings.optim.epochs == 1


def test_tables_within_tables_are_merged() -> None:
    below = {"a": {"x": 1, "y": 2}, "b": 1}
    assert merged(below, {"a": {"y": 3}, "b": {"z": 1}}) == {"a": {"x": 1, "y": 3}, "b": {"z": 1}}
    assert below == {"a": {"x": 1, "y": 2}, "b": 1}


def test_some_rows_and_bare_texts(place: Path) -> None:
    places = Places(place / "data", place / "work")
    source = Source(train="{data}/train.tsv", dev="{data}/dev.tsv", rows=10)
    found = material(source, places)
    rows = pl.read_parquet(found.train)
    assert rows.columns == ["text1", "text2", "label"]
    assert rows.height == 10
    assert found.dev == str(place / "data" / "dev.tsv")
    assert material(source, places) == found
    texts = pl.read_parquet(material(source.model_copy(update={"rows": None}), places, Texts()).train)
    whole = material(source.model_copy(update={"rows": None}), places)
    assert whole == Material(str(place / "data" / "train.tsv"), str(place / "data" / "dev.tsv"))
    assert texts.height > 10
    assert texts["text"].is_unique().all()


def test_bare_texts_and_some_rows_of_triplets(place: Path) -> None:
    rows = [{"anchor": "a", "positive": "b", "negatives": ["c", "d"]}]
    rows.append({"anchor": "e", "positive": "a", "negatives": ["c"]})
    (place / "data" / "triplets.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source, places = Source(train="{data}/triplets.jsonl"), Places(place / "data", place / "work")
    texts = pl.read_parquet(material(source, places, Texts()).train)["text"].to_list()
    assert sorted(texts) == ["a", "b", "c", "d", "e"]
    some = material(source.model_copy(update={"rows": 1}), places).train
    assert read_rows(some)["train"]["negatives"].to_list() in ([["c", "d"]], [["c"]])


def test_texts_of_another_file(place: Path) -> None:
    (place / "data" / "own.csv").write_text("body,more\nfirst text,x\nsecond text,y\nthird text,z\n")
    texts = Texts(of="{data}/own.csv", columns={"text": "body"}, first=2)
    found = material(Source(train="{data}/train.tsv"), Places(place / "data", place / "work"), texts)
    assert pl.read_parquet(found.train)["text"].to_list() == ["first text", "second text"]
    cut = material(Source(train="{data}/train.tsv", rows=1), Places(place / "data", place / "work"), texts)
    assert pl.read_parquet(cut.train).height == 1


def test_words_for_labels_are_replaced_in_held_out_rows_too(place: Path) -> None:
    for name in ("words", "held"):
        rows = "".join(f"a {name} {n}\tb {n}\t{'yes' if n % 2 else 'no'}\n" for n in range(8))
        (place / "data" / f"{name}.tsv").write_text("text1\ttext2\tlabel\n" + rows)
    source = Source(train="{data}/words.tsv", dev="{data}/held.tsv", labels={"yes": 1, "no": 0})
    places = Places(place / "data", place / "work")
    assert material(source, places).labels == {"yes": 1, "no": 0}
    cut = material(source.model_copy(update={"rows": 4}), places)
    assert cut.labels is None
    assert set(pl.read_parquet(str(cut.dev))["label"]) == {0, 1}


def test_a_cut_dataset_keeps_its_validation_split_and_none_means_none(tmp_path: Path) -> None:
    for split in ("train", "validation", "test"):
        rows = "".join(f"{split} {n},b {n},{n % 2}\n" for n in range(6))
        (tmp_path / f"{split}.csv").write_text("text1,text2,label\n" + rows)
    places = Places(tmp_path, tmp_path / "work")
    assert material(Source(train="{data}"), places) == Material(str(tmp_path), None)
    assert material(Source(train="{data}", rows=3), places).dev == str(tmp_path)
    bare = material(Source(train="{data}", dev="none"), places)
    assert bare.dev is None
    assert pl.read_parquet(bare.train).height == 6


def _bench(place: Path, recipe: Recipe) -> Bench:
    at, places = recipe.at("small"), Places(place / "data", place / "out" / "data")
    return Bench(
        place / "out", at, places, read_scorings(at.evaluate, places), keep=False, say=print, show=print
    )


@pytest.mark.parametrize(
    "change",
    ["optim.lr=0.5", "train.tsv", "dev.tsv", "bert/config.json"],
)
def test_a_key_depends_on_all_that_decides(place: Path, recipe: Recipe, change: str, bert: Path) -> None:
    places = Places(place / "data", place / "out" / "data")
    (run,), _ = plan(recipe, "small", places, only=["CoSENT"], seeds=[0])
    (told,), _ = plan(recipe, "small", places, only=["CoSENT"], seeds=[0], assignments=["log.steps=3"])
    before = _bench(place, recipe)._key(run)
    assert _bench(place, recipe)._key(told) == before
    if "=" in change:
        (run,), _ = plan(recipe, "small", places, only=["CoSENT"], seeds=[0], assignments=[change])
    else:
        if change.startswith("bert"):
            (place / "data" / "bert").unlink()
            shutil.copytree(bert, place / "data" / "bert")
        path = place / "data" / change
        text = path.read_text()
        path.write_text(text + ("\n" if change.endswith(".json") else text.splitlines()[-1] + "\n"))
    assert _bench(place, recipe)._key(run) != before


def test_a_table_is_made_and_finished_runs_are_not_repeated(
    place: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    found = reproduce(recipe, wanted(place), say=told.append, progress=False)
    assert [(row["row"], row["seeds"]) for row in found["rows"]] == [
        ("none", 1),
        ("CoSENT", 2),
        ("SimCSE", 2),
    ]
    cosent = found["rows"][1]["figures"]
    assert cosent["held"]["paper"] == 81.5
    assert cosent["held"]["deviation"] is not None
    # the best weights were chosen on the very rows that the column shows
    assert cosent["dev"]["mean"] == pytest.approx(cosent["held"]["mean"], abs=0.01)
    assert not list((place / "out" / "models").iterdir())
    text = (place / "out" / "table.md").read_text()
    assert "| CoSENT |" in text
    assert "(81.50)" in text
    runs = [line for line in told if ", seed " in line]
    notes = [line.partition(": ")[2] for line in told if line not in runs]
    assert len(runs) == 5, told
    assert len(notes) == len({*notes}), notes  # each once, though several runs read the same rows
    # all rows stand in the table again, whichever are asked for
    some = reproduce(recipe, wanted(place, only=("CoSENT",), seeds=(1,)), say=told.append, progress=False)
    assert some["rows"] == found["rows"]

    monkeypatch.setattr(execute.training, "train", None)  # would fail if it were called
    assert reproduce(recipe, wanted(place), say=told.append, progress=False) == found
    assert [line for line in told if ", seed " in line] == runs


def test_what_is_not_trained_stands_in_the_table_whichever_seeds_are_asked_for(
    place: Path, recipe: Recipe
) -> None:
    some = wanted(place, only=("none",), seeds=(7,))
    found = reproduce(recipe, some, say=lambda _: None, progress=False)
    assert [row["row"] for row in found["rows"]] == ["none"]


def test_a_lost_record_is_made_again_with_the_same_figures(place: Path, recipe: Recipe) -> None:
    only = wanted(place, only=("CoSENT",), seeds=(1,), keep=True)
    first = reproduce(recipe, only, say=lambda _: None, progress=False)
    (record,) = (place / "out" / "runs").iterdir()
    held = json.loads(record.read_text())
    record.unlink()
    assert reproduce(recipe, only, say=lambda _: None, progress=False)["rows"] == first["rows"]
    assert json.loads(record.read_text())["scores"] == held["scores"]


def test_one_run_that_fails_does_not_stop_the_others(place: Path, recipe: Recipe) -> None:
    told: list[str] = []
    hot = wanted(place, seeds=(0,), assignments=("optim.lr=1e30",))
    with pytest.raises(ConfigError, match="of 3 runs failed, first CoSENT: training diverged at step "):
        reproduce(recipe, hot, say=told.append, progress=False)
    assert any(words.startswith("none, seed 0: held") for words in told)
    text = (place / "out" / "table.md").read_text()
    assert "| none |" in text
    assert "Changed: optim.lr=1e30." in text


def test_a_row_without_its_backbone_is_left_out_with_the_reason(place: Path) -> None:
    text = RECIPE.replace('name = "CoSENT"', 'name = "CoSENT"\nbackbone = "{data}/ran"')
    (place / "ran.toml").write_text(text)
    told: list[str] = []
    found = reproduce(
        read_recipe(str(place / "ran.toml")),
        wanted(place, only=("none", "CoSENT")),
        say=told.append,
        progress=False,
    )
    assert [row["row"] for row in found["rows"]] == ["none"]
    assert told[0] == f"left out CoSENT: no backbone at {place / 'data' / 'ran'}"


def test_a_record_that_can_not_be_read_is_made_again(place: Path, recipe: Recipe) -> None:
    only = wanted(place, only=("none",))
    first = reproduce(recipe, only, say=lambda _: None, progress=False)
    (record,) = (place / "out" / "runs").iterdir()
    record.write_text("{")
    told: list[str] = []
    assert reproduce(recipe, only, say=told.append, progress=False)["rows"] == first["rows"]
    assert "no record that can be read" in told[0]
    fresh = wanted(place, only=("none",), fresh=True)
    assert reproduce(recipe, fresh, say=told.append, progress=False)["rows"] == first["rows"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "held"', 'name = "dev"', "two columns would be named 'dev'"),
        ('name = "held"', 'name = "held"\nmetric = "roc"', "metric 'roc': held has spearman, pearson"),
    ],
)
def test_bad_columns_are_found_before_anything_is_trained(place: Path, old: str, new: str, says: str) -> None:
    (place / "bad.toml").write_text(RECIPE.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        reproduce(read_recipe(str(place / "bad.toml")), wanted(place), say=print, progress=False)
    assert says in str(caught.value)
    assert not (place / "out" / "runs").exists()


def test_columns_stand_in_the_recipes_order_with_parts_behind_their_whole(recipe: Recipe) -> None:
    scores = {"A": 0.1, "mean": 0.2, "Z": 0.3, "Z long": 0.4}
    (row,) = summary(recipe, [Record("CoSENT", 0, "k", "b", scores, dev=0.5)], ["Z", "A", "mean"])
    assert list(row["figures"]) == ["dev", "Z", "Z long", "A", "mean"]


def test_seeds_and_settings_that_would_mix_rows_are_refused(recipe: Recipe) -> None:
    places = Places(Path("d"), Path("w"))
    with pytest.raises(ConfigError, match="--seeds 0,0: a seed is given twice"):
        plan(recipe, "small", places, seeds=[0, 0])
    with pytest.raises(ConfigError, match="--set seed=3: rows and runs differ in it"):
        plan(recipe, "small", places, assignments=["seed=3"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("title = 3", "title"),
        (RECIPE.replace('name = "SimCSE"', 'name = "CoSENT"'), "two runs have one name"),
        (RECIPE.replace("seeds = [0, 1]", "sedes = [0, 1]"), "unknown setting"),
        (RECIPE.replace("optim.lr = 1e-3", "optim.rate = 1e-3"), "unknown setting 'optim.rate'"),
    ],
)
def test_a_bad_file_says_what_and_where(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        plan(read_recipe(str(path)), "small", Places(tmp_path, tmp_path))
    assert says in str(caught.value)


def test_what_is_not_there_is_said(place: Path, recipe: Recipe) -> None:
    with pytest.raises(ConfigError, match=r"no such recipe; there are .*stsb"):
        read_recipe("nothing")
    with pytest.raises(ConfigError, match="has the rows none, CoSENT, SimCSE"):
        plan(recipe, "small", Places(place, place), only=["BERT"])
    with pytest.raises(ConfigError, match="needs --data-dir"):
        reproduce(recipe, Wanted("small", None, place / "out"), say=print)
    (place / "data" / "train.tsv").unlink()
    with pytest.raises(DataError, match=r"train\.tsv: no such file"):
        reproduce(recipe, wanted(place), say=print)


def test_data_may_be_made_by_our_own_commands_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places(None, tmp_path)
    with pytest.raises(ConfigError, match="`rm -r x` is none of gis import, gis detect"):
        prepare(Source(train="x", prepare=(("rm", "-r", "x"),)), places, print)
    told: list[str] = []
    source = Source(train="x", prepare=(("gis", "pair", "--work", "{work}/w", "--out", "{work}/pairs"),))
    with pytest.raises(DataError, match=r"`gis pair .*` ended with exit code [23]"):
        prepare(source, places, told.append)

    def made(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        (tmp_path / "pairs").mkdir()
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("aoe_train._reproduce.material.subprocess.run", made)
    prepare(source, places, told.append)
    prepare(source, places, told.append)
    assert told == [f"$ gis pair --work={tmp_path}/w --out={tmp_path}/pairs"] * 2


def test_a_package_of_our_name_in_the_working_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gis_builder").mkdir()
    (tmp_path / "gis_builder" / "__init__.py").write_text("open('ran', 'w')")
    (tmp_path / "gis_builder" / "__main__.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "")
    command = ("gis", "detect", "--work", "{work}/nothing")
    with pytest.raises(DataError, match="ended with exit code"):
        prepare(Source(train="x", prepare=(command,)), Places(None, tmp_path), print)
    assert not (tmp_path / "ran").exists()


def test_two_metrics_of_one_task_are_two_columns(place: Path) -> None:
    text = RECIPE.replace('data}/dev.tsv"\nname', 'data}/pairs"\nname').replace(
        "[scales.full]",
        """[[scales.small.evaluate]]
suite = "gis"
data = "{data}/pairs"
metric = "roc_auc"
name = "AUC"

[scales.full]""",
        1,
    )
    (place / "two.toml").write_text(text)
    (place / "data" / "pairs").mkdir()
    rows = [
        ("text1", "text2", "label"),
        *(("a dog", f"a {'dog' if n % 2 else 'boat'} {n}", n % 2) for n in range(8)),
    ]
    (place / "data" / "pairs" / "test.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    found = reproduce(
        read_recipe(str(place / "two.toml")), wanted(place, only=("none",)), say=print, progress=False
    )
    figures = found["rows"][0]["figures"]
    assert list(figures) == ["held", "AUC"]
    assert figures["AUC"]["mean"] > 50


def test_a_column_with_a_name_has_no_mean(place: Path) -> None:
    path = place / "bad.toml"
    path.write_text(RECIPE.replace('name = "held"', 'name = "held"\nmean = true'))
    with pytest.raises(ConfigError, match="a column with a name holds one task"):
        read_recipe(str(path))


def test_mean_and_deviation_by_hand(recipe: Recipe) -> None:
    records = [Record("CoSENT", seed, "k", "b", {"held": value}) for seed, value in enumerate((0.8, 0.9))]
    (row,) = summary(recipe, records, ["held"])
    assert row["figures"]["held"]["mean"] == pytest.approx(85)
    assert row["figures"]["held"]["deviation"] == pytest.approx(50**0.5)
    found = {
        "scale": "small",
        "backbone": "b",
        "about": "",
        "changed": [],
        "left_out": {"X": "why"},
        "rows": [row],
    }
    page = markdown(recipe, found)
    untrained = {**row, "row": "none", "figures": {"held": row["figures"]["held"]}}
    trained = {**row, "figures": {"dev": row["figures"]["held"], **row["figures"]}}
    assert "| run | dev | held | seeds |" in markdown(recipe, {**found, "rows": [untrained, trained]})
    assert "85.00 ± 7.07 (81.50)" in page
    assert "* X is left out: why" in page


def test_a_row_may_be_scored_with_whitened_vectors(place: Path) -> None:
    rows = 'name = "none"\ntrain = false\n\n[[runs]]\nname = "white"\ntrain = false\nwhiten = { dim = 4 }'
    text = RECIPE.replace('name = "none"\ntrain = false', rows, 1)
    (place / "white.toml").write_text(text)
    some = wanted(place, only=("none", "white"))
    found = reproduce(read_recipe(str(place / "white.toml")), some, say=lambda _: None, progress=False)
    none, white = (row["figures"]["held"]["mean"] for row in found["rows"])
    assert none != white
    (record,) = [json.loads(path.read_text()) for path in (place / "out/runs").glob("white-*.json")]
    assert record["made_from"]["whitened"]["dim"] == 4


def test_a_row_may_be_scored_behind_a_flow_which_each_seed_draws(place: Path) -> None:
    rows = 'name = "none"\ntrain = false\n\n[[runs]]\nname = "flow"\ntrain = false\nflow = {}'
    (place / "flow.toml").write_text(RECIPE.replace('name = "none"\ntrain = false', rows, 1))
    some = wanted(place, only=("none", "flow"), seeds=(0, 1))
    found = reproduce(read_recipe(str(place / "flow.toml")), some, say=lambda _: None, progress=False)
    assert [(row["row"], row["seeds"]) for row in found["rows"]] == [("none", 1), ("flow", 2)]
    records = [json.loads(path.read_text()) for path in (place / "out/runs").glob("flow-*.json")]
    assert sorted(record["made_from"]["flowed"]["seed"] for record in records) == [0, 1]
    scores = {record["scores"]["held"] for record in records}
    assert len(scores) == 2
    assert found["rows"][0]["figures"]["held"]["mean"] not in scores


def test_a_row_may_begin_with_word_vectors(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOE_CACHE", str(place / "cache"))
    monkeypatch.setattr(write_bilstm, "__defaults__", (6,))
    words = save_words(place / "words.txt")
    row = f'name = "none"\ntrain = false\n\n[[runs]]\nname = "words"\nbackbone = "{words}"\n'
    row += 'settings = { preset = "cosent-paper" }'
    (place / "words.toml").write_text(RECIPE.replace('name = "none"\ntrain = false', row, 1))
    some = wanted(place, only=("words",), seeds=(0,))
    reproduce(read_recipe(str(place / "words.toml")), some, say=lambda _: None, progress=False)
    (record,) = [json.loads(path.read_text()) for path in (place / "out/runs").glob("words-*.json")]
    assert record["made_from"]["backbone"] == {"words.txt": sha256(words)}
