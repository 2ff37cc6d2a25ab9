"""The command line of `aoe train`, with a tiny backbone."""

import json
import re
import shlex
import subprocess
import sys

import pytest

from aoe_train import Encoder
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
from tests.support.shorthand import approx, each_line, parametrize

folder, trained = train_command.folder, train_command.trained


@each_line("""
    code, words, arguments
    2 | setting 'optim.warmup' = 'hot' | --set optim.warmup=hot
    2 | {text} | --prompts '{text} {text}'
    3 | missing.tsv | --data missing.tsv
    3 | empty.tsv | --data empty.tsv
    4 | no/such-model | --backbone no/such-model
""")
def test_bad_input(folder, code, words, arguments):
    (folder / "empty.tsv").write_text("sentence1\tsentence2\tscore\n")
    option, *values = shlex.split(arguments)
    given = (
        {option.removeprefix("--"): values[0]}
        if option in ("--data", "--backbone")
        else {}
    )
    done = run(folder, *([] if given else [option, *values]), out="refused", **given)
    assert (done.code, words in done.error) == (int(code), True), done.err
    assert not (folder / "refused").exists()
    assert not (folder / "refused.work").exists()


def test_divergence_ends_both_processes(folder, tmp_path):
    flags = (*DEV, "--lr", "0.5", "--epochs", "6", "--set", "optim.warmup=0.5")
    ranks = begin_ranks(folder, *flags, out="far", err=tmp_path)
    for rank in ranks:
        rank.join(200)
    assert [rank.exitcode for rank in ranks] == [2, 2]
    errors = [
        Done(2, "", (tmp_path / str(rank)).read_text()).error for rank in range(2)
    ]
    assert re.search(r"diverged at step \d+: .*lower --lr \(now 0.5\)", errors[0]), (
        errors
    )
    assert errors[0].endswith("are in far.work/before-divergence")
    assert errors[1] == errors[0]
    assert not (folder / "far").exists()
    assert Encoder.load(folder / "far.work" / "before-divergence").encode(
        "the man"
    ).shape == (32,)


def test_help_loads_nothing_heavy():
    program = (
        "import sys; from aoe_train.api.cli import app; "
        "[app([name, '--help'], standalone_mode=False) for name in sys.argv[1:]]; "
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "train", "encode", "evaluate", "export"],
        capture_output=True,
        text=True,
        env=environ(),
    )
    assert done.returncode == 0, done.stderr


def test_json_ends_with_one_object(folder, trained):
    assert len(trained.out.splitlines()) == 1
    result = trained.result
    assert list(result)[:7] == [
        "out",
        "steps",
        "pairs",
        "seconds",
        "pairs_per_s",
        "peak_rss_mb",
        "dev",
    ]
    assert (result["out"], result["steps"], result["pairs"]) == ("model", 36, 288)
    assert result["pairs_per_s"] == approx(288 / result["seconds"], rel=0.01)
    assert -1 <= result["dev"] <= 1
    assert "Traceback" not in trained.err
    run_record = json.loads((folder / "model" / "run.json").read_text())
    assert run_record["origin"]["settings"]["seed"] == 5
    assert run_record["files"]["data"]["train"].keys() == {"train.tsv"}


@pytest.mark.slow
@parametrize("mixture", [False, True])
def test_two_processes_train_the_same_model(folder, *, mixture):
    flags = ("--set", "batches.strategy=shuffle", "--lr", "2e-5", "--json", "--fresh")
    flags += MIXTURE if mixture else ()
    one = run(folder, *flags, "--batch-size", "16", out="one")
    assert one.code == 0, one.err
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--standalone",
    ]
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
