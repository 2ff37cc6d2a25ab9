"""A server that is killed under load and started again: the same vectors, and how soon.

    python benchmarks/serve_kills.py [--model minilm] [--kills 5] [--clients 64]

So many clients ask for vectors of two texts each, over and over, on a port that stays. Whenever 300 answers
have come, the server gets SIGKILL and is started again. Printed are the seconds until the next 300 answers,
answers, connections that found nobody, and answers that were no vectors or others than before, of which
there should be none.
"""

from __future__ import annotations

import argparse
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

_ENOUGH = 300


@dataclass
class Seen:
    """What clients saw."""

    vectors: dict[int, list] = field(default_factory=dict)
    answers: int = 0
    nobody: int = 0
    wrong: int = 0
    over: bool = False


def main() -> None:
    """Read the flags, kill the server again and again, print a line each time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--clients", type=int, default=64)
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "aoe_train", "serve", "-q", "-m", options.model, "--port", str(port)]
    seen = Seen()
    clients = [
        threading.Thread(target=client, args=(port, number, seen)) for number in range(options.clients)
    ]
    for one in clients:
        one.start()
    try:
        for kill in range(options.kills + 1):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            begun, before = time.monotonic(), seen.answers
            while seen.answers < before + _ENOUGH and process.poll() is None:
                time.sleep(0.05)
            seconds = time.monotonic() - begun
            process.send_signal(signal.SIGKILL)
            process.wait()
            told = f"{seen.answers:,} answers, {seen.nobody:,} found nobody, {seen.wrong} wrong"
            print(f"start {kill + 1}: {seconds:.1f} s; {told}", flush=True)
    finally:
        seen.over = True
    for one in clients:
        one.join()


def client(port: int, number: int, seen: Seen) -> None:
    """Ask until it is over."""
    body = json.dumps({"input": [f"the text of client {number}", f"another of client {number}"]})
    while not seen.over:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            while not seen.over:
                connection.request("POST", "/v1/embeddings", body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                found = json.loads(answer.read())
                vectors = [row["embedding"] for row in found.get("data", [])]
                same = seen.vectors.setdefault(number, vectors) == vectors
                seen.wrong += not (answer.status == 200 and same and len(vectors) == 2)
                seen.answers += 1
        except (OSError, http.client.HTTPException, ValueError):  # it was killed, or is not there yet
            seen.nobody += 1
            time.sleep(0.2)


if __name__ == "__main__":
    main()
