"""`aoe serve` as a process: it starts, is told to stop while it works, is killed, and starts again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.aoe_train.test_serve import until

MODEL = """
import os, time
from pathlib import Path

def embed(texts):
    if "wait" in texts:
        Path("begun").touch()
        while not Path("let").exists():
            time.sleep(0.01)
    return [[float(len(text)), 1.0] for text in texts]
"""


@contextmanager
def serving(folder: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A server of a model that waits when it is asked to."""
    (folder / "slow_model.py").write_text(MODEL)
    command = [sys.executable, "-m", "aoe_train", "serve", "--model", "python:slow_model:embed", "--json"]
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "") or str(Path.cwd())])
    process = subprocess.Popen(
        [*command, "-q", *flags],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "THE_KEY": "k"},
    )
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait(60)
        process.stdout.close()


def ask(url: str, text: str) -> requests.Response:
    return requests.post(
        f"{url}/v1/embeddings", json={"input": text}, headers={"Authorization": "Bearer k"}, timeout=60
    )


def test_told_to_stop_it_finishes_what_it_works_on_and_killed_it_starts_again(tmp_path: Path) -> None:
    with (
        serving(tmp_path, "--port", "0", "--key-env", "THE_KEY") as (process, told),
        ThreadPoolExecutor(1) as pool,
    ):
        url = told["url"]
        assert told["model"] == "python:slow_model:embed"
        maps = Path(f"/proc/{process.pid}/maps")
        assert not maps.exists() or "libtorch" not in maps.read_text()  # it takes seconds to load
        running = pool.submit(ask, url, "wait")
        until((tmp_path / "begun").exists)
        process.send_signal(signal.SIGTERM)
        until(lambda: not reached(url))
        assert not running.done()
        (tmp_path / "let").touch()
        answer = running.result()
        assert answer.status_code == 200
        assert answer.json()["data"][0]["embedding"] == [4.0, 1.0]
        assert process.wait(60) == 0
    (tmp_path / "let").unlink()
    (tmp_path / "begun").unlink()
    port = url.rpartition(":")[2]
    with serving(tmp_path, "--port", port) as (process, _), ThreadPoolExecutor(1) as pool:
        running = pool.submit(ask, url, "wait")
        until((tmp_path / "begun").exists)
        process.kill()
        with pytest.raises(requests.ConnectionError):
            running.result()
        process.wait(60)
        (tmp_path / "let").touch()
        with serving(tmp_path, "--port", port):
            assert ask(url, "wait").json()["data"][0]["embedding"] == [4.0, 1.0]


def reached(url: str) -> bool:
    try:
        return requests.get(f"{url}/health", timeout=60).status_code == 200
    except requests.ConnectionError:
        return False
