"""Several processes with one output folder: each run is done once, also if one of them is killed."""

from __future__ import annotations

import shutil
import signal
import time

import psutil
import pytest

import aoe_train
from pairkit import PairkitError
from pairkit.base.system.folders import try_lock_folder
from papers.reproduce.reproduce import FIGURES, TABLE, SharedRuns, _gpus, reproduce
from tests import forked
from tests.papers.test_reproduce import (  # noqa: F401 - two fixtures
    no_output,
    options,
    papers,
    recipe,
    root,
    seeds_by_row,
)
from tests.support.shorthand import config_error, raises, table

SET = ("--set", "optim.epochs=6")
ASSIGNED = ("optim.epochs=6",)


def begin(root, *arguments):  # noqa: F811
    given = ("tiny.toml", "--data-dir", "data", "--out", "shared", *SET, *arguments)
    return forked.begin("papers", "reproduce", *given, cwd=root, err=str(root / "err"))


def cells(out):
    """The cells of a table, without the seconds."""
    lines = (out / TABLE).read_text().splitlines()
    return [line.split("|")[:-2] for line in lines if line.startswith("|")]


def training(root):  # noqa: F811
    return [*root.glob("shared/*/models/*")]


@pytest.mark.slow
def test_the_table_of_workers_with_one_killed_is_that_of_one_process(root, recipe):  # noqa: F811
    reproduce(recipe, options(root, assignments=ASSIGNED), say=no_output)
    process = begin(root, "--workers", "2")
    while not training(root):
        assert process.is_alive(), (root / "err").read_text()
        time.sleep(0.01)
    claimed = training(root)[0].name.removesuffix(".work")
    children = psutil.Process(process.pid).children()
    started = [child for child in children if "spawn_main" in str(child.cmdline())]
    assert len(started) == 2
    holder, *_ = [
        child for child in started if f"claims/{claimed}/" in str(child.open_files())
    ]
    holder.kill()
    process.join(300)
    assert process.exitcode == 0, (root / "err").read_text()
    (out,) = (root / "shared").iterdir()
    assert cells(out) == cells(root / "out")
    assert len([*(out / "runs").iterdir()]) == 5
    # The killed one's run began twice.
    assert (root / "err").read_text().count(" of 5: ") == 6


def test_a_command_does_the_runs_of_another_one_that_is_killed(root, recipe):  # noqa: F811
    reproduce(recipe, options(root, assignments=ASSIGNED), say=no_output)
    killed = begin(root)
    while not training(root):
        assert killed.is_alive(), (root / "err").read_text()
        time.sleep(0.01)
    other = begin(root)
    time.sleep(0.5)  # not necessary: the other one usually has begun by then
    killed.kill()
    other.join(300)
    killed.join()
    assert (killed.exitcode, other.exitcode) == (-signal.SIGKILL, 0)
    (out,) = (root / "shared").iterdir()
    assert cells(out) == cells(root / "out")
    assert len([*(out / "runs").iterdir()]) == 5


def test_a_failed_run_is_not_repeated_by_other_processes(root, recipe, monkeypatch):  # noqa: F811
    hot = options(root, seeds=(0,), only=("CoSENT",), assignments=("optim.lr=1e30",))
    words = "1 of 1 runs failed, first CoSENT: training diverged"
    with raises(PairkitError, match=words):
        reproduce(recipe, hot, say=no_output)
    monkeypatch.setattr(aoe_train, "train", None)  # would fail if it were called
    other = SharedRuns(recipe, hot, no_output)
    other.work()
    with raises(PairkitError, match=words):
        other.finish()
    with raises(TypeError):  # a new command repeats it
        reproduce(recipe, hot, say=no_output)


def test_fresh_is_refused_while_another_process_does_a_run(root, recipe):  # noqa: F811
    given = options(root, only=("none",), fresh=True)
    with (
        try_lock_folder(root / "out" / "claims" / "none-0-x"),
        config_error("another process does"),
    ):
        reproduce(recipe, given, say=no_output)
    reproduce(recipe, given, say=no_output)
    assert (root / "out" / FIGURES).exists()


def test_records_of_two_machines_make_one_table(root, recipe, tmp_path, monkeypatch):  # noqa: F811
    """With the same data in another folder."""
    there = tmp_path / "there"
    shutil.copytree(root / "data", there / "data")
    reproduce(recipe, options(root, seeds=(0,)), say=no_output)
    reproduce(recipe, options(there, seeds=(1,)), say=no_output)
    for record in (there / "out/runs").iterdir():
        shutil.copy(record, root / "out/runs")
    monkeypatch.setattr(aoe_train, "train", None)
    found = reproduce(recipe, options(root), say=no_output)
    assert seeds_by_row(found) == {"none": 1, "CoSENT": 2, "CT": 2}


@table(
    """
    listed, count, found
    '2,5' | 8 | ['2', '5']
    None | 3 | ['0', '1', '2']
    None | 0 | [None]
    '' | 0 | [None]
    """,
)
def test_each_worker_has_a_gpu(listed, count, found, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if listed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    monkeypatch.setattr("torch.cuda.device_count", lambda: count)
    assert _gpus() == found


def test_torchrun_is_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "8")
    with config_error("start without it, with --workers N"):
        papers("stsb", "--data-dir", "data")
