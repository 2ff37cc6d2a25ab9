"""The command line of `aoe train`, with a tiny backbone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from aoe_train import Encoder
from tests.contract.conftest import Done
from tests.contract.train_command import DEV, begin_ranks, environ, fill, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a backbone without dropout, and pairs."""
    return fill(tmp_path_factory.mktemp("aoe"))


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


def test_divergence_ends_both_processes(folder: Path, tmp_path: Path) -> None:
    flags = (*DEV, "--lr", "0.5", "--epochs", "6", "--set", "optim.warmup=0.5")
    ranks = begin_ranks(folder, *flags, out="far", err=tmp_path)
    for rank in ranks:
        rank.join(200)
    assert [rank.exitcode for rank in ranks] == [2, 2]
    errors = [Done(2, "", (tmp_path / str(rank)).read_text()).error for rank in range(2)]
    assert re.search(r"diverged at step \d+: .*lower --lr \(now 0.5\)", errors[0]), errors
    assert errors[0].endswith("are in far.work/before-divergence")
    assert errors[1] == errors[0]
    assert not (folder / "far").exists()
    assert Encoder.load(folder / "far.work" / "before-divergence").encode("the man").shape == (32,)


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from aoe_train.api.cli import app; app(['train', '--help'], standalone_mode=False); "
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environ())
    assert done.returncode == 0, done.stderr
