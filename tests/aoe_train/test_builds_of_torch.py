"""Limited builds of torch, each simulated in its own process, and memory of products."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from aoe_train import Encoder
from tests.aoe_train.shorthand import python

_WITHOUT_ONEDNN = """
class Nothing:
    def __getattr__(self, name):
        raise AttributeError(f"'_OpNamespace' 'mkldnn' object has no attribute '{name}'")
torch.ops.mkldnn = Nothing()
torch.backends.mkldnn.is_available = lambda: False
"""
_WITHOUT_MKL = """
torch.backends.mkl.is_available = lambda: False
"""
_WITHOUT_DISTRIBUTED = """
import torch.distributed
torch.distributed.is_available = lambda: False
for name in ("is_initialized", "get_world_size", "get_rank", "broadcast", "barrier", "all_gather"):
    delattr(torch.distributed, name)
for name in ("fsdp", "tensor", "device_mesh", "checkpoint", "checkpoint.state_dict"):
    sys.modules[f"torch.distributed.{name}"] = None
"""
_WITHOUT_RESOURCE = """
import psutil  # on this system it needs what is then taken away
sys.modules["resource"] = None
"""
_ENCODE = """
from aoe_train import Encoder
from tests.aoe_train.shorthand import python
import numpy as np
vectors = Encoder.load(sys.argv[1]).encode(["a cat is playing", "the boat"])
assert vectors.shape == (2, 32) and np.isfinite(vectors).all()
np.save(sys.argv[2], vectors)
"""
_TRAIN = """
import aoe_train.training.train, aoe_train.training.processes, pairkit.base.system.machine
from aoe_train.training.processes import is_sharded
assert not pairkit.base.system.machine.is_out_of_memory(ValueError())
assert not is_sharded(torch.nn.Linear(2, 2))
"""


def run(build, use, *arguments):
    done = python(f"import sys\nimport torch\n{build}\n{use}", *arguments)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_less_complete_build_gives_the_same_vectors_and_can_train(bert, tmp_path):
    build = _WITHOUT_ONEDNN + _WITHOUT_MKL + _WITHOUT_DISTRIBUTED + _WITHOUT_RESOURCE
    run(build, _TRAIN + _ENCODE, bert, tmp_path / "v.npy")
    expected = Encoder.load(bert).encode(["a cat is playing", "the boat"])
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-5)


GROWTH = """
import ctypes
import torch
from aoe_train.model.packing.layers import FastLinear

class Figures(ctypes.Structure):  # glibc's mallinfo2(3)
    _fields_ = [(name, ctypes.c_size_t) for name in "arena a b c hblkhd d e uordblks f g".split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Figures
layer = FastLinear(384, 1536)

def used():
    found = libc.mallinfo2()
    return (found.uordblks + found.hblkhd) / 2**20

def run(begin, end):
    for rows in range(begin, end):
        layer(torch.zeros(rows, 384))

with torch.inference_mode():
    run(100, 140)
    before = used()
    run(200, 240)
    print(used() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks glibc")
def test_products_of_new_sizes_do_not_leak_memory():
    """Memory in MiB after forty products of new sizes, compared with after forty others."""
    names = ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    environ = {name: value for name, value in os.environ.items() if name not in names}
    environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    assert float(python(GROWTH, env=environ, check=True).stdout) < 4
