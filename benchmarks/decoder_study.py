"""What makes a small LLaMA a good encoder: prompt, direction of attention, rank of the adapters, objective.

    python benchmarks/decoder_study.py --out FOLDER [--parts prompt,attention,rank,objective] [--rows 640]
        [--seeds 0,1,2] [--precision bf16] [--lr 3e-4] [--data FOLDER]

SmolLM2-135M-Instruct with adapters (alpha = rank, dropout 0.1) and the last token's vector, one epoch of
batches of 32 on rows of STS-B train drawn by the seed. Where a part says nothing else: the papers' prompt,
causal attention, rank 32, the preset `angle-paper` with tau 0.2 of cosine and angle. Every setting gets the
same rows in the same order. Spearman x 100 on STS-B dev and test, before training (`as it comes`) and after;
the weights are those of the last step, so dev chooses nothing but what a reader chooses by it.

Each run is a line of OUT/results.jsonl, and a run that has its line is not repeated.
"""

from __future__ import annotations

import argparse
import random
import shutil
import time
from pathlib import Path
from statistics import mean
from typing import Any

from aoe_quality import spread
from machine import instruction_sets, processor
from peers_aoe.environments import add_flags
from peers_aoe.texts import stsb
from ran_runs import Ledger

import aoe_train
from aoe_train._evaluate.dev import dev_metric
from aoe_train._examples import read_examples

THEIRS = "Summarize sentence {text} in one word:"
TAU = {"cosine": 0.2, "angle": 0.2}
PARTS: dict[str, dict[str, dict[str, Any]]] = {
    "prompt": {
        "the papers'": {},
        "none": {"prompt": None},
        "PromptEOL": {"prompt": 'This sentence : "{text}" means in one word:"'},
        "a word before": {"prompt": "sentence: "},
    },
    "attention": {"bidirectional": {"settings": {"encoder.bidirectional": True}}},
    "rank": {
        "rank 4": {"settings": {"lora.rank": 4, "lora.alpha": 4}},
        "rank 128": {"settings": {"lora.rank": 128, "lora.alpha": 128}},
    },
    "objective": {
        "cosine alone": {"preset": "cosent-paper"},
        "angle, reference, alone": {"settings": {"objective.weights": {"cosine": 0, "ibn": 0, "angle": 1}}},
        "cosine + ibn": {"settings": {"objective.weights": {"cosine": 1, "ibn": 1, "angle": 0}}},
        "cosine + angle": {"settings": {"objective.weights": {"cosine": 1, "ibn": 0, "angle": 1}}},
    },
}


def main() -> None:
    """Read the flags, do the runs that have no result yet, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--rows", type=int, default=640)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--precision", default="bf16", choices=["fp32", "bf16"])
    parser.add_argument("--lr", type=float, default=3e-4)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.out)
    judged = {split: read_examples(stsb(options.data, split)) for split in ("dev", "test")}
    train = stsb(options.data, "train")
    for seed in map(int, options.seeds.split(",")):
        rows = random.Random(seed).sample(train, options.rows)  # noqa: S311 - a sample, not a secret
        for part in options.parts.split(","):
            for name, change in PARTS[part].items():
                run = {"name": f"{part}: {name}", "seed": seed, "rows": options.rows, "lr": options.lr}
                run["precision"] = options.precision
                ledger.once(run, lambda place: figures(place, rows, run, change, judged))  # noqa: B023 - called at once
    report(ledger)


def figures(place: Path, rows: list[dict], run: dict, change: dict, judged: dict) -> dict:
    """Score the backbone, train it, and score what comes of it."""
    prompt = change.get("prompt", THEIRS)
    how = {"preset": change.get("preset", "angle-paper"), "prompts": prompt, "lr": run["lr"], "epochs": 1}
    given = {
        "lora.rank": 32,
        "lora.alpha": 32,
        "lora.dropout": 0.1,
        "encoder.pooling": "last",
        "encoder.max_length": 128,
        "objective.tau": {key: TAU[key] for key in (["cosine"] if "preset" in change else TAU)},
        **change.get("settings", {}),
    }
    begun = time.process_time()
    before = score("smollm2", run, judged, prompt=prompt, bidirectional=given.get("encoder.bidirectional"))
    between = time.process_time()
    aoe_train.train(
        rows,
        backbone="smollm2",
        out=place,
        fresh=True,
        progress=False,
        lora=True,
        batch_size=32,
        precision=run["precision"],
        seed=run["seed"],
        settings=given,
        **how,
    )
    spent = time.process_time() - between
    after = score(place, run, judged)
    shutil.rmtree(place)
    return {"before": before, "after": after, "training_cpu_s": spent, "scoring_cpu_s": between - begun}


def score(
    model: str | Path,
    run: dict,
    judged: dict,
    *,
    prompt: str | None = None,
    bidirectional: bool | None = None,
) -> dict:
    """Spearman x 100 on each set."""
    prompts = {} if prompt is None else {"prompts": {"sentence": prompt}, "default_prompt_name": "sentence"}
    how = {"precision": run["precision"], "pooling": "last", "bidirectional": bidirectional}
    encoder = aoe_train.Encoder.load(model, **how, **prompts)
    return {split: 100 * dev_metric(encoder.encode, rows).value for split, rows in judged.items()}


def report(ledger: Ledger) -> None:
    """A table of every setting, before training and after it."""
    runs: dict[str, list[dict]] = {}
    for entry in ledger.read():
        runs.setdefault(entry["run"]["name"], []).append(entry)
    print(f"{processor()}, {instruction_sets()}\n")
    print("| setting | seeds | dev as it comes | dev | test as it comes | test | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for name, entries in runs.items():
        cells = [
            spread([entry[when][split] for entry in entries])
            for split in ("dev", "test")
            for when in ("before", "after")
        ]
        seconds = mean(entry["training_cpu_s"] for entry in entries)
        print(f"| {name} | {len(entries)} | {' | '.join(cells)} | {seconds:.0f} |")


if __name__ == "__main__":
    main()
