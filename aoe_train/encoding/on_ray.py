"""Encoding on a Ray cluster: actors with the model, one per device, that each encode whole parts.

Actors receive texts, return vectors, and write no files. If an actor is lost, its part is encoded again by
another one, and a new actor is started.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aoe_train.encoding.encode_workers import (
    EncoderPool,
    ModelInfo,
    WorkerSpec,
    load_worker,
)
from pairkit.base.errors import ConfigError
from pairkit.base.system.cluster import Cluster, WorkerLost

if TYPE_CHECKING:
    import numpy as np

_MAX_LOSSES = 3  # actors lost on one part, or per actor while the model is loaded
_SILENT_WAIT_S = 30.0  # seconds until a message that the cluster is busy


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
        self._spec = replace(spec, devices=spec.devices[:1])
        self._loading: dict[Any, Any] = {}  # actors by their pending `ModelInfo`
        self._busy: dict[Any, tuple[Any, int, list[str]]] = {}
        self._retries: deque[tuple[int, list[str]]] = deque()
        self._losses = Counter[int | None]()  # by part; None: while loading the model
        for _ in range(count):
            self._start()
        if cluster.first(list(self._loading), _SILENT_WAIT_S) is None:
            say("waiting for free resources on the cluster, and for the model to load")
        while not self._free:
            self._receive_info(cluster.first(list(self._loading)))

    def _send(self, number: int, part: list[str]) -> None:
        actor = self._free.popleft()
        pending = self._cluster.begun(actor.vectors.remote, part)
        self._busy[pending] = actor, number, part

    def _receive(self) -> dict[int, np.ndarray]:
        finished = {}
        answered = self._cluster.first([*self._busy, *self._loading])
        if answered in self._loading:
            self._receive_info(answered)
        else:
            actor, number, part = self._busy.pop(answered)
            try:
                finished[number] = self._cluster.fetched(answered)
            except WorkerLost as error:
                self._retries.append((number, part))
                self._replace(actor, number, error)
            else:
                self._free.append(actor)
        while self._free and self._retries:
            self._send(*self._retries.popleft())
        return finished

    def _start(self) -> None:
        actor = self._cluster.begun(self._new_actor, self._spec)
        self._loading[self._cluster.begun(actor.load.remote)] = actor

    def _receive_info(self, answered: Any) -> None:
        """Receive an actor's `ModelInfo`; the actor is then free, or was lost and is replaced."""
        actor = self._loading.pop(answered)
        try:
            info: ModelInfo = self._cluster.fetched(answered)
        except WorkerLost as error:
            self._replace(actor, None, error)
            return
        if not hasattr(self, "model_info"):
            self.model_info = info
        self.model_info.check_same(info, "an actor")
        self._losses[None] = 0
        self._free.append(actor)

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
        # If the actor is only unreachable, this frees its device.
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
