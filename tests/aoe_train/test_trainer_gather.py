"""Two processes train as one with the doubled batch, with whole weights and with sharded ones."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from aoe_train.training.processes import (
    copy_weights,
    exit_cleanly,
    gather_rows,
    gather_weights,
    is_main,
    is_sharded,
    leave_group,
    repeated_layers,
    shard_like,
    unshard,
    unsharded_root,
)
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
from aoe_train.training.processes import exit_cleanly, leave_group

def late():  # as one of gloo's threads
    ready.set()
    time.sleep(0.05)
    Path(sys.argv[1]).write_text("done")

dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
exit_cleanly()
exit_cleanly()
leave_group()
ready = threading.Event()
threading.Thread(target=late, daemon=True).start()
ready.wait()
"""


def test_threads_finish_before_a_process_of_a_group_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-c", LATE, str(tmp_path / "found")], cwd=ROOT, check=True)
    assert (tmp_path / "found").exists()
    registered: list[object] = []
    monkeypatch.setattr(atexit, "register", registered.append)
    exit_cleanly()
    assert registered == []  # alone, nothing waits


def stack(*members: nn.Module) -> nn.Module:
    holder = nn.Module()
    holder.layers = nn.ModuleList(members)
    return holder


def test_layers_are_the_members_of_the_outermost_lists() -> None:
    experts = stack(nn.Linear(2, 2), nn.Linear(2, 2))
    inner = stack(experts, nn.ReLU())
    found = repeated_layers(nn.Sequential(nn.Embedding(3, 2), inner))
    assert found == [experts, inner.layers[1]]
    assert repeated_layers(nn.Linear(2, 2)) == []
    blocks = [nn.ModuleList([nn.ReLU(), nn.Tanh()]), nn.ModuleList([nn.GELU()])]
    assert repeated_layers(stack(*blocks)) == [*blocks[0], *blocks[1]]


def test_a_whole_model_is_left_as_it_is() -> None:
    model = nn.Linear(3, 2)
    before = model.weight
    assert not is_sharded(model)
    with unsharded_root(model):
        pass
    unshard(model)
    assert model.weight is before
    assert gather_weights({"weight": before}, main=True)["weight"].data_ptr() == before.data_ptr()
    assert not gather_weights({"weight": before}, main=False)
    assert copy_weights({"weight": before})["weight"].data_ptr() != before.data_ptr()
    assert torch.equal(shard_like(torch.ones(2, 3), before), torch.ones(2, 3))
