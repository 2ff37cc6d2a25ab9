"""In-batch negatives as the paper has them and as angle-emb computes them: Spearman x 100 on STS-B dev.

    python benchmarks/ibn_forms.py --out FOLDER [--rows 640] [--seeds 0,1,2] [--precision bf16]
        [--data FOLDER]

all-MiniLM-L6-v2, one epoch of batches of 32 at learning rate 2e-5, on rows drawn by the seed from STS-B train
and from NLI (SNLI dev and TaxiNLI; entailment 1, contradiction 0, neutral left out). Both forms get the same
rows in the same order. `alone` trains by in-batch negatives only; the others are `angle-paper` (cosine,
ibn and angle, each of weight 1) at the paper's temperature of the angle, which is our default, and at that of
angle-emb. Scores of STS-B are positive from 4 on, as we have it, and in one setting from 1 on, as angle-emb
has it. The precision is that of training and of scoring.

Each run is a line of OUT/results.jsonl, and a run that has its line is not repeated.
"""

from __future__ import annotations

import argparse
import random
import shutil
import time
from pathlib import Path
from statistics import mean

from aoe_quality import spread
from peers_aoe.environments import add_flags
from peers_aoe.texts import stsb, table
from ran_runs import Ledger

import aoe_train
from aoe_train._evaluate.dev import dev_metric
from aoe_train._examples import read_examples

PAPER, ANGLE_EMB = "paper", "angle-emb"
SETTINGS = {
    "alone": {"objective.weights": {"cosine": 0, "ibn": 1, "angle": 0}},
    "preset angle-paper, tau of the angle 1 (paper, ours)": {},
    "preset angle-paper, tau of the angle 0.05 (angle-emb)": {"objective.tau.angle": 0.05},
}
AS_THERE = ", positive from 1 (angle-emb)"  # graded scores at its temperature


def main() -> None:
    """Read the flags, do the runs that have no result yet, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=640)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--precision", default="bf16", choices=["fp32", "bf16"])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.out)
    pools = {"STS-B": stsb(options.data, "train"), "NLI": nli(options.data)}
    dev = read_examples(stsb(options.data, "dev"))
    untrained = aoe_train.Encoder.load("minilm", precision=options.precision)
    print(f"untrained: {100 * dev_metric(untrained.encode, dev).value:.2f}", flush=True)
    for seed in map(int, options.seeds.split(",")):
        for data, name, form, settings in wanted():
            rows = random.Random(seed).sample(pools[data], options.rows)  # noqa: S311 - a sample, not a secret
            run = {"name": f"{data}: {name}, {form}", "seed": seed, "rows": options.rows}
            run["precision"] = options.precision
            ledger.once(run, lambda place: trained(place, rows, dev, run, settings))  # noqa: B023 - called at once
    report(ledger)


def wanted() -> list[tuple[str, str, str, dict]]:
    """Data, setting, form, and what that is as settings of a run."""
    runs = [
        (data, name, form, {**settings, "objective.ibn_form": form})
        for data in ("STS-B", "NLI")
        for name, settings in SETTINGS.items()
        for form in (PAPER, ANGLE_EMB)
    ]
    return runs + [
        (data, name + AS_THERE, form, {**settings, "objective.positive_from": 1})
        for data, name, form, settings in runs
        if data == "STS-B" and "objective.tau.angle" in settings
    ]


def nli(data: Path) -> list[dict]:
    """Entailed and contradicted pairs."""
    labels = {"entailment": 1.0, "contradiction": 0.0}
    found = []
    for name in ("snli-dev", "taxinli-mnli"):
        for row in table(data / "nli" / f"{name}.tsv.gz"):
            if row["label"] in labels:
                pair = {"text1": row["premise"], "text2": row["hypothesis"]}
                found.append({**pair, "label": labels[row["label"]]})
    return found


def trained(place: Path, rows: list[dict], dev: object, run: dict, settings: dict) -> dict:
    """Train once, and score what the folder holds."""
    begun = time.process_time()
    kept = {"optim.lr": 2e-5, "optim.batch_size": 32, **settings}
    options = {"seed": run["seed"], "precision": run["precision"], "settings": kept}
    aoe_train.train(
        rows, backbone="minilm", preset="angle-paper", out=place, progress=False, fresh=True, **options
    )
    encoder = aoe_train.Encoder.load(place, precision=run["precision"])
    score = 100 * dev_metric(encoder.encode, dev).value
    shutil.rmtree(place)
    return {"dev": score, "cpu_s": time.process_time() - begun}


def report(ledger: Ledger) -> None:
    """A row for each setting: both forms, and by how much they differ on the same rows."""
    scores = {(entry["run"]["name"], entry["run"]["seed"]): entry["dev"] for entry in ledger.read()}
    seeds = sorted({seed for _, seed in scores})
    print(
        f"\n| data | setting | {PAPER} | {ANGLE_EMB} | difference on the same rows |\n|---|---|---|---|---|"
    )
    for data, name in dict.fromkeys((data, name) for data, name, _, _ in wanted()):
        pairs = [
            tuple(scores.get((f"{data}: {name}, {form}", seed)) for form in (PAPER, ANGLE_EMB))
            for seed in seeds
        ]
        whole = [pair for pair in pairs if None not in pair]
        if whole:
            paper, other = (list(column) for column in zip(*whole, strict=True))
            gaps = [b - a for a, b in whole]
            cells = (data, name, spread(paper), spread(other), spread(gaps))
            print(f"| {' | '.join(cells)} |")
    spent = [entry["cpu_s"] for entry in ledger.read()]
    print(f"\n{len(seeds)} seeds, {mean(spent):.0f} CPU seconds a run")


if __name__ == "__main__":
    main()
