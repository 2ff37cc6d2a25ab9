"""Runs tasks on a Ray cluster, whose machines see the same folders and have this package installed."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Self

from gis_builder.gh_archive.maps import Task
from pairkit.app.errors import DataError
from pairkit.system.cluster import WorkerLost, joined

_MOST_DEATHS = 20  # of workers or machines, for one task
_AHEAD = 4  # tasks handed over for each core, so that none waits for the driver


class OnRay:
    """See `maps.Runner`. Tasks read and write files, so Ray has no data to move, or to lose."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._cluster = self._stack.enter_context(joined(self._address))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, tasks: Sequence[Task]) -> Iterator[None]:
        """Run tasks; Ray starts one wherever a core and its memory are free."""
        cluster, ray = self._cluster, self._cluster.ray
        remote = ray.remote(num_cpus=1, max_retries=_MOST_DEATHS)(_do)
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        most_memory = int(max(node.get("memory", 0) for node in nodes))  # Ray waits for ever for more
        ahead = _AHEAD * max(1, int(sum(node.get("CPU", 0) for node in nodes)))
        waiting = iter(tasks)
        running: dict[Any, Task] = {}
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


def _do(packed: bytes) -> None:
    """Run a task on the one core that Ray gives it: polars must know before the task is unpacked."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    from gis_builder.gh_archive.maps import do

    do(pickle.loads(packed))  # noqa: S301 - the driver packed it
