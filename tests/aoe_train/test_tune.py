"""The search for settings, with a small model and real training."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import aoe_train
from aoe_train._tune import trial as trials
from aoe_train._tune.space import Dimension, assignments, default_space, parse, read_space
from aoe_train._tune.study import Study
from aoe_train._tune.trial import Trial
from pairkit.errors import ConfigError
from tests.aoe_train.test_train import write_pairs


@pytest.fixture(scope="module")
def bert(shallow: Path) -> Path:
    """Of one layer: a run takes as long as there are layers, which are alike."""
    return shallow


def search(bert: Path, folder: Path, **more: Any) -> Any:
    how: dict[str, Any] = {
        "trials": 3,
        "repeats": 2,
        "search": ["optim.lr=1e-4..1e-2:log", "optim.epochs=1,2"],
    }
    settings = {"optim.evaluations": 2, "optim.batch_size": 16}
    return aoe_train.tune(
        folder / "train.tsv",
        backbone=bert,
        out=folder / "search",
        dev_data=folder / "dev.tsv",
        settings=settings,
        progress=False,
        **{**how, **more},
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    write_pairs(tmp_path / "train.tsv", 48, 1)
    write_pairs(tmp_path / "dev.tsv", 20, 2)
    return tmp_path


def test_a_search_that_was_killed_ends_as_one_that_was_not(
    bert: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = search(bert, folder)
    for path in (folder / "search").iterdir():
        path.rename(folder / path.name)
    (folder / "search").rmdir()
    before = {name: (folder / name).read_bytes() for name in ("best.toml",)}
    known = [{**trial, "seconds": 0} for trial in whole.trials]

    original, calls = trials.training.train, []

    def killed(*given: Any, **named: Any) -> Any:
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(1)
        return original(*given, **named)

    monkeypatch.setattr(trials.training, "train", killed)
    with pytest.raises(KeyboardInterrupt):
        search(bert, folder, fresh=True)
    monkeypatch.undo()
    monkeypatch.setenv("AOE_CACHE", str(folder / "cache"))
    assert not (folder / "search").exists()
    again = search(bert, folder)
    assert [{**trial, "seconds": 0} for trial in again.trials] == known
    assert (folder / "search" / "best.toml").read_bytes() == before["best.toml"]

    assert known[0]["drawn"] == {}
    assert [trial["drawn"].keys() for trial in known[1:3]] == [{"optim.lr", "optim.epochs"}] * 2
    assert {trial["seed"] for trial in known} == {42, 43}
    best = tomllib.loads(before["best.toml"].decode())
    assert best["optim"]["batch_size"] == 16
    assert "seed" not in best
    run = aoe_train.train(
        folder / "train.tsv",
        backbone=bert,
        out=folder / "m",
        dev_data=folder / "dev.tsv",
        config=again.config,
        progress=False,
    )
    assert run.dev == pytest.approx(again.record["best"]["dev"][0])
    assert again.dev == max(row["mean"] for row in again.record["finalists"])
    assert "before training" in repr(again)
    assert again.to_dict()["states"]["done"] >= 4
    assert not [*(folder / "search.work" / "runs").iterdir()]
    with pytest.raises(ConfigError, match=r"begun by another search, which differs in space\.optim"):
        search(bert, folder, search="optim.lr=0.1,0.2")


def test_runs_that_diverge_are_counted(bert: Path, folder: Path) -> None:
    found = search(bert, folder, trials=2, repeats=1, search=["optim.lr=3.0,4.0"], epochs=8)
    assert found.record["reasons"] == {"training diverged": 1}
    assert found.best == {}
    assert found.record["best"]["deviation"] is None


def test_held_out_rows_are_needed_and_are_no_test_split(bert: Path, folder: Path) -> None:
    with pytest.raises(ConfigError, match="no held-out rows to search by; give --dev-data"):
        aoe_train.tune(folder / "train.tsv", backbone=bert, out=folder / "s", progress=False)
    for name in ("test.tsv", "stsb-test.tsv"):
        (folder / "dev.tsv").rename(folder / name)
        with pytest.raises(ConfigError, match=f"--dev-data .*{name}: is a test split by its name"):
            aoe_train.tune(
                folder / "train.tsv", backbone=bert, out=folder / "s", dev_data=folder / name, progress=False
            )
        (folder / name).rename(folder / "dev.tsv")


def test_optuna_is_missed_before_anything_is_trained(
    bert: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"optuna.*aoe-toolkit\[tune\]"):
        search(bert, folder)
    assert not (folder / "search.work").exists()


def test_what_is_written_of_a_space(tmp_path: Path) -> None:
    space = parse(
        ["optim.lr=1e-5..1e-3:log", "optim.batch_size=8..64", "optim.epochs=1,2", "preset=aoe,angle"]
    )
    assert space[0] == Dimension("optim.lr", low=1e-5, high=1e-3, log=True)
    assert space[1] == Dimension("optim.batch_size", low=8, high=64, whole=True)
    assert [dimension.choices for dimension in space[2:]] == [(1, 2), ("aoe", "angle")]
    (tmp_path / "s.toml").write_text('preset = ["aoe"]\n[optim]\nlr = "1e-5..1e-3:log"\nepochs = [1, 2]\n')
    assert {dimension.key for dimension in read_space(tmp_path / "s.toml")} == {
        "preset",
        "optim.lr",
        "optim.epochs",
    }
    taus = assignments({"objective.tau": 0.1, "optim.lr": 1.0})
    assert taus["objective.tau.angle"] == taus["objective.tau.cosine"] == 0.1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("optim.lr", "expected key=low..high"),
        ("optim.lr=1..0", "expected low..high"),
        ("optim.lr=0..1:log", "above 0 for :log"),
        ("optim.lrr=1,2", "unknown setting"),
        ("optim.lr=-1..1", "greater than 0"),
        ("seed=1,2", "none of what can be searched"),
        ("data.conflicts=keep,drop", "none of what can be searched"),
        pytest.param(f"optim.lr={'1' * 2000}..{'1' * 2000}x", "valid number", id="many digits"),
    ],
)
def test_what_is_no_space(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse([text])
    with pytest.raises(ConfigError, match="given twice"):
        parse(["optim.lr=1,2", "optim.lr=1,2"])


def test_the_space_where_nothing_is_written() -> None:
    optim = {"lr": 5e-5, "epochs": 4.0}
    record = {"origin": {"settings": {"optim": optim}}, "rows": {"kind": "graded", "train": 500}}
    space = {dimension.key: dimension for dimension in default_space(record)}
    assert space["optim.lr"].low == pytest.approx(1e-5)
    assert space["optim.epochs"].choices == (2.0, 4.0, 8.0)
    assert space["optim.batch_size"].choices == (16, 32)
    assert space["objective.tau"].log


def test_optuna_gives_up_what_is_behind_and_says_the_same_again() -> None:
    space = parse(["optim.lr=1e-5..1e-3:log"])
    over = [
        Trial(number=n, drawn={"optim.lr": 1e-4}, seed=0, state="done", dev=0.8, seen={50: 0.7, 100: 0.8})
        for n in range(6)
    ]
    one, two = Study(space, over, 0), Study(space, over, 0)
    assert one.next() == two.next()
    assert one.gives_up({50: 0.6})
    assert not two.gives_up({50: 0.75})


def test_the_record_is_json(bert: Path, folder: Path) -> None:
    found = search(bert, folder, trials=1, repeats=1)
    assert json.loads((folder / "search" / "run.json").read_text())["best"] == found.record["best"]
    assert (folder / "search" / "trials.png").is_file()
