"""Bring the whole rust-lang/rust dump in by every way, and count the threads whose verdicts differ.

    python benchmarks/same_verdicts.py

Prints a Markdown row for each way: threads, duplicates among them, and how many of its threads have another
verdict, target, reason or confidence than after `gis import`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import polars as pl
from gis import RUST, emulator, measured

WAYS = {
    "sweep": ("--strategy", "sweep"),
    "search": ("--strategy", "search"),
    "search, update": ("--strategy", "search", "--update"),
}


def main() -> None:
    """Import, crawl in all ways, print the table."""
    folder = Path(tempfile.mkdtemp(prefix="gis-same-"))
    measured("import", str(RUST), "--work", str(folder / "import"))
    base = verdicts(folder / "import")
    print("| way | threads | duplicates | with another verdict |\n|---|---|---|---|")
    print(row("import", base, base))
    with emulator(RUST) as url:
        for way, flags in WAYS.items():
            work = folder / way.replace(", ", "-")
            measured("crawl", "--repos", "rust-lang/rust", "--work", str(work), "--api-url", url, *flags)
            print(row(way, verdicts(work), base), flush=True)


def verdicts(work: Path) -> dict[int, tuple[Any, ...]]:
    """Detect, and read every verdict without its evidence."""
    measured("detect", "--work", str(work))
    frame = pl.read_parquet(work / "verdicts.parquet").filter(pl.col("repo") == "rust-lang/rust")
    return {number: tuple(map(str, rest)) for number, *rest in frame.drop("repo", "evidence").iter_rows()}


def row(way: str, found: dict[int, tuple[Any, ...]], base: dict[int, tuple[Any, ...]]) -> str:
    """One way's counts."""
    duplicates = sum(verdict == "duplicate" for verdict, *_ in found.values())
    differing = sum(base.get(number) != values for number, values in found.items())
    return f"| {way} | {len(found):,} | {duplicates:,} | {differing} |"


if __name__ == "__main__":
    main()
