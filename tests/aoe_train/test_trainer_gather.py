"""Two processes train as one with the doubled batch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from aoe_train.training.trainer.gather import gather_rows, is_main, leave_group
from tests import forked

ROOT = Path(__file__).parents[2]


def test_two_ranks_are_one_with_the_doubled_batch(tmp_path: Path) -> None:
    environ = {**os.environ, "KEEP": str(tmp_path)}
    ranks = forked.begin_ranks("tests.aoe_train.two_ranks", cwd=ROOT, err=tmp_path, environ=environ)
    for number, rank in enumerate(ranks):
        rank.join(100)
        assert rank.exitcode == 0, (tmp_path / str(number)).read_text()


def test_alone_nothing_changes() -> None:
    values = torch.ones(3, 2)
    assert gather_rows(values) is values
    assert is_main()
    leave_group()


LATE = """
import sys, threading, time
from pathlib import Path
import torch.distributed as dist
from aoe_train.training.trainer.gather import exit_cleanly, leave_group

def late():  # as one of gloo's threads
    ready.set()
    time.sleep(0.05)
    Path(sys.argv[1]).write_text("done")

if sys.argv[2] == "group":
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
exit_cleanly()
exit_cleanly()
leave_group()
ready = threading.Event()
threading.Thread(target=late, daemon=True).start()
ready.wait()
"""


@pytest.mark.parametrize("how", ["group", "alone"])
def test_threads_finish_before_a_process_ends(tmp_path: Path, how: str) -> None:
    subprocess.run([sys.executable, "-c", LATE, str(tmp_path / "found"), how], cwd=ROOT, check=True)
    assert (tmp_path / "found").exists() == (how == "group")
