"""One run on NLI triplets, STS-B and duplicate issues beside three runs on one of them each.

    python benchmarks/mixtures.py --gis DATASET --out FILE [--data FOLDER] [--seeds 0,1,2] [--rows 800]
        [--score 200] [--epochs 1] [--backbone minilm] [--mix JSON] ... [--test]

Each dataset gives `--rows` rows to train on. A run has the defaults of `aoe train` but for the number of
epochs and 128 tokens a text, and no dev data, so that it leaves its last weights. Each model is scored on up
to `--score` rows of dev and of test of all three (Spearman x 100, area under the ROC curve x 100, share of
triplets x 100; see `aoe_defaults.py`). `--mix` holds settings of a mixture, such as
'{"mix.order": "round-robin"}' or '{"datasets.nli.weight": 2}'; `{}` are the defaults. `--gis` is a dataset
that `gis` made. Every run is a line of FILE and is not repeated: stop at any time and start again. Test is
printed with `--test` only: choose on dev first.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from aoe_defaults import TASKS, Task, scored, shuffled
from aoe_quality import run_missing, spread
from peers_aoe.environments import add_flags

import aoe_train

DATASETS = ("nli", "stsb", "gis")
UNTRAINED = "untrained"


def main() -> None:
    """Do the runs that have no line yet, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser)
    parser.add_argument("--gis", type=Path, required=True, help="a dataset that `gis` made, with its splits")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--rows", type=int, default=800, help="rows of each dataset to train on")
    parser.add_argument("--score", type=int, default=200, help="rows of dev and of test to score")
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument(
        "--mix", action="append", default=[], type=json.loads, help="settings of a mixture, as JSON"
    )
    parser.add_argument("--test", action="store_true", help="print the test columns")
    options = parser.parse_args()
    same = {name: getattr(options, name) for name in ("rows", "score", "epochs", "backbone")}
    runs = [
        {"datasets": list(datasets), "mix": mix, "seed": int(seed)} | same
        for seed in options.seeds.split(",")
        for datasets, mix in [
            *(((name,), {}) for name in DATASETS),
            *((DATASETS, mix) for mix in options.mix or [{}]),
        ]
    ]
    wanted = [{"datasets": [], "mix": {}, "seed": 0} | same, *runs]
    tasks = {name: TASKS[name](options) for name in DATASETS}
    found = run_missing(wanted, options.out, lambda run: result(run, tasks))
    report(found, wanted, test=options.test)


def result(run: dict, tasks: dict[str, Task]) -> dict:
    """Train on the run's datasets, where it has any, and score on all."""
    found: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        model, begun = run["backbone"], time.process_time()
        if run["datasets"]:
            done = aoe_train.train(
                {name: shuffled(tasks[name].train)[: run["rows"]] for name in run["datasets"]},
                backbone=model,
                out=f"{folder}/model",
                seed=run["seed"],
                epochs=run["epochs"],
                max_length=128,
                settings=run["mix"],
                progress=False,
            )
            model = done.out
            found |= {"steps": done.steps, "lr": done.record["origin"]["settings"]["optim"]["lr"]}
        found["cpu_s"] = round(time.process_time() - begun, 1)
        encoder = aoe_train.Encoder.load(model, max_length=128)
        for name, task in tasks.items():
            found[f"{name} dev"] = scored(encoder, task.dev[: run["score"]])
            found[f"{name} test"] = scored(encoder, task.test[: run["score"]])
    return found


def report(found: list[dict], wanted: list[dict], *, test: bool) -> None:
    """A row for each way of training: mean and deviation over the seeds."""
    splits = ("dev", "test") if test else ("dev",)
    columns = [*(f"{name} {split}" for split in splits for name in DATASETS), "cpu_s"]
    print(f"| trained on | mix | seeds | {' | '.join(columns)} |\n" + "|---" * (len(columns) + 3) + "|")
    ways = {json.dumps({**run, "seed": 0}): run for run in wanted}
    for run in ways.values():
        runs = [entry for entry in found if {**entry["run"], "seed": 0} == {**run, "seed": 0}]
        cells = [spread([entry[name] for entry in runs]) for name in columns]
        told = " + ".join(run["datasets"]) or UNTRAINED
        mix = json.dumps(run["mix"]) if run["mix"] else ""
        print(f"| {told} | {mix} | {len(runs)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
