"""The command line of `aoe train`, with a tiny backbone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from aoe_train import Encoder
from tests import forked
from tests.aoe_train.test_train import write_pairs, write_triplets
from tests.aoe_train.tiny import save_bert
from tests.contract.conftest import Done, environment, run_here

FLAGS = ("--preset", "angle-paper", "--lr", "1e-4", "--batch-size", "8", "--epochs", "3", "--seed", "5")
DEV = ("--dev-data", "dev.tsv")
# In addition to train.tsv; sbert has weights that batches of the other dataset don't use.
MIXTURE = ("--data", "other=triplets.jsonl", "--set", "datasets.other.preset=sbert")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a backbone without dropout, and pairs."""
    folder = tmp_path_factory.mktemp("aoe")
    save_bert(folder / "bert", dropout=0.0)
    write_pairs(folder / "train.tsv", 96, 1)
    write_pairs(folder / "dev.tsv", 30, 2)
    write_triplets(folder / "triplets.jsonl", 40, 3)
    return folder


def environ() -> dict[str, str]:
    return environment(HF_HUB_OFFLINE="1", AOE_CACHE="cache")


def command(*arguments: str, out: str, data: str = "train.tsv", backbone: str = "bert") -> list[str]:
    given = ["--data", data, "--backbone", backbone, "--out", out]
    return ["aoe_train", "train", *given, *FLAGS, *arguments]


def run(folder: Path, *arguments: str, **given: Any) -> Done:
    return run_here(*command(*arguments, **given), cwd=folder, environ=environ())


def killed_after(step: int, folder: Path, *arguments: str, out: str) -> None:
    """Train in a separate process, and kill it after the checkpoint of this step."""
    process = forked.begin(*command(*arguments, out=out), cwd=folder, environ=environ())
    while process.exitcode is None:
        steps = [int(path.stem[5:]) for path in folder.glob(f"{out}.work/step-*.pt")]
        if max(steps, default=0) >= step:
            process.kill()
        process.join(0.01)


@pytest.fixture(scope="module")
def trained(folder: Path) -> Done:
    done = run(folder, *DEV, "--json", out="model")
    assert done.code == 0, done.err
    return done


def difference(folder: Path, one: str, other: str) -> float:
    found = [load_file(folder / name / "model.safetensors") for name in (one, other)]
    assert found[0].keys() == found[1].keys()
    return max(float((found[0][name] - found[1][name]).abs().max()) for name in found[0])


def test_json_ends_with_one_object(folder: Path, trained: Done) -> None:
    assert len(trained.out.splitlines()) == 1
    result = trained.result
    assert list(result)[:7] == ["out", "steps", "pairs", "seconds", "pairs_per_s", "peak_rss_mb", "dev"]
    assert (result["out"], result["steps"], result["pairs"]) == ("model", 36, 288)
    assert result["pairs_per_s"] == pytest.approx(288 / result["seconds"], rel=0.01)
    assert -1 <= result["dev"] <= 1
    assert "Traceback" not in trained.err
    run_record = json.loads((folder / "model" / "run.json").read_text())
    assert run_record["origin"]["settings"]["seed"] == 5
    assert run_record["files"]["data"].keys() == {"train.tsv"}


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


@pytest.mark.parametrize(
    ("given", "arguments", "code", "words"),
    [
        ({}, ("--set", "optim.warmup=hot"), 2, "setting 'optim.warmup' = 'hot'"),
        ({}, ("--prompts", "{text} {text}"), 2, "{text}"),
        ({"data": "missing.tsv"}, (), 3, "missing.tsv"),
        ({"data": "empty.tsv"}, (), 3, "empty.tsv"),
        ({"backbone": "no/such-model"}, (), 4, "no/such-model"),
    ],
    ids=str,
)
def test_bad_input(
    folder: Path, given: dict[str, str], arguments: tuple[str, ...], code: int, words: str
) -> None:
    (folder / "empty.tsv").write_text("sentence1\tsentence2\tscore\n")
    done = run(folder, *arguments, out="refused", **given)
    assert (done.code, words in done.error) == (code, True), done.err
    assert not (folder / "refused").exists()
    assert not (folder / "refused.work").exists()


def begin_ranks(folder: Path, *arguments: str, out: str, err: Path) -> list[Any]:
    return forked.begin_ranks(*command(*arguments, out=out), cwd=folder, err=err, environ=environ())


def run_ranks(folder: Path, *arguments: str, out: str) -> None:
    ranks = begin_ranks(folder, *arguments, out=out, err=folder)
    for rank in ranks:
        rank.join(200)
    assert [rank.exitcode for rank in ranks] == [0, 0], (folder / "0").read_text()


def test_divergence_ends_both_processes(folder: Path, tmp_path: Path) -> None:
    flags = (*DEV, "--lr", "0.1", "--epochs", "6", "--set", "optim.warmup=0.5")
    ranks = begin_ranks(folder, *flags, out="far", err=tmp_path)
    for rank in ranks:
        rank.join(200)
    assert [rank.exitcode for rank in ranks] == [2, 2]
    errors = [Done(2, "", (tmp_path / str(rank)).read_text()).error for rank in range(2)]
    assert re.search(r"diverged at step \d+: .*lower --lr \(now 0.1\)", errors[0]), errors
    assert errors[0].endswith("are in far.work/before-divergence")
    assert errors[1] == errors[0]
    assert not (folder / "far").exists()
    assert Encoder.load(folder / "far.work" / "before-divergence").encode("the man").shape == (32,)


@pytest.mark.slow
def test_sharded_training_equals_whole_and_resumes(folder: Path) -> None:
    flags = (*DEV, "--lr", "1e-3", "--set", "optim.average=0.5", "--set", "log.checkpoint_steps=2")
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
@pytest.mark.parametrize("mixture", [False, True])
def test_two_processes_train_the_same_model(folder: Path, *, mixture: bool) -> None:
    flags = ("--set", "batches.strategy=shuffle", "--lr", "2e-5", "--json", "--fresh")
    flags += MIXTURE if mixture else ()
    one = run(folder, *flags, "--batch-size", "16", out="one")
    assert one.code == 0, one.err
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    done = subprocess.run(
        [*torchrun, "-m", *command(*flags, out="two")],
        capture_output=True,
        text=True,
        env=environ(),
        cwd=folder,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1  # only rank 0 prints
    assert json.loads(done.stdout)["pairs"] == one.result["pairs"]
    # Rounding can invert a step of Adam for tiny gradients; a mixture takes more steps.
    assert difference(folder, "one", "two") < (2e-5 if mixture else 1e-5)
    assert difference(folder, "one", "bert") > 1e-4


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from aoe_train.cli import app; app(['train', '--help'], standalone_mode=False); "
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environ())
    assert done.returncode == 0, done.stderr
