"""Tasks that write files, the names of these files, and runners: a process pool here, or a Ray cluster.

The files of a task are complete or absent, and their names have a hash of everything that determines their
content. So a task is done if its files exist: interrupted runs continue, and tasks can run on any machine.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import pickle
import re
import signal
import socket
import threading
import time
import traceback
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, NamedTuple, Self

from pairkit.base.errors import ConfigError, DataError, PairkitError, RemoteError
from pairkit.base.printable import one_line
from pairkit.base.system.cluster import WorkerLost, address_of, joined, this_node
from pairkit.base.system.files import write_bytes
from pairkit.base.system.machine import cores

_POLL_S = 0.2  # maximum delay of Ctrl-C
_MAX_FAILURES = 3  # attempts of a task that end in an error
_MAX_FAILED = 20  # failed tasks until no more are started
_MAX_DOUBLINGS = 3  # of a task's memory, after its worker was lost
# Tasks submitted to Ray for each core, so that cores don't wait for the driver.
_QUEUED_PER_CORE = 4
_REREAD_S = 5.0  # until the machines of a cluster are read again
_NO_CORES_S = 120.0  # without any core until the run ends
# Workers are not forked, because forked processes lack the threads of polars.
_CONTEXT = multiprocessing.get_context("spawn")
_SHARED = ".shared"  # a file of the work folder that all machines must have
_TRAILER = 8  # bytes at the end of a gzip file: checksum and size
_DIGITS = 20  # of a hash in a name
_NAME = re.compile(r"[0-9a-z-]+\.[0-9a-f]{20}\.[0-9a-f]{20}\.[a-z]+")
_BASE_BYTES = 512 << 20  # memory of a worker: interpreter, libraries, an hour's rows
_MEMORY_PER_BYTE = 12  # bytes of memory per byte of a task's input


class FileTask(NamedTuple):
    """A function that yields the content of each file in `outs`."""

    outs: tuple[Path, ...]
    function: Callable[..., Iterable[bytes]]
    arguments: tuple[Any, ...]
    memory: int = _BASE_BYTES  # estimated maximum, in bytes


def is_done(task: FileTask) -> bool:
    """Whether all files of a task exist."""
    return all(out.exists() for out in task.outs)


def complete(task: FileTask) -> None:
    """Run a task if it is not done; its files are private, because they contain other people's texts."""
    if not is_done(task):
        contents = task.function(*task.arguments)
        for out, data in zip(task.outs, contents, strict=True):
            write_bytes(out, data, private=True)


def memory_for(paths: Iterable[Path], parts: int = 1) -> int:
    """The memory of a task that unpacks files, or one of `parts` equal parts of them."""
    size = sum(path.stat().st_size for path in paths)
    return _BASE_BYTES + _MEMORY_PER_BYTE * size // parts


def file_named(
    folder: Path, stem: str, ending: str, *inputs: object, settings: object = None
) -> Path:
    """The path of a task's file: `STEM.CODE.INPUTS.ENDING`, with hashes of code and settings, and of inputs."""
    digest = digest_of(inputs)[:_DIGITS]
    return folder / f"{stem}.{code_hash(settings)}.{digest}.{ending}"


def code_hash(settings: object = None) -> str:
    """The hash of the code and of settings in the name of a file."""
    # Not above: it loads polars, of which a worker first limits the threads.
    from gis_builder.detection.detector import code_digest

    return digest_of([code_digest(), settings])[:_DIGITS]


def identity_of(path: Path) -> str | None:
    """Size and last bytes of a file, so that it need not be read; None if there is no file."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TRAILER))
            return f"{size} {file.read().hex()}"
    except OSError as error:
        raise DataError(
            f"not readable ({error.strerror}); check its permissions", path=path
        ) from error


def stem_of(path: Path) -> str:
    """The first part of a file's name, see `file_named`."""
    return path.name.partition(".")[0]


def superseded(work: Path, used: Collection[Path]) -> Iterator[Path]:
    """The files of tasks that are not used, but for rows of other hours."""
    stems = {stem_of(path) for path in used}
    for path in work.rglob("*"):
        is_other = path.parent.name == "hours" and stem_of(path) not in stems
        if path not in used and not is_other and _NAME.fullmatch(path.name):
            yield path


def digest_of(value: object) -> str:
    """The hexadecimal SHA-256 of bytes or of a JSON value."""
    if not isinstance(value, bytes):
        value = json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(value).hexdigest()


def choose_runner(engine: str, workers: int | None, address: str | None) -> Runner:
    """A process pool on this machine or a Ray cluster."""
    cluster = address_of(engine, address)
    if cluster is None:
        return Pool(workers or cores())
    if workers is not None:
        raise ConfigError(f"workers = {workers}: not available on a cluster")
    return OnRay(cluster)


@dataclass(slots=True, eq=False)
class _Attempt:
    """A task, and what became of its earlier attempts."""

    task: FileTask
    losses: int = 0  # attempts whose worker was lost
    failures: int = 0  # attempts that ended in an error
    nodes: set[str] = field(default_factory=set)  # Ray nodes with such an attempt
    memory: int = 0  # requested from Ray


_Running = dict[Any, _Attempt]  # by handle


class Runner(AbstractContextManager["Runner"]):
    """Runs tasks. A failed one is tried again after the untried; one that always fails doesn't stop them."""

    _max_losses = 3  # one of them may be due to another task
    _remedy = "use fewer --workers"

    def check_shared(self, work: Path, source: Path | None) -> None:
        """Check that every machine has the work folder, and this file of the source."""

    def run(self, tasks: Sequence[FileTask]) -> Iterator[None]:
        """Run tasks; at the end, raises an error that lists those that failed repeatedly."""
        waiting = deque(map(_Attempt, tasks))
        running: _Running = {}
        failed: dict[str, str] = {}
        while waiting or running:
            while (
                waiting
                and len(failed) < _MAX_FAILED
                and self._has_room(running, waiting[0])
            ):
                attempt = waiting.popleft()
                running[self._begin(attempt)] = attempt
            if not running:
                break
            handle = self._first_ended(running)
            attempt = running.pop(handle)
            try:
                failure, node = self._result(handle)
            except WorkerLost as error:
                failure = f"worker lost ({error}), probably for lack of memory; {self._remedy}"
                node = ""
                attempt.losses += 1
            else:
                attempt.failures += 1
            is_failed_often = attempt.failures >= _MAX_FAILURES
            if not failure:
                yield
            elif attempt.losses <= self._max_losses and not is_failed_often:
                attempt.nodes.add(node)
                waiting.append(attempt)
            else:
                failed[stem_of(attempt.task.outs[0])] = failure
        if failed:
            raise DataError(
                f"{len(failed):,} of {len(tasks):,} tasks failed ({', '.join(failed)}), the first with:"
                f" {next(iter(failed.values()))}; run the same command again to repeat only these tasks"
            )

    @abstractmethod
    def _has_room(self, running: _Running, following: _Attempt, /) -> bool: ...

    @abstractmethod
    def _begin(self, attempt: _Attempt) -> object:
        """Start a task; returns a handle."""

    @abstractmethod
    def _first_ended(self, running: _Running) -> object:
        """Wait for a task to end; returns its handle."""

    @abstractmethod
    def _result(self, handle: Any) -> tuple[str, str]:
        """The failure of a task that has ended, or an empty text, and its Ray node; raises WorkerLost."""


def _attempt(task: FileTask) -> str:
    """Run a task and return its error in one line, because an exception may not survive pickling."""
    try:
        complete(task)
    except PairkitError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - listed at the end, with the other failures
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {place.name}, line {place.lineno}: {one_line(str(error), 200)}"
    return ""


class Pool(Runner):
    """Runs tasks on this machine; with one worker, in this process."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _has_room(self, running: _Running, following: _Attempt) -> bool:
        # One of the tasks that ran when a worker was killed took too much memory: each is repeated alone.
        if any(attempt.losses for attempt in (following, *running.values())):
            return not running
        return len(running) < 2 * self._workers

    def _begin(self, attempt: _Attempt) -> Future[str]:
        if self._workers == 1:
            finished = Future[str]()
            finished.set_result(_attempt(attempt.task))
            return finished
        with _interrupts_blocked():  # new workers inherit the mask, see `_start_worker`
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    self._workers, _CONTEXT, initializer=_start_worker
                )
            try:
                return self._pool.submit(_attempt, attempt.task)
            except BrokenProcessPool:
                self.__exit__()
                return self._begin(attempt)

    def _first_ended(self, running: _Running) -> Future[str]:
        while True:
            with _interrupts_blocked():  # Ctrl-C during a wait could leave a lock held
                ended, _ = wait(running, _POLL_S, FIRST_COMPLETED)
            if ended:
                return next(iter(ended))

    def _result(self, handle: Future[str]) -> tuple[str, str]:
        try:
            return handle.result(), ""
        except BrokenProcessPool as lost:
            raise WorkerLost("killed") from lost


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
    if parent:
        parent.join()
        os._exit(1)


class OnRay(Runner):
    """Runs tasks on a Ray cluster; data are in files, so that Ray does not move or lose any."""

    _max_losses = 20
    _remedy = "use machines with more memory"

    def __init__(self, address: str) -> None:
        self._address = address
        self._stack = ExitStack()
        self._shared: dict[Path, str | None] = {}
        self._retries = 0

    def __enter__(self) -> Self:
        self._cluster = self._stack.enter_context(joined(self._address))
        self._remote = self._cluster.ray.remote(num_cpus=1, max_retries=0)(_run_on_node)
        self._read_machines()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def check_shared(self, work: Path, source: Path | None) -> None:
        """Run a check on each machine; tasks repeat it, as machines can join later."""
        token = work / _SHARED
        write_bytes(token, os.urandom(8), private=True)
        self._stack.callback(token.unlink, missing_ok=True)
        self._shared = {
            path: identity_of(path) for path in (token, source) if path is not None
        }
        checks = []
        for node in self._nodes:
            options = self._remote.options(
                num_cpus=0, scheduling_strategy=self._cluster.on(node)
            )
            checks.append(self._cluster.begun(options.remote, None, self._shared))
        problems = []
        for check in checks:
            with suppress(WorkerLost):  # tasks then go to other machines
                problem, _ = self._result(check)
                problems.append(problem)
        if any(problems):
            named = "; ".join(filter(None, problems))
            raise ConfigError(f"{named}; share both folders, or run `ray stop` there")

    def _read_machines(self) -> None:
        """Read the machines again, as they join and leave."""
        machines = self._cluster.machines()
        self._nodes = [node for node, _, _ in machines]
        self._cores = sum(count for _, count, _ in machines)
        self._max_memory = max((memory for _, _, memory in machines), default=0)
        self._read_at = time.monotonic()
        if machines:
            self._had_cores_at = self._read_at

    def _has_room(self, running: _Running, _: _Attempt) -> bool:
        return len(running) < max(1, _QUEUED_PER_CORE * self._cores)

    def _begin(self, attempt: _Attempt) -> object:
        memory = attempt.task.memory << min(attempt.losses, _MAX_DOUBLINGS)
        # Ray would wait forever for more memory than any machine has.
        attempt.memory = min(memory, self._max_memory)
        strategy = "DEFAULT"
        untried = [node for node in self._nodes if node not in attempt.nodes]
        if attempt.nodes and untried:
            self._retries += 1
            node = untried[self._retries % len(untried)]
            strategy = self._cluster.on(node, soft=True)
        begin = self._remote.options(
            memory=attempt.memory, scheduling_strategy=strategy
        ).remote
        return self._cluster.begun(begin, pickle.dumps(attempt.task), self._shared)

    def _first_ended(self, running: _Running) -> object:
        while True:
            ended = self._cluster.first(list(running), _REREAD_S)
            if ended is None or time.monotonic() > self._read_at + _REREAD_S:
                self._read_machines()
            if ended is not None:
                return ended
            if not self._nodes and self._read_at >= self._had_cores_at + _NO_CORES_S:
                raise RemoteError(
                    f"address = {self._address}: no machine of the cluster has cores; start one with"
                    " `ray start`, and run the same command again to continue"
                )
            for handle, attempt in list(running.items()):
                if attempt.memory > self._max_memory:  # no machine is left that has it
                    self._cluster.ray.cancel(handle)
                    del running[handle]
                    running[self._begin(attempt)] = attempt

    def _result(self, handle: object) -> tuple[str, str]:
        try:
            failure_and_node: tuple[str, str] = self._cluster.fetched(handle)
        except (WorkerLost, RemoteError):
            raise
        except Exception as error:  # noqa: BLE001 - a machine without the package, for example
            return one_line(f"{type(error).__name__}: {error}", 300), ""
        return failure_and_node


def _run_on_node(
    packed: bytes | None, shared: Mapping[Path, str | None]
) -> tuple[str, str]:
    """Run a task on a machine of the cluster; returns the error, and the Ray node."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # before the task is unpickled
    try:
        error = ""
        for path, identity in shared.items():
            if identity_of(path) != identity:
                error = f"{path.parent} is not shared"
                break
    except DataError as unreadable:
        error = str(unreadable)
    if packed is not None and not error:
        error = _attempt(pickle.loads(packed))  # noqa: S301 - pickled by the driver
    return error and f"host {socket.gethostname()}: {error}", this_node()
