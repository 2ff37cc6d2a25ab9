"""Promise 1: a killed `aoe` command continues when it is run again, and ends with the same weights."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import aoe_train
from tests import forked
from tests.aoe_train import conftest
from tests.aoe_train.tiny import write_lines, write_texts
from tests.contract import train_command
from tests.contract.conftest import Done
from tests.contract.train_command import (
    DEV,
    MIXTURE,
    begin_ranks,
    command,
    difference,
    environ,
    run,
)
from tests.two_nodes import two_nodes

bert, minilm = conftest.bert, conftest.minilm
folder, trained = train_command.folder, train_command.trained


def killed_after(step: int, folder: Path, *arguments: str, out: str) -> None:
    """Train in a separate process, and kill it after the checkpoint of this step."""
    process = forked.begin(*command(*arguments, out=out), cwd=folder, environ=environ())
    while process.exitcode is None:
        steps = [int(path.stem[5:]) for path in folder.glob(f"{out}.work/step-*.pt")]
        if max(steps, default=0) >= step:
            process.kill()
        process.join(0.01)


def run_ranks(folder: Path, *arguments: str, out: str) -> None:
    ranks = begin_ranks(folder, *arguments, out=out, err=folder)
    for rank in ranks:
        rank.join(200)
    assert [rank.exitcode for rank in ranks] == [0, 0], (folder / "0").read_text()


def test_killed_run_continues_to_the_same_bytes(folder: Path, trained: Done) -> None:
    arguments = (*DEV, "--json", "--set", "log.checkpoint_steps=2")
    killed_after(2, folder, *arguments, out="killed")
    assert not (folder / "killed").exists()
    done = run(folder, *arguments, out="killed")
    assert done.code == 0, done.err
    assert "killed.work: continuing after step" in done.err
    weights = [folder / name / "model.safetensors" for name in ("killed", "model")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert done.result.keys() == trained.result.keys()
    assert not (folder / "killed.work").exists()


@pytest.mark.slow
def test_killed_mixture_continues_to_the_same_bytes(folder: Path) -> None:
    arguments = (
        *MIXTURE,
        *DEV,
        "--dev-data",
        "other=triplets.jsonl",
        "--set",
        "log.checkpoint_steps=2",
    )
    forked.run(*command(*arguments, out="mixed"), cwd=folder, environ=environ())
    killed_after(2, folder, *arguments, out="cut-mixture")
    assert not (folder / "cut-mixture").exists()
    done = run(folder, *arguments, out="cut-mixture")
    assert "cut-mixture.work: continuing after step" in done.err
    assert difference(folder, "cut-mixture", "mixed") == 0


@pytest.mark.slow
def test_sharded_training_equals_whole_and_resumes(folder: Path) -> None:
    flags = (
        *DEV,
        "--lr",
        "1e-3",
        "--set",
        "optim.average=0.5",
        "--set",
        "log.checkpoint_steps=2",
    )
    shard = ("--set", "run.shard=true")
    run_ranks(folder, *flags, out="copies")
    run_ranks(folder, *flags, *shard, out="shares")
    assert difference(folder, "copies", "shares") < 1e-5
    assert difference(folder, "shares", "bert") > 1e-4

    ranks = begin_ranks(folder, *flags, *shard, out="cut", err=folder)
    while not list(folder.glob("cut.work/step-*")) and ranks[0].exitcode is None:
        ranks[0].join(0.01)
    for rank in ranks:
        rank.kill()
        rank.join()
    assert list(folder.glob("cut.work/step-*"))
    run_ranks(folder, *flags, *shard, out="cut")
    assert difference(folder, "shares", "cut") == 0


@pytest.mark.slow
def test_on_a_cluster_of_two_nodes_it_has_the_same_bytes(bert: Path, tmp_path: Path):
    """A node is killed, then the driver. Slow: a cluster takes half a minute to start."""
    texts = tmp_path / "in.txt"
    write_lines(texts, write_texts(texts, 90) * 200)
    whole, out = tmp_path / "whole.npy", tmp_path / "out.npy"
    aoe_train.encode(texts, model=bert, out=whole, progress=False)
    with two_nodes() as (cluster, second):
        command = [
            *(
                sys.executable,
                "-m",
                "aoe_train",
                "encode",
                str(texts),
                "--model",
                str(bert),
                "-q",
            ),
            *("--out", str(out), "--engine", "ray", "--address", cluster.address),
        ]
        driver = subprocess.Popen(command)
        begun(out)
        second.all_processes["raylet"][0].process.kill()
        assert driver.wait(timeout=300) == 0
        assert out.read_bytes() == whole.read_bytes()
        out.unlink()
        driver = subprocess.Popen([*command, "--fresh"])
        begun(out)
        driver.kill()
        driver.wait()
        assert not out.exists()
        again = subprocess.run(
            [*command, "--json"], capture_output=True, text=True, check=True
        )
        assert json.loads(again.stdout)["resumed"] > 0
        assert out.read_bytes() == whole.read_bytes()


def begun(out: Path) -> None:
    """Wait until a part is stored."""
    manifest, until = (
        out.with_name(out.name + ".partial") / "manifest.json",
        time.monotonic() + 300,
    )
    while not (manifest.exists() and json.loads(manifest.read_text())["done"]):
        assert time.monotonic() < until
        time.sleep(0.05)
