"""A task that fails; apart from the tests, because each new worker imports it."""

import errno
import os


def attempted(log, failures, signal_number):
    """Fail a number of times, with an error or by a signal, then write."""
    with log.open("a") as file:
        file.write(".")
    if len(log.read_text()) <= failures:
        if signal_number:
            os.kill(os.getpid(), signal_number)
        raise OSError(errno.EIO, "Input/output error")
    yield b"done"
