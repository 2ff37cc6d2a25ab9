"""Maps over files: tasks that write files, and a process pool that runs them.

A task's files are whole or absent, and named by a digest of everything that decides their contents. So "it
exists" means "it is done": an interrupted run continues, and it does not matter where a task runs.
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
_POLL_S = 0.2  # how long Ctrl-C may wait
_MOST_RETRIES = 20  # of one task on Ray, as workers or machines were lost
_QUEUED_PER_CORE = 4  # tasks handed to Ray for each core, so that none waits for the driver
_BASE_BYTES = 512 << 20  # of a worker's memory: interpreter, libraries, an hour's rows
_MEMORY_PER_BYTE = 12  # bytes of memory for a byte of a task's input
_CONTEXT = multiprocessing.get_context("spawn")  # in forked processes the threads of polars would be missing


class FileTask(NamedTuple):
    """A function from files to files: it yields the contents of each of `outs` in turn."""

    outs: tuple[Path, ...]
    function: Callable[..., Iterable[bytes]]
    arguments: tuple[Any, ...]
    memory: int = _BASE_BYTES  # bytes that it takes at most, about

    @property
    def out(self) -> Path:
        """The file, or the first one."""
        return self.outs[0]


def is_done(task: FileTask) -> bool:
    """Whether all files of a task exist."""
    return all(out.exists() for out in task.outs)


def do(task: FileTask) -> None:
    """Run a task if it is not done; its files are their owner's only, as they hold other people's words."""
    if not is_done(task):
        for out, data in zip(task.outs, task.function(*task.arguments), strict=True):
            write_bytes(out, data, private=True)


def memory_for(paths: Iterable[Path], parts: int = 1) -> int:
    """The memory of a task that unpacks files, or one of so many parts of them."""
    return _BASE_BYTES + _MEMORY_PER_BYTE * sum(path.stat().st_size for path in paths) // parts


def file_named(folder: Path, stem: str, ending: str, code: object, *inputs: object) -> Path:
    """A task's file, `STEM.CODE.INPUTS.ENDING`: digests of what makes it, and of what it is made from."""
    return folder / f"{stem}.{digest_of(code)[:_DIGITS]}.{digest_of(inputs)[:_DIGITS]}.{ending}"


def superseded(used: Collection[Path]) -> list[Path]:
    """The files that earlier runs made of the same tasks from other inputs."""
    tasks = {(path.parent, *_task_of(path)) for path in used}
    folders = {path.parent for path in used if path.parent.is_dir()}
    others = (other for folder in folders for other in folder.iterdir() if other not in used)
    return [other for other in others if (other.parent, *_task_of(other)) in tasks]


def _task_of(path: Path) -> tuple[str, ...]:
    """Stem, code and ending of a task's file."""
    parts = path.name.split(".")
    return (*parts[:2], parts[3]) if len(parts) == 4 else (path.name,)


def digest_of(value: object) -> str:
    """The hex SHA-256 of bytes, or of what JSON can hold."""
    data = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(data).hexdigest()


def runner_of(engine: str, workers: int | None, address: str | None) -> Runner:
    """The process pool of this machine, or a Ray cluster."""
    cluster = address_of(engine, address)
    if cluster is None:
        return Pool(workers or cores())
    if workers is not None:
        raise ConfigError(f"workers = {workers}: a cluster decides that; leave it off")
    return OnRay(cluster)


class Pool:
    """Runs tasks on this machine: in this process if there is one worker."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def run(self, tasks: Sequence[FileTask]) -> Iterator[None]:
        """Run tasks; if a worker is killed, a later run continues with those that are left."""
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
                "a worker was killed, most likely because memory is short; run again with fewer --workers"
                " (workers=…)"
            ) from error

    def _begin(self, task: FileTask) -> Future[None]:
        with _interrupts_held():  # new workers inherit that, see `_start_worker`
            if self._pool is None:
                self._pool = ProcessPoolExecutor(self._workers, _CONTEXT, initializer=_start_worker)
            return self._pool.submit(do, task)

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _first_done(running: set[Future[None]]) -> tuple[set[Future[None]], set[Future[None]]]:
    """At least one that is done, and the rest; Ctrl-C within a wait could leave a future locked."""
    while True:
        with _interrupts_held():
            done, left = wait(running, _POLL_S, FIRST_COMPLETED)
        if done:
            return done, left


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits for the end of this, and in processes that start here until they can handle it."""
    resource_tracker.ensure_running()  # first: while it starts, it lets interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker() -> None:
    """A worker has one core, hence one thread of polars; it ends with its driver, even a killed one."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    import_module("polars")  # its own handler of Ctrl-C would replace ours
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # as in a background job
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class OnRay:
    """Runs tasks on a cluster. They read and write files, so Ray has no data to move, or to lose."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._cluster = self._stack.enter_context(joined(self._address))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, tasks: Sequence[FileTask]) -> Iterator[None]:
        """Run tasks; Ray starts one wherever a core and its memory are free."""
        cluster, ray = self._cluster, self._cluster.ray
        remote = ray.remote(num_cpus=1, max_retries=_MOST_RETRIES)(_do)
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        most_memory = int(max(node.get("memory", 0) for node in nodes))  # Ray waits for ever for more
        ahead = _QUEUED_PER_CORE * max(1, int(sum(node.get("CPU", 0) for node in nodes)))
        waiting = iter(tasks)
        running: dict[Any, FileTask] = {}
        while True:
            while len(running) < ahead and (task := next(waiting, None)) is not None:
                begin = remote.options(memory=min(task.memory, most_memory)).remote
                running[cluster.begun(begin, pickle.dumps(task))] = task
            if not running:
                return
            done = cluster.first(list(running))
            task = running.pop(done)
            try:
                cluster.fetched(done)
            except WorkerLost as error:
                raise DataError(
                    f"its worker was lost again and again ({error}), most likely because memory is short;"
                    " give the machines more",
                    path=task.out,
                ) from error
            yield


Runner = Pool | OnRay  # runs tasks in any order; yields as each is done


def _do(packed: bytes) -> None:
    """Run a task on the one core that Ray gives it: polars must know before the task is unpacked."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    do(pickle.loads(packed))  # noqa: S301 - the driver packed it
