"""Processes that each have the model and encode whole parts, on one device or several.

Each has a pipe of its own, which ends with whoever holds the other end: a worker that was killed is noticed
at once, and workers whose parent was killed end with the part they are at. No worker writes a file.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Self

from aoe_train.encoding.worker_spec import ModelInfo, WorkerSpec, load_worker
from pairkit.app.errors import ConfigError, DataError, PairkitError, RemoteError
from pairkit.system.folders import differing

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    import numpy as np

_AHEAD = 3  # parts a worker that may wait, encoded, for one before them
_END_S = 5.0  # a worker that was told to end is killed after so long
_ERRORS = (ConfigError, DataError, RemoteError)
CONTEXT = get_context("spawn")  # torch can't be forked once it has a device or threads


def workers_devices(workers: int | None, devices: Sequence[str]) -> list[str | None]:
    """The device of each worker, in turn: as many workers as devices, unless told."""
    kinds = sorted({device.partition(":")[0] for device in devices})
    if len(kinds) > 1:
        raise ConfigError(
            f"--device {','.join(devices)}: vectors of {' and '.join(kinds)} differ; choose one kind"
        )
    count = workers or max(1, len(devices))
    if count < len(devices):
        raise ConfigError(f"--workers {count}: fewer than the {len(devices)} devices; leave some out")
    return [devices[number % len(devices)] if devices else None for number in range(count)]


class WorkerPool:
    """Workers with one model; the first is started at once, the others with the first part."""

    def __init__(self, orders: WorkerSpec) -> None:
        self._orders = orders
        self._workers: list[_Worker] = []
        try:
            self._workers.append(_Worker(orders, 0))
            self.described = self._workers[0].described()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def vectors(self, parts: Iterable[list[str]]) -> Iterator[np.ndarray]:
        """The vectors of each part, in order; a few parts are read ahead."""
        waiting, told, at_work = iter(parts), 0, dict[Connection, tuple[_Worker, int]]()
        made: dict[int, np.ndarray] = {}
        given, free = 0, deque(self._ready())
        while True:
            while free and given < told + _AHEAD * len(self._workers):
                if (part := next(waiting, None)) is None:
                    break
                worker = free.popleft()
                worker.send(part)
                at_work[worker.pipe] = worker, given
                given += 1
            if not at_work:
                return
            for pipe in wait(list(at_work)):
                worker, number = at_work.pop(pipe)  # type: ignore[call-overload]  # those that were given
                made[number] = worker.receive()
                free.append(worker)
            while told in made:
                yield made.pop(told)
                told += 1

    def close(self) -> None:
        """End all of them."""
        for worker in self._workers:
            worker.end()

    def _ready(self) -> list[_Worker]:
        """All workers, once each has the model that the first has."""
        started = len(self._workers)
        self._workers += [_Worker(self._orders, place) for place in range(started, len(self._orders.devices))]
        for worker in self._workers[started:]:
            if differences := differing(self.described.settings, worker.described().settings):
                raise ConfigError(
                    f"{worker}: loaded a model that differs from the first worker's in"
                    f" {'; '.join(differences)}; use devices of one kind, and leave the model as it is"
                )
        return [*self._workers]


class _Worker:
    """A process, seen from its parent."""

    def __init__(self, orders: WorkerSpec, place: int) -> None:
        count, device = len(orders.devices), orders.devices[place]
        self._name = f"worker {place + 1} of {count}" + (f" ({device})" if device else "")
        self.pipe, theirs = CONTEXT.Pipe()
        with _no_interrupts(), theirs:
            self._process: BaseProcess = CONTEXT.Process(
                target=_work, args=(theirs, orders, place), name=self._name, daemon=True
            )
            self._process.start()

    def __str__(self) -> str:
        return self._name

    def described(self) -> ModelInfo:
        """What its vectors will be, once it has loaded the model."""
        found: ModelInfo = self.receive()
        return found

    def send(self, part: list[str]) -> None:
        """Give it a part, while it waits for one."""
        try:
            self.pipe.send(part)
        except OSError as error:
            raise self._ended() from error

    def receive(self) -> Any:
        """What it answers; an error of ours is raised here as there."""
        try:
            found = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise self._ended() from error
        if isinstance(found, _Failed):
            raise _ERRORS[found.kind](found.message)
        return found

    def end(self) -> None:
        """End it, whatever it is at."""
        self.pipe.close()
        self._process.terminate()
        self._process.join(_END_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _ended(self) -> ConfigError:
        self._process.join(_END_S)
        code = self._process.exitcode
        if code is not None and code < 0:
            why = f"was killed ({signal.Signals(-code).name})"
            if -code == signal.SIGKILL:
                why += ", as systems do where memory is short"
        else:
            why = f"ended with code {code}; what it said of that is above"
        return ConfigError(f"{self}: {why}; run the same command again to continue, or with fewer workers")


@dataclass(frozen=True, slots=True)
class _Failed:
    """An error of ours, on its way to the parent: its class, by its place in _ERRORS, and what it says."""

    kind: int
    message: str


def _work(pipe: Connection, orders: WorkerSpec, place: int) -> None:
    """What a worker does: load the model, then answer each part with its vectors."""
    try:
        try:
            described, make = load_worker(orders, place)
            pipe.send(described)
            while True:
                pipe.send(make(pipe.recv()))
        except PairkitError as error:
            kind = next((at for at, known in enumerate(_ERRORS) if isinstance(error, known)), 0)
            pipe.send(_Failed(kind, str(error)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent has ended


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Processes that are started here leave Ctrl-C to their parent."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
