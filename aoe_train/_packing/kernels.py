"""How many compiled kernels torch keeps.

oneDNN compiles a kernel for each number of rows that a matrix product has, and torch keeps the last 1,024 of
them twice over, half a MiB each. Packed texts bring another number with almost every batch, so a process that
runs for long would grow by a GiB or more, and nothing would be used again: a forward pass needs some ten.
"""

from __future__ import annotations

import os

_KEPT = "32"
_NAMES = ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY")  # torch's own cache, and oneDNN's


def keep_few() -> None:
    """Let torch keep a few; whoever has set the variables keeps what they say.

    Both are read at the first product of this process, and not again.
    """
    for name in _NAMES:
        os.environ.setdefault(name, _KEPT)
