"""What should a ranking of graded pairs compare, and at which temperature: cosines, angles, or neither?

    python benchmarks/measures.py --out FOLDER [--backbones minilm,smollm2] [--rows 640] [--score 500]
        [--taus 0.05,0.1,0.2,0.4] [--seeds 0,1,2,3,4] [--data FOLDER]

A model learns from rows of STS-B train, one epoch of batches of 32, by one of: the ranking loss (CoSENT) of
the cosine, of the angle as published code has it, of the true angle (phase), of the geodesic 1 - arccos/pi,
of cosine and published angle together; or Pearson's correlation of cosines and labels, alone and beside the
cosine's ranking. all-MiniLM-L6-v2 learns whole with lr 5e-5, SmolLM2-135M-Instruct with adapters of rank 32,
lr 3e-4 and the prompt of the papers (`decoder_study.py`).

First the first seed tries every temperature; the one that is best on dev is each measure's. Then all seeds
train with it, and `--score` rows of test, drawn from all its genres, tell (Spearman x 100), with the
difference from the cosine's ranking on the same seeds.

Each run is a line of OUT/results.jsonl, and a run that has its line is not repeated.
"""

from __future__ import annotations

import argparse
import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from aoe_quality import spread
from decoder_study import THEIRS, drawn
from machine import instruction_sets, processor
from peers_aoe.environments import add_flags
from peers_aoe.texts import stsb
from ran_runs import Ledger

import aoe_train
from aoe_train.data.examples import read_examples
from aoe_train.evaluation.dev import dev_metric
from aoe_train.objectives.pearson import pearson_loss
from aoe_train.objectives.ranking import ranking_loss
from aoe_train.objectives.similarity import angle_phase, angle_reference, cosine


def geodesic(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """1 - arccos(cosine)/pi, kept off the ends, where its slope has no bound."""
    return 1 - torch.arccos(cosine(first, second).clamp(-1 + 1e-6, 1 - 1e-6)) / math.pi


RANKED: dict[str, list[Callable]] = {
    "cosine": [cosine],
    "angle, published": [angle_reference],
    "angle, true": [angle_phase],
    "geodesic": [geodesic],
    "cosine + angle, published": [cosine, angle_reference],
    "cosine + Pearson": [cosine],
}
PEARSON = {"cosine + Pearson", "Pearson"}
MEASURES = [*RANKED, "Pearson"]
HOW: dict[str, dict[str, Any]] = {
    "minilm": {"lr": 5e-5, "settings": {"encoder.max_length": 128}},
    "smollm2": {
        "lr": 3e-4,
        "lora": True,
        "prompts": THEIRS,
        "precision": "bf16",
        "settings": {
            "lora.rank": 32,
            "lora.alpha": 32,
            "lora.dropout": 0.1,
            "encoder.pooling": "last",
            "encoder.max_length": 128,
        },
    },
}


def main() -> None:
    """Read the flags, do the runs that have no result yet, print a table for each backbone."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--backbones", default=",".join(HOW))
    parser.add_argument("--measures", default=";".join(MEASURES), help="with semicolons between them")
    parser.add_argument("--taus", default="0.05,0.1,0.2,0.4")
    parser.add_argument("--rows", type=int, default=640)
    parser.add_argument("--score", type=int, default=500)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.out)
    train = stsb(options.data, "train")
    judged = {
        split: read_examples(drawn(stsb(options.data, split), options.score, seed=0))
        for split in ("dev", "test")
    }
    taus, seeds = [float(tau) for tau in options.taus.split(",")], [int(s) for s in options.seeds.split(",")]
    print(f"{processor()}, {instruction_sets()}\n")
    for backbone in options.backbones.split(","):

        def once(measure: str, tau: float | None, seed: int, backbone: str = backbone) -> dict:
            run = {"name": measure, "tau": tau, "seed": seed, "backbone": backbone}
            run |= {"rows": options.rows, "score": options.score}
            rows = drawn(train, options.rows, seed)
            return ledger.once(run, lambda place: trained(place, rows, run, judged))

        before = {"name": "as it comes", "backbone": backbone, "seed": 0, "score": options.score}
        figures = ledger.once(before, lambda _: {"figures": score(backbone, backbone, judged)})["figures"]  # noqa: B023
        runs = {}
        for measure in options.measures.split(";"):
            tried = [once(measure, tau, seeds[0]) for tau in (taus if measure in RANKED else [None])]
            best = max(tried, key=lambda entry: entry["figures"]["dev"])["run"]["tau"]
            runs[measure] = [once(measure, best, seed) for seed in seeds]
        report(backbone, figures, runs)


def trained(place: Path, rows: list[dict], run: dict, judged: dict) -> dict:
    """Train the backbone, and score what comes of it."""
    begun = time.process_time()
    aoe_train.train(
        rows,
        backbone=run["backbone"],
        out=place,
        fresh=True,
        progress=False,
        preset="cosent",
        epochs=1,
        batch_size=32,
        seed=run["seed"],
        objective=loss(run["name"], run["tau"]),
        **HOW[run["backbone"]],
    )
    seconds = time.process_time() - begun
    figures = score(place, run["backbone"], judged)
    shutil.rmtree(place)
    return {"figures": figures, "training_cpu_s": seconds}


def loss(name: str, tau: float | None) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Of vectors (row, column, dim) and labels, by its name in the table."""

    def ranked(vectors: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        first, second = vectors.unbind(1)
        found = vectors.new_zeros(())
        for measure in RANKED.get(name, []):
            found = found + ranking_loss(measure(first, second), labels, 1 / tau)
        return found + pearson_loss(cosine(first, second), labels) if name in PEARSON else found

    return ranked


def score(model: str | Path, backbone: str, judged: dict) -> dict:
    """Spearman x 100 on each set."""
    how: dict[str, Any] = {"precision": HOW[backbone].get("precision", "fp32")}
    if "prompts" in HOW[backbone]:
        prompt = {"prompts": {"sentence": THEIRS}, "default_prompt_name": "sentence", "pooling": "last"}
        how |= prompt if model == backbone else {}
    encoder = aoe_train.Encoder.load(model, **how)
    return {split: 100 * dev_metric(encoder.encode, rows).value for split, rows in judged.items()}


def report(backbone: str, before: dict, runs: dict[str, list[dict]]) -> None:
    """A table of the measures, each with the temperature that dev chose."""
    print(f"| {backbone} | tau | dev | test | beside the cosine | CPU s |\n|---|---|---|---|---|---|")
    print(f"| as it comes | | {before['dev']:.2f} | {before['test']:.2f} | | |")
    cosines = [entry["figures"]["test"] for entry in runs.get("cosine", [])]
    for measure, found in runs.items():
        dev, test = ([entry["figures"][split] for entry in found] for split in ("dev", "test"))
        gains = [own - other for own, other in zip(test, cosines, strict=False)]
        beside = spread(gains) if gains and measure != "cosine" else ""
        seconds = mean(entry["training_cpu_s"] for entry in found)
        tau = found[0]["run"]["tau"]
        print(f"| {measure} | {tau or ''} | {spread(dev)} | {spread(test)} | {beside} | {seconds:.0f} |")
    print(flush=True)


if __name__ == "__main__":
    main()
