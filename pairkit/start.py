"""How each console script begins, before anything is imported that takes its time."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import NoReturn

_UNSUPPORTED, _INTERRUPTED = 2, 130  # exit codes, as in `pairkit.errors` and `pairkit.terminal`


def start(module: str) -> None:
    """Import a command line and run its `main`.

    Args:
        module: Such as `gis_builder._cli`.
    """
    if sys.platform == "win32":
        sys.stderr.write("error: needs Linux or macOS; on Windows, use it in WSL\n")
        sys.exit(_UNSUPPORTED)
    wanted = signal.getsignal(signal.SIGINT)
    if wanted != signal.SIG_IGN:  # as of a job in the background
        signal.signal(signal.SIGINT, _leave)
    main = import_module(module).main
    signal.signal(signal.SIGINT, wanted)
    try:
        main()
    finally:
        if wanted != signal.SIG_IGN:  # while the interpreter ends
            signal.signal(signal.SIGINT, _leave)


def _leave(*_: object) -> NoReturn:
    """End at once: nothing has begun, and an exception within an import may become another one."""
    os.write(2, b"interrupted; run the same command again to continue\n")
    os._exit(_INTERRUPTED)
