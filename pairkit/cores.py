"""How many cores there are for this process."""

from __future__ import annotations

import os


def cores() -> int:
    """Those that this process may run on; on macOS, which tells no more, all of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
