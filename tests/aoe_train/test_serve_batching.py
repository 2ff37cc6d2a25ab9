"""The model's queue, and `aoe serve` as a process that is stopped and killed."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train import EmbeddingServer
from aoe_train.searching.serve.batching import Batcher, Limits
from aoe_train.settings.train_settings import NamedPrompts
from tests.aoe_train.test_serve import alive, connect, get, head, post, raw
from tests.support.shorthand import parametrize, table


class Words:
    """A model whose tokens are words and whose vectors identify the text."""

    name, identity, separator, prompts = "words", "words", "\n", NamedPrompts({})
    similarity = "cosine"

    def __init__(self):
        self.batches = []

    def encode(self, texts, prompt=None):
        self.batches.append((prompt, texts))
        return np.float32(
            [[len(text), hash((prompt, text)) % 10_007] for text in texts]
        )


class Held(Words):
    """Waits for an event before its first batch."""

    def __init__(self):
        super().__init__()
        self.let_go = threading.Event()
        self.held = []

    def encode(self, texts, prompt=None):
        self.held = texts
        assert self.let_go.wait(600)
        if "crash" in texts:
            raise RuntimeError("the model failed")
        return super().encode(texts, prompt)


def encoded(model, requests, batch_tokens):
    """The vectors of concurrent requests."""

    async def ask():
        batcher = Batcher(model, batch_tokens=batch_tokens, most_texts=10_000)
        try:
            done = await asyncio.gather(
                *(batcher.encode(texts, prompt) for texts, prompt in requests)
            )
            assert batcher.texts == batcher.requests == 0
            return [vectors for vectors, _ in done]
        finally:
            batcher.close()

    return asyncio.run(ask())


_TEXTS = st.lists(
    st.integers(1, 9).map(lambda words: " ".join(["a"] * words)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(_TEXTS, st.sampled_from([None, "query: "])), min_size=1, max_size=8
    ),
    st.integers(1, 30),
)
def test_each_text_is_encoded_once_in_batches_of_one_prompt(requests, batch_tokens):
    model = Words()
    found = encoded(model, requests, batch_tokens)
    for (texts, prompt), vectors in zip(requests, found, strict=True):
        assert vectors.tolist() == Words().encode(texts, prompt).tolist()
    assert sorted(
        (prompt or "", text) for prompt, texts in model.batches for text in texts
    ) == sorted((prompt or "", text) for texts, prompt in requests for text in texts)
    for _, texts in model.batches:
        assert (
            len(texts) == 1 or sum(len(text.split()) for text in texts) <= batch_tokens
        )


def test_small_requests_overtake_a_large_one():
    model = Held()

    async def ask():
        batcher = Batcher(model, batch_tokens=100, most_texts=10_000)
        requests = [[f"large {number}" for number in range(1000)], ["small"]]
        jobs = [asyncio.ensure_future(batcher.encode(texts)) for texts in requests]
        while "small" not in [
            *model.held,
            *(one.text for queue in batcher._queues.values() for one in queue),
        ]:
            await asyncio.sleep(0.01)
        model.let_go.set()
        await asyncio.gather(*jobs)
        batcher.close()

    asyncio.run(ask())
    where = next(
        place for place, (_, texts) in enumerate(model.batches) if "small" in texts
    )
    assert where < 5
    assert len(model.batches) == 21


class Panic(BaseException):
    """Like a panic of polars, it isn't an Exception."""


@parametrize("fault", [ValueError, Panic])
def test_waiting_calls_run_together_and_fail_separately(fault):
    model, batches = Held(), []

    def halves(numbers):
        batches.append(numbers)
        assert numbers  # otherwise it would be called for nothing, for ever
        if any(number % 2 for number in numbers):
            raise fault
        return [number // 2 for number in numbers]

    async def ask():
        batcher = Batcher(model, batch_tokens=100, most_texts=10_000)
        texts = asyncio.ensure_future(batcher.encode(["a"]))
        while not batcher._running._work_queue.empty() or batcher._drain is None:
            await asyncio.sleep(0.01)
        calls = [
            asyncio.ensure_future(batcher.together(halves, number))
            for number in (2, 4, 5, 6, 8)
        ]
        await asyncio.sleep(0.01)
        calls[4].cancel()
        model.let_go.set()
        await texts
        found = await asyncio.gather(*calls[:4], return_exceptions=True)
        assert found[:2] + found[3:] == [1, 2, 3]
        assert type(found[2]) is fault
        assert await batcher.together(halves, 10) == 5
        assert batcher.texts == batcher.requests == 0
        batcher.close()

    asyncio.run(ask())
    assert batches == [[2, 4, 5, 6, 8], [2], [4], [5], [6], [8], [10]]


def limited(model, **limits):
    """A server with limits that have no flag."""
    return EmbeddingServer(
        [model], name="m", host="127.0.0.1", port=0, key=None, limits=Limits(**limits)
    )


@contextmanager
def busy(texts, **limits):
    """A server whose model waits in its first request, and a function that sends further ones."""
    model = Held()
    with limited(model, **limits) as server, ThreadPoolExecutor(9) as pool:

        def ask(texts):
            return pool.submit(post, server, {"input": texts})

        first = ask(texts)
        until(lambda: bool(model.held))
        yield server, model, first, ask


def until(holds):
    """Wait until a condition holds."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def waiting(server):
    """The number of texts in the queue."""
    return get(server, "/health").json()["queue"]["texts"]


@table(
    """
    limits, texts
    {'body_mib': 2, 'held_mib': 1} | LARGE
    {'queue': 4} | MANY
    """,
    LARGE="dog " * 300_000,
    MANY=["a dog"] * 6,
)
def test_memory_and_queue_are_limited(limits, texts):
    # The first request is above the limit, but nothing waits.
    with busy(texts, **limits) as (server, model, first, ask):
        answer = ask("a cat").result()
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1
        model.let_go.set()
        assert first.result().status_code == 200
        assert alive(server)


def test_waiting_texts_form_a_batch_without_disconnected_clients():
    texts = [f"dog {number}" for number in range(8)]
    with busy("a dog") as (server, model, first, ask):
        others = [ask([text, "a red boat"]) for text in texts]
        body = json.dumps({"input": ["a bird"] * 50}).encode()
        with connect(server) as leaving:
            leaving.sendall(head(server, f"Content-Length: {len(body)}") + body)
            until(lambda: waiting(server) == 67)
        until(lambda: waiting(server) == 17)
        model.let_go.set()
        assert {one.result().status_code for one in (first, *others)} == {200}
        assert [len(batch) for _, batch in model.batches] == [1, 16]
        for text, one in zip(texts, others, strict=True):
            found = one.result().json()["data"][0]["embedding"]
            assert found == Words().encode([text])[0].tolist()


def test_a_failing_text_fails_only_its_request(capfd):
    with busy("a dog") as (server, model, first, ask):
        bad, good = map(ask, ("crash", "a cat"))
        until(lambda: waiting(server) == 3)
        model.let_go.set()
        statuses = [one.result().status_code for one in (first, bad, good)]
        assert statuses == [200, 500, 200]
        assert bad.result().json()["error"]["type"] == "server_error"
        assert "the model failed" not in bad.result().text
        assert alive(server)
    assert "the model failed" in capfd.readouterr().err


def test_unfinished_bodies_are_held():
    with limited(Words(), body_mib=1, held_mib=2) as server, ExitStack() as opened:
        connections = [opened.enter_context(connect(server)) for _ in range(3)]
        for connection in connections:
            connection.sendall(head(server, "Content-Length: 1048576") + b" " * 900_000)
        answered, _, _ = select.select(connections, [], [], 60)
        assert {connection.recv(65536)[:12] for connection in answered} == {
            b"HTTP/1.1 429"
        }
        opened.close()
        until(lambda: alive(server))


def test_an_incomplete_request_times_out():
    with limited(Words(), receive_s=0.3) as server:
        answer, _ = raw(server, head(server, "Content-Length: 100"), b'{"input"')
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert raw(server, head(server)[:-2])[0] == b""
        assert alive(server)


def test_half_sent_headers_leave_room_for_others():
    with limited(Words(), connections=8) as server, ExitStack() as opened:
        for _ in range(20):
            opened.enter_context(connect(server)).sendall(head(server)[:-2])
        assert alive(server)


SERVER = """
import time
from pathlib import Path
from aoe_train.encoding.embedders import cached
from aoe_train.encoding.embedders.embedder import FunctionEmbedder

def embed(texts):
    if "wait" in texts:
        Path("begun").touch()
        while not Path("let").exists():
            time.sleep(0.01)
    return [[float(len(text)), 1.0] for text in texts]

cached.open_model = lambda *_, **__: FunctionEmbedder(embed)
from aoe_train.__main__ import main
main()
"""


@contextmanager
def serving(folder, *flags):
    """A server of a model that waits for a file if a text is "wait"."""
    command = [sys.executable, "-c", SERVER, "serve", "--model", "slow", "--json"]
    path = os.environ.get("PYTHONPATH", "") or str(Path.cwd())
    process = subprocess.Popen(
        [*command, "-q", *flags],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "THE_KEY": "k"},
    )
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait(60)
        process.stdout.close()


def ask(url, text):
    return requests.post(
        f"{url}/v1/embeddings",
        json={"input": text},
        headers={"Authorization": "Bearer k"},
        timeout=60,
    )


def test_sigterm_finishes_requests_and_sigkill_allows_a_restart(tmp_path):
    with (
        serving(tmp_path, "--port", "0", "--key-env", "THE_KEY") as (process, told),
        ThreadPoolExecutor(1) as pool,
    ):
        url = told["url"]
        assert told["model"] == "embed"
        maps = Path(f"/proc/{process.pid}/maps")
        # It takes seconds to load.
        assert not maps.exists() or "libtorch" not in maps.read_text()
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
    with (
        serving(tmp_path, "--port", port) as (process, _),
        ThreadPoolExecutor(1) as pool,
    ):
        running = pool.submit(ask, url, "wait")
        until((tmp_path / "begun").exists)
        process.kill()
        with pytest.raises(requests.ConnectionError):
            running.result()
        process.wait(60)
        (tmp_path / "let").touch()
        with serving(tmp_path, "--port", port):
            assert ask(url, "wait").json()["data"][0]["embedding"] == [4.0, 1.0]


def reached(url):
    try:
        return requests.get(f"{url}/health", timeout=60).status_code == 200
    except requests.ConnectionError:
        return False
