"""What `aoe train --purpose group` gains on requests that it was not trained on: `data/sample_requests.csv`.

    python benchmarks/sample_requests.py --out FOLDER [--seeds 0,1,2,3,4]

Trains all-MiniLM-L6-v2 on some of the 600 requests, and compares it with its backbone on others:

- in order: trained on the first 300 requests, evaluated on the others (README)
- random: the same with a random half; a seed for each
- intents: trained on the requests of 15 random intents, evaluated on those of the other 15
- in-sample: trained and evaluated on all 600

Prints the rows of results/sample_requests.csv. Each training is a line of OUT/results.jsonl; the same command
continues a stopped run.
"""

from __future__ import annotations

import csv
import random
import shutil
import sys
from pathlib import Path
from typing import Any

from runs import Ledger, argument_parser

import aoe_train

REQUESTS = Path(__file__).resolve().parents[1] / "data" / "sample_requests.csv"
Rows = list[dict[str, str]]


def main() -> None:
    """Train and evaluate what has no result yet, then print the rows."""
    parser = argument_parser(__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.out)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    drawn = [(name, seed) for name in ("random", "intents") for seed in seeds]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(
        (
            "split",
            "seed",
            "metric",
            "untrained",
            "trained",
            "gain",
            "95 %",
            "p",
            "texts",
        )
    )
    for name, seed in [("in order", 0), *drawn, ("in-sample", 0)]:
        run = {"name": name, "seed": seed}
        entry = ledger.once(run, lambda place: result(place, name, seed))  # noqa: B023 - called at once
        for metric, cells in entry["figures"].items():
            writer.writerow((name, seed, metric, *cells, entry["texts"]))


def result(place: Path, name: str, seed: int) -> dict[str, Any]:
    """Train on some requests, and compare the model with its backbone on others."""
    known, new = split(name, seed)
    place.mkdir(parents=True, exist_ok=True)
    data = place / "new.csv"
    with data.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ("text", "intent"))
        writer.writeheader()
        writer.writerows(new)
    texts = [row["text"] for row in known]
    model = place / "model"
    aoe_train.train(
        texts, backbone="minilm", out=model, purpose="group", progress=False
    )
    columns = {"text": "text", "group": "intent"}
    scores = aoe_train.evaluate(
        model, against="minilm", data=data, columns=columns, progress=False
    )
    (compared,) = (scores.to_dict()[key]["against"] for key in scores.to_dict())
    shutil.rmtree(place)
    return {
        "figures": {name: cells(each) for name, each in compared.items()},
        "texts": len(new),
    }


def split(name: str, seed: int) -> tuple[Rows, Rows]:
    """The requests to train on and those to evaluate on."""
    with REQUESTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if name == "in-sample":
        return rows, rows
    draw = random.Random(seed)  # noqa: S311 - a sample, not a secret
    if name == "intents":
        names = sorted({row["intent"] for row in rows})
        drawn = draw.sample(names, len(names) // 2)
        known = [row for row in rows if row["intent"] in drawn]
        return known, [row for row in rows if row["intent"] not in drawn]
    if name == "random":
        draw.shuffle(rows)
    return rows[:300], rows[300:]


def cells(compared: dict[str, Any]) -> list[str]:
    """Both figures, the gain and its interval, times 100, and the p-value."""
    before, gain = 100 * compared["value"], 100 * compared["difference"]
    low, high = (100 * bound for bound in compared["ci95"])
    figures = [
        f"{before:.2f}",
        f"{before + gain:.2f}",
        f"{gain:+.2f}",
        f"[{low:.2f}, {high:.2f}]",
    ]
    return [*figures, f"{compared['p']:.3f}"]


if __name__ == "__main__":
    main()
