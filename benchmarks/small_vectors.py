"""Matryoshka training compared with plain training: Spearman x 100 at each vector size and precision.

    python benchmarks/small_vectors.py --out FOLDER [--rows 1280] [--seeds 0,1,2] [--precision fp32]
        [--dims 384,256,128,64,32] [--quantize float32,int8,binary] [--layers 6,4,2] [--task STS-B]
        [--data FOLDER]

Trains all-MiniLM-L6-v2 for one epoch in batches of 32 on rows of STS-B train that the seed draws, with the
preset `angle-paper`, learning rate 5e-5 and tau 0.2 for cosine and angle. Both methods get the same rows in
the same order; `trained with dims` sets `objective.dims` to all sizes with weight 1. `--layers` also scores
the first layers of each model and adds a run of 2D Matryoshka, which trains all layers at all sizes. Scores
are means over the tasks of `--task` (repeatable; default: all of STS).

Each run is a line of OUT/results.jsonl and is not repeated. CPU seconds of training are printed, too.
"""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from statistics import mean
from typing import Any

from peers_aoe.environments import add_flags
from peers_aoe.texts import stsb
from runs import Ledger, argument_parser, spread

import aoe_train

SETTINGS = {
    "preset": "angle-paper",  # does not depend on the rows
    "batches.strategy": "length",
    "objective.duplicates": "exclude",
    "objective.tau.cosent": 0.2,
    "objective.tau.angle": 0.2,
    "optim.lr": 5e-5,
    "optim.batch_size": 32,
    "optim.epochs": 1,
}
UNTRAINED = "untrained"
# Arguments of each method besides the settings; None is replaced by `--dims`.
METHODS: dict[str, dict[str, Any]] = {
    "trained": {},
    "trained with dims": {"dims": None},
}
DEEP_METHODS: dict[str, dict[str, Any]] = {
    "2D Matryoshka": {
        "dims": None,
        "layers": "all",
        "settings": {"objective.layer_weights": "equal", "objective.align": 1},
    },
}


def main() -> None:
    """Do the runs that have no result yet, and print the table."""
    parser = argument_parser(__doc__)
    add_flags(parser)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=1280)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--dims", default="384,256,128,64,32")
    parser.add_argument("--quantize", default="float32,int8,binary")
    parser.add_argument(
        "--layers", help="also score the first layers, and add 2D Matryoshka"
    )
    parser.add_argument("--task", action="append", default=[])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.out)
    train = stsb(options.data, "train")
    names = (UNTRAINED, *METHODS, *(DEEP_METHODS if options.layers else ()))
    for seed in map(int, options.seeds.split(",")):
        rows = random.Random(seed).sample(train, options.rows)  # noqa: S311 - a sample, not a secret
        for name in names:
            trains = name != UNTRAINED
            run = {
                "name": name,
                "seed": seed if trains else 0,
                "rows": options.rows if trains else 0,
            }
            run |= {
                key: getattr(options, key)
                for key in ("precision", "dims", "quantize", "layers", "task")
            }
            ledger.once(run, lambda place: figures(place, rows, run, options.data))  # noqa: B023 - called at once
    report(ledger, names)


def figures(place: Path, rows: list[dict], run: dict, data: Path) -> dict:
    """Train, unless the run is `untrained`, and score the vectors at each size."""
    begun = time.process_time()
    model: str | Path = "minilm"
    if run["name"] != UNTRAINED:
        arguments = dict((METHODS | DEEP_METHODS)[run["name"]])
        if "dims" in arguments:
            arguments["dims"] = run["dims"]
        arguments["settings"] = SETTINGS | arguments.get("settings", {})
        arguments |= {"seed": run["seed"], "precision": run["precision"]}
        aoe_train.train(
            rows, backbone="minilm", out=place, fresh=True, progress=False, **arguments
        )
        model = place
    spent = time.process_time() - begun
    found = aoe_train.evaluate(
        model,
        data_dir=data,
        tasks=run["task"],
        layers=run["layers"],
        dim=run["dims"],
        quantize=run["quantize"],
        precision=run["precision"],
        resamples=0,
        cache=False,
        progress=False,
    ).to_dict()
    shutil.rmtree(place, ignore_errors=True)
    scores = [
        {
            **{key: one.get(key) for key in ("layers", "dim", "quantize", "bytes")},
            "spearman": 100 * mean(task["spearman"] for task in one["tasks"].values()),
        }
        for one in found["sizes"]
    ]
    return {"scores": scores, "cpu_s": spent}


def report(ledger: Ledger, names: tuple[str, ...]) -> None:
    """Print a row for each number of layers, size and precision."""
    entries = ledger.read()
    found: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for entry in entries:
        for one in entry["scores"]:
            size = tuple(one[key] for key in ("layers", "dim", "quantize", "bytes"))
            found.setdefault(size, {}).setdefault(entry["run"]["name"], []).append(
                one["spearman"]
            )
    titles = ("layers", "dim", "numbers", "bytes", *names)
    print(f"| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    for (layers, *size), scores in found.items():
        cells = [spread(scores[name]) if name in scores else "–" for name in names]
        print(f"| {' | '.join([str(layers or 'all'), *map(str, size), *cells])} |")
    for name in names[1:]:
        spent = [entry["cpu_s"] for entry in entries if entry["run"]["name"] == name]
        if spent:
            print(
                f"{name}: {mean(spent):.0f} CPU seconds of training, {len(spent)} seeds"
            )


if __name__ == "__main__":
    main()
