"""Folders that `pairs` makes: whole, of equal bytes, and never in the place of something else."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import pairkit
from pairkit._cli import app
from pairkit.errors import ConfigError, DataError

TSV = "text1\ttext2\tlabel\na b\tc d\t1\na b\te f\t0\ng h\ti j\t1\ng h\tk l\t0\nm\tn\t1\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.tsv").write_text(TSV)
    return tmp_path


def fingerprint(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_a_folder_of_ours_that_everybody_loads(home: Path) -> None:
    made = pairkit.merge(["train.tsv"], "out")
    assert {*fingerprint(home / "out")} == {
        *("README.md", "run.json", "statistics.json", "data/train-00000-of-00001.parquet")
    }
    shard = home / "out/data/train-00000-of-00001.parquet"
    assert pl.read_parquet(shard).columns == ["text1", "text2", "label", "source"]
    run = json.loads((home / "out/run.json").read_text())
    assert run["command"] == "merge"
    assert run["inputs"]["train.tsv"]["rows"] == 5
    assert json.loads((home / "out/statistics.json").read_text()) == made.statistics
    datasets = pytest.importorskip("datasets")
    assert datasets.load_dataset("out", cache_dir=str(home / "cache"))["train"].num_rows == 5
    assert pairkit.push("out", "me/out", dry_run=True).url is None
    card = (home / "out/README.md").read_text()
    assert "| train.tsv | 5 |" in card


def test_the_same_again_is_the_same(home: Path) -> None:
    pairkit.split("train.tsv", "out")
    before = fingerprint(home / "out")
    pairkit.split("train.tsv", "out")
    assert fingerprint(home / "out") == before
    with pytest.raises(ConfigError, match="give --fresh to replace it"):
        pairkit.split("train.tsv", "out", seed=1)
    assert fingerprint(home / "out") == before
    pairkit.split("train.tsv", "out", seed=1, fresh=True)


def test_nothing_of_others_is_replaced(home: Path) -> None:
    (home / "mine").mkdir()
    (home / "mine/notes.txt").write_text("mine")
    for out, why in (("mine", "no dataset of `pairs`"), (".", "out|replace"), ("train.tsv", "would replace")):
        with pytest.raises(ConfigError, match=why):
            pairkit.merge(["train.tsv"], out, fresh=True)
    pairkit.merge(["train.tsv"], "made")
    with pytest.raises(ConfigError, match="would replace made, which it is made of"):
        pairkit.split("made", "made", fresh=True)
    assert (home / "mine/notes.txt").read_text() == "mine"


def test_nothing_left_is_an_error_and_no_folder(home: Path) -> None:
    (home / "other.tsv").write_text("text1\ttext2\tlabel\na\tb\t1\nb\ta\t0\n")
    with pytest.raises(DataError, match="no pair is left of 2"):
        pairkit.merge(["other.tsv"], "out", conflicts="drop")
    assert not (home / "out").exists()


def test_what_is_in_memory_can_be_written(home: Path) -> None:
    rows = [{"text1": "a", "text2": "b", "label": 0.5}, {"text1": "c", "text2": "d", "label": 4.0}]
    made = pairkit.write({"train": rows, "test": pl.DataFrame(rows[:1])}, "out")
    assert made.out == Path("out")
    assert "mean label" in repr(made)
    assert pairkit.read("out").label_kind == "graded"
    assert made.statistics["splits"]["train"]["mean_label"] == 2.25


def test_the_commands(home: Path) -> None:
    run = CliRunner()
    done = run.invoke(app, ["split", "train.tsv", "--split", "2,1,1", "--out", "divided"])
    assert done.exit_code == 0, done.exception
    assert done.stderr.splitlines()[-1] == "  aoe train --data divided --backbone minilm --out model"
    done = run.invoke(
        app, ["merge", "train.tsv", "divided", "--out", "both", "--dropped", "gone.parquet", "--json"]
    )
    assert done.exit_code == 0, done.exception
    told = json.loads(done.stdout)
    assert told["dropped_pairs"] == {"repeated": 5}
    assert pl.read_parquet("gone.parquet")["left_out"].to_list() == ["repeated"] * 5
    assert told["splits"] == json.loads(Path("both/statistics.json").read_text())["splits"]
    assert run.invoke(app, ["audit", "both", "-q"]).exit_code == 0
    done = run.invoke(app, ["split", "train.tsv", "--split", "most", "--out", "x"])
    assert "expected three numbers" in str(done.exception)
