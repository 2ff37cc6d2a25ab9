"""What training on a folder of documents, without labels, gains in search by real queries.

    python benchmarks/retrieval_sets.py --clones FOLDER --out SETS
    python benchmarks/retrieval.py --data SETS --out FOLDER [--sets NAME,…] [--ways "WAY;…"] [--seeds 0,1,2]

A way is a training of the backbone with `--preset domain`; `KEY=VALUE` changes a setting, as in
"texts purpose=group", and ways joined by "+" train one after the other.

- untrained
- pairs: what `pairs extract` makes of the documents, such as a heading and its text
- texts: the texts of the sections
- anchors: the titles, headings and questions of the pairs, as texts without labels

Training never sees a query. Each model indexes the sections (title and text), without a purpose and with
`--purpose search`, and is searched by embeddings, and by embeddings and words. Prints nDCG@10, MRR@10 and
recall@10 (x 100, means of the seeds), and the gain in nDCG@10 over the untrained model in the same index with
its 95 % interval (paired bootstrap over queries). Each result is a line of OUT/results.jsonl; the same
command continues a stopped run.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from machine import instruction_sets, processor
from runs import Ledger, argument_parser

import aoe_train
import pairkit

UNTRAINED = "untrained"
TOP = 10
PURPOSES, RANKINGS = ("none", "search"), ("model", "both")
MEASURES = ("nDCG", "MRR", "recall")
Outcomes = dict[str, list[float]]  # by measure, the outcome of each query


def main() -> None:
    """Train and search what has no result yet, then print the tables."""
    parser = argument_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", help="default: all of --data")
    parser.add_argument("--ways", default=f"{UNTRAINED};pairs;texts;pairs + texts")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--backbone", default="minilm")
    options = parser.parse_args()
    names = (
        options.sets.split(",")
        if options.sets
        else sorted(path.name for path in options.data.iterdir())
    )
    ledger = Ledger(options.out)
    for name in names:
        pairkit.extract(
            options.data / name / "documents",
            out=options.out / "pairs" / name,
            split_sizes=(1, 0, 0),
            progress=False,
        )
        for way in options.ways.split(";"):
            for seed in [0] if way == UNTRAINED else map(int, options.seeds.split(",")):
                run = {
                    "name": way,
                    "set": name,
                    "seed": seed,
                    "backbone": Path(options.backbone).name,
                }
                ledger.once(run, worker(name, way, seed, options))
    print(f"{processor()}, {instruction_sets()}")
    for name in names:
        print("\n" + "\n".join(table_lines(ledger, name)))


def worker(
    name: str, way: str, seed: int, options: argparse.Namespace
) -> Callable[[Path], dict[str, Any]]:
    """The work of one run: train a model in a folder, search with it and remove it."""

    def work(folder: Path) -> dict[str, Any]:
        begun = time.process_time()
        model = (
            options.backbone
            if way == UNTRAINED
            else trained(folder, name, way, seed, options)
        )
        seconds = time.process_time() - begun
        outcomes = searched(model, folder / "index", options.data / name)
        shutil.rmtree(folder)
        return {"cpu_s": seconds, "outcomes": outcomes}

    return work


def trained(
    folder: Path, name: str, way: str, seed: int, options: argparse.Namespace
) -> Path:
    """The model of the last training of a way."""
    pairs = options.out / "pairs" / name
    sources = {
        "pairs": (pairs, None),
        "texts": (options.data / name / "corpus.jsonl", {"text": "text"}),
        "anchors": (pairs, {"text": "anchor"}),
    }
    backbone = options.backbone
    for number, (kind, *changes) in enumerate(map(str.split, way.split("+"))):
        source, columns = sources[kind]
        settings = {"preset": "domain", **dict(change.split("=") for change in changes)}
        out = folder / str(number)
        aoe_train.train(
            source,
            columns=columns,
            backbone=backbone,
            out=out,
            seed=seed,
            max_length=256,
            settings=settings,
            progress=False,
        )
        backbone = out
    return backbone


def searched(model: str | Path, folder: Path, data: Path) -> dict[str, Outcomes]:
    """The outcomes of all queries in each index and ranking."""
    queries = [
        json.loads(line)
        for line in (data / "queries.jsonl").read_text("utf-8").splitlines()
    ]
    grades: dict[str, dict[str, int]] = {}
    with (data / "qrels" / "test.tsv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            grades.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    found: dict[str, Outcomes] = {}
    for purpose in PURPOSES:
        aoe_train.index(
            data / "corpus.jsonl",
            model=model,
            out=folder,
            columns={"title": "title", "body": "text"},
            purpose=purpose,
            cache=False,
            progress=False,
        )
        index = aoe_train.open_index(folder)
        for ranking in RANKINGS:
            outcomes: Outcomes = {measure: [] for measure in MEASURES}
            for query in queries:
                hits = index.search(query["text"], top=TOP, by=ranking)
                figures = judged(
                    [str(hit.row["_id"]) for hit in hits], grades[query["_id"]]
                )
                for measure, figure in zip(MEASURES, figures, strict=True):
                    outcomes[measure].append(figure)
            found[f"{purpose}, {ranking}"] = outcomes
    return found


def judged(hits: list[str], grades: dict[str, int]) -> tuple[float, float, float]:
    """nDCG, MRR and recall of the first results of a query."""
    discounts = 1 / np.log2(np.arange(2, TOP + 2))
    gains = np.array([grades.get(hit, 0) for hit in hits] + [0] * (TOP - len(hits)))
    ideal = np.array((sorted(grades.values(), reverse=True) + [0] * TOP)[:TOP])
    ndcg = float(gains @ discounts / (ideal @ discounts))
    relevant = np.flatnonzero(gains)
    reciprocal = float(1 / (relevant[0] + 1)) if len(relevant) else 0.0
    return ndcg, reciprocal, len(relevant) / len(grades)


def table_lines(ledger: Ledger, name: str) -> list[str]:
    """A Markdown table of a set: each way, index and ranking."""
    entries = [entry for entry in ledger.read() if entry["run"]["set"] == name]
    ways = dict.fromkeys(entry["run"]["name"] for entry in entries)
    base = {
        key: np.array(value["nDCG"]) for key, value in entries[0]["outcomes"].items()
    }
    count = len(next(iter(base.values())))
    lines = [
        f"| {name}, {count} queries | index, ranking | seeds | nDCG@10 | gain | MRR@10 | recall@10 | CPU s |"
    ]
    lines.append("|---" * 8 + "|")
    for way in ways:
        runs = [entry for entry in entries if entry["run"]["name"] == way]
        seconds = np.mean([run["cpu_s"] for run in runs])
        for index, untrained in base.items():
            means = {
                measure: np.mean(
                    [run["outcomes"][index][measure] for run in runs], axis=0
                )
                for measure in MEASURES
            }
            ndcg, reciprocal, recall = (100 * each.mean() for each in means.values())
            gain = "" if way == UNTRAINED else interval(means["nDCG"] - untrained)
            figures = (
                f"{ndcg:.2f} | {gain} | {reciprocal:.2f} | {recall:.2f} | {seconds:.0f}"
            )
            lines.append(f"| {way} | {index} | {len(runs)} | {figures} |")
    return lines


def interval(differences: np.ndarray) -> str:
    """Mean difference x 100 with its 95 % bootstrap interval."""
    draws = np.random.default_rng(0).integers(
        len(differences), size=(10_000, len(differences))
    )
    low, high = 100 * np.quantile(differences[draws].mean(axis=1), [0.025, 0.975])
    return f"{100 * differences.mean():+.2f} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
