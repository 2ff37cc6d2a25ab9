"""How often a list of older issues would have been right, in the past of three trackers.

    gis crawl --repos rust-lang/rust --work rust.work --strategy sweep; gis detect --work rust.work
    gis pair --work rust.work --out rust
    python benchmarks/backtest.py --gis rust --work rust.work --bugs dup-bugs --out FOLDER [--only TRACKER]

`aoe search --every --before created_at` and `gis backtest` on rust-lang/rust, and on the pairs of
Eclipse and Firefox, whose reports have no times: their numbers are taken for the order, and as there are no
other reports, every second one repeats another. Rankings are
BM25, all-MiniLM-L6-v2, it trained on rust's pairs of the earlier half (by time), and each with BM25.

`dup-bugs` has bugzilla-duplicate-pairs.sigmajahan.jsonl.gz. What is there in FOLDER is not made again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
from machine import processor

import aoe_train
import gis_builder

RUST, ECLIPSE, FIREFOX = "rust", "Eclipse", "Firefox"
RANKINGS = {  # which index, and how it is searched
    "BM25": ("MiniLM", "words"),
    "MiniLM": ("MiniLM", "model"),
    "MiniLM with BM25": ("MiniLM", "both"),
    "trained on rust's past": ("trained", "model"),
    "trained, with BM25": ("trained", "both"),
}


def main() -> None:
    """Read the flags, make what is not there, print a table of each tracker."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gis", type=Path, required=True, help="a dataset of `gis pair`")
    parser.add_argument("--work", type=Path, required=True, help="the crawl that it was made from")
    parser.add_argument("--bugs", type=Path, required=True, help="the folder of others' pairs")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", choices=[RUST, ECLIPSE, FIREFOX])
    options = parser.parse_args()
    print(processor())
    for name in options.only or [RUST, ECLIPSE, FIREFOX]:
        home: Path = options.out / name
        home.mkdir(parents=True, exist_ok=True)
        work = options.work if name == RUST else imported(options.bugs, name, home)
        found = {row: tried(options, home, work, *how) for row, how in RANKINGS.items()}
        report(name, found)


def tried(options: argparse.Namespace, home: Path, work: Path, model: str, by: str) -> Any:
    """The backtest of one ranking of a tracker."""
    index, hits = home / model, home / f"{model}-{by}.parquet"
    if not hits.exists():
        if not index.exists():
            _index(
                home / "issues.parquet",
                work,
                str(trained(options)) if model == "trained" else "minilm",
                index,
            )
        begun = time.process_time()
        aoe_train.search_every(index, before="created_at", by=by, progress=False).write(hits)
        print(f"{hits.name}: {time.process_time() - begun:.0f} s of CPU time", flush=True)
    return gis_builder.backtest(hits, work, since=middle(home))


def middle(home: Path) -> str:
    """When the later half of a tracker's issues begins."""
    times = pl.read_parquet(home / "issues.parquet")["created_at"].sort()
    return str(times[len(times) // 2])


def _index(issues: Path, work: Path, model: str, out: Path) -> None:
    if not issues.exists():
        gis_builder.render(work, issues, progress=False)
    begun = time.process_time()
    aoe_train.index(issues, model=model, out=out, progress=False)
    print(f"{out}: {time.process_time() - begun:.0f} s of CPU time", flush=True)


def trained(options: argparse.Namespace) -> Path:
    """MiniLM trained on the pairs both of whose issues are of the earlier half of rust's."""
    place: Path = options.out / "model"
    if not (place / "aoe.json").exists():
        issues = options.out / RUST / "issues.parquet"
        if not issues.exists():
            gis_builder.render(options.work, issues, progress=False)
        cut = middle(issues.parent)
        pairs = pl.read_parquet(options.gis / "data" / "*.parquet").filter(
            pl.col("label") == 1, pl.col("created_at1") < cut, pl.col("created_at2") < cut
        )
        print(f"{pairs.height} pairs before {cut}", flush=True)
        begun = time.process_time()
        aoe_train.train(
            pairs.select(anchor="text1", positive="text2"),
            backbone="minilm",
            out=place,
            epochs=2,
            max_length=128,
            precision="bf16",
            progress=False,
        )
        print(f"trained in {time.process_time() - begun:.0f} s of CPU time", flush=True)
    return place


def imported(bugs: Path, name: str, home: Path) -> Path:
    """A crawl's folder of a tracker of Bugzilla, each report a minute after the one before it."""
    work, repo = home / "work", f"bugzilla/{name}"
    if not work.exists():
        with gzip.open(
            bugs / "bugzilla-duplicate-pairs.sigmajahan.jsonl.gz", "rt", encoding="utf-8"
        ) as lines:
            pairs = [row for row in map(json.loads, lines) if row["system"] == name]
        folder = home / "dump"
        folder.mkdir(exist_ok=True)
        (folder / "repo.json").write_text(json.dumps({"full_name": repo}), "utf-8")
        for stem, rows in (("issues", _issues(repo, pairs)), ("events", _marks(repo, pairs))):
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / f"{stem}.jsonl").write_text(text, "utf-8")
        gis_builder.import_tracker(folder, work, progress=False)
        gis_builder.detect(work, progress=False)
    return work


def _issues(repo: str, pairs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    texts = {
        int(row[number]): (row[f"title{side}"], row[f"body{side}"])
        for row in pairs
        for side, number in (("1", "bug_id"), ("2", "dup_id"))
    }
    closed = {int(row["bug_id"]) for row in pairs}
    start, end = datetime(2000, 1, 1, tzinfo=UTC), "2020-01-01T00:00:00Z"
    for place, (number, (title, body)) in enumerate(sorted(texts.items())):
        at = f"{start + timedelta(minutes=place):%Y-%m-%dT%H:%M:%SZ}"
        yield {
            "repository_url": f"https://api.github.com/repos/{repo}",
            "number": number,
            "title": title or "",
            "body": body or "",
            "state": "closed" if number in closed else "open",
            "closed_at": end if number in closed else None,
            "created_at": at,
            "updated_at": end,
        }


def _marks(repo: str, pairs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in pairs:
        url = f"https://api.github.com/repos/{repo}/issues/{row['bug_id']}"
        common = {"issue_url": url, "created_at": "2020-01-01T00:00:00Z", "actor": {"login": "bugzilla"}}
        canonical = f"{repo}#{row['dup_id']}"
        yield {**common, "event": "marked_as_duplicate", "canonical": canonical}
        yield {**common, "event": "closed", "state_reason": "duplicate"}


def report(name: str, found: dict[str, Any]) -> None:
    """R@k of each ranking, on the later half."""
    one = next(iter(found.values()))
    print(
        f"\n## {name}: {one.issues:,} issues of the later half, {one.repeats:,} of them repeat an older one\n"
    )
    print("| ranked by | R@1 | R@5 | R@20 |\n|---|---|---|---|")
    for row, done in found.items():
        print(f"| {row} | {' | '.join(_share(figure) for figure in done.recall.values())} |")


def _share(figure: Any) -> str:
    low, high = figure.interval
    return f"{100 * figure.value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


if __name__ == "__main__":
    main()
