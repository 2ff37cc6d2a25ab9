"""AUC x 100 after training on a few hundred binary pairs, by the part of the run whose weights are averaged.

    python benchmarks/small_pairs.py --out FOLDER [--sets mrpc,qqp,bugs] [--rows 300,600] [--seeds 2,3]
        [--who ours,sentence-transformers] [--test] [--sentence-transformers PYTHON] [--data FOLDER]

all-MiniLM-L6-v2 is trained for three epochs: by `aoe train` with its defaults and several `optim.average`,
and by sentence-transformers with OnlineContrastiveLoss. The pairs of MRPC and QQP were judged by people. Those
of Bugzilla are titles of reports that are marked as duplicates; their negatives are similar titles (BM25).
Each run is a line of OUT/results.jsonl and is not repeated. Test scores are printed only with --test: choose
on dev.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from peers_aoe.environments import add_flags, minilm, pythons, run
from peers_aoe.texts import table, write
from runs import Ledger, argument_parser, spread

from pairkit.similarity.bm25 import Bm25

ST = "sentence-transformers"
AVERAGES = (1.0, 0.5)
TRAINED = {"backbone": "minilm", "epochs": 3.0, "precision": "bf16"}
PEER = {
    "loss": "online-contrastive",
    "epochs": 3,
    "batch_size": 16,
    "lr": 5e-5,
    "warmup": 0.1,
    "max_length": 128,
    "precision": "bf16",
}
HELD_OUT = 1_000  # pairs of dev, and as many of test
NEAREST = 10  # titles by BM25, of which one makes a negative

Rows = list[dict[str, Any]]


def main() -> None:
    """Do the runs that have no result yet, and print the table."""
    parser = argument_parser(__doc__)
    add_flags(parser, ST)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", default="mrpc,qqp,bugs")
    parser.add_argument("--rows", default="300,600")
    parser.add_argument("--seeds", default="2,3")
    parser.add_argument("--who", default=f"ours,{ST}")
    parser.add_argument("--test", action="store_true", help="print the test columns")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.out)
    peers = [ST] if ST in options.who.split(",") else []
    python = pythons(options, *peers)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    print("| set | rows | who | AUC, dev |" + (" AUC, test |" if options.test else ""))
    for name in options.sets.split(","):
        for count in map(int, options.rows.split(",")):
            runs = {who: [] for who in (*AVERAGES, *peers)}
            for seed in seeds:
                for who, results in runs.items():
                    results.append(
                        result(ledger, python, options.data, name, count, seed, who)
                    )
            for who, results in runs.items():
                label = who if who == ST else f"aoe, last {who:.0%} averaged"
                sets = ["dev", "test"] if options.test else ["dev"]
                scores = [
                    spread([each["auc"][split] for each in results]) for split in sets
                ]
                print(
                    f"| {name} | {count} | {label} | {' | '.join(scores)} |", flush=True
                )


def result(
    ledger: Ledger,
    python: dict[str, str],
    data: Path,
    name: str,
    count: int,
    seed: int,
    who: float | str,
) -> dict[str, Any]:
    """The AUC of a model trained on `count` pairs."""

    def train(_: Path) -> dict[str, Any]:
        splits = SETS[name](data, seed)
        with tempfile.TemporaryDirectory() as folder:
            scored = {
                split: str(write(splits[split], Path(folder) / f"{split}-scored.jsonl"))
                for split in ("dev", "test")
            }
            train_file = write(splits["train"][:count], Path(folder) / "rows.jsonl")
            if who == ST:
                job = {
                    **PEER,
                    "model": str(minilm()),
                    "rows": str(train_file),
                    "seed": seed,
                }
                done = run(python[ST], "train_st.py", {**job, "score": scored})
            else:
                settings = {"optim.average": who}
                job = {
                    **TRAINED,
                    "data": str(train_file),
                    "seed": seed,
                    "settings": settings,
                }
                done = run(
                    python["ours"], "train_ours.py", {"train": job, "score": scored}
                )
        last = done["epochs"][-1]
        return {"auc": {split: auc(last[split], splits[split]) for split in scored}}

    return ledger.once({"name": f"{name}, {count} rows, {who}", "seed": seed}, train)


def auc(spearman: float, rows: Rows) -> float:
    """AUC x 100 from Spearman x 100, of cosines without ties and labels 0 and 1."""
    share = float(np.mean([row["label"] for row in rows]))
    return 50 + spearman / math.sqrt(12 * share * (1 - share))


def judged(
    data: Path, train: str, test: str, columns: tuple[str, str], seed: int
) -> dict[str, Rows]:
    """Judged pairs; dev is drawn from the rows of the train file."""
    left, right = columns

    def rows(file: str) -> Rows:
        found = [
            {"text1": row[left], "text2": row[right], "label": int(row["label"])}
            for row in table(data / "pairs" / file)
        ]
        return shuffled(found, seed)

    pool = rows(train)
    return {
        "dev": pool[:HELD_OUT],
        "train": pool[HELD_OUT:],
        "test": rows(test)[:HELD_OUT],
    }


def mrpc(data: Path, seed: int) -> dict[str, Rows]:
    """Microsoft Research Paraphrase Corpus."""
    return judged(
        data, "mrpc-train.tsv", "mrpc-test.tsv", ("sentence1", "sentence2"), seed
    )


def qqp(data: Path, seed: int) -> dict[str, Rows]:
    """Quora Question Pairs."""
    return judged(
        data, "qqp-dev.tsv.gz", "qqp-test.tsv.gz", ("question1", "question2"), seed
    )


def bugs(data: Path, seed: int) -> dict[str, Rows]:
    """Titles of Bugzilla's marked duplicates; each split has its own titles."""
    path = data / "dup-bugs" / "bugzilla-duplicate-pairs.sigmajahan.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        reports = [json.loads(line) for line in lines]
    pairs = shuffled([(each["title1"], each["title2"]) for each in reports], seed)
    splits = {"dev": pairs[:600], "test": pairs[600:1_200], "train": pairs[1_200:]}
    return {name: with_negatives(split, seed) for name, split in splits.items()}


def with_negatives(pairs: list[tuple[str, str]], seed: int) -> Rows:
    """The pairs, and as many of a title with a similar one of another pair."""
    titles = [second for _, second in pairs]
    index = Bm25(titles)
    draw = random.Random(seed)  # noqa: S311 - a sample, not a secret
    rows = []
    for place, (first, second) in enumerate(pairs):
        order = np.argsort(-index.scores(first), kind="stable")
        others = [int(other) for other in order[: NEAREST + 1] if other != place]
        negative = titles[draw.choice(others)]
        rows.append({"text1": first, "text2": second, "label": 1})
        if negative != second:
            rows.append({"text1": first, "text2": negative, "label": 0})
    return shuffled(rows, seed)


def shuffled(rows: list[Any], seed: int) -> list[Any]:
    """The rows in an order that the seed draws."""
    return random.Random(seed).sample(rows, len(rows))  # noqa: S311 - a sample, not a secret


SETS = {"mrpc": mrpc, "qqp": qqp, "bugs": bugs}


if __name__ == "__main__":
    main()
