"""A server under load: errors, times and memory, and what serving costs beside encoding alone.

    taskset -c 0 python benchmarks/serve.py [--model minilm] [--clients 64] [--seconds 600] [--texts 8]
        [--peer] [--infinity PYTHON] [--data FOLDER]

So many clients, each a thread with one connection, send requests of some sentences of NLI one after another
and ask for base64. Printed for `aoe serve` and, with `--peer`, for sentence-transformers behind a route of
Starlette as people write it, and for infinity-emb in the environment of `--infinity`: requests, errors, the
median and the 99th percentile of their wall times, texts a CPU second of the server alone, and its resident
memory after a tenth of the time and at the end. The last line is `aoe_train.encode` over the same sentences
in one call, in texts a CPU second: the throughput that serving is measured by, whatever else the machine
does.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
from machine import instruction_sets, processor
from peers_aoe.environments import add_flags
from static_models import nli

import aoe_train
from aoe_train.model.backbones.load import find_folder

_STARTS_S = 300  # with its model
ENCODED = 20_000  # texts that encoding alone is measured with


def main() -> None:
    """Read the flags, load each server, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--texts", type=int, default=8)
    parser.add_argument("--encoded", type=int, default=ENCODED)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--infinity", metavar="PYTHON", help="a Python that has infinity-emb[server,torch]")
    parser.add_argument("--be-peer", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.be_peer:
        serve_peer(options.model, options.be_peer)
        return
    texts = nli(options.data)
    print(
        f"{processor()}, {instruction_sets()}; {options.clients} clients, {options.texts} texts a request\n"
    )
    print("| server | requests | errors | p50 ms | p99 ms | texts a CPU s | MiB early | MiB at the end |")
    print("|---|---|---|---|---|---|---|---|")
    ours = [sys.executable, "-m", "aoe_train", "serve", "-q", "-m", options.model, "--port"]
    run("aoe serve", ours, options, texts)
    if options.peer:
        peer = [sys.executable, __file__, "--model", options.model, "--be-peer"]
        run("sentence-transformers", peer, options, texts)
    if options.infinity:
        run("infinity-emb", infinity(options.infinity, options.model), options, texts)
    encoder = aoe_train.Encoder.load(options.model, inference_only=True)
    encoder.encode(texts[:256])
    begun = time.process_time()
    encoder.encode(texts[: options.encoded])
    rate = options.encoded / (time.process_time() - begun)
    print(f"| encode alone | | | | | {rate:,.0f} | | |")


@dataclass
class Load:
    """What clients saw."""

    until: float
    seconds: list[float] = field(default_factory=list)
    errors: int = 0


def infinity(python: str, model: str) -> list[str]:
    """Its command, with torch on a processor as its documentation has it, without what this torch lacks."""
    how = ["--device", "cpu", "--engine", "torch", "--no-bettertransformer"]
    named = ["--model-id", str(find_folder(model))]
    place = ["--host", "127.0.0.1", "--url-prefix", "/v1"]
    return [str(Path(python).with_name("infinity_emb")), "v2", *how, *named, *place, "--port"]


def run(name: str, command: list[str], options: argparse.Namespace, texts: list[str]) -> None:
    """Start a server, whose command ends with a port's flag, load it, print its line."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*command, str(port)], **quiet)
    try:
        watched = psutil.Process(process.pid)
        ask_until_there(port, texts[:256])
        before = sum(watched.cpu_times()[:2])
        load = Load(time.monotonic() + options.seconds)
        clients = [
            threading.Thread(target=client, args=(port, texts, options.texts, number, load))
            for number in range(options.clients)
        ]
        for one in clients:
            one.start()
        time.sleep(options.seconds / 10)
        early = watched.memory_info().rss >> 20
        for one in clients:
            one.join()
        spent = sum(watched.cpu_times()[:2]) - before
        late = watched.memory_info().rss >> 20
    finally:
        process.terminate()
        process.wait()
    p50, p99 = 1000 * np.quantile(load.seconds, [0.5, 0.99])
    rate = len(load.seconds) * options.texts / spent
    figures = f"{len(load.seconds):,} | {load.errors} | {p50:,.0f} | {p99:,.0f} | {rate:,.0f}"
    print(f"| {name} | {figures} | {early:,} | {late:,} |", flush=True)


def client(port: int, texts: list[str], count: int, number: int, load: Load) -> None:
    """One request after another until the time is over."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    place = number * 7919
    while time.monotonic() < load.until:
        place = (place + count) % (len(texts) - count)
        begun = time.perf_counter()
        if ask(connection, texts[place : place + count]):
            load.seconds.append(time.perf_counter() - begun)
        else:
            load.errors += 1


def ask(connection: http.client.HTTPConnection, texts: list[str]) -> bool:
    """Whether the server gave a vector for each text."""
    body = json.dumps({"input": texts, "encoding_format": "base64"})
    try:
        connection.request("POST", "/v1/embeddings", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        found = answer.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return False
    return answer.status == 200 and found.count(b'"embedding":') == len(texts)


def ask_until_there(port: int, texts: list[str]) -> None:
    """Wait for a server to have loaded its model, and warm it up."""
    until = time.monotonic() + _STARTS_S
    while not ask(http.client.HTTPConnection("127.0.0.1", port, timeout=600), texts):
        if time.monotonic() > until:
            raise SystemExit(f"port {port}: no vectors within {_STARTS_S} s")
        time.sleep(0.2)


def serve_peer(model: str, port: int) -> None:
    """sentence-transformers behind a route, each request on its own in a thread of Starlette's pool."""
    import uvicorn
    from sentence_transformers import SentenceTransformer
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    encoder = SentenceTransformer(str(find_folder(model)), device="cpu")

    async def embeddings(request: Request) -> JSONResponse:
        texts = (await request.json())["input"]
        vectors = await run_in_threadpool(encoder.encode, texts, show_progress_bar=False)
        rows = [base64.b64encode(vector).decode() for vector in vectors]
        return JSONResponse({"data": [{"index": place, "embedding": row} for place, row in enumerate(rows)]})

    routes = [Route("/v1/embeddings", embeddings, methods=["POST"])]
    uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main()
