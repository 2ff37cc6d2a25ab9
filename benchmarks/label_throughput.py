"""Throughput, CPU time and lost rows of `label generate` and distilabel on the same test server.

    python benchmarks/label_throughput.py [--sentences 800] [--latency-ms 200] [--concurrency 64] [--rounds 3]
        [--faults 0.1] [--distilabel PYTHON]

Both make pairs of the same sentences with `python -m tests.support.llm` in its own process. `label` makes two
calls per sentence, distilabel's GenerateSentencePair one. Wall times are of the whole processes; "asking" is
the time from the first call that the server received to its last answer. The second table repeats this with a
share of the calls failing; each client uses its own retries.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from peers_aoe.environments import build
from runs import argument_parser

PEER = Path(__file__).parent / "peers_label" / "distilabel_pairs.py"


def main() -> None:
    """Run the rounds and print the tables."""
    parser = argument_parser(__doc__)
    parser.add_argument("--sentences", type=int, default=800)
    parser.add_argument("--latency-ms", type=float, default=200)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--faults", type=float, default=0.1)
    parser.add_argument(
        "--distilabel",
        metavar="PYTHON",
        help="a Python that has it; built by pip if absent",
    )
    options = parser.parse_args()
    python = options.distilabel or build("distilabel")
    ideal = options.concurrency / (options.latency_ms / 1000)
    with tempfile.TemporaryDirectory() as folder:
        source = write_sentences(Path(folder) / "sentences.txt", options.sentences)
        for faults in (0.0, options.faults):
            rounds = [
                (
                    ours(source, Path(folder) / f"{faults}-{n}", options, faults),
                    peer(python, source, options, faults),
                )
                for n in range(options.rounds)
            ]
            print(
                f"\n{options.sentences:,} sentences, {faults:.0%} of calls fail; ideal {ideal:.0f} calls/s\n"
            )
            print(
                "| who | calls a sentence | wall s | asking, calls/s | of ideal | CPU ms a call | rows lost |"
            )
            print("|---|---|---|---|---|---|---|")
            for name, found in zip(
                ("label", "distilabel"), zip(*rounds, strict=True), strict=True
            ):
                print(line(name, found, ideal), flush=True)


def line(name: str, found: tuple[dict, ...], ideal: float) -> str:
    """Medians over the rounds."""
    of = {key: median(one[key] for one in found) for key in found[0]}
    rate = of["calls"] / of["asking_s"]
    cells = (
        name,
        f"{of['calls'] / of['sentences']:.2f}",
        f"{of['wall_s']:.1f}",
        f"{rate:.0f}",
        f"{rate / ideal:.0%}",
        f"{1000 * of['cpu_s'] / of['calls']:.2f}",
        f"{of['lost']:.0f} of {of['sentences']:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def ours(source: Path, out: Path, options: argparse.Namespace, faults: float) -> dict:
    """Run `label generate` in its own process."""
    with emulator(options, faults) as base_url:
        config = out.with_suffix(".toml")
        config.write_text(
            f'[llm.llama]\nmodel = "emulated"\nbase_url = "{base_url}"\n'
            f"concurrency = {options.concurrency}\n",
            encoding="utf-8",
        )
        command = [
            sys.executable,
            "-m",
            "llm_labeler",
            "generate",
            "--data",
            str(source),
            "--llm",
            "llama",
        ]
        command += ["--config", str(config), "--out", str(out), "--json", "-q"]
        start = time.perf_counter()
        done, cpu_s = run(command)
        wall_s = time.perf_counter() - start
        answered = json.loads(done.splitlines()[-1])
        stats = counts(base_url)
    lost = answered["dropped"].get("not_answered", 0) + answered["dropped"].get(
        "answer_rejected", 0
    )
    return measured(options, stats, wall_s, cpu_s, lost)


def peer(python: str, source: Path, options: argparse.Namespace, faults: float) -> dict:
    """Run distilabel's pipeline in its own environment; if it fails, every row counts as lost."""
    with emulator(options, faults) as base_url:
        start = time.perf_counter()
        command = [python, str(PEER), str(source), base_url, str(options.concurrency)]
        printed, cpu_s = run(command, may_fail=True)
        wall_s = time.perf_counter() - start
        whole = json.loads(printed.splitlines()[-1])["whole"] if printed else 0
        stats = counts(base_url)
    return measured(options, stats, wall_s, cpu_s, options.sentences - whole)


def measured(
    options: argparse.Namespace, stats: dict, wall_s: float, cpu_s: float, lost: int
) -> dict:
    """The measurements of one run."""
    return {
        "sentences": options.sentences,
        "calls": stats["requests"],
        "asking_s": stats["last_s"] - stats["first_s"] + options.latency_ms / 1000,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "lost": lost,
    }


def run(command: list[str], *, may_fail: bool = False) -> tuple[str, float]:
    """A command's stdout, empty if it failed, and the CPU seconds with its children."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    before = os.times()
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False
    )
    after = os.times()
    if done.returncode and not may_fail:
        raise SystemExit(
            f"{command[0]} ended with {done.returncode}:\n{done.stderr[-3000:]}"
        )
    cpu_s = (
        after.children_user
        + after.children_system
        - before.children_user
        - before.children_system
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no word"]
        print(f"{command[1]} ended with an error: {last[0][:200]}", file=sys.stderr)
        return "", cpu_s
    return done.stdout.strip(), cpu_s


@contextmanager
def emulator(options: argparse.Namespace, faults: float) -> Iterator[str]:
    """Start the server in its own process and yield its base URL."""
    command = [
        sys.executable,
        "-m",
        "tests.support.llm",
        "--latency",
        str(options.latency_ms / 1000),
    ]
    root = Path(__file__).parent.parent
    command += ["--faults", str(faults)]
    server = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()


def counts(base_url: str) -> dict:
    """The counts of the server."""
    with urllib.request.urlopen(re.sub("/v1$", "/stats", base_url)) as answer:  # noqa: S310 - loopback
        return json.load(answer)


def write_sentences(path: Path, number: int) -> Path:
    """Write distinct plain sentences."""
    who = (
        "The nurse",
        "A doctor",
        "My aunt",
        "The child",
        "Every patient",
        "An old man",
        "Her brother",
    )
    what = (
        "takes a pill",
        "drinks cold water",
        "walks slowly",
        "has a fever",
        "sleeps badly",
        "eats fruit",
    )
    lines = [
        f"{who[n % 7]} {what[n // 7 % 6]} on day {n + 1} of the treatment."
        for n in range(number)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
