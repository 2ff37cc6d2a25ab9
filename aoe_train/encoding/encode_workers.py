"""Workers that each load the model and encode whole parts: processes, or actors on a Ray cluster.

Workers receive texts, return vectors, and write no files. Each process has its own pipe, which closes when
either side is killed: the parent notices a killed worker at once, and workers of a killed parent end after
their current part. If an actor is lost, another one is started and its part is encoded again.
"""

from __future__ import annotations

import os
import signal
import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from aoe_train.encoding.embedders.embedder import load_encoder
from pairkit.base.errors import ConfigError, PairkitError
from pairkit.base.system.cluster import Cluster, WorkerLost
from pairkit.base.system.folders import differing

if TYPE_CHECKING:
    import numpy as np

    from aoe_train.model.encoder import Encoder

CONTEXT = get_context("spawn")  # torch can't be forked once it has a device or threads
_AHEAD = 3  # parts per worker that may be finished before an earlier part
_END_S = 5.0  # seconds that a worker has to end before it is killed
_MAX_LOSSES = 3  # actors lost on one part, or per actor while the model is loaded
_SILENT_WAIT_S = 30.0  # seconds until a message that the cluster is busy


@dataclass(frozen=True)
class ModelInfo:
    """Everything that determines the vectors, and notes on loading the model."""

    dim: int
    settings: dict[str, Any]
    notes: Sequence[str] = ()


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
    encode_options = replace(options, prompt=prompt, prompt_name=None)
    return ModelInfo(size, settings), partial(encoder.encode, **vars(encode_options))


@dataclass(frozen=True)
class WorkerSpec:
    """The model, devices and options of all workers."""

    model: str
    precision: str | None
    options: EncodeOptions
    devices: Sequence[str | None]
    layers: int | None = None


def load_worker(
    spec: WorkerSpec,
    number: int,
) -> tuple[ModelInfo, Callable[[list[str]], np.ndarray]]:
    """Load the model with this worker's share of the processor's threads; see `model_info`."""
    import torch

    device = spec.devices[number]
    if device is None and torch.cuda.is_available():
        device = f"cuda:{number % torch.cuda.device_count()}"
    if device == "cpu" or not torch.accelerator.is_available():
        threads = max(1, torch.get_num_threads() // len(spec.devices))
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
    named: Sequence[str | None] = devices or [None]
    return [named[number % len(named)] for number in range(count)]


class _Part(NamedTuple):
    """Texts that one worker encodes, and their place among all parts."""

    number: int
    texts: list[str]


class EncoderPool(ABC):
    """Workers that load the same model; `vectors` divides the parts among them."""

    # Workers and their pending answers are `Any`, because Ray's have no types.

    model_info: ModelInfo

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = deque[Any]()
        # By the pending answer, a worker and its part; None while it loads the model.
        self._busy: dict[Any, tuple[Any, _Part | None]] = {}
        self._lost_parts = deque[_Part]()  # of workers that were lost

    @abstractmethod
    def _begin(self, worker: Any, texts: list[str]) -> object:
        """Let a worker encode texts; returns its pending answer."""

    @abstractmethod
    def _first(self, pending: list[Any]) -> object:
        """Wait for one of the pending answers."""

    @abstractmethod
    def _answer(self, worker: Any, part: _Part | None, pending: Any) -> Any:
        """The vectors of a part, or the `ModelInfo`; None if the worker was lost and replaced."""

    def vectors(self, parts: Iterable[list[str]]) -> Iterator[np.ndarray]:
        """The vectors of each part, in order; a few parts are read ahead."""
        unread = iter(parts)
        finished: dict[int, np.ndarray] = {}
        sent = 0
        yielded = 0
        while True:
            while self._free:
                if self._lost_parts:
                    self._send(self._lost_parts.popleft())
                    continue
                if sent == yielded + _AHEAD * self._count:
                    break
                texts = next(unread, None)
                if texts is None:
                    break
                self._send(_Part(sent, texts))
                sent += 1
            if sent == yielded:
                return
            finished |= self._receive()
            while yielded in finished:
                yield finished.pop(yielded)
                yielded += 1

    def _send(self, part: _Part) -> None:
        worker = self._free.popleft()
        self._busy[self._begin(worker, part.texts)] = worker, part

    def _receive(self) -> dict[int, np.ndarray]:
        """Wait for a worker; returns the vectors of its part by number, unless it loaded the model."""
        pending = self._first(list(self._busy))
        worker, part = self._busy.pop(pending)
        answer = self._answer(worker, part, pending)
        if answer is None:
            return {}
        self._free.append(worker)
        if part is not None:
            return {part.number: answer}
        self._check_model(answer)
        return {}

    def _check_model(self, info: ModelInfo) -> None:
        """Remember the first worker's model, as every worker must load the same."""
        if not hasattr(self, "model_info"):
            self.model_info = info
        differences = differing(self.model_info.settings, info.settings)
        if differences:
            raise ConfigError(
                f"a worker loaded a model that differs from the first worker's in {'; '.join(differences)};"
                " use devices of one kind, and don't change the model's files"
            )


class WorkerPool(EncoderPool):
    """Processes on this machine."""

    def __init__(self, spec: WorkerSpec) -> None:
        super().__init__(len(spec.devices))
        self._workers: list[_Worker] = []
        try:
            for number in range(self._count):
                worker = _Worker(spec, number)
                self._workers.append(worker)
                self._busy[worker.pipe] = worker, None
            self._receive()
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

    def _begin(self, worker: _Worker, texts: list[str]) -> Connection:
        worker.send(texts)
        return worker.pipe

    def _first(self, pending: list[Connection]) -> object:
        return wait(pending)[0]

    def _answer(
        self, worker: _Worker, part: _Part | None, pending: Connection
    ) -> object:
        del part, pending
        return worker.receive()


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

    def send(self, texts: list[str]) -> None:
        """Send texts to an idle worker."""
        try:
            self.pipe.send(texts)
        except OSError as error:
            raise self._ended() from error

    def receive(self) -> object:
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
            cause = f"was killed by signal {-code} ({signal.strsignal(-code)})"
            if -code == signal.SIGKILL:
                cause += ", perhaps because the system ran out of memory"
        else:
            cause = f"ended with code {code}; see its messages above"
        return ConfigError(
            f"{self._process.name}: {cause}; run the same command again to continue, or with fewer workers"
        )


def _work(pipe: Connection, spec: WorkerSpec, number: int) -> None:
    """A worker's main function: load the model, then answer each part with its vectors."""
    # The pipe's errors mean that the parent has ended.
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            info, encode = load_worker(spec, number)
            pipe.send(info)
            while True:
                pipe.send(encode(pipe.recv()))
        except PairkitError as error:
            pipe.send(error)


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


class ActorPool(EncoderPool):
    """Actors on a cluster that is connected and will end them."""

    def __init__(
        self,
        cluster: Cluster,
        spec: WorkerSpec,
        workers: int | None,
        say: Callable[[str], None],
    ) -> None:
        count, resources = _plan_actors(cluster.ray, spec.devices[0], workers)
        super().__init__(count)
        self._cluster = cluster
        actor_class = cluster.ray.remote(scheduling_strategy="SPREAD", **resources)
        self._new_actor = actor_class(_Actor).remote
        self._spec = spec
        self._losses = Counter[int | None]()  # by part; None: while loading the model
        for _ in range(count):
            self._start()
        if cluster.first(list(self._busy), _SILENT_WAIT_S) is None:
            say("waiting for free resources on the cluster, and for the model to load")
        while not self._free:
            self._receive()

    def _start(self) -> None:
        actor = self._cluster.begun(self._new_actor)
        pending = self._cluster.begun(actor.load.remote, self._spec)
        self._busy[pending] = actor, None

    def _begin(self, worker: Any, texts: list[str]) -> object:
        return self._cluster.begun(worker.vectors.remote, texts)

    def _first(self, pending: list[object]) -> object:
        return self._cluster.first(pending)

    def _answer(self, worker: object, part: _Part | None, pending: object) -> object:
        try:
            answer = self._cluster.fetched(pending)
        except WorkerLost as error:
            self._replace(worker, part, error)
            return None
        if part is None:
            self._losses[None] = 0
        return answer

    def _replace(self, worker: object, part: _Part | None, error: WorkerLost) -> None:
        """Start another actor; give up after repeated losses for one part, or while loading the model."""
        number = None
        most = _MAX_LOSSES * self._count
        activity = "loading the model"
        if part is not None:
            number = part.number
            most = _MAX_LOSSES
            activity = "encoding the same texts"
            self._lost_parts.append(part)
        self._losses[number] += 1
        if self._losses[number] > most:
            raise ConfigError(
                f"actors were lost repeatedly while {activity} ({error}), probably because memory ran out;"
                " run the same command again to continue, or with fewer --workers"
            ) from error
        # If the actor is only unreachable, this frees its device.
        self._cluster.ray.kill(worker)
        self._start()


class _Actor:
    """An actor with the model."""

    def load(self, spec: WorkerSpec) -> ModelInfo:
        """Load the model; not in `__init__`, whose errors Ray passes on only as text."""
        info, self._encode = load_worker(spec, 0)
        return info

    def vectors(self, texts: list[str]) -> np.ndarray:
        """Encode a part's texts."""
        return self._encode(texts)


def _plan_actors(
    ray: Any, device: str | None, workers: int | None
) -> tuple[int, dict[str, int]]:
    """The number of actors, and the resources of each: a GPU, or a number of cores."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = int(sum(node.get("GPU", 0) for node in nodes))
    if device != "cpu" and gpus:
        return workers or gpus, {"num_gpus": 1}
    if device not in (None, "cpu"):
        raise ConfigError(
            f"--device {device}: the cluster has no GPU; give cpu, or leave it out"
        )
    cores = [int(node["CPU"]) for node in nodes if node.get("CPU", 0) >= 1]
    if not cores:
        raise ConfigError(
            "the cluster has no CPU cores; start a node with `ray start --num-cpus`"
        )
    count = workers or len(cores)
    share = max(cores)
    while share > 1 and sum(of_node // share for of_node in cores) < count:
        share -= 1
    return count, {"num_cpus": share}


def checked_device(devices: list[str]) -> str | None:
    """The requested kind of device."""
    if len(devices) > 1 or any(":" in device for device in devices):
        raise ConfigError(
            f"--device {','.join(devices)}: on a cluster only the kind of device can be chosen; give cpu or"
            " cuda, or leave it out"
        )
    return devices[0] if devices else None
