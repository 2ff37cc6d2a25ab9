"""Cost of the call engine of `label`: calls per second, CPU time per call, and memory by number of questions.

    python benchmarks/label_dispatch.py [--asks 1000,10000,100000] [--concurrency 64]

A provider in the same process replies after 200 ms, or at once. Store, budget, rate limits and both commits
of each call are real. Each line is measured in its own process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from runs import argument_parser

from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.dispatch.budget import Budget, Spending
from llm_labeler.dispatch.workers import ask_all
from llm_labeler.records import Ask, LlmReply, Prices, Text, TokenUsage
from llm_labeler.runs.label_folder import RunRecord
from llm_labeler.runs.prompts import load_template
from llm_labeler.runs.questions_and_votes import GenerationTask
from llm_labeler.settings import BreakerSettings, BudgetSettings, LabelSettings


class Waiting:
    """A provider that replies after a delay."""

    name = model = "waiting"
    parameters, parameters_text = "none", "{}"
    prices = Prices(1.0, 1.0)
    rpm = tpm = None
    attempts, leaves_machine = 1, False

    def __init__(self, latency_s: float, concurrency: int) -> None:
        self.latency_s, self.concurrency = latency_s, concurrency

    def max_usage(self, _: Ask) -> TokenUsage:
        """An upper bound of the usage."""
        return TokenUsage(400, 512)

    async def check(self) -> None:
        """Always available."""

    async def reply(self, ask: Ask) -> LlmReply:
        """Three meaningless sentences."""
        await asyncio.sleep(self.latency_s)
        return LlmReply(
            f"1. {ask.text}, one\n2. {ask.text}, two\n3. {ask.text}, three", usage=TokenUsage(60, 40)
        )

    async def close(self) -> None:
        """Nothing to close."""


def main() -> None:
    """Print a row for each number of questions."""
    parser = argument_parser(__doc__)
    parser.add_argument("--asks", default="1000,10000,100000")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asyncio.run(measure(json.loads(options.one)))))
        return
    numbers = [int(number) for number in options.asks.split(",")]
    jobs = [{"asks": 3200, "latency_s": 0.2}, *({"asks": number, "latency_s": 0.0} for number in numbers)]
    print("| questions | reply after | calls/s | own CPU ms a call | peak MiB |\n|---|---|---|---|---|")
    for job in jobs:
        command = [sys.executable, __file__, "--one", json.dumps({**job, "concurrency": options.concurrency})]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        cells = (
            f"{job['asks']:,}",
            f"{1000 * job['latency_s']:.0f} ms",
            f"{job['asks'] / found['wall_s']:,.0f}",
            f"{1000 * found['cpu_s'] / job['asks']:.3f}",
            f"{found['peak_mib']:.0f}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


async def measure(job: dict) -> dict:
    """Ask the questions and measure."""
    provider = Waiting(job["latency_s"], job["concurrency"])
    with (
        tempfile.TemporaryDirectory() as folder,
        AnswerStore.open(Path(folder) / "s.sqlite", create=True) as store,
    ):
        cpu, wall = time.process_time(), time.perf_counter()
        outcome = await ask_all(
            {"waiting": asks(job["asks"])},
            {"waiting": provider},
            store,
            Budget(BudgetSettings(max_cost=1e6), Spending()),
            breaker=BreakerSettings(),
            progress=lambda _: None,
        )
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    if outcome.done != job["asks"]:
        raise SystemExit(f"{outcome.done} of {job['asks']} answered")
    return {
        "cpu_s": cpu,
        "wall_s": wall,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def asks(number: int) -> Iterator[Ask]:
    """Yield the questions."""
    texts = (Text.of(f"Patient {place} takes a pill in the morning.", place) for place in range(number))
    llm = {"waiting": {"kind": "openai", "model": "none"}}
    settings = LabelSettings.model_validate(
        {"llms": "waiting", "llm": llm, "prompt": {"polarities": "positive"}}
    )
    record = RunRecord(settings, load_template(settings.prompt), {"waiting": ("none", "{}")}, "", "", {})
    return GenerationTask(record).asks(texts, "waiting")


if __name__ == "__main__":
    main()
