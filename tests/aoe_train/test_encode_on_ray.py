"""`aoe encode` on a Ray cluster: the bytes of one process, whichever actor, machine or driver is killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import aoe_train
from aoe_train.encoding.on_ray import ActorPool, _places
from aoe_train.encoding.run import encode_file
from aoe_train.encoding.workers import EncodingRequest, WorkerSpec
from aoe_train.model.encoder import Encoder
from pairkit.app.errors import ConfigError
from pairkit.system.cluster import Cluster
from tests.aoe_train.tiny import write_texts
from tests.two_nodes import two_nodes


class _RayError(Exception):
    pass


class _RayTaskError(_RayError):
    def __init__(self, cause: Exception) -> None:
        self.cause = cause


@dataclass(eq=False)
class Call:
    """What stands for an answer."""

    actor: int
    name: str
    answer: Callable[[], Any]


class InOneProcess:
    """What `ActorPool` asks of ray, with actors in this process; answers come in any order."""

    exceptions = SimpleNamespace(
        RayError=_RayError, RayTaskError=_RayTaskError, LocalRayletDiedError=OSError, RaySystemError=OSError
    )

    def __init__(self, cores: Iterable[int], lost: Callable[[int, str], bool] = lambda *_: False) -> None:
        self._cores, self._lost = cores, lost
        self._choose = random.Random(0)
        self.begun = self.killed = 0

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": float(count)}} for count in self._cores]

    def remote(self, **_: object) -> Callable[[type], Any]:
        def made(kind: type) -> Any:
            return SimpleNamespace(remote=lambda *given: self._actor(kind(*given)))

        return made

    def _actor(self, own: Any) -> Any:
        self.begun += 1
        number = self.begun

        def method(name: str) -> Any:
            own_method = getattr(own, name)
            return SimpleNamespace(remote=lambda *given: Call(number, name, partial(own_method, *given)))

        return SimpleNamespace(described=method("described"), vectors=method("vectors"))

    def wait(self, references: list[Call], timeout: float | None) -> tuple[list[Any], list[Any]]:
        del timeout
        return [self._choose.choice(references)], []

    def get(self, reference: Call) -> Any:
        if self._lost(reference.actor, reference.name):
            raise _RayError
        try:
            return reference.answer()
        except ConfigError as error:
            raise _RayTaskError(error) from error

    def kill(self, _: object) -> None:
        self.killed += 1


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "in.txt")


GPUS = {"Alive": True, "Resources": {"CPU": 8.0, "GPU": 2.0}}


def worker_spec(bert: Path, device: str | None = None) -> WorkerSpec:
    return WorkerSpec(str(bert), "fp32", EncodingRequest(), [device])


def test_lost_actors_change_no_byte(bert: Path, texts: Path, tmp_path: Path) -> None:
    encoder = Encoder.load(bert, precision="fp32")
    settings = {"model": encoder.identity(), "prompt": "", "normalize": False, "batch tokens": None}
    whole, out = tmp_path / "whole.npy", tmp_path / "out.npy"
    encode_file(texts, whole, partial(map, encoder.encode), encoder.dim, settings, part_texts=8)
    ray = InOneProcess([4, 4, 4], lambda actor, name: (actor, name) in {(1, "described"), (2, "vectors")})
    actors = ActorPool(Cluster(ray), worker_spec(bert), None, pytest.fail)
    assert actors.described.settings == settings
    done = encode_file(texts, out, actors.vectors, actors.described.dim, settings, part_texts=8)
    assert (done.texts, done.resumed) == (90, 0)
    assert out.read_bytes() == whole.read_bytes()
    assert (ray.begun, ray.killed) == (5, 2)


def test_what_ends_a_run(bert: Path, tmp_path: Path) -> None:
    always = InOneProcess([2], lambda _, name: name == "vectors")
    actors = ActorPool(Cluster(always), worker_spec(bert), 2, pytest.fail)
    with pytest.raises(ConfigError, match="lost again and again while they encoded the same texts"):
        list(actors.vectors([["a cat"]]))
    assert always.killed == 3
    loading = InOneProcess([2], lambda _, name: name == "described")
    for ray, spec, words in (
        (loading, worker_spec(bert), "lost again and again while they loaded the model"),
        (InOneProcess([2]), worker_spec(tmp_path), r"no config\.json"),
        (InOneProcess([2]), worker_spec(bert, "cuda"), "--device cuda: the cluster has no GPU"),
        (InOneProcess([0]), worker_spec(bert), "has no core"),
    ):
        with pytest.raises(ConfigError, match=words):
            ActorPool(Cluster(ray), spec, 2, pytest.fail)


@pytest.mark.parametrize(
    ("nodes", "device", "workers", "expected"),
    [
        ([4, 4], None, None, (2, {"num_cpus": 4})),  # one a machine, with all of its cores
        ([1, 64, 64], None, None, (3, {"num_cpus": 32})),
        ([4, 4], None, 4, (4, {"num_cpus": 2})),
        ([4, 4], None, 9, (9, {"num_cpus": 1})),  # one waits
        ([GPUS, GPUS, {**GPUS, "Alive": False}], None, None, (4, {"num_gpus": 1})),
        ([GPUS, GPUS], "cuda", 3, (3, {"num_gpus": 1})),
        ([GPUS, GPUS], "cpu", None, (2, {"num_cpus": 8})),
    ],
)
def test_what_an_actor_has(
    nodes: list[Any], device: str | None, workers: int | None, expected: tuple[int, dict[str, int]]
) -> None:
    listed = nodes if isinstance(nodes[0], dict) else InOneProcess(nodes).nodes()
    assert _places(SimpleNamespace(nodes=lambda: listed), device, workers) == expected


def test_what_does_not_go_with_a_cluster(bert: Path, texts: Path, tmp_path: Path) -> None:
    nobody: dict[str, Any] = {"engine": "ray", "address": "127.0.0.1:1"}
    for given, words in (
        ({"engine": "ray"}, "needs --address"),
        ({"address": "127.0.0.1:1"}, "is for --engine ray"),
        ({"engine": "spark"}, "expected local or ray"),
        (nobody, "no Ray cluster answers there"),
        ({**nobody, "device": "cuda:0,cuda:1"}, "--device cuda:0,cuda:1: on a cluster each actor gets one"),
        ({**nobody, "model": Encoder.load(bert)}, "--engine ray: each loads the model"),
    ):
        with pytest.raises(ConfigError, match=words):
            aoe_train.encode(
                texts, **{"model": bert, "out": tmp_path / "out.npy", "progress": False, **given}
            )
    with pytest.raises(ConfigError, match="engine ray: for a file of texts"):
        aoe_train.encode(["a cat"], model=bert, engine="ray")  # type: ignore[call-overload]


@pytest.mark.slow
def test_on_a_cluster_of_two_nodes_it_has_the_same_bytes(bert: Path, texts: Path, tmp_path: Path) -> None:
    """A node is killed, then the driver. Slow: a cluster takes half a minute to start."""
    texts.write_text(texts.read_text() * 200)
    whole, out = tmp_path / "whole.npy", tmp_path / "out.npy"
    aoe_train.encode(texts, model=bert, out=whole, progress=False)
    with two_nodes() as (cluster, second):
        command = [
            *(sys.executable, "-m", "aoe_train", "encode", str(texts), "--model", str(bert), "-q"),
            *("--out", str(out), "--engine", "ray", "--address", cluster.address),
        ]
        driver = subprocess.Popen(command)
        begun(out)
        second.all_processes["raylet"][0].process.kill()
        assert driver.wait(timeout=300) == 0
        assert out.read_bytes() == whole.read_bytes()
        out.unlink()
        driver = subprocess.Popen([*command, "--fresh"])
        begun(out)
        driver.kill()
        driver.wait()
        assert not out.exists()
        again = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
        assert json.loads(again.stdout)["resumed"] > 0
        assert out.read_bytes() == whole.read_bytes()


def begun(out: Path) -> None:
    """Wait till a part is safe."""
    manifest, until = out.with_name(out.name + ".partial") / "manifest.json", time.monotonic() + 300
    while not (manifest.exists() and json.loads(manifest.read_text())["done"]):
        assert time.monotonic() < until
        time.sleep(0.05)
