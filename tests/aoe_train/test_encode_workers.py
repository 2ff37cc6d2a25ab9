"""Worker processes and Ray actors that encode one file, also when one is killed."""

import os
import random
import signal
from collections import namedtuple
from functools import partial
from types import SimpleNamespace

import pytest

from aoe_train import encode
from aoe_train.encoding import encode_run
from aoe_train.encoding import encode_workers as workers
from aoe_train.encoding.encode_workers import (
    ActorPool,
    EncodeOptions,
    WorkerPool,
    WorkerSpec,
    _plan_actors,
    workers_devices,
)
from pairkit import ConfigError
from pairkit.base.system.cluster import Cluster
from tests import forked
from tests.aoe_train.tiny import load, write_lines, write_texts
from tests.support.shorthand import config_error, table, values

encode_file = partial(encode_run.encode_file, show=lambda _: None)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Workers are forked, so they need not import torch."""
    monkeypatch.setattr(workers, "CONTEXT", forked.context())


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "in.txt"
    return write_lines(path, write_texts(path, 90) * 70)


def team(bert, count=2):
    return WorkerPool(WorkerSpec(str(bert), "fp32", EncodeOptions(), [None] * count))


@pytest.fixture
def alone(bert):
    """A function that encodes a file in one process, and its settings."""
    encoder = load(bert, precision="fp32")
    settings = {
        "model": encoder.identity(),
        "prompt": "",
        "normalize": False,
        "batch tokens": None,
    }
    how = {"dim": encoder.dim, "settings": settings}
    return partial(encode_file, embed=partial(map, encoder.encode), **how), settings


def test_workers_give_the_same_bytes_and_a_killed_one_is_reported(
    bert, texts, tmp_path, monkeypatch, alone
):
    # Three parts or more are left, so each worker gets another.
    monkeypatch.setattr(workers, "_AHEAD", 1)
    encode_alone, settings = alone
    whole, out = tmp_path / "whole.npy", tmp_path / "out.npy"
    encode_alone(texts, whole)
    with team(bert) as both:
        assert both.model_info.settings == settings

        def killed(parts):
            for number, vectors in enumerate(both.vectors(parts)):
                yield vectors
                if number == 2:
                    os.kill(both._workers[1]._process.pid, 9)

        message = r"^worker 2 of 2: was killed by signal 9 \(Killed\), perhaps because the system ran out of memory"
        with config_error(message):
            encode_file(texts, out, killed, both.model_info.dim, settings)
    assert not out.exists()
    done = encode_alone(texts, out)
    assert 3000 <= done.resumed < 6300
    assert out.read_bytes() == whole.read_bytes()
    assert not [worker for worker in both._workers if worker._process.is_alive()]


def test_a_worker_ends_with_its_parent_and_reports_errors(bert):
    with team(bert, 1) as one:
        (worker,) = one._workers
        worker.pipe.close()  # as when the parent is killed
        worker._process.join(60)
        assert worker._process.exitcode == 0
    with team(bert, 1) as one:
        (worker,) = one._workers
        os.kill(worker._process.pid, signal.SIGRTMIN)
        with config_error(r"killed by signal \d+ \(Real-time signal 0\); run"):
            list(one.vectors([["a cat"]]))
    unknown = WorkerSpec(str(bert), "fp32", EncodeOptions("nothing"), [None, None])
    with config_error("'nothing'"):
        WorkerPool(unknown)


def test_devices_of_workers():
    two = ["cuda:0", "cuda:1"]
    for count, devices, expected in values(
        """
            None | [] | [None]
            3 | [] | [None, None, None]
            None | TWO | TWO
            4 | TWO | FOUR
            """,
        TWO=two,
        FOUR=two * 2,
    ):
        assert workers_devices(count, devices) == expected
    with config_error("vectors of cpu and cuda differ; choose one kind"):
        workers_devices(2, ["cuda:0", "cpu"])
    with config_error("workers=1: expected at least one for each of the 2 devices"):
        workers_devices(1, two)


def test_workers_from_python(bert, texts, tmp_path, monkeypatch):
    one, two = tmp_path / "one.npy", tmp_path / "two.npy"
    how = {"model": bert, "dim": 16, "quantize": "int8"}
    encode(texts, out=one, **how)
    encode(texts, out=two, workers="2", **how)
    for suffix in (".npy", ".npy.run.json"):
        left, right = (path.with_suffix(suffix).read_bytes() for path in (one, two))
        assert left == right
    # A finished output needs only one worker.
    worker, started = workers._Worker, []
    count = lambda *given: started.append(given) or worker(*given)  # noqa: E731
    monkeypatch.setattr(workers, "_Worker", count)
    encode(texts, out=two, workers=2, **how)
    assert len(started) == 1
    assert encode(["a cat"], model=bert, device="cpu,", dim="8").shape == (1, 8)
    with config_error("2 workers: each worker loads the model"):
        encode(texts, model=load(bert), out=two, workers=2)
    for model, given, words in values(
        """
            BERT | {'workers': 2} | workers=2: can't be set for texts in memory
            BERT | {'engine': 'ray'} | engine='ray': can't be set for texts in memory
            BERT | {'address': 'host:1'} | address='host:1': can't be set for texts in memory
            BERT | {'columns': {'text': 'body'}} | columns.*: can't be set for texts in memory
            BERT | {'device': 'nonsense'} | device nonsense isn't available
            BERT | {'device': 'hpu'} | device hpu isn't available
            BERT | {'device': 'meta'} | device meta isn't available
            LOADED | {'device': 'cpu'} | device='cpu': can't be set for a loaded Encoder
            LOADED | {'precision': 'int8'} | precision='int8': can't be set for a loaded Encoder
            """,
        BERT=bert,
        LOADED=load(bert),
    ):
        with config_error(words):
            encode(["a cat"], model=model, **given)


class _RayError(Exception):
    pass


class _RayTaskError(_RayError):
    def __init__(self, cause):
        self.cause = cause


Call = namedtuple("Call", "actor name answer")


class InOneProcess:
    """The parts of ray that `ActorPool` uses, with actors in this process and answers in any order."""

    exceptions = SimpleNamespace(
        RayError=_RayError,
        RayTaskError=_RayTaskError,
        LocalRayletDiedError=OSError,
        RaySystemError=OSError,
    )

    def __init__(self, cores, lost=lambda *_: False):
        self._cores, self._lost = cores, lost
        self._choose = random.Random(0)
        self.begun = self.killed = 0

    def nodes(self):
        return [{**GPUS, "Resources": {"CPU": float(count)}} for count in self._cores]

    def remote(self, **_):
        def made(kind):
            return SimpleNamespace(remote=lambda *given: self._actor(kind(*given)))

        return made

    def _actor(self, own):
        self.begun += 1
        number = self.begun

        def method(name):
            own_method = getattr(own, name)
            return SimpleNamespace(
                remote=lambda *given: Call(number, name, partial(own_method, *given))
            )

        return SimpleNamespace(load=method("load"), vectors=method("vectors"))

    def wait(self, references, timeout):
        del timeout
        return [self._choose.choice(references)], []

    def get(self, reference):
        if self._lost(reference.actor, reference.name):
            raise _RayError
        try:
            return reference.answer()
        except ConfigError as error:
            raise _RayTaskError(error) from error

    def kill(self, _):
        self.killed += 1


GPUS = {"Alive": True, "Resources": {"CPU": 8.0, "GPU": 2.0}}


def worker_spec(bert, device=None):
    return WorkerSpec(str(bert), "fp32", EncodeOptions(), [device])


def test_lost_actors_do_not_change_the_output(bert, texts, tmp_path, alone):
    encode_alone, settings = alone
    whole, out = tmp_path / "whole.npy", tmp_path / "out.npy"
    encode_alone(texts, whole)
    ray = InOneProcess(
        [4, 4, 4], lambda actor, name: (actor, name) in {(1, "load"), (2, "vectors")}
    )
    actors = ActorPool(Cluster(ray, "auto"), worker_spec(bert), None, pytest.fail)
    assert actors.model_info.settings == settings
    done = encode_file(texts, out, actors.vectors, actors.model_info.dim, settings)
    assert (done.texts, done.resumed) == (6300, 0)
    assert out.read_bytes() == whole.read_bytes()
    assert (ray.begun, ray.killed) == (5, 2)


def test_errors_that_end_a_run(bert, tmp_path):
    always = InOneProcess([2], lambda _, name: name == "vectors")
    actors = ActorPool(Cluster(always, "auto"), worker_spec(bert), 2, pytest.fail)
    with config_error("lost repeatedly while encoding the same texts"):
        list(actors.vectors([["a cat"]]))
    assert always.killed == 3
    for cores, lost, model, words in values(
        r"""
            [2] | load | BERT | lost repeatedly while loading the model
            [2] | None | EMPTY | no config\.json
            [2] | None | ON_GPU | device='cuda': the cluster has no GPU
            [0] | None | BERT | has no CPU cores
            """,
        BERT=worker_spec(bert),
        EMPTY=worker_spec(tmp_path),
        ON_GPU=worker_spec(bert, "cuda"),
    ):
        ray = InOneProcess(cores, lambda _, name, lost=lost: name == lost)
        with config_error(words):
            ActorPool(Cluster(ray, "auto"), model, 2, pytest.fail)


@table(
    """
    nodes, device, workers, expected
    # one a machine, with all of its cores
    [4, 4] | None | None | (2, {'num_cpus': 4})
    [1, 64, 64] | None | None | (3, {'num_cpus': 32})
    [4, 4] | None | 4 | (4, {'num_cpus': 2})
    # one waits
    [4, 4] | None | 9 | (9, {'num_cpus': 1})
    ['GPU', 'GPU', 'dead'] | None | None | (4, {'num_gpus': 1})
    ['GPU', 'GPU'] | cuda | 3 | (3, {'num_gpus': 1})
    ['GPU', 'GPU'] | cpu | None | (2, {'num_cpus': 8})
    """,
)
def test_resources_of_an_actor(nodes, device, workers, expected):
    known = {"GPU": GPUS, "dead": {**GPUS, "Alive": False}}
    listed = [known.get(node) or InOneProcess([node]).nodes()[0] for node in nodes]
    cluster = SimpleNamespace(nodes=lambda: listed)
    assert _plan_actors(cluster, device, workers) == expected


@table(
    """
    given, words
    {'engine': 'ray'} | needs address=
    {'address': '127.0.0.1:1'} | is for engine='ray'
    {'engine': 'spark'} | expected local or ray
    {'engine': 'ray', 'address': '127.0.0.1:1'} | no Ray cluster answers there
    {'engine': 'ray', 'address': '127.0.0.1:1', 'device': 'cuda:0,cuda:1'} | 'cuda:0,cuda:1': on a cluster only the kind
    """,
)
def test_options_that_conflict_with_a_cluster(bert, texts, tmp_path, given, words):
    with config_error(words):
        encode(texts, model=bert, out=tmp_path / "out.npy", **given)


def test_each_worker_of_a_cluster_loads_the_model(bert, texts, tmp_path):
    ray = {"engine": "ray", "address": "127.0.0.1:1"}
    with config_error("engine='ray': each worker loads the model"):
        encode(texts, model=load(bert), out=tmp_path / "out.npy", **ray)
