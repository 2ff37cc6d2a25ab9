"""Points, time and memory of building a dataset from the whole rust-lang/rust dump with both strategies.

    python benchmarks/rust_build.py [--strategies search,all] [--out FOLDER]

Prints a Markdown row for each strategy: points, requests, wall time of the crawl, wall time and peak memory
from detection to the dataset, pairs, points per 100 positives.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from gis import RUST, emulator, measured
from runs import argument_parser

HEADER = (
    "| strategy | issues | points | requests | crawl s | crawl MiB | detect to dataset s | its MiB "
    "| positives | negatives | points / 100 positives | audit |\n|" + "---|" * 12
)


def main() -> None:
    """Serve the dump and print a row for each strategy."""
    parser = argument_parser(__doc__)
    parser.add_argument("--strategies", default="search,all")
    parser.add_argument("--out", type=Path, help="keep the datasets here")
    options = parser.parse_args()
    folder = options.out or Path(tempfile.mkdtemp(prefix="gis-rust-"))
    print(HEADER)
    with emulator(RUST) as url:
        for strategy in options.strategies.split(","):
            print(measure(strategy, url, folder / strategy), flush=True)


def measure(strategy: str, url: str, out: Path) -> str:
    """Crawl, build and audit; returns a row of the table."""
    shared = ["--repos", "rust-lang/rust", "--strategy", strategy, "--api-url", url]
    work = str(out.with_name(out.name + ".work"))
    crawl = measured("crawl", *shared, "--work", work)
    build = measured("build", *shared, "--work", work, "--out", str(out), "--fresh")
    audit = measured("audit", str(out), package="pairkit")
    points, positives = (
        int(str(build.result["points"])),
        int(str(build.result["positives"])),
    )
    cells = [
        strategy,
        crawl.result["issues"],
        points,
        build.result["requests"],
        f"{crawl.seconds:.1f}",
        f"{crawl.peak_rss_mb:.0f}",
        f"{build.seconds:.1f}",
        f"{build.peak_rss_mb:.0f}",
        positives,
        build.result["negatives"],
        f"{100 * points / max(1, positives):.1f}",
        "clean" if not audit.result["leaks"] else "LEAKS",
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


if __name__ == "__main__":
    main()
