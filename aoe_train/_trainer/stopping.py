"""A run that is asked to end before its time is over ends with a checkpoint."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGTERM, signal.SIGUSR1)  # schedulers send the one, or what a job asks them for


class Stopped(KeyboardInterrupt):
    """A run was asked to end, and has left a checkpoint; the same command continues.

    Attributes:
        step: Optimiser steps done.
    """

    def __init__(self, step: int) -> None:
        self.step = step
        super().__init__(f"stopped after step {step}")


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Whether a SIGTERM or SIGUSR1 has come since; neither ends the process meanwhile.

    A signal that is already handled by others, or ignored, is left to them; so are all where this is not the
    main thread, which alone can handle any.
    """
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        asked = True

    is_main = threading.current_thread() is threading.main_thread()
    ours = [kind for kind in _SIGNALS if is_main and signal.getsignal(kind) == signal.SIG_DFL]
    for kind in ours:
        signal.signal(kind, ask)
    try:
        yield lambda: asked
    finally:
        for kind in ours:
            signal.signal(kind, signal.SIG_DFL)
