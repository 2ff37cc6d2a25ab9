"""Maps over files: tasks that write files, and the process pool or Ray cluster that runs them.

The files of a task are complete or absent, and their names have a hash of everything that determines their
content. So a task is done if its files exist: interrupted runs continue, and tasks can run on any machine.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, NamedTuple, Self

from pairkit.app.errors import ConfigError, DataError
from pairkit.system.cluster import WorkerLost, address_of, joined
from pairkit.system.files import write_bytes
from pairkit.system.machine import cores

_DIGITS = 20
_POLL_S = 0.2  # maximum delay of Ctrl-C
_MAX_RETRIES = 20  # of a task on Ray whose worker or machine was lost
_QUEUED_PER_CORE = 4  # tasks submitted to Ray for each core, so that cores don't wait for the driver
_BASE_BYTES = 512 << 20  # memory of a worker: interpreter, libraries, an hour's rows
_MEMORY_PER_BYTE = 12  # bytes of memory per byte of a task's input
_CONTEXT = multiprocessing.get_context("spawn")  # forked processes lack the threads of polars


class FileTask(NamedTuple):
    """A function that yields the content of each file in `outs`."""

    outs: tuple[Path, ...]
    function: Callable[..., Iterable[bytes]]
    arguments: tuple[Any, ...]
    memory: int = _BASE_BYTES  # estimated maximum, in bytes


def is_done(task: FileTask) -> bool:
    """Whether all files of a task exist."""
    return all(out.exists() for out in task.outs)


def do(task: FileTask) -> None:
    """Run a task if it is not done; its files are private, because they contain other people's texts."""
    if not is_done(task):
        for out, data in zip(task.outs, task.function(*task.arguments), strict=True):
            write_bytes(out, data, private=True)


def memory_for(paths: Iterable[Path], parts: int = 1) -> int:
    """The memory of a task that unpacks files, or one of `parts` equal parts of them."""
    return _BASE_BYTES + _MEMORY_PER_BYTE * sum(path.stat().st_size for path in paths) // parts


def file_named(folder: Path, stem: str, ending: str, code: object, *inputs: object) -> Path:
    """The path of a task's file: `STEM.CODE.INPUTS.ENDING`, with hashes of code and inputs."""
    return folder / f"{stem}.{digest_of(code)[:_DIGITS]}.{digest_of(inputs)[:_DIGITS]}.{ending}"


def superseded(used: Collection[Path]) -> list[Path]:
    """The files of the same tasks from earlier runs with other inputs."""
    tasks = {(path.parent, *_task_of(path)) for path in used}
    folders = {path.parent for path in used if path.parent.is_dir()}
    others = (other for folder in folders for other in folder.iterdir() if other not in used)
    return [other for other in others if (other.parent, *_task_of(other)) in tasks]


def _task_of(path: Path) -> tuple[str, ...]:
    """Stem, code and ending of a task's file."""
    parts = path.name.split(".")
    return (*parts[:2], parts[3]) if len(parts) == 4 else (path.name,)


def digest_of(value: object) -> str:
    """The hexadecimal SHA-256 of bytes or of a JSON value."""
    data = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(data).hexdigest()


def choose_runner(engine: str, workers: int | None, address: str | None) -> Runner:
    """Choose a process pool on this machine or a Ray cluster."""
    cluster = address_of(engine, address)
    if cluster is None:
        return Pool(workers or cores())
    if workers is not None:
        raise ConfigError(f"workers = {workers}: not available on a cluster")
    return OnRay(cluster)


class Pool:
    """Runs tasks on this machine; with one worker, in this process."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def run(self, tasks: Sequence[FileTask]) -> Iterator[None]:
        """Run tasks; if a worker is killed, a later run continues with the remaining ones."""
        if self._workers == 1:
            for task in tasks:
                do(task)
                yield
            return
        left, running = deque(tasks), set[Future[None]]()
        try:
            while left or running:
                while left and len(running) < 2 * self._workers:
                    running.add(self._begin(left.popleft()))
                done, running = _first_done(running)
                for future in done:
                    future.result()
                    yield
        except BrokenProcessPool as error:
            raise DataError(
                "a worker was killed, most likely for lack of memory; use fewer --workers"
            ) from error

    def _begin(self, task: FileTask) -> Future[None]:
        with _interrupts_blocked():  # new workers inherit the mask, see `_start_worker`
            if self._pool is None:
                self._pool = ProcessPoolExecutor(self._workers, _CONTEXT, initializer=_start_worker)
            return self._pool.submit(do, task)


def _first_done(running: set[Future[None]]) -> tuple[set[Future[None]], set[Future[None]]]:
    """Wait for a future; returns finished and running ones. Ctrl-C during a wait could leave a lock held."""
    while True:
        with _interrupts_blocked():
            done, left = wait(running, _POLL_S, FIRST_COMPLETED)
        if done:
            return done, left


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Delay Ctrl-C to the end of this context; processes that start here inherit the blocked signal."""
    resource_tracker.ensure_running()  # now, because its start unblocks interrupts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker() -> None:
    """Set up a worker: one thread of polars, Ctrl-C as in the driver, and an end when the driver ends."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    import_module("polars")  # now, because it installs a handler of Ctrl-C
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # ignored in background jobs
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class OnRay:
    """Runs tasks on a Ray cluster; data are in files, so that Ray does not move or lose any."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._cluster = self._stack.enter_context(joined(self._address))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, tasks: Sequence[FileTask]) -> Iterator[None]:
        """Run tasks; Ray starts a task where a core and enough memory are free."""
        cluster, ray = self._cluster, self._cluster.ray
        remote = ray.remote(num_cpus=1, max_retries=_MAX_RETRIES)(_do)
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        max_memory = int(max(node.get("memory", 0) for node in nodes))  # Ray would wait forever for more
        ahead = _QUEUED_PER_CORE * max(1, int(sum(node.get("CPU", 0) for node in nodes)))
        waiting = iter(tasks)
        running: dict[Any, FileTask] = {}
        while True:
            while len(running) < ahead and (task := next(waiting, None)) is not None:
                begin = remote.options(memory=min(task.memory, max_memory)).remote
                running[cluster.begun(begin, pickle.dumps(task))] = task
            if not running:
                return
            done = cluster.first(list(running))
            task = running.pop(done)
            try:
                cluster.fetched(done)
            except WorkerLost as error:
                raise DataError(
                    f"its worker was lost repeatedly ({error}), most likely for lack of memory;"
                    " use machines with more memory",
                    path=task.outs[0],
                ) from error
            yield


Runner = Pool | OnRay


def _do(packed: bytes) -> None:
    """Run a task with one thread of polars, which must be set before the task is unpickled."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    do(pickle.loads(packed))  # noqa: S301 - pickled by the driver
