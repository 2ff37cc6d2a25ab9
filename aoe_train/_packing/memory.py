"""Keeping freed memory in the process: one batch asks for the same sizes as the last."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's mallopt(3)
_LARGEST = 32 << 20  # the largest threshold that glibc takes


def keep_freed_memory() -> bool:
    """Tell glibc not to hand freed memory back to the kernel, which returns it page by page, zeroed.

    Without it a CPU spends up to a fifth of a training step on page faults, and of encoding long texts a
    third. It holds for the whole process from then on: its resident memory stays at its peak, except for what
    was asked for in pieces of 32 MiB and more. Elsewhere than on glibc it does nothing, and says so by False.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST) and mallopt(_TRIM_THRESHOLD, 2**31 - 1))
