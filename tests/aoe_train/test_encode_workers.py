"""Several processes that encode one file; what happens when one of them, or their parent, is killed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

import aoe_train
from aoe_train.encoding import workers
from aoe_train.encoding.run import encode_file
from aoe_train.encoding.workers import EncodingRequest, WorkerPool, WorkerSpec, workers_devices
from aoe_train.model.encoder import Encoder
from pairkit.app.errors import ConfigError
from tests import forked
from tests.aoe_train.tiny import write_texts


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that need not load torch anew."""
    monkeypatch.setattr(workers, "CONTEXT", forked.context())


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "in.txt")


def team(bert: Path, count: int = 2) -> WorkerPool:
    return WorkerPool(WorkerSpec(str(bert), "fp32", EncodingRequest(), [None] * count))


def test_workers_give_the_bytes_of_one_and_one_that_is_killed_is_named(
    bert: Path, texts: Path, tmp_path: Path
) -> None:
    encoder = Encoder.load(bert, precision="fp32")
    settings = {"model": encoder.identity(), "prompt": "", "normalize": False, "batch tokens": None}
    whole, out = tmp_path / "whole.npy", tmp_path / "out.npy"
    encode_file(texts, whole, partial(map, encoder.encode), encoder.dim, settings, part_texts=8)
    with team(bert) as both:
        assert both.described.settings == settings

        def killed(parts: Iterator[list[str]]) -> Iterator[np.ndarray]:
            for number, vectors in enumerate(both.vectors(parts)):
                yield vectors
                if number == 3:
                    os.kill(both._workers[1]._process.pid, 9)

        message = r"^worker 2 of 2: was killed \(SIGKILL\), as systems do where memory is short; run the same"
        with pytest.raises(ConfigError, match=message):
            encode_file(texts, out, killed, both.described.dim, both.described.settings, part_texts=8)
    assert not out.exists()
    done = encode_file(texts, out, partial(map, encoder.encode), encoder.dim, settings, part_texts=8)
    assert 32 <= done.resumed < 90
    assert out.read_bytes() == whole.read_bytes()
    assert not [worker for worker in both._workers if worker._process.is_alive()]


def test_a_worker_ends_with_its_parent_and_says_what_is_wrong(bert: Path) -> None:
    with team(bert, 1) as one:
        (worker,) = one._workers
        worker.pipe.close()  # as when the parent is killed
        worker._process.join(60)
        assert worker._process.exitcode == 0
    with pytest.raises(ConfigError, match="'nothing'"):
        WorkerPool(WorkerSpec(str(bert), "fp32", EncodingRequest(prompt_name="nothing"), [None, None]))


def test_a_device_for_each_worker() -> None:
    assert workers_devices(None, []) == [None]
    assert workers_devices(3, []) == [None, None, None]
    assert workers_devices(None, ["cuda:0", "cuda:1"]) == ["cuda:0", "cuda:1"]
    assert workers_devices(4, ["cuda:0", "cuda:1"]) == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]
    with pytest.raises(ConfigError, match="vectors of cpu and cuda differ; choose one kind"):
        workers_devices(2, ["cuda:0", "cpu"])
    with pytest.raises(ConfigError, match="--workers 1: fewer than the 2 devices"):
        workers_devices(1, ["cuda:0", "cuda:1"])


def test_workers_from_python(bert: Path, texts: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.npy", tmp_path / "two.npy"
    aoe_train.encode(texts, model=bert, out=one, dim=16, quantize="int8", progress=False)
    aoe_train.encode(texts, model=bert, out=two, dim=16, quantize="int8", workers=2, progress=False)
    assert one.read_bytes() == two.read_bytes()
    assert (tmp_path / "one.npy.run.json").read_bytes() == (tmp_path / "two.npy.run.json").read_bytes()
    with pytest.raises(ConfigError, match="2 workers: each loads the model"):
        aoe_train.encode(texts, model=Encoder.load(bert), out=two, workers=2)
    with pytest.raises(ConfigError, match=r"workers 2: for a file of texts"):
        aoe_train.encode(["a cat"], model=bert, workers=2)  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="device nonsense: is not there"):
        aoe_train.encode(["a cat"], model=bert, device="nonsense", progress=False)
    with pytest.raises(ConfigError, match="the Encoder that was given is on cpu"):
        aoe_train.encode(["a cat"], model=Encoder.load(bert), device="cpu")


@pytest.mark.slow
def test_a_killed_parent_leaves_no_worker_and_what_another_goes_on_with(
    bert: Path, texts: Path, tmp_path: Path
) -> None:
    texts.write_text(texts.read_text() * 200)
    whole, out = tmp_path / "whole.npy", tmp_path / "out.npy"
    command = ("encode", str(texts), "--model", str(bert), "--workers", "2", "--out")
    process = forked.begin("aoe_train", *command, str(out), cwd=tmp_path)
    manifest = tmp_path / "out.npy.partial" / "manifest.json"
    while not (manifest.exists() and json.loads(manifest.read_text())["done"]):
        assert process.is_alive()
        time.sleep(0.05)
    parent = psutil.Process(process.pid)
    started = [child for child in parent.children(recursive=True) if "spawn_main" in str(child.cmdline())]
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert len(started) == 2
    _, alive = psutil.wait_procs(started, timeout=120)
    assert not alive
    again = forked.run("aoe_train", *command, str(out), cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "of them done before" in again.stderr
    aoe_train.encode(texts, model=bert, out=whole, progress=False)
    assert out.read_bytes() == whole.read_bytes()
