"""Spearman x 100 on STS-B after training with `aoe train`, sentence-transformers and angle-emb.

    python benchmarks/aoe_quality.py --out FOLDER [--seeds 0,1,2,3,4]
        [--settings NAMES] [--who NAMES] [--precision bf16] [--test] [--tuned JSON]
        [--sentence-transformers PYTHON] [--angle-emb PYTHON] [--data FOLDER]

Trains all-MiniLM-L6-v2 on STS-B train: peers as they document it, `aoe` with its preset. `aoe` keeps the
weights that are best on dev; peers are shown after the last epoch, which they keep, and after the epoch that
is best on dev.

Each saved model is loaded and encodes with its own library in fp32; the same code scores all of them. Each
run is a line of OUT/results.jsonl and is not repeated. Test scores are printed only with --test: choose on
dev.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

from peers_aoe.environments import add_flags, minilm, pythons, run
from peers_aoe.texts import stsb, write
from runs import Ledger, argument_parser, spread

ST, ANGLE = "sentence-transformers", "angle-emb"
SCRIPTS = {"ours": "train_ours.py", ST: "train_st.py", ANGLE: "train_angle.py"}
# The settings of `aoe train` that were best on dev.
TUNED = {
    "preset": "cosent-paper",
    "lr": 5e-5,
    "epochs": 4,
    "batch_size": 16,
    "settings": {
        "objective.margin": 0.5,
        "optim.average": 1,
        "optim.scheduler": "constant_with_warmup",
        "batches.strategy": "length",
    },
}


@dataclass(frozen=True)
class Setting:
    """A way to train with one library; `work` has the differences from `EQUAL`."""

    name: str
    who: str
    work: dict = field(default_factory=dict)


def weights(cosine: float, in_batch: float, angle: float) -> dict:
    """angle-emb's loss for scored pairs; its `tau` multiplies the scores."""
    parts = {"cosine_w": cosine, "ibn_w": in_batch, "angle_w": angle}
    return parts | dict.fromkeys(("cosine_tau", "ibn_tau", "angle_tau"), 20)


EQUAL = {
    "epochs": 1,
    "batch_size": 32,
    "lr": 2e-5,
    "warmup": 0,
    "max_length": 128,
    "filter_duplicate": False,
}
# sentence-transformers' STS example; 5e-5 is its trainer's default, and no text here has 128 tokens.
EXAMPLE = {"epochs": 4, "batch_size": 16, "lr": 5e-5, "warmup": 0.1}
# angle-emb's README on STS-B; duplicates within a batch are dropped by default.
README = {"epochs": 5, "filter_duplicate": True}
SETTINGS = (
    Setting("STS example, cosine similarity", ST, {**EXAMPLE, "loss": "cosine"}),
    Setting("STS example, CoSENT", ST, {**EXAMPLE, "loss": "cosent"}),
    Setting("STS example, AnglE", ST, {**EXAMPLE, "loss": "angle"}),
    Setting("README", ANGLE, {**README, "loss": weights(1, 1, 0.02)}),
    Setting("training guide", ANGLE, {**README, "loss": weights(0, 1, 0.02)}),
    Setting(
        "README, scores 0-1", ANGLE, {**README, "loss": weights(1, 1, 0.02), "top": 1}
    ),
    Setting("tuned", "ours"),
)


def main() -> None:
    """Do the runs that have no result yet, and print the table."""
    parser = argument_parser(__doc__)
    add_flags(parser, ST, ANGLE)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument(
        "--settings", default="", help="names to run, separated by |; all by default"
    )
    parser.add_argument("--who", default=f"ours,{ST},{ANGLE}")
    parser.add_argument(
        "--precision",
        default="fp32",
        choices=["fp32", "bf16"],
        help="of training, for all",
    )
    parser.add_argument("--tuned", type=json.loads, default=TUNED, help="our arguments")
    parser.add_argument("--test", action="store_true", help="print the test columns")
    parser.add_argument(
        "--limit", type=int, help="number of training rows, to try the script"
    )
    options = parser.parse_args()
    settings = [
        setting
        for setting in SETTINGS
        if setting.who in options.who.split(",")
        and (not options.settings or setting.name in options.settings.split("|"))
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.out)
    python = pythons(
        options,
        *(peer for peer in (ST, ANGLE) if any(one.who == peer for one in settings)),
    )
    with tempfile.TemporaryDirectory() as folder:
        files = write_sets(options.data, Path(folder), options.limit)
        for seed in map(int, options.seeds.split(",")):
            for setting in settings:
                work = job(setting, seed, options, files)
                ledger.once(
                    identity(setting, seed, options),
                    lambda _: run(python[setting.who], SCRIPTS[setting.who], work),  # noqa: B023 - called at once
                )
    report(ledger.read(), settings, options)


def write_sets(data: Path, folder: Path, limit: int | None) -> dict[str, Path]:
    """Write STS-B as JSON lines: train with scores from 0 to 5 and from 0 to 1, dev and test."""
    train = stsb(data, "train")[:limit]
    to_one = [{**row, "label": row["label"] / 5} for row in train]
    return {
        "train": write(train, folder / "stsb-train.jsonl"),
        "to one": write(to_one, folder / "to-one-train.jsonl"),
        "dev": write(stsb(data, "dev"), folder / "stsb-dev.jsonl"),
        "test": write(stsb(data, "test"), folder / "stsb-test.jsonl"),
    }


def identity(setting: Setting, seed: int, options: argparse.Namespace) -> dict:
    """Everything that a run depends on; it is repeated if something changes."""
    work = {"train": options.tuned} if setting.who == "ours" else setting.work
    return {
        "name": setting.name,
        "who": setting.who,
        "seed": seed,
        "precision": options.precision,
        "limit": options.limit,
        "work": work,
    }


def job(
    setting: Setting, seed: int, options: argparse.Namespace, files: dict[str, Path]
) -> dict:
    """The job for the library's script."""
    scored = {name: str(files[name]) for name in ("dev", "test")}
    if setting.who != "ours":
        work = {**EQUAL, **setting.work, "seed": seed, "precision": options.precision}
        rows = files["to one" if work.get("top") == 1 else "train"]
        return {**work, "model": str(minilm()), "rows": str(rows), "score": scored}
    fixed = {
        "data": str(files["train"]),
        "backbone": "minilm",
        "seed": seed,
        "precision": options.precision,
    }
    own = {"dev_data": str(files["dev"]), **options.tuned}
    return {"train": {**fixed, **own}, "score": scored}


def report(
    entries: list[dict], settings: list[Setting], options: argparse.Namespace
) -> None:
    """Print a row for each setting: mean and deviation over the seeds."""
    sets = ["dev", "test"] if options.test else ["dev"]
    columns = [
        f"{name}, {when}"
        for when in ("last epoch", "best epoch on dev")
        for name in sets
    ]
    titles = ["setting", "who", "epochs", "seeds", *columns, "seconds"]
    print(f"\n{options.precision}\n")
    print(f"| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    for setting in settings:
        keys = [
            identity(setting, int(seed), options) for seed in options.seeds.split(",")
        ]
        runs = [entry for entry in entries if entry["run"] in keys]
        if not runs:
            continue
        last = [entry["epochs"][-1] for entry in runs]
        best = [max(entry["epochs"], key=lambda epoch: epoch["dev"]) for entry in runs]
        cells = (
            setting.name,
            setting.who,
            "see --tuned"
            if setting.who == "ours"
            else str({**EQUAL, **setting.work}["epochs"]),
            str(len(runs)),
            *(
                spread([epoch[name] for epoch in epochs])
                for epochs in (last, best)
                for name in sets
            ),
            f"{mean(entry['wall_s'] for entry in runs):.0f}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
