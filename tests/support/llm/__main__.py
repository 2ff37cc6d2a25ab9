"""Run the test server until Ctrl-C: `python -m tests.support.llm --port 8000 --models a,b --faults 0.3`."""

import argparse
import signal
import threading

from tests.support.llm import Faults, Options, serve


def main():
    """Serve until a signal."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.llm")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--models", default="emulated", help="names, with commas")
    parser.add_argument(
        "--latency", type=float, default=0.0, help="seconds before each answer"
    )
    parser.add_argument(
        "--faults", type=float, default=0.0, help="share of the calls that fail"
    )
    given = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    options = Options(tuple(given.models.split(",")), latency_s=given.latency)
    with serve(options, Faults(given.faults), port=given.port) as server:
        print(server.base_url, flush=True)
        ended.wait()


main()
