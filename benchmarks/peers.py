"""The same tracker, crawled by `gis` and by perceval (GrimoireLab) from the same test server in one run.

    python benchmarks/peers.py [--dump FOLDER] [--repo rust-lang/rust]

perceval gets an environment of its own. The server counts the requests, so nobody counts for himself. What is
compared is what it takes to have every issue with its comments (`sweep`, perceval), and to have the threads
that a dataset of duplicates needs (`search`). A GraphQL request costs a point or more of 5,000 an hour, a
REST request one of 5,000 an hour; on a real server each also takes its round trip, not so here.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from gis import ENVIRONMENT, ROOT, RUST, emulator, gis

PERCEVAL = "perceval==1.6.1"


def main() -> None:
    """Read the flags, serve the dump, print a row for each crawler."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dump", type=Path, default=RUST)
    parser.add_argument("--repo", default="rust-lang/rust")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gis-peers-"))
    perceval = install(folder / "venv")
    owner, name = options.repo.split("/")
    shared = ("crawl", "--repos", options.repo, "--quiet")
    crawlers = {
        "gis, sweep": gis(*shared, "--strategy", "sweep", "--work", str(folder / "sweep"), "--api-url"),
        "gis, search": gis(*shared, "--work", str(folder / "search"), "--api-url"),
        "perceval, issues": [
            *(str(perceval), "github", owner, name, "-t", "any", "--category", "issue", "--no-archive"),
            *("--json-line", "-o", str(folder / "perceval.jsonl"), "--enterprise-url"),
        ],
    }
    print("| crawler | requests | of the hour's 5,000 | seconds | requests, ratio |\n" + "|---" * 5 + "|")
    with emulator(options.dump, "--points", "10000000") as url:
        sweep = 0
        for label, command in crawlers.items():
            requests, points, seconds = run([*command, url], url)
            sweep = sweep or requests
            cells = (label, f"{requests:,}", f"{points:,}", f"{seconds:.0f}", f"{requests / sweep:.1f}")
            print(f"| {' | '.join(cells)} |", flush=True)


def install(venv: Path) -> Path:
    """Make an environment with the peer; its command's path."""
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    subprocess.run(
        [str(venv / "bin" / "pip"), "install", "--quiet", PERCEVAL], check=True, capture_output=True
    )
    return venv / "bin" / "perceval"


def run(command: list[str], url: str) -> tuple[int, int, float]:
    """Requests, cost and wall time of a crawl, as the server saw it."""
    before, start = stats(url), time.perf_counter()
    subprocess.run(command, env=ENVIRONMENT, cwd=ROOT, check=True, capture_output=True)
    seconds = time.perf_counter() - start
    after = stats(url)
    requests = after["requests"] - before["requests"]
    # The server prices GraphQL in points; a REST request costs one.
    return requests, (after["points"] - before["points"]) or requests, seconds


def stats(url: str) -> dict[str, int]:
    """What the server has counted so far."""
    with urlopen(f"{url}/stats") as reply:  # noqa: S310 - our own server
        counted: dict[str, int] = json.load(reply)
    return counted


if __name__ == "__main__":
    main()
