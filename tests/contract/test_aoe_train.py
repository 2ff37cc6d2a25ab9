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
# Beside train.tsv; the loss of one has weights of its own, which batches of the other leave unused.
MIXTURE = ("--data", "other=triplets.jsonl", "--set", "datasets.other.preset=sbert")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a backbone (without dropout) and pairs."""
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


def run(place: Path, *arguments: str, **given: Any) -> Done:
    return run_here(*command(*arguments, **given), cwd=place, environ=environ())


def killed_after(step: int, place: Path, *arguments: str, out: str) -> None:
    """Train in a process of its own, and kill it once there is a checkpoint of this step or a later one."""
    process = forked.begin(*command(*arguments, out=out), cwd=place, environ=environ())
    while process.exitcode is None:
        steps = [int(path.name[5:]) for path in place.glob(f"{out}.work/step-*[0-9]")]
        if max(steps, default=0) >= step:
            process.kill()
        process.join(0.01)


@pytest.fixture(scope="module")
def trained(place: Path) -> Done:
    done = run(place, *DEV, "--json", out="model")
    assert done.code == 0, done.err
    return done


def difference(place: Path, one: str, other: str) -> float:
    found = [load_file(place / name / "model.safetensors") for name in (one, other)]
    assert found[0].keys() == found[1].keys()
    return max(float((found[0][name] - found[1][name]).abs().max()) for name in found[0])


def test_json_ends_with_one_object(place: Path, trained: Done) -> None:
    assert len(trained.out.splitlines()) == 1
    result = trained.result
    assert list(result)[:7] == ["out", "steps", "pairs", "seconds", "pairs_per_s", "peak_rss_mb", "dev"]
    assert (result["out"], result["steps"], result["pairs"]) == ("model", 36, 288)
    assert result["pairs_per_s"] == pytest.approx(288 / result["seconds"], rel=0.01)
    assert -1 <= result["dev"] <= 1
    assert "Traceback" not in trained.err
    run_record = json.loads((place / "model" / "run.json").read_text())
    assert run_record["origin"]["settings"]["seed"] == 5
    assert run_record["files"]["data"].keys() == {"train.tsv"}


def test_killed_run_continues_to_the_same_bytes(place: Path, trained: Done) -> None:
    arguments = (*DEV, "--json", "--set", "log.checkpoint_steps=2")
    killed_after(2, place, *arguments, out="killed")
    assert not (place / "killed").exists()
    done = run(place, *arguments, out="killed")
    assert done.code == 0, done.err
    assert "killed.work: continuing after step" in done.err
    weights = [place / name / "model.safetensors" for name in ("killed", "model")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert done.result.keys() == trained.result.keys()
    assert not (place / "killed.work").exists()


@pytest.mark.slow
def test_killed_mixture_continues_to_the_same_bytes(place: Path) -> None:
    arguments = (*MIXTURE, *DEV, "--dev-data", "other=triplets.jsonl", "--set", "log.checkpoint_steps=2")
    forked.run(*command(*arguments, out="mixed"), cwd=place, environ=environ())
    killed_after(2, place, *arguments, out="cut-mixture")
    assert not (place / "cut-mixture").exists()
    done = run(place, *arguments, out="cut-mixture")
    assert "cut-mixture.work: continuing after step" in done.err
    assert difference(place, "cut-mixture", "mixed") == 0


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
    place: Path, given: dict[str, str], arguments: tuple[str, ...], code: int, words: str
) -> None:
    (place / "empty.tsv").write_text("sentence1\tsentence2\tscore\n")
    done = run(place, *arguments, out="refused", **given)
    assert (done.code, words in done.error) == (code, True), done.err
    assert not (place / "refused").exists()
    assert not (place / "refused.work").exists()


def begin_ranks(place: Path, *arguments: str, out: str, err: Path) -> list[Any]:
    return forked.begin_ranks(*command(*arguments, out=out), cwd=place, err=err, environ=environ())


def run_ranks(place: Path, *arguments: str, out: str) -> None:
    ranks = begin_ranks(place, *arguments, out=out, err=place)
    for rank in ranks:
        rank.join(200)
    assert [rank.exitcode for rank in ranks] == [0, 0], (place / "0").read_text()


def test_divergence_ends_both_processes(place: Path, tmp_path: Path) -> None:
    flags = (*DEV, "--lr", "0.1", "--epochs", "6", "--set", "optim.warmup=0.5")
    ranks = begin_ranks(place, *flags, out="far", err=tmp_path)
    for rank in ranks:
        rank.join(200)
    assert [rank.exitcode for rank in ranks] == [2, 2]
    errors = [Done(2, "", (tmp_path / str(rank)).read_text()).error for rank in range(2)]
    assert re.search(r"diverged at step \d+: .*lower --lr \(now 0.1\)", errors[0]), errors
    assert errors[0].endswith("are in far.work/before-divergence")
    assert errors[1] == errors[0]
    assert not (place / "far").exists()
    assert Encoder.load(place / "far.work" / "before-divergence").encode("the man").shape == (32,)


@pytest.mark.slow
def test_sharded_training_equals_whole_and_resumes(place: Path) -> None:
    flags = (*DEV, "--lr", "1e-3", "--set", "optim.average=0.5", "--set", "log.checkpoint_steps=2")
    shard = ("--set", "run.shard=true")
    run_ranks(place, *flags, out="copies")
    run_ranks(place, *flags, *shard, out="shares")
    assert difference(place, "copies", "shares") < 1e-5
    assert difference(place, "shares", "bert") > 1e-4

    ranks = begin_ranks(place, *flags, *shard, out="cut", err=place)
    while not list(place.glob("cut.work/step-*")) and ranks[0].exitcode is None:
        ranks[0].join(0.01)
    for rank in ranks:
        rank.kill()
        rank.join()
    assert list(place.glob("cut.work/step-*"))
    run_ranks(place, *flags, *shard, out="cut")
    assert difference(place, "shares", "cut") == 0


@pytest.mark.slow
@pytest.mark.parametrize("mixture", [False, True])
def test_two_processes_train_the_same_model(place: Path, *, mixture: bool) -> None:
    flags = ("--set", "batches.strategy=shuffle", "--lr", "2e-5", "--json", "--fresh")
    flags += MIXTURE if mixture else ()
    one = run(place, *flags, "--batch-size", "16", out="one")
    assert one.code == 0, one.err
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    done = subprocess.run(
        [*torchrun, "-m", *command(*flags, out="two")],
        capture_output=True,
        text=True,
        env=environ(),
        cwd=place,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1  # rank 0 alone tells
    assert json.loads(done.stdout)["pairs"] == one.result["pairs"]
    # Rounding may turn a step of Adam where a gradient is next to nothing; a mixture takes more steps.
    assert difference(place, "one", "two") < (2e-5 if mixture else 1e-5)
    assert difference(place, "one", "bert") > 1e-4


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from aoe_train.cli import app; app(['train', '--help'], standalone_mode=False); "
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environ())
    assert done.returncode == 0, done.stderr
