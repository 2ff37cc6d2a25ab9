"""Do mined negatives find more duplicates? Recall of the canonical issue among all older issues.

    gis pair --work rust.work --out rust --split 0.5,0.1,0.4
    python benchmarks/mined_negatives.py --gis rust --work rust.work --out FOLDER
        [--seeds 0,1,2] [--precision bf16] [--max-length 128] [--epochs 2] [--only WAY]

all-MiniLM-L6-v2 on the duplicates of rust-lang/rust that `gis` finds. Every issue of the crawl is rendered by
`gis render`. For each pair of the test split the younger issue is the query and the older one is to be
found among all issues that are older than the query; other known members of their cluster are left out of the
ranking. Trained are the pairs of the train split alone, and with negatives that `aoe mine` finds among
the texts of that split. All else is the default of `aoe train`. Intervals are bootstrapped over queries.

Each run is a line of OUT/results.jsonl, and a run that has its line is not repeated.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
import polars as pl
from aoe_quality import spread
from machine import processor
from ran_runs import Ledger

import aoe_train
import gis_builder

UNTRAINED, PAIRS = "untrained", "pairs alone"
MINED = {
    "1 mined by the model": {"by": "model", "negatives": 1, "rank_range": "10,60"},
    "5 mined by the model": {"by": "model", "negatives": 5, "rank_range": "10,60"},
    "5 mined by BM25": {"by": "bm25", "negatives": 5, "rank_range": "10,60"},
    "5 mined by both": {"by": "both", "negatives": 5, "rank_range": "10,60"},
    "5 mined by both, the nearest": {"by": "both", "negatives": 5, "rank_range": "0,50"},
}
DEPTHS = (1, 5, 10, 20)


@dataclass(frozen=True)
class Tracker:
    """Issues in order of time, and pairs of them."""

    texts: list[str]
    queries: list[int]
    targets: list[int]
    hidden: list[list[int]]

    @classmethod
    def read(cls, gis: Path, issues: Path) -> Tracker:
        """Take all issues from a table of `gis render`, and the pairs from the dataset's test split."""
        ordered = pl.read_parquet(issues).sort("created_at", "repo", "number")
        place = {key: number for number, key in enumerate(ordered.select("repo", "number").iter_rows())}
        positives = pl.read_parquet(gis / "data" / "test-*.parquet").filter(label=1)
        sides = [
            [place[repo, number] for repo, number in positives.select("repo", name).iter_rows()]
            for name in ("number1", "number2")
        ]
        clusters = positives["cluster"].to_list()
        members: dict[str, set[int]] = {}
        for cluster, *pair in zip(clusters, *sides, strict=True):
            members.setdefault(cluster, set()).update(pair)
        pairs = [(max(pair), min(pair)) for pair in zip(*sides, strict=True)]
        return cls(
            ordered["text"].to_list(),
            [query for query, _ in pairs],
            [target for _, target in pairs],
            [sorted(members[cluster] - set(pair)) for cluster, pair in zip(clusters, pairs, strict=True)],
        )

    def ranks(self, vectors: np.ndarray) -> np.ndarray:
        """How many older issues are nearer to each query than its target is, from 0 on."""
        found = []
        for query, target, hidden in zip(self.queries, self.targets, self.hidden, strict=True):
            scores = vectors[:query] @ vectors[query]
            scores[[number for number in hidden if number < query]] = -np.inf
            found.append(int((scores > scores[target]).sum()))
        return np.array(found)


def main() -> None:
    """Read the flags, do the runs that have no result yet, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gis", type=Path, required=True, help="a dataset of `gis pair`")
    parser.add_argument("--work", type=Path, required=True, help="the crawl that it was made from")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--precision", default="bf16", choices=["fp32", "bf16"])
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--only", action="append", choices=MINED, help="a way to mine; repeatable")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    issues = gis_builder.render(options.work, options.out / "issues.parquet", progress=False).out
    ledger, tracker = Ledger(options.out), Tracker.read(options.gis, issues)
    mined = {name: mine(options, name) for name in options.only or MINED}
    data = {PAIRS: options.gis / "positive", **mined}
    for seed in map(int, options.seeds.split(",")):
        for name in (UNTRAINED, *data):
            run = {"name": name, "seed": 0 if name == UNTRAINED else seed}
            run |= {key: getattr(options, key) for key in ("precision", "max_length", "epochs")}
            ledger.once(run, lambda place: figures(place, data.get(name), run, tracker))  # noqa: B023 - called at once
    report(ledger, tracker)


def mine(options: argparse.Namespace, name: str) -> Path:
    """The train split with negatives, made once."""
    how = dict(MINED[name])
    model = None if how["by"] == "bm25" else "minilm"
    out: Path = options.out / "mined" / f"{name.replace(' ', '-').replace(',', '')}.parquet"
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        aoe_train.mine(
            options.gis,
            out=out,
            model=model,
            split="train",
            precision=options.precision,
            progress=False,
            **how,
        )
    return out


def figures(place: Path, data: Path | None, run: dict, tracker: Tracker) -> dict:
    """Train, unless told otherwise, and rank."""
    begun = time.process_time()
    model: str | Path = "minilm"
    if data is not None:
        how = {key: run[key] for key in ("seed", "precision", "max_length", "epochs")}
        aoe_train.train(data, backbone="minilm", out=place, fresh=True, progress=False, **how)
        model = place
    spent = time.process_time() - begun
    encoder = aoe_train.Encoder.load(model, precision=run["precision"], max_length=run["max_length"])
    ranks = tracker.ranks(encoder.encode(tracker.texts, normalize=True))
    if data is not None:
        shutil.rmtree(place)
    return {"ranks": ranks.tolist(), "training_cpu_s": spent}


def report(ledger: Ledger, tracker: Tracker) -> None:
    """Recall of each way over the seeds, and what it gains, with an interval over queries."""
    runs: dict[str, list[np.ndarray]] = {}
    seconds: dict[str, list[float]] = {}
    for entry in ledger.read():
        runs.setdefault(entry["run"]["name"], []).append(np.array(entry["ranks"]))
        seconds.setdefault(entry["run"]["name"], []).append(entry["training_cpu_s"])
    print(f"{len(tracker.queries):,} queries, {len(tracker.texts):,} issues; {processor()}\n")
    print("| trained on |" + "".join(f" R@{depth} |" for depth in DEPTHS) + " MRR | R@10 gained | CPU s |")
    print("|---|" + "---|" * (len(DEPTHS) + 3))
    for name, ranks in runs.items():
        cells = [spread([100 * float((run < depth).mean()) for run in ranks]) for depth in DEPTHS]
        cells.append(spread([100 * float((1 / (1 + run)).mean()) for run in ranks]))
        cells.append("" if name == UNTRAINED else interval(ranks, runs[UNTRAINED]))
        print(f"| {name} | {' | '.join(cells)} | {mean(seconds[name]):.0f} |")


def interval(ranks: Sequence[np.ndarray], before: Sequence[np.ndarray]) -> str:
    """The gain of recall at 10 with the middle 95 % of it over queries drawn again."""
    gained = np.mean([run < 10 for run in ranks], axis=0) - np.mean([run < 10 for run in before], axis=0)
    drawn = np.random.default_rng(0).integers(len(gained), size=(10_000, len(gained)))
    low, high = np.percentile(100 * gained[drawn].mean(axis=1), [2.5, 97.5])
    return f"{100 * gained.mean():+.1f} [{low:+.1f}, {high:+.1f}]"


if __name__ == "__main__":
    main()
