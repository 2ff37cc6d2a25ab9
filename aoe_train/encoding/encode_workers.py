"""Worker processes that each load the model and encode whole parts, on one device or several.

Each worker has its own pipe, which closes when either side is killed: the parent notices a killed worker at
once, and workers of a killed parent end after their current part. Workers write no files.
"""

from __future__ import annotations

import os
import signal
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Self

from pairkit.base.errors import ConfigError, PairkitError
from pairkit.base.system.folders import differing

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from aoe_train.model.encoder import Encoder

CONTEXT = get_context("spawn")  # torch can't be forked once it has a device or threads
_AHEAD = 3  # parts per worker that may be finished before an earlier part
_END_S = 5.0  # seconds that a worker has to end before it is killed


@dataclass(frozen=True)
class ModelInfo:
    """Everything that determines the vectors, and notes on loading the model."""

    dim: int
    settings: dict[str, Any]
    notes: Sequence[str] = ()

    def check_same(self, other: ModelInfo, worker: str) -> None:
        """Refuse a worker whose vectors would differ."""
        differences = differing(self.settings, other.settings)
        if differences:
            raise ConfigError(
                f"{worker}: loaded a model that differs from the first worker's in {'; '.join(differences)};"
                " use devices of one kind, and don't change the model's files"
            )


@dataclass(frozen=True)
class EncodeOptions:
    """The options of `Encoder.encode` that determine its vectors."""

    prompt_name: str | None = None
    prompt: str | None = None
    normalize: bool | None = None
    dim: int | None = None
    batch_tokens: int | None = None


def model_info(
    encoder: Encoder,
    options: EncodeOptions,
) -> tuple[ModelInfo, Callable[..., np.ndarray]]:
    """Describe the vectors of `Encoder.encode` with these options, and return the function that encodes."""
    model = encoder.settings
    prompt = model.named_prompts.chosen(prompt=options.prompt, name=options.prompt_name)
    normalize = options.normalize
    size = encoder.size(options.dim)
    settings = {
        "model": encoder.identity(),
        "prompt": prompt,
        "normalize": model.normalize if normalize is None else normalize,
        "batch tokens": options.batch_tokens,
    }
    if size != encoder.dim:
        settings["dim"] = size
    if model.dim is not None and (options.dim, normalize) != (None, None):
        settings["truncated"] = "before scaling"  # by itself, the model scales first
    encode = partial(
        encoder.encode,
        prompt=prompt,
        normalize=normalize,
        dim=options.dim,
        batch_tokens=options.batch_tokens,
    )
    return ModelInfo(size, settings), encode


@dataclass(frozen=True)
class WorkerSpec:
    """The model, devices and options of all workers."""

    model: str
    precision: str | None
    options: EncodeOptions
    devices: Sequence[str | None]
    layers: int | None = None


def load_encoder(
    model: str | Path,
    precision: str | None,
    say: Callable[[str], None],
    *,
    device: str | None = None,
    layers: int | None = None,
) -> Encoder:
    """An encoder for inference; if another precision is faster, that is reported."""
    from aoe_train.model.encoder import Encoder
    from aoe_train.model.precision import slow_precision
    from aoe_train.settings.train_settings import named_precision

    checked = named_precision(precision)
    encoder = Encoder.load(
        model, device=device, precision=checked, inference_only=True, layers=layers
    )
    slow = slow_precision(checked, encoder.device)
    if slow:
        say(slow)
    return encoder


def refuse_options(subject: str, **options: object) -> None:
    """Refuse options that have no effect on a `subject`, such as a model that is loaded already."""
    for name, value in options.items():
        if value not in (None, "auto"):
            flag = name.replace("_", "-")
            raise ConfigError(
                f"--{flag} {value}: can't be set for {subject}; leave it out"
            )


def load_worker(
    spec: WorkerSpec,
    number: int,
) -> tuple[ModelInfo, Callable[[list[str]], np.ndarray]]:
    """Load the model with this worker's share of the processor's threads; see `model_info`."""
    import torch

    device = spec.devices[number]
    count = len(spec.devices)
    if device is None and torch.cuda.is_available():
        device = f"cuda:{number % torch.cuda.device_count()}"
    if device == "cpu" or not torch.accelerator.is_available():
        threads = max(1, torch.get_num_threads() // count)
        torch.set_num_threads(threads)
        # The tokenizer reads this variable when it is used first.
        os.environ["RAYON_NUM_THREADS"] = str(threads)

    notes = list[str]()
    encoder = load_encoder(
        spec.model, spec.precision, notes.append, device=device, layers=spec.layers
    )
    info, encode = model_info(encoder, spec.options)
    return replace(info, notes=notes), encode


def workers_devices(workers: int | None, devices: Sequence[str]) -> list[str | None]:
    """The device of each worker, in turn; by default one worker per device."""
    types = sorted({device.partition(":")[0] for device in devices})
    if len(types) > 1:
        raise ConfigError(
            f"--device {','.join(devices)}: vectors of {' and '.join(types)} differ; choose one kind"
        )
    count = workers or max(1, len(devices))
    if count < len(devices):
        raise ConfigError(
            f"--workers {count}: expected at least one for each of the {len(devices)} devices"
        )
    if not devices:
        return [None] * count
    return [devices[number % len(devices)] for number in range(count)]


class EncoderPool(ABC):
    """Workers that have loaded one model; `vectors` divides the parts among them."""

    model_info: ModelInfo

    def __init__(self, count: int) -> None:
        self._count = count
        self._free: deque[Any] = deque()

    @abstractmethod
    def _send(self, number: int, part: list[str]) -> None:
        """Send a part to the first free worker."""

    @abstractmethod
    def _receive(self) -> dict[int, np.ndarray]:
        """Wait until a worker answers; returns the vectors of finished parts by number."""

    def vectors(self, parts: Iterable[list[str]]) -> Iterator[np.ndarray]:
        """The vectors of each part, in order; a few parts are read ahead."""
        unread = iter(parts)
        finished: dict[int, np.ndarray] = {}
        sent = 0
        yielded = 0
        while True:
            while self._free and sent < yielded + _AHEAD * self._count:
                part = next(unread, None)
                if part is None:
                    break
                self._send(sent, part)
                sent += 1
            if sent == yielded:
                return
            finished |= self._receive()
            while yielded in finished:
                yield finished.pop(yielded)
                yielded += 1


class WorkerPool(EncoderPool):
    """Processes on this machine; the first starts immediately, the others with the first part."""

    def __init__(self, spec: WorkerSpec) -> None:
        super().__init__(len(spec.devices))
        self._spec = spec
        self._busy = dict[Connection, tuple[_Worker, int]]()
        self._workers: list[_Worker] = []
        try:
            self._workers.append(_Worker(spec, 0))
            self.model_info = self._workers[0].receive()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.end()

    def vectors(self, parts: Iterable[list[str]]) -> Iterator[np.ndarray]:
        """Start the remaining workers, which must have the same model, and encode the parts."""
        started = len(self._workers)
        for number in range(started, self._count):
            self._workers.append(_Worker(self._spec, number))
        for worker in self._workers[started:]:
            self.model_info.check_same(worker.receive(), str(worker))
        self._free = deque(self._workers)
        return super().vectors(parts)

    def _send(self, number: int, part: list[str]) -> None:
        worker = self._free.popleft()
        worker.send(part)
        self._busy[worker.pipe] = worker, number

    def _receive(self) -> dict[int, np.ndarray]:
        finished = {}
        for pipe in wait(list(self._busy)):
            worker, number = self._busy.pop(pipe)  # type: ignore[call-overload]  # `wait` returns its arguments
            finished[number] = worker.receive()
            self._free.append(worker)
        return finished


class _Worker:
    """The parent's view of a worker process. It first sends its `ModelInfo`, then vectors for each part."""

    def __init__(self, spec: WorkerSpec, number: int) -> None:
        device = spec.devices[number]
        name = f"worker {number + 1} of {len(spec.devices)}"
        if device:
            name += f" ({device})"
        self.pipe, theirs = CONTEXT.Pipe()
        with _no_interrupts(), theirs:
            self._process = CONTEXT.Process(
                target=_work,
                args=(theirs, spec, number),
                name=name,
                daemon=True,
            )
            self._process.start()

    def __str__(self) -> str:
        return self._process.name

    def send(self, part: list[str]) -> None:
        """Send a part to an idle worker."""
        try:
            self.pipe.send(part)
        except OSError as error:
            raise self._ended() from error

    def receive(self) -> Any:
        """Wait for the worker's answer; raises its errors."""
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise self._ended() from error
        if isinstance(answer, PairkitError):
            raise answer
        return answer

    def end(self) -> None:
        """End the process."""
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
            cause = f"was killed ({signal.Signals(-code).name})"
            if -code == signal.SIGKILL:
                cause += ", perhaps because the system ran out of memory"
        else:
            cause = f"ended with code {code}; see its messages above"
        return ConfigError(
            f"{self}: {cause}; run the same command again to continue, or with fewer workers"
        )


def _work(pipe: Connection, spec: WorkerSpec, number: int) -> None:
    """A worker's main function: load the model, then answer each part with its vectors."""
    try:
        try:
            info, encode = load_worker(spec, number)
            pipe.send(info)
            while True:
                pipe.send(encode(pipe.recv()))
        except PairkitError as error:
            pipe.send(error)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent has ended


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Processes started here ignore Ctrl-C, which their parent handles."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
