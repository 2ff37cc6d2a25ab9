"""How many threads a CPU computes with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """On one thread, for work so small that threads would wait for each other longer than they compute.

    They wait busily: beside other programs two threads take ten times the CPU time for a text of six words.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
