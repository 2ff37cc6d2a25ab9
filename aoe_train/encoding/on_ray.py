"""Encoding on a Ray cluster: actors with the model, one per device, that each encode whole parts.

Actors receive texts, return vectors, and write no files. If an actor is lost, its part is encoded again by
another one, and a new actor is started.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aoe_train.encoding.encode_workers import ModelInfo, WorkerSpec, load_worker
from pairkit.base.errors import ConfigError
from pairkit.base.system.cluster import Cluster, WorkerLost

if TYPE_CHECKING:
    import numpy as np

_AHEAD = 3  # parts per actor that may be finished before an earlier part
_MAX_LOSSES = 3  # of actors, for one part, or on average while they load the model
_SILENT_WAIT_S = 30.0  # until a message that the cluster is busy


class ActorPool:
    """The interface of `WorkerPool`, on a cluster that is connected and will end the actors."""

    def __init__(
        self,
        cluster: Cluster,
        spec: WorkerSpec,
        workers: int | None,
        say: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._count, resources = _plan_actors(cluster.ray, spec.devices[0], workers)
        self._new = cluster.ray.remote(scheduling_strategy="SPREAD", **resources)(
            _Actor
        ).remote
        self._spec = replace(spec, devices=spec.devices[:1])
        self._loading: dict[Any, Any] = {}  # actors by their pending `ModelInfo`
        self._losses = Counter[int | None]()  # by part; None: while loading the model
        self._free: deque[Any] = deque()
        for _ in range(self._count):
            self._start()
        if cluster.first(list(self._loading), _SILENT_WAIT_S) is None:
            say("waiting for free resources on the cluster, and for the model to load")
        first: ModelInfo | None = None
        while first is None:
            first = self._loaded(cluster.first(list(self._loading)))
        self.model_info: ModelInfo = first

    def vectors(self, parts: Iterable[list[str]]) -> Iterator[np.ndarray]:
        """The vectors of each part, in order; a few parts are read ahead."""
        unread = enumerate(parts)
        yielded = 0
        retries: deque[tuple[int, list[str]]] = deque()
        busy: dict[Any, tuple[Any, int, list[str]]] = {}
        finished: dict[int, np.ndarray] = {}
        while True:
            while self._free and (
                retries or len(busy) + len(finished) < _AHEAD * self._count
            ):
                job = retries.popleft() if retries else next(unread, None)
                if job is None:
                    break
                number, part = job
                actor = self._free.popleft()
                pending = self._cluster.begun(actor.vectors.remote, part)
                busy[pending] = actor, number, part
            if not busy and not retries:
                return
            answered = self._cluster.first([*busy, *self._loading])
            if answered in self._loading:
                self._loaded(answered)
                continue
            actor, number, part = busy.pop(answered)
            try:
                finished[number] = self._cluster.fetched(answered)
            except WorkerLost as error:
                retries.append((number, part))
                self._replace(actor, number, error)
            else:
                self._free.append(actor)
            while yielded in finished:
                yield finished.pop(yielded)
                yielded += 1

    def _start(self) -> None:
        actor = self._cluster.begun(self._new, self._spec)
        self._loading[self._cluster.begun(actor.load.remote)] = actor

    def _loaded(self, answered: Any) -> ModelInfo | None:
        """Receive an actor's `ModelInfo` and mark the actor as free; None if it was lost."""
        actor = self._loading.pop(answered)
        try:
            info: ModelInfo = self._cluster.fetched(answered)
        except WorkerLost as error:
            self._replace(actor, None, error)
            return None
        getattr(self, "model_info", info).check_same(info, "an actor")
        self._losses[None] = 0
        self._free.append(actor)
        return info

    def _replace(self, actor: Any, number: int | None, error: WorkerLost) -> None:
        """Start another actor; give up after repeated losses for one part, or while loading the model."""
        self._losses[number] += 1
        most = _MAX_LOSSES
        activity = "encoding the same texts"
        if number is None:
            most *= self._count
            activity = "loading the model"
        if self._losses[number] > most:
            raise ConfigError(
                f"actors were lost repeatedly while {activity} ({error}), probably because memory ran out;"
                " run the same command again to continue, or with fewer --workers"
            ) from error
        # Frees the device if the actor is only unreachable.
        self._cluster.ray.kill(actor)
        self._start()


class _Actor:
    """An actor with the model."""

    def __init__(self, spec: WorkerSpec) -> None:
        self._spec = spec

    def load(self) -> ModelInfo:
        """Load the model; not in `__init__`, whose errors Ray passes on only as text."""
        info, self._encode = load_worker(self._spec, 0)
        return info

    def vectors(self, part: list[str]) -> np.ndarray:
        """Encode a part."""
        return self._encode(part)


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
    cores = [int(node.get("CPU", 0)) for node in nodes if node.get("CPU", 0) >= 1]
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
