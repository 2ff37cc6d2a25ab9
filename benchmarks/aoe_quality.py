"""STS-B after training with `aoe train`, sentence-transformers and angle-emb: Spearman x 100.

    python benchmarks/aoe_quality.py --out FOLDER [--seeds 0,1,2,3,4]
        [--settings NAMES] [--who NAMES] [--precision bf16] [--test] [--tuned JSON]
        [--sentence-transformers PYTHON] [--angle-emb PYTHON] [--data FOLDER]

all-MiniLM-L6-v2, trained on STS-B train: as each peer documents it, against our preset.
Ours keeps the evaluation that is best on dev, so peers are shown after their last epoch (which is what their
documentation keeps) and also after the epoch that is best on dev.

Each model is saved, loaded again and encodes with its own library in fp32; cosine and Spearman are the same
code for all. Every run is a line of OUT/results.jsonl, and a run that has its line is not repeated: stop at
any time and start again. Test is scored in each run, but printed only with --test: choose on dev first.
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
from runs import spread

ST, ANGLE = "sentence-transformers", "angle-emb"
SCRIPTS = {"ours": "train_ours.py", ST: "train_st.py", ANGLE: "train_angle.py"}
# The settings of ours that did best on dev.
TUNED = {
    "preset": "cosent-paper",
    "lr": 5e-5,
    "epochs": 4,
    "batch_size": 16,
    "settings": {"objective.margin": 0.5, "optim.average": 1, "optim.scheduler": "constant_with_warmup"},
}


@dataclass(frozen=True)
class Setting:
    """One contender's way of training; `work` holds what differs from `EQUAL`."""

    name: str
    who: str
    work: dict = field(default_factory=dict)


def weights(cosine: float, ibn: float, angle: float) -> dict:
    """angle-emb's loss for scored pairs; its `tau` is a scale."""
    parts = {"cosine_w": cosine, "ibn_w": ibn, "angle_w": angle}
    return parts | dict.fromkeys(("cosine_tau", "ibn_tau", "angle_tau"), 20)


EQUAL = {"epochs": 1, "batch_size": 32, "lr": 2e-5, "warmup": 0, "max_length": 128, "filter_duplicate": False}
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
    Setting("README, scores 0-1", ANGLE, {**README, "loss": weights(1, 1, 0.02), "top": 1}),
    Setting("tuned", "ours"),
)


def main() -> None:
    """Read the flags, do the runs that have no result yet, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser, ST, ANGLE)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--settings", default="", help="names to run, separated by |; all by default")
    parser.add_argument("--who", default=f"ours,{ST},{ANGLE}")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"], help="of training, for all")
    parser.add_argument("--tuned", type=json.loads, default=TUNED, help="our arguments")
    parser.add_argument("--test", action="store_true", help="print the test columns")
    parser.add_argument("--limit", type=int, help="train on so many rows only, to try the script out")
    options = parser.parse_args()
    wanted = [
        setting
        for setting in SETTINGS
        if setting.who in options.who.split(",")
        and (not options.settings or setting.name in options.settings.split("|"))
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / "results.jsonl"
    python = pythons(options, *(peer for peer in (ST, ANGLE) if any(one.who == peer for one in wanted)))
    with tempfile.TemporaryDirectory() as folder:
        files = lay_out(options.data, Path(folder), options.limit)
        for seed in options.seeds.split(","):
            for setting in wanted:
                key = identity(setting, int(seed), options)
                if key in [entry["run"] for entry in read(results)]:
                    continue
                answer = run(
                    python[setting.who], SCRIPTS[setting.who], job(setting, int(seed), options, files)
                )
                with results.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps({"run": key, **answer}) + "\n")
                print(f"{setting.who}, {setting.name}, seed {seed}: {answer['wall_s']:.0f} s", flush=True)
    report(read(results), wanted, options)


def lay_out(data: Path, folder: Path, limit: int | None) -> dict[str, Path]:
    """STS-B as JSON lines: train with scores to 5 and to 1, dev and test."""
    train = stsb(data, "train")[:limit]
    to_one = [{**row, "label": row["label"] / 5} for row in train]
    return {
        "train": write(train, folder / "stsb-train.jsonl"),
        "to one": write(to_one, folder / "to-one-train.jsonl"),
        "dev": write(stsb(data, "dev"), folder / "stsb-dev.jsonl"),
        "test": write(stsb(data, "test"), folder / "stsb-test.jsonl"),
    }


def identity(setting: Setting, seed: int, options: argparse.Namespace) -> dict:
    """What makes a run the same run: change a setting and it is done again."""
    work = {"train": options.tuned} if setting.who == "ours" else setting.work
    return {
        "name": setting.name,
        "who": setting.who,
        "seed": seed,
        "precision": options.precision,
        "limit": options.limit,
        "work": work,
    }


def job(setting: Setting, seed: int, options: argparse.Namespace, files: dict[str, Path]) -> dict:
    """The run in its contender's terms."""
    scored = {name: str(files[name]) for name in ("dev", "test")}
    if setting.who != "ours":
        work = {**EQUAL, **setting.work, "seed": seed, "precision": options.precision}
        rows = files["to one" if work.get("top") == 1 else "train"]
        return {**work, "model": str(minilm()), "rows": str(rows), "score": scored}
    fixed = {"data": str(files["train"]), "backbone": "minilm", "seed": seed, "precision": options.precision}
    own = {"dev_data": str(files["dev"]), **options.tuned}
    return {"train": {**fixed, **own}, "score": scored}


def read(results: Path) -> list[dict]:
    """The runs done so far."""
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


def report(found: list[dict], wanted: list[Setting], options: argparse.Namespace) -> None:
    """A row for each contender and setting: mean and deviation over the seeds."""
    sets = ["dev", "test"] if options.test else ["dev"]
    columns = [f"{name}, {when}" for when in ("last epoch", "best epoch on dev") for name in sets]
    titles = ["setting", "who", "epochs", "seeds", *columns, "seconds"]
    print(f"\n{options.precision}\n")
    print(f"| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    for setting in wanted:
        keys = [identity(setting, int(seed), options) for seed in options.seeds.split(",")]
        runs = [entry for entry in found if entry["run"] in keys]
        if not runs:
            continue
        last = [entry["epochs"][-1] for entry in runs]
        best = [max(entry["epochs"], key=lambda epoch: epoch["dev"]) for entry in runs]
        cells = (
            setting.name,
            setting.who,
            # `aoe train` leaves one model, whose epochs its arguments tell
            "see --tuned" if setting.who == "ours" else str({**EQUAL, **setting.work}["epochs"]),
            str(len(runs)),
            *(spread([epoch[name] for epoch in epochs]) for epochs in (last, best) for name in sets),
            f"{mean(entry['wall_s'] for entry in runs):.0f}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
