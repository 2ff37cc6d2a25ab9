"""Runs tasks on a Ray cluster: its machines see the same files of tasks, and have this package installed."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Self

from gis_builder._archive.tasks import Task
from pairkit.cluster import WorkerLost, joined
from pairkit.errors import DataError

_MOST_DEATHS = 20  # of workers or machines while at one task
_AHEAD = 4  # tasks handed over for each core, so that none waits for the driver


class OnRay:
    """See `Engine`; at its end the driver leaves the cluster.

    Tasks read files and write one whole file, so Ray has nothing to pass between machines, or to lose.

    Args:
        address: The cluster's, such as `10.0.0.1:6379`.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._left = ExitStack()

    def __enter__(self) -> Self:
        self._cluster = self._left.enter_context(joined(self._address))
        return self

    def __exit__(self, *_: object) -> None:
        self._left.close()

    def run(self, tasks: Sequence[Task]) -> Iterator[None]:
        """See `Engine`.

        Raises:
            DataError: Workers or machines are lost again and again.
            RemoteError: The driver's own node is lost.
        """
        cluster, ray = self._cluster, self._cluster.ray
        remote = ray.remote(num_cpus=1, max_retries=_MOST_DEATHS)(_do)
        most = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = iter(tasks)
        under_way: dict[Any, Task] = {}
        while True:
            while len(under_way) < most and (task := next(waiting, None)) is not None:
                under_way[cluster.begun(remote.remote, pickle.dumps(task))] = task
            if not under_way:
                return
            done = cluster.first(list(under_way))
            task = under_way.pop(done)
            try:
                cluster.fetched(done)
            except WorkerLost as error:
                raise DataError(
                    f"its worker was lost again and again ({error}), most likely as memory is"
                    " short; give more --partitions (partitions=…)",
                    path=str(task.out),
                ) from error
            yield


def _do(packed: bytes) -> None:
    """Do a task on the one core that Ray gives it: polars must know before the task is unpacked."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    from gis_builder._archive.tasks import do

    do(pickle.loads(packed))  # noqa: S301 - the driver packed it
