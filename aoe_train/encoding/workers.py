"""What an encoding process loads, and processes that each encode whole parts, on one device or several.

Each has a pipe of its own, which ends with whoever holds the other end: a worker that was killed is noticed
at once, and workers whose parent was killed end with the part they are at. No worker writes a file.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Self

from pairkit.app.errors import ConfigError, DataError, PairkitError, RemoteError
from pairkit.system.folders import differing

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    import numpy as np

    from aoe_train.model.encoder import Encoder

_AHEAD = 3  # parts a worker that may wait, encoded, for one before them
_END_S = 5.0  # a worker that was told to end is killed after so long
_ERRORS = (ConfigError, DataError, RemoteError)
CONTEXT = get_context("spawn")  # torch can't be forked once it has a device or threads


@dataclass(frozen=True, slots=True)
class EncodingRequest:
    """What is asked for; None is as the model has it. See `Encoder.encode`."""

    prompt_name: str | None = None
    prompt: str | None = None
    normalize: bool | None = None
    dim: int | None = None
    batch_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What the vectors will be."""

    dim: int
    settings: dict[str, Any]
    slow: str | None = None


def model_info(encoder: Encoder, wanted: EncodingRequest) -> tuple[ModelInfo, Callable[..., np.ndarray]]:
    """What a model's vectors will be, and its `encode` to make them."""
    if wanted.prompt is not None and wanted.prompt_name is not None:
        raise ConfigError("--prompt and --prompt-name: give one of them")
    words = encoder.settings.named_prompts.chosen(prompt=wanted.prompt, name=wanted.prompt_name)
    size = encoder.size(wanted.dim)
    normalize = encoder.settings.normalize if wanted.normalize is None else wanted.normalize
    settings = {
        "model": encoder.identity(),
        "prompt": words,
        "normalize": normalize,
        "batch tokens": wanted.batch_tokens,
        **({} if size == encoder.dim else {"dim": size}),
    }
    make = partial(
        encoder.encode,
        prompt=words,
        normalize=wanted.normalize,
        dim=wanted.dim,
        batch_tokens=wanted.batch_tokens,
    )
    return ModelInfo(size, settings), make


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What each worker loads and does."""

    model: str
    precision: str | None
    wanted: EncodingRequest
    devices: Sequence[str | None]
    layers: int | None = None


def load_worker(orders: WorkerSpec, place: int) -> tuple[ModelInfo, Callable[[list[str]], np.ndarray]]:
    """The model, on its share of the processor's threads: what its vectors will be, and what makes them."""
    import torch

    device, count = orders.devices[place], len(orders.devices)
    if device is None and torch.cuda.is_available():
        device = f"cuda:{place % torch.cuda.device_count()}"
    if device == "cpu" or not torch.accelerator.is_available():
        threads = max(1, torch.get_num_threads() // count)
        torch.set_num_threads(threads)
        os.environ["RAYON_NUM_THREADS"] = str(threads)  # of the tokenizer, which reads it when it first works

    from aoe_train.model.encoder import Encoder
    from aoe_train.model.precision import slow_precision
    from aoe_train.settings.training import named_precision

    precision = named_precision(orders.precision)
    encoder = Encoder.load(
        orders.model, device=device, precision=precision, inference_only=True, layers=orders.layers
    )
    described, make = model_info(encoder, orders.wanted)
    return replace(described, slow=slow_precision(precision, encoder.device)), make


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
