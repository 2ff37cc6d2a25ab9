"""A small LLaMA as an encoder: effect of prompt, attention direction, adapter rank and objective.

    python benchmarks/decoder_study.py --out FOLDER [--train stsb|nli] [--rows 640] [--score 500]
        [--parts objective,prompt,attention,rank] [--seeds 0,1,2] [--precision bf16] [--lr 3e-4]
        [--data FOLDER]

Trains SmolLM2-135M-Instruct with adapters (alpha = rank, dropout 0.1) and the last token's vector for one
epoch, in batches of 32, on rows of STS-B train or on NLI triplets that the seed draws. Defaults: the papers'
prompt, causal attention, rank 32, preset `angle-paper` with tau 0.2 for cosine and angle. Each setting gets
the same rows in the same order. Prints Spearman x 100 on `--score` fixed rows of STS-B dev and test, before
training (`as it comes`) and after its last step.

Each run is a line of OUT/results.jsonl and is not repeated.
"""

from __future__ import annotations

import random
import shutil
import time
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from machine import instruction_sets, processor
from peers_aoe.environments import add_flags
from peers_aoe.texts import stsb, table
from runs import Ledger, argument_parser, spread

import aoe_train
from aoe_train.data.examples import read_examples
from aoe_train.evaluation.dev import dev_metric

BACKBONE = "as it comes"
PAPERS_PROMPT = "Summarize sentence {text} in one word:"
TAU = ["cosine", "angle"]
PARTS: dict[str, dict[str, dict[str, Any]]] = {
    "prompt": {
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
        "SBERT": {"preset": "sbert-paper"},
        "SimCSE": {"preset": "simcse-paper"},
        "CoSENT": {"preset": "cosent-paper", "tau": ["cosent"]},
        "AnglE": {},
        "AoE": {"preset": "aoe-paper", "tau": ["angle"]},
        "angle alone": {
            "settings": {"objective.weights": {"cosent": 0, "in_batch": 0, "angle": 1}}
        },
        "cosent + in_batch": {
            "settings": {"objective.weights": {"cosent": 1, "in_batch": 1, "angle": 0}}
        },
        "cosent + angle": {
            "settings": {"objective.weights": {"cosent": 1, "in_batch": 0, "angle": 1}}
        },
    },
}


def main() -> None:
    """Do the runs that have no result yet, and print the table."""
    parser = argument_parser(__doc__)
    add_flags(parser)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--train", default="stsb", choices=["stsb", "nli"])
    parser.add_argument("--parts", default="objective,prompt,attention,rank")
    parser.add_argument("--rows", type=int, default=640)
    parser.add_argument("--score", type=int, default=500)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--precision", default="bf16", choices=["fp32", "bf16"])
    parser.add_argument("--lr", type=float, default=3e-4)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.out)
    judged = {
        split: read_examples(drawn(stsb(options.data, split), options.score, seed=0))
        for split in ("dev", "test")
    }
    train = (
        stsb(options.data, "train")
        if options.train == "stsb"
        else triplets(options.data)
    )
    same = {
        name: getattr(options, name)
        for name in ("train", "rows", "score", "lr", "precision")
    }
    for seed in map(int, options.seeds.split(",")):
        rows = drawn(train, options.rows, seed)
        for part in options.parts.split(","):
            for name, change in PARTS[part].items():
                as_it_comes(ledger, change, same, judged)
                run = {"name": f"{part}: {name}", "seed": seed, **same}
                train_here = partial(
                    trained, rows=rows, run=run, change=change, judged=judged
                )
                ledger.once(run, train_here)
    report(ledger)


def drawn(rows: list[dict], count: int, seed: int) -> list[dict]:
    """A random sample of the rows."""
    return random.Random(seed).sample(rows, count)  # noqa: S311 - a sample, not a secret


def triplets(data: Path) -> list[dict]:
    """Anchor, positive and negative of NLI."""
    names = ("anchor", "positive", "negative")
    return [
        {name: row[name] for name in names}
        for row in table(data / "nli" / "nli-triplets.derived.tsv.gz")
    ]


def as_it_comes(ledger: Ledger, change: dict, same: dict, judged: dict) -> dict:
    """The scores of the untrained backbone with this prompt and attention; runs share them."""
    how = {
        "prompt": change.get("prompt", PAPERS_PROMPT),
        "bidirectional": change.get("settings", {}).get("encoder.bidirectional"),
    }
    run = {
        "name": BACKBONE,
        "seed": None,
        **how,
        "score": same["score"],
        "precision": same["precision"],
    }
    return ledger.once(
        run, lambda _: {"figures": score("smollm2", run["precision"], judged, **how)}
    )


def trained(
    place: Path, rows: list[dict], run: dict, change: dict, judged: dict
) -> dict:
    """Train the backbone and score the model."""
    given = {
        "lora.rank": 32,
        "lora.alpha": 32,
        "lora.dropout": 0.1,
        "encoder.pooling": "last",
        "encoder.max_length": 128,
        "batches.strategy": "length",
        "objective.duplicates": "exclude",
        "objective.tau": dict.fromkeys(
            change.get("tau", [] if "preset" in change else TAU), 0.2
        ),
        **change.get("settings", {}),
    }
    begun = time.process_time()
    aoe_train.train(
        rows,
        backbone="smollm2",
        out=place,
        fresh=True,
        progress=False,
        lora=True,
        preset=change.get("preset", "angle-paper"),
        prompts=change.get("prompt", PAPERS_PROMPT),
        lr=run["lr"],
        epochs=1,
        batch_size=32,
        precision=run["precision"],
        seed=run["seed"],
        settings=given,
    )
    seconds = time.process_time() - begun
    figures = score(place, run["precision"], judged)
    shutil.rmtree(place)
    before = {
        "prompt": change.get("prompt", PAPERS_PROMPT),
        "bidirectional": given.get("encoder.bidirectional"),
    }
    return {"figures": figures, "training_cpu_s": seconds, "backbone": before}


def score(
    model: str | Path,
    precision: str,
    judged: dict,
    *,
    prompt: str | None = None,
    bidirectional: bool | None = None,
) -> dict:
    """Spearman x 100 on each set."""
    prompts = (
        {}
        if prompt is None
        else {"prompts": {"sentence": prompt}, "default_prompt_name": "sentence"}
    )
    how = {"precision": precision, "pooling": "last", "bidirectional": bidirectional}
    encoder = aoe_train.Encoder.load(model, **how, **prompts)
    return {
        split: 100 * dev_metric(encoder.encode, rows).value
        for split, rows in judged.items()
    }


def report(ledger: Ledger) -> None:
    """Print a row for each setting, with scores before and after training."""
    entries = ledger.read()
    before = {
        (entry["run"]["prompt"], entry["run"]["bidirectional"]): entry["figures"]
        for entry in entries
        if entry["run"]["name"] == BACKBONE
    }
    runs: dict[tuple[str, str], list[dict]] = {}
    for entry in entries:
        if entry["run"]["name"] != BACKBONE:
            runs.setdefault((entry["run"]["train"], entry["run"]["name"]), []).append(
                entry
            )
    print(f"{processor()}, {instruction_sets()}\n")
    print(
        "| trained on | setting | seeds | dev as it comes | dev | test as it comes | test | CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for (train, name), found in runs.items():
        backbone = before[
            found[0]["backbone"]["prompt"], found[0]["backbone"]["bidirectional"]
        ]
        cells = [
            f"{backbone[split]:.2f} | {spread([entry['figures'][split] for entry in found])}"
            for split in ("dev", "test")
        ]
        seconds = mean(entry["training_cpu_s"] for entry in found)
        print(
            f"| {train} | {name} | {len(found)} | {' | '.join(cells)} | {seconds:.0f} |"
        )


if __name__ == "__main__":
    main()
