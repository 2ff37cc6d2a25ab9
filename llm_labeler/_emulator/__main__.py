"""`python -m llm_labeler._emulator`: the emulated server as a process, until it is interrupted."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys

from llm_labeler._emulator.faults import FAULT_KINDS, PASSING, Faults
from llm_labeler._emulator.options import Options
from llm_labeler._emulator.server import listen
from llm_labeler._emulator.service import Service
from pairkit.errors import ConfigError


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; the first line of stdout is the base URL."""
    flags = _parser().parse_args(arguments)
    options = Options(
        models=tuple(flags.models.split(",")),
        api_key=os.environ.get(flags.key_env) if flags.key_env else None,
        latency_s=flags.latency_ms / 1000,
        usage=flags.usage,
        batch_s=flags.batch_s,
    )
    faults = Faults(
        flags.faults, tuple(flags.fault_kinds.split(",")), flags.seed, flags.first, flags.retry_after_s
    )
    if unknown := set(faults.kinds) - set(FAULT_KINDS):
        sys.stderr.write(f"error: no fault is named {sorted(unknown)[0]!r}; {', '.join(FAULT_KINDS)} are\n")
        return 2
    try:
        asyncio.run(_serve(Service(options, faults), flags.host, flags.port))
    except ConfigError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


async def _serve(service: Service, host: str, port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await listen(service, host, port, stop, lambda chosen: _say(f"http://{host}:{chosen}/v1"))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m llm_labeler._emulator",
        description="A local server of the OpenAI protocol without a model: its answers prove plumbing only.",
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--models", default="emulated", help="names, separated by commas")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--faults", type=float, default=0.0, help="share of the calls that go wrong")
    parser.add_argument("--fault-kinds", default=",".join(PASSING), help=", ".join(FAULT_KINDS))
    parser.add_argument("--first", type=int, help="only so many first attempts of a question may go wrong")
    parser.add_argument("--retry-after-s", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--usage", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--key-env", help="the environment variable with the only key that is taken")
    parser.add_argument("--batch-s", type=float, default=0.0, help="seconds that a batch takes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
