"""Two processes train as one with the doubled batch."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import torch

from aoe_train.trainer.gather import gather_rows, is_main

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_two_ranks_are_one_with_the_doubled_batch(tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "KEEP": str(tmp_path),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": "2",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, str(Path(__file__).with_name("two_ranks.py"))]
    ranks = [
        subprocess.Popen(command, env={**environ, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    for rank in ranks:
        _, errors = rank.communicate(timeout=100)
        assert rank.returncode == 0, errors


def test_alone_nothing_changes() -> None:
    values = torch.ones(3, 2)
    assert gather_rows(values) is values
    assert is_main()
