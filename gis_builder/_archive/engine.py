"""Who runs tasks: this process, others on this machine, or those of a cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import resource_tracker
from typing import Protocol, Self

from gis_builder._archive.tasks import Task, do
from pairkit.cluster import address_of
from pairkit.cores import cores
from pairkit.errors import ConfigError, DataError

_MOST_DEATHS = 3  # of workers while at one task
_CONTEXT = multiprocessing.get_context("spawn")  # forked threads of polars would wait for ever


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
    cluster = address_of(name, address)
    if cluster is None:
        return Local(workers or cores())
    if workers is not None:
        raise ConfigError(f"workers = {workers}: a cluster has as many as it has; leave it off")
    from gis_builder._archive.on_ray import OnRay

    return OnRay(cluster)


class Local:
    """Runs tasks on this machine; see `Engine`.

    Each worker is an executor of one process: of a pool of several, the death of one would end all.

    Args:
        workers: Processes; with 1 this process does everything.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._idle: list[ProcessPoolExecutor] = []
        self._at_work: dict[Future[None], tuple[ProcessPoolExecutor, Task]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def run(self, tasks: Sequence[Task]) -> Iterator[None]:
        """See `Engine`.

        Where a worker is killed, as memory is short, what it was at is done again, and no more.

        Raises:
            DataError: Workers are killed again and again at one task.
        """
        if self._workers == 1:
            for task in tasks:
                do(task)
                yield
            return
        waiting, deaths = deque(tasks), Counter[Task]()
        try:
            while waiting or self._at_work:
                while waiting and len(self._at_work) < self._workers:
                    self._hand_out(waiting.popleft())
                for future in wait(self._at_work, return_when=FIRST_COMPLETED).done:
                    worker, task = self._at_work[future]  # where `_stop` finds it until it is dealt with
                    try:
                        future.result()
                    except BrokenProcessPool as error:
                        worker.shutdown()
                        deaths[task] += 1
                        if deaths[task] == _MOST_DEATHS:
                            raise _lost_again_and_again(task) from error
                        del self._at_work[future]
                        waiting.appendleft(task)
                    else:
                        self._idle.append(worker)
                        del self._at_work[future]
                        yield
        except BaseException:
            self._stop()
            raise

    def _hand_out(self, task: Task) -> None:
        with _interrupts_held():  # as it begins, too, a worker has nothing to say of Ctrl-C: see `_begin`
            while self._idle:
                worker = self._idle.pop()
                try:
                    self._at_work[worker.submit(do, task)] = worker, task
                except BrokenProcessPool:  # killed while it had nothing to do
                    worker.shutdown()
                else:
                    return
            worker = ProcessPoolExecutor(1, _CONTEXT, initializer=_begin)
            self._at_work[worker.submit(do, task)] = worker, task

    def _stop(self) -> None:
        workers = [*self._idle, *(worker for worker, _ in self._at_work.values())]
        self._idle.clear()
        self._at_work.clear()
        for worker in workers:
            worker.shutdown()


def _lost_again_and_again(task: Task) -> DataError:
    return DataError(
        "workers were killed again and again, most likely as memory is short; give fewer --workers"
        " (workers=…), or more --partitions (partitions=…)",
        path=str(task.out),
    )


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits for the end of this, and in processes that begin here for what they do about it."""
    resource_tracker.ensure_running()  # before: as it starts, it lets them through again
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
