"""A Ray cluster: joining it, and calls on it. The one place that imports ray."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pairkit.app.errors import ConfigError, RemoteError
from pairkit.app.extras import needed_for

_ANSWER_S = 10.0  # till something answers
_ADDRESS = re.compile(r"\[?([^\s/]+?)\]?:([0-9]{1,5})", re.ASCII)
_START = "start one with `ray start`, and give the address that it names"


class WorkerLost(Exception):  # noqa: N818 - no error of a user's
    """A worker or its machine has ended; what it was at can be done elsewhere."""


def address_of(engine: str, address: str | None) -> str | None:
    """Of the cluster that is meant; None for this machine."""
    if engine not in ("local", "ray"):
        raise ConfigError(f"--engine {engine} (engine={engine!r}): expected local or ray")
    if engine == "local" and address is not None:
        raise ConfigError(
            f"address = {address}: is for --engine ray (engine='ray'); give that, or no address"
        )
    if engine == "ray" and address is None:
        raise ConfigError(
            "--engine ray (engine='ray') needs --address (address=…), such as 10.0.0.1:6379, which"
            " `ray start` names"
        )
    return address


class Cluster:
    """A cluster that this process is a driver of; made by `joined`."""

    def __init__(self, ray: Any) -> None:
        self.ray = ray

    def begun(self, remote: Callable[..., Any], *arguments: Any) -> Any:
        """Hand over a call, by its `.remote`; what stands for its answer."""
        with self._way_there():
            return remote(*arguments)

    def first(self, references: Sequence[Any], timeout_s: float | None = None) -> Any:
        """The first of the answers that is there, or whose worker is lost; None after `timeout_s` seconds."""
        with self._way_there():
            found, _ = self.ray.wait(references, timeout=timeout_s)
        return next(iter(found), None)

    def fetched(self, reference: Any) -> Any:
        """An answer; what the call raised is raised here."""
        exceptions = self.ray.exceptions
        try:
            with self._way_there():
                return self.ray.get(reference)
        except exceptions.RayTaskError as error:
            raise error.cause from error
        except exceptions.RayError as error:
            raise WorkerLost(type(error).__name__) from error

    @contextmanager
    def _way_there(self) -> Iterator[None]:
        """It leads through a Ray node on this machine."""
        exceptions = self.ray.exceptions
        try:
            yield
        except exceptions.RayTaskError:  # those of a task are of the class of what it raised, too
            raise
        except (OSError, exceptions.LocalRayletDiedError, exceptions.RaySystemError) as error:
            raise RemoteError(
                "the Ray node on this machine has ended, and with it the way to the cluster; start it with"
                " `ray start`, and run the same command again to continue"
            ) from error


@contextmanager
def joined(address: str) -> Iterator[Cluster]:
    """The cluster at an address; at the end, what this process began there ends."""
    _check_answers(address)
    with needed_for("--engine ray (engine='ray')"):
        import ray
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"address = {address}: no Ray cluster can be joined there ({error}); {_START}"
        ) from error
    try:
        yield Cluster(ray)
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Ray itself waits for minutes for a cluster that is not there."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise ConfigError(f"address = {address}: expected HOST:PORT, such as 10.0.0.1:6379")
    try:
        with socket.create_connection((match[1], int(match[2])), _ANSWER_S):
            pass
    except (OSError, OverflowError, UnicodeError) as error:
        raise ConfigError(f"address = {address}: no Ray cluster answers there ({error}); {_START}") from error
