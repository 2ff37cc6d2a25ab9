"""Actors of a Ray cluster that each have the model and encode whole parts: one for each device.

Texts go out and vectors come back; no actor writes a file. Of an actor that is lost another one does the part
again, and a new one takes its place where there is room.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aoe_train.encoding.workers import ModelInfo, WorkerSpec, load_worker
from pairkit.app.errors import ConfigError
from pairkit.system.cluster import Cluster, WorkerLost
from pairkit.system.folders import differing

if TYPE_CHECKING:
    import numpy as np

_AHEAD = 3  # parts an actor that may wait, encoded, for one before them
_MOST_DEATHS = 3  # of actors while at one part, or while they load the model
_PATIENCE_S = 30.0  # with which a place on the cluster is awaited without a word


class ActorPool:
    """See `Team`; entered within `joined`, at whose end they end."""

    def __init__(
        self, cluster: Cluster, orders: WorkerSpec, workers: int | None, say: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._count, needs = _places(cluster.ray, orders.devices[0], workers)
        self._new = cluster.ray.remote(scheduling_strategy="SPREAD", **needs)(_Actor).remote
        self._orders = replace(orders, devices=orders.devices[:1])
        self._loading: dict[Any, Any] = {}  # actors by what they will answer
        self._losses = Counter[int | None]()  # by the part that an actor was at; None: it loaded the model
        self._free: deque[Any] = deque()
        for _ in range(self._count):
            self._begin()
        if cluster.first(list(self._loading), _PATIENCE_S) is None:
            say("waiting for the cluster to have room for an actor, and for the model to be loaded")
        first: ModelInfo | None = None
        while first is None:
            first = self._loaded(cluster.first(list(self._loading)))
        self.described: ModelInfo = first

    def vectors(self, parts: Iterable[list[str]]) -> Iterator[np.ndarray]:
        """The vectors of each part, in order; a few parts are read ahead."""
        waiting, told = enumerate(parts), 0
        again: deque[tuple[int, list[str]]] = deque()
        at_work: dict[Any, tuple[Any, int, list[str]]] = {}
        made: dict[int, np.ndarray] = {}
        while True:
            while self._free and (again or len(at_work) + len(made) < _AHEAD * self._count):
                job = again.popleft() if again else next(waiting, None)
                if job is None:
                    break
                actor = self._free.popleft()
                at_work[self._cluster.begun(actor.vectors.remote, job[1])] = actor, *job
            if not at_work and not again:
                return
            answered = self._cluster.first([*at_work, *self._loading])
            if answered in self._loading:
                self._loaded(answered)
                continue
            actor, number, part = at_work.pop(answered)
            try:
                made[number] = self._cluster.fetched(answered)
            except WorkerLost as error:
                again.append((number, part))
                self._replace(actor, number, error)
            else:
                self._free.append(actor)
            while told in made:
                yield made.pop(told)
                told += 1

    def _begin(self) -> None:
        actor = self._cluster.begun(self._new, self._orders)
        self._loading[self._cluster.begun(actor.described.remote)] = actor

    def _loaded(self, answered: Any) -> ModelInfo | None:
        """What the vectors of an actor will be, which is free from here on; None where it was lost."""
        actor = self._loading.pop(answered)
        try:
            described: ModelInfo = self._cluster.fetched(answered)
        except WorkerLost as error:
            self._replace(actor, None, error)
            return None
        expected = getattr(self, "described", described).settings
        if differences := differing(expected, described.settings):
            raise ConfigError(
                f"an actor loaded a model that differs from the first one's in {'; '.join(differences)}; use"
                " devices of one kind, and leave the model as it is"
            )
        self._losses[None] = 0
        self._free.append(actor)
        return described

    def _replace(self, actor: Any, number: int | None, error: WorkerLost) -> None:
        self._losses[number] += 1
        if self._losses[number] > _MOST_DEATHS * (self._count if number is None else 1):
            what = "they loaded the model" if number is None else "they encoded the same texts"
            raise ConfigError(
                f"actors were lost again and again while {what} ({error}), most likely as memory is short;"
                " run the same command again to continue, or with fewer --workers (workers=…)"
            ) from error
        self._cluster.ray.kill(actor)  # one that only can't be reached would keep its device
        self._begin()


class _Actor:
    """A process of the cluster that has the model."""

    def __init__(self, orders: WorkerSpec) -> None:
        self._orders = orders

    def described(self) -> ModelInfo:
        """What its vectors will be. Loads the model: what an `__init__` raises, Ray only tells as text."""
        described, self._make = load_worker(self._orders, 0)
        return described

    def vectors(self, part: list[str]) -> np.ndarray:
        """Of each text."""
        return self._make(part)


def _places(ray: Any, device: str | None, workers: int | None) -> tuple[int, dict[str, int]]:
    """How many actors there are, and what each needs: a GPU, or a share of a machine's cores."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = int(sum(node.get("GPU", 0) for node in nodes))
    if device != "cpu" and gpus:
        return workers or gpus, {"num_gpus": 1}
    if device not in (None, "cpu"):
        raise ConfigError(f"--device {device}: the cluster has no GPU; give cpu, or leave it out")
    cores = [found for node in nodes if (found := int(node.get("CPU", 0)))]
    if not cores:
        raise ConfigError("the cluster has no core to encode on; start a node with `ray start --num-cpus`")
    count = workers or len(cores)
    each = max((n for n in range(1, max(cores) + 1) if sum(core // n for core in cores) >= count), default=1)
    return count, {"num_cpus": each}


def checked_device(devices: list[str]) -> str | None:
    """The kind of device that is asked for."""
    if len(devices) > 1 or any(":" in device for device in devices):
        raise ConfigError(
            f"--device {','.join(devices)}: on a cluster each actor gets one of its devices; give cpu or"
            " cuda, or leave it out"
        )
    return devices[0] if devices else None
