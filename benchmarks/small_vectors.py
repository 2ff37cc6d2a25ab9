"""Matryoshka training beside plain training: Spearman x 100 at each size and precision of the vectors.

    python benchmarks/small_vectors.py --out FOLDER [--rows 1280] [--seeds 0,1,2] [--precision fp32]
        [--dims 384,256,128,64,32] [--quantize float32,int8,binary] [--layers 6,4,2] [--task STS-B]
        [--data FOLDER]

all-MiniLM-L6-v2, one epoch of batches of 32 on rows of STS-B train drawn by the seed, by the preset
`angle-paper` at learning rate 5e-5 with tau 0.2 of cosine and angle. Both ways get the same rows in the same
order; `with dims` has all sizes as `objective.dims`, each of weight 1. With `--layers` each model is also
judged by its first so many layers, and another run trains all of them, at all sizes: 2D Matryoshka, as the
how-to of small vectors sets it. Judged are the tasks named with `--task` (repeatable), by
default all of STS; more than one give their mean. `untrained` is the model as it comes.

Each run is a line of OUT/results.jsonl, and a run that has its line is not repeated. The CPU seconds of
training, which are printed too, say what further sizes cost.
"""

from __future__ import annotations

import argparse
import random
import shutil
import time
from pathlib import Path
from statistics import mean
from typing import Any

from peers_aoe.environments import add_flags
from peers_aoe.texts import stsb
from runs import Ledger, spread

import aoe_train

SETTINGS = {
    "preset": "angle-paper",  # leaves nothing to be chosen by the rows
    "objective.tau.cosine": 0.2,
    "objective.tau.angle": 0.2,
    "optim.lr": 5e-5,
    "optim.batch_size": 32,
    "optim.epochs": 1,
}
UNTRAINED = "untrained"
# What each way of training is told beside the settings; None stands for the sizes of `--dims`.
WAYS: dict[str, dict[str, Any]] = {"trained": {}, "trained with dims": {"dims": None}}
DEEP_WAYS: dict[str, dict[str, Any]] = {
    "2D Matryoshka": {
        "dims": None,
        "layers": "all",
        "settings": {"objective.layer_weights": "equal", "objective.align": 1},
    },
}


def main() -> None:
    """Read the flags, do the runs that have no result yet, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=1280)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--dims", default="384,256,128,64,32")
    parser.add_argument("--quantize", default="float32,int8,binary")
    parser.add_argument("--layers", help="judge the first so many, too, and train ways that teach them")
    parser.add_argument("--task", action="append", default=[])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.out)
    train = stsb(options.data, "train")
    names = (UNTRAINED, *WAYS, *(DEEP_WAYS if options.layers else ()))
    for seed in map(int, options.seeds.split(",")):
        rows = random.Random(seed).sample(train, options.rows)  # noqa: S311 - a sample, not a secret
        for name in names:
            trains = name != UNTRAINED
            run = {"name": name, "seed": seed if trains else 0, "rows": options.rows if trains else 0}
            run |= {key: getattr(options, key) for key in ("precision", "dims", "quantize", "layers", "task")}
            ledger.once(run, lambda place: figures(place, rows, run, options.data))  # noqa: B023 - called at once
    report(ledger, names)


def figures(place: Path, rows: list[dict], run: dict, data: Path) -> dict:
    """Train, unless told otherwise, and score the vectors at each size."""
    begun = time.process_time()
    model: str | Path = "minilm"
    if run["name"] != UNTRAINED:
        way = dict((WAYS | DEEP_WAYS)[run["name"]])
        if "dims" in way:
            way["dims"] = run["dims"]
        way["settings"] = SETTINGS | way.get("settings", {})
        how = {"seed": run["seed"], "precision": run["precision"], **way}
        aoe_train.train(rows, backbone="minilm", out=place, fresh=True, progress=False, **how)
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
    """A row for each depth, size and precision."""
    entries = ledger.read()
    found: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for entry in entries:
        for one in entry["scores"]:
            size = tuple(one[key] for key in ("layers", "dim", "quantize", "bytes"))
            found.setdefault(size, {}).setdefault(entry["run"]["name"], []).append(one["spearman"])
    titles = ("layers", "dim", "numbers", "bytes", *names)
    print(f"| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    for (layers, *size), scores in found.items():
        cells = [spread(scores[name]) if name in scores else "–" for name in names]
        print(f"| {' | '.join([str(layers or 'all'), *map(str, size), *cells])} |")
    for name in names[1:]:
        spent = [entry["cpu_s"] for entry in entries if entry["run"]["name"] == name]
        if spent:
            print(f"{name}: {mean(spent):.0f} CPU seconds of training, {len(spent)} seeds")


if __name__ == "__main__":
    main()
