from __future__ import annotations

import socket
import sys
from types import SimpleNamespace

import pytest

from pairkit import ConfigError, DataError, RemoteError
from pairkit.base.system.cluster import Cluster, WorkerLost, address_of, joined


def test_engine_and_address() -> None:
    assert address_of("local", None) is None
    assert address_of("ray", "10.0.0.1:6379") == "10.0.0.1:6379"
    with pytest.raises(ConfigError, match=r"10\.0\.0\.1:6379': is for engine='ray'"):
        address_of("local", "10.0.0.1:6379")
    with pytest.raises(ConfigError, match="needs address="):
        address_of("ray", None)
    with pytest.raises(ConfigError, match=r"engine='spark': expected local or ray"):
        address_of("spark", None)


def test_invalid_addresses() -> None:
    for address in ("auto", "ray://head", "10.0.0.1"):
        with pytest.raises(ConfigError, match="expected HOST:PORT"), joined(address):
            pass
    for address in ("127.0.0.1:1", "10..0.1:6379"):
        with pytest.raises(ConfigError, match="no Ray cluster answers there"), joined(address):
            pass


def test_ray_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    match = r"engine='ray' needs ray, .* 'aoe-toolkit\[ray\]'"
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.raises(ConfigError, match=match):
        joined(f"127.0.0.1:{listening.getsockname()[1]}").__enter__()


class _RayError(Exception):
    pass


class _LocalRayletDiedError(_RayError):
    pass


class _RaySystemError(_RayError):
    pass


class _RayTaskError(_RayError, OSError):
    """As Ray's errors, which are also of the class of the cause."""

    cause = DataError("a fault of its own", path="a.json", row=3)


EXCEPTIONS = SimpleNamespace(
    RayError=_RayError,
    RayTaskError=_RayTaskError,
    LocalRayletDiedError=_LocalRayletDiedError,
    RaySystemError=_RaySystemError,
)


@pytest.mark.parametrize(
    ("raised", "expected", "words"),
    [
        (_RayTaskError(), DataError, "^a.json:3: a fault of its own$"),
        (_LocalRayletDiedError(), RemoteError, "run the same command again"),
        (BrokenPipeError(), RemoteError, "run the same command again"),
        (_RayError(), WorkerLost, "_RayError"),
    ],
)
def test_errors_of_tasks_and_workers(raised: Exception, expected: type[Exception], words: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    cluster = Cluster(SimpleNamespace(get=fail, wait=fail, exceptions=EXCEPTIONS), "auto")
    with pytest.raises(expected, match=words):
        cluster.fetched(object())
    if expected is RemoteError:
        with pytest.raises(RemoteError, match=words):
            cluster.first([object()])
        with pytest.raises(RemoteError, match=words):
            cluster.begun(fail, 1)


def test_first_finished_call() -> None:
    ray = SimpleNamespace(wait=lambda references, timeout: (references[1:2], []), exceptions=EXCEPTIONS)
    assert Cluster(ray, "auto").first(["a", "b"], 1.0) == "b"
    assert Cluster(ray, "auto").first(["a"], 1.0) is None
