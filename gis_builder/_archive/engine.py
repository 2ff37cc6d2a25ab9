"""Who runs tasks: this process, others on this machine, or those of a cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from typing import Protocol, Self

from gis_builder._archive.tasks import Task, do
from pairkit.errors import ConfigError, DataError

_MOST_DEATHS = 3  # of workers, with no task done in between


class Engine(Protocol):
    """Runs tasks in any order, each at least once; the files are the same whoever runs them.

    A context manager, at whose end its workers end, or are left to others.
    """

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *_: object) -> None:
        """End."""

    def run(self, tasks: Sequence[Task]) -> Iterator[None]:
        """Run the tasks; yields as each is done."""


def engine_of(name: str, workers: int | None, address: str | None) -> Engine:
    """The engine of a name.

    Args:
        name: `local` or `ray`.
        workers: Processes on this machine; None for one for each core.
        address: Of the Ray cluster.

    Raises:
        ConfigError: What is given doesn't fit the engine.
    """
    if name == "local":
        if address is not None:
            raise ConfigError(
                f"address = {address}: is for --engine ray (engine='ray'); give that, or no address"
            )
        return Local(workers or len(os.sched_getaffinity(0)))
    if workers is not None:
        raise ConfigError(f"workers = {workers}: a cluster has as many as it has; leave it off")
    if address is None:
        raise ConfigError(
            "--engine ray (engine='ray') needs --address (address=…), such as 10.0.0.1:6379, which"
            " `ray start` names"
        )
    from gis_builder._archive.on_ray import OnRay

    return OnRay(address)


class Local:
    """Runs tasks on this machine; see `Engine`.

    Args:
        workers: Processes; with 1 this process does everything.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def run(self, tasks: Sequence[Task]) -> Iterator[None]:
        """See `Engine`.

        Where a worker is killed, as memory is short, what the workers were at is done again, and no more.

        Raises:
            DataError: Workers are killed again and again.
        """
        if self._workers == 1:
            for task in tasks:
                do(task)
                yield
            return
        left, deaths = dict.fromkeys(tasks), 0
        while left:
            try:
                for done in self._run_in_pool(list(left)):
                    deaths = 0
                    del left[done]
                    yield
            except BrokenProcessPool as error:
                deaths += 1
                if deaths == _MOST_DEATHS:
                    raise DataError(
                        "workers were killed again and again, most likely as memory is short; give fewer"
                        " --workers (workers=…), or more --partitions (partitions=…)",
                        path=next(iter(left)).out,
                    ) from error

    def _run_in_pool(self, tasks: Sequence[Task]) -> Iterator[Task]:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")  # forked threads of polars would wait for ever
            self._pool = ProcessPoolExecutor(self._workers, context, initializer=_begin)
        try:
            with _interrupts_held():  # as it begins, too, a worker has nothing to say of Ctrl-C: see `_begin`
                futures = {self._pool.submit(do, task): task for task in tasks}
            for future in as_completed(futures):
                future.result()
                yield futures[future]
        except BaseException:
            self._stop()
            raise

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits for the end of this, and in processes that begin here for what they do about it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """A worker has one core, so one thread for tables; and it does not outlive a driver that was killed.

    Ctrl-C, which a terminal sends to workers, too, ends it without a word: the driver says what to do.
    """
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    import_module("polars")  # with its own handler of Ctrl-C, which would keep ours from ending the worker
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # as of a job in the background
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_await_parent, daemon=True).start()


def _await_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
