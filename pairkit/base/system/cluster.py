"""Join a Ray cluster and run calls on it; the only module that imports ray."""

from __future__ import annotations

import logging
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO, cast

from pairkit.base.errors import ConfigError, RemoteError
from pairkit.base.extras import needed_for

_CONNECT_S = 10.0
_ADDRESS = re.compile(r"\[?([^\s/]+?)\]?:([0-9]{1,5})", re.ASCII)
_START = "start one with `ray start` and give the address that it prints"


class WorkerLost(Exception):  # noqa: N818
    """A worker or its machine has ended; its task can be repeated elsewhere."""


def address_of(engine: str, address: str | None) -> str | None:
    """The address of the cluster; None for this machine."""
    if engine not in ("local", "ray"):
        raise ConfigError(f"--engine={engine}: expected local or ray")
    if engine == "local" and address is not None:
        raise ConfigError(
            f"--address={address}: is for --engine=ray; give that, or no address"
        )
    if engine == "ray" and address is None:
        raise ConfigError(
            "--engine=ray needs --address, such as 10.0.0.1:6379, which `ray start` prints"
        )
    return address


class Cluster:
    """A cluster that this process has joined; made by `joined`."""

    def __init__(self, ray: Any, address: str) -> None:
        self.ray = ray
        self._address = address

    def machines(self) -> list[tuple[str, int, int]]:
        """The id, cores and memory in bytes of each machine that can run calls now."""
        with self._node_errors():
            # Without its first node, Ray would end this process after a minute.
            _connect(self._address)
            nodes = self.ray.nodes()
        machines = []
        for node in nodes:
            resources = node["Resources"]
            cores = int(resources.get("CPU", 0))
            if node["Alive"] and cores:
                machines.append(
                    (node["NodeID"], cores, int(resources.get("memory", 0)))
                )
        return machines

    def on(self, node: str, *, soft: bool = False) -> Any:
        """The strategy for calls on this machine; if `soft`, also on others if it is lost."""
        return self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            node, soft=soft
        )

    def begun(self, remote: Callable[..., Any], *arguments: object) -> Any:
        """Start a call by its `.remote` and return its reference."""
        with self._node_errors():
            return remote(*arguments)

    def first(
        self, references: Sequence[object], timeout_s: float | None = None
    ) -> object:
        """The first finished or failed call; None after `timeout_s` seconds."""
        with self._node_errors():
            finished, _ = self.ray.wait(references, timeout=timeout_s)
        return next(iter(finished), None)

    def fetched(self, reference: object) -> Any:
        """The result of a call; raises the call's error."""
        exceptions = self.ray.exceptions
        try:
            with self._node_errors():
                return self.ray.get(reference)
        except exceptions.RayTaskError as error:
            raise error.cause from error
        except exceptions.RayError as error:
            raise WorkerLost(type(error).__name__) from error

    @contextmanager
    def _node_errors(self) -> Iterator[None]:
        """Convert errors of the local Ray node, through which all calls go."""
        exceptions = self.ray.exceptions
        try:
            yield
        except exceptions.RayTaskError:  # may also be of the class of the task's error
            raise
        except (
            OSError,
            exceptions.LocalRayletDiedError,
            exceptions.RaySystemError,
        ) as error:
            raise RemoteError(
                "the cluster's first Ray node, or the one on this machine, has ended; start it with"
                " `ray start`, and run the same command again to continue"
            ) from error


@contextmanager
def joined(address: str) -> Iterator[Cluster]:
    """Join the cluster at an address; at the end, this process's calls are cancelled."""
    _check_answers(address)
    with needed_for("--engine=ray"):
        import ray
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"address = {address}: no Ray cluster can be joined there ({error}); {_START}"
        ) from error
    try:
        with redirect_stdout(cast(TextIO, _WithoutRay(sys.stdout))):
            yield Cluster(ray, address)
    finally:
        ray.shutdown()


class _WithoutRay:
    """A stream without what Ray's threads print, such as the state of a machine that was lost."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        is_rays = threading.current_thread().name.startswith("ray_")
        return len(text) if is_rays else self._stream.write(text)


def _check_answers(address: str) -> None:
    """Check that something listens, as Ray waits for minutes."""
    if _ADDRESS.fullmatch(address) is None:
        raise ConfigError(
            f"address = {address}: expected HOST:PORT, such as 10.0.0.1:6379"
        )
    try:
        _connect(address)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ConfigError(
            f"address = {address}: no Ray cluster answers there ({error}); {_START}"
        ) from error


def _connect(address: str) -> None:
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()


def this_node() -> str:
    """The id of the machine, in a call on a cluster."""
    import ray

    return str(ray.get_runtime_context().get_node_id())
