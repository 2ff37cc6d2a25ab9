"""Tasks of workers; apart from the tests, because each new worker imports them."""

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


def count_threads():
    """Write the number of threads of polars."""
    from polars import thread_pool_size

    yield b"%d" % thread_pool_size()
