"""Kernels for products of ever other sizes are not kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def grown(**environment: str) -> float:
    """MiB that forty products of new sizes leave behind, after forty others."""
    names = ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", GROWTH],
        env={**inherited, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="asks glibc")
def test_products_of_new_sizes_leave_nothing_behind() -> None:
    assert grown() < 4


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks glibc")
def test_what_somebody_set_is_kept() -> None:
    many = {"LRU_CACHE_CAPACITY": "1024", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "1024"}
    assert grown(**many) > 8
