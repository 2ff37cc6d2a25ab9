"""Requests and API cost of crawling a tracker with `gis` and with perceval (GrimoireLab).

    python benchmarks/peers.py [--dump FOLDER] [--repo rust-lang/rust]

Both crawl the same test server, which counts the requests; perceval runs in its own environment. `all` and
perceval fetch every issue with its comments, `search` the threads that a dataset of duplicates needs. A
GraphQL request costs at least a point of 5,000 per hour, a REST request one of 5,000 per hour. The test
server has no network latency.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from gis import ENVIRONMENT, ROOT, RUST, emulator, gis
from runs import argument_parser

PERCEVAL = "perceval==1.6.1"


def main() -> None:
    """Serve the dump and print a row for each crawler."""
    parser = argument_parser(__doc__)
    parser.add_argument("--dump", type=Path, default=RUST)
    parser.add_argument("--repo", default="rust-lang/rust")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gis-peers-"))
    perceval = install(folder / "venv")
    owner, name = options.repo.split("/")
    shared = ("crawl", "--repos", options.repo, "--quiet")
    crawlers = {
        "gis, sweep": gis(
            *shared, "--strategy", "all", "--work", str(folder / "sweep"), "--api-url"
        ),
        "gis, search": gis(*shared, "--work", str(folder / "search"), "--api-url"),
        "perceval, issues": [
            *(
                str(perceval),
                "github",
                owner,
                name,
                "-t",
                "any",
                "--category",
                "issue",
                "--no-archive",
            ),
            *("--json-line", "-o", str(folder / "perceval.jsonl"), "--enterprise-url"),
        ],
    }
    print(
        "| crawler | requests | of the hour's 5,000 | seconds | requests, ratio |\n"
        + "|---" * 5
        + "|"
    )
    with emulator(
        options.dump, "--points", "10000000", server="benchmarks.github_rest"
    ) as url:
        sweep = 0
        for label, command in crawlers.items():
            requests, points, seconds = run([*command, url], url)
            sweep = sweep or requests
            cells = (
                label,
                f"{requests:,}",
                f"{points:,}",
                f"{seconds:.0f}",
                f"{requests / sweep:.1f}",
            )
            print(f"| {' | '.join(cells)} |", flush=True)


def install(venv: Path) -> Path:
    """Make an environment with perceval, and return the path of its command."""
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    subprocess.run(
        [str(venv / "bin" / "pip"), "install", "--quiet", PERCEVAL],
        check=True,
        capture_output=True,
    )
    return venv / "bin" / "perceval"


def run(command: list[str], url: str) -> tuple[int, int, float]:
    """Requests and cost of a crawl, counted by the server, and its wall time."""
    before, start = stats(url), time.perf_counter()
    subprocess.run(command, env=ENVIRONMENT, cwd=ROOT, check=True, capture_output=True)
    seconds = time.perf_counter() - start
    after = stats(url)
    requests = after["requests"] - before["requests"]
    # The server prices GraphQL in points; a REST request costs one.
    return requests, (after["points"] - before["points"]) or requests, seconds


def stats(url: str) -> dict[str, int]:
    """The counts of the server."""
    with urlopen(f"{url}/stats") as reply:  # noqa: S310 - our own server
        counted: dict[str, int] = json.load(reply)
    return counted


if __name__ == "__main__":
    main()
