"""Runs tasks on a Ray cluster: its machines see the same folders, and have this package installed."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from typing import Any, Self

from gis_builder._archive.tasks import Task, do
from pairkit.errors import ConfigError, DataError
from pairkit.extras import needed_for

_MOST_DEATHS = 20  # of workers or machines while at one task
_CONNECT_S = 10.0
_AHEAD = 4  # tasks handed over for each core, so that none waits for the driver


class OnRay:
    """See `Engine`; at its end the driver leaves the cluster.

    Tasks read files and write one whole file, so Ray has nothing to pass between machines, or to lose.

    Args:
        address: The cluster's, such as `10.0.0.1:6379`. It is always named: what an earlier cluster left
            on this machine may name another.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._ray: Any = None

    def __enter__(self) -> Self:
        _check_reachable(self._address)
        with needed_for("--engine ray (engine='ray')"):
            import ray
        one_thread = {"env_vars": {"POLARS_MAX_THREADS": "1"}}
        try:
            ray.init(address=self._address, runtime_env=one_thread, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ConfigError(
                f"address = {self._address}: no Ray cluster can be joined there ({error}); start one with"
                " `ray start`, and give the address that it names"
            ) from error
        self._ray = ray
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()

    def run(self, tasks: Sequence[Task]) -> Iterator[None]:
        """See `Engine`.

        Raises:
            DataError: Workers or machines are lost again and again.
        """
        ray = self._ray
        remote = ray.remote(num_cpus=1, max_retries=_MOST_DEATHS)(do)
        most = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = iter(tasks)
        under_way: dict[Any, Task] = {}
        while True:
            while len(under_way) < most and (task := next(waiting, None)) is not None:
                under_way[remote.remote(task)] = task
            if not under_way:
                return
            (done, *_), _ = ray.wait(list(under_way))
            task = under_way.pop(done)
            try:
                ray.get(done)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error
            except ray.exceptions.RayError as error:
                raise DataError(
                    f"its worker was lost again and again ({type(error).__name__}), most likely as memory is"
                    " short; give more --partitions (partitions=…)",
                    path=task.out,
                ) from error
            yield


def _check_reachable(address: str) -> None:
    """Ray itself waits for minutes for a cluster that is not there."""
    match = re.fullmatch(r"\[?([^\s/]+?)\]?:([0-9]{1,5})", address)
    if match is None:
        raise ConfigError(f"address = {address}: expected HOST:PORT, such as 10.0.0.1:6379")
    try:
        socket.create_connection((match[1], int(match[2])), _CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"address = {address}: no Ray cluster answers there ({error}); start one with `ray start`, and"
            " give the address that it names"
        ) from error
