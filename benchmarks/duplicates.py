"""Is a report's duplicate found among all reports of its tracker? By words, by models, and by both.

    gis pair --work rust.work --out rust --split 0.5,0.1,0.4
    python benchmarks/duplicates.py --gis rust --work rust.work --bugs dup-bugs --out FOLDER
        [--seeds 0] [--epochs 2] [--max-length 128] [--precision bf16] [--only TRACKER]

`aoe evaluate --suite duplicates` on rust-lang/rust from `gis`, where only older issues are candidates; on
SeaMonkey (GitBugs), likewise; and on pairs of Eclipse and Firefox, which have no dates, so that the reports
of all pairs are candidates. Models are all-MiniLM-L6-v2 as it comes, and trained on the train part of rust.
Weights of hybrids are chosen on the validation part of rust there, and are the package's own elsewhere.

`dup-bugs` has bugzilla-duplicate-pairs.sigmajahan.jsonl.gz, seamonkey-issues.gitbugs.jsonl.gz and
seamonkey-duplicate-pairs.gitbugs.tsv. What was trained is in OUT/models, figures are in OUT/TRACKER.json, and
neither is made again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from machine import processor

import aoe_train
import gis_builder

DEPTHS = ("recall@1", "recall@5", "recall@20")
RUST, ECLIPSE, FIREFOX, SEAMONKEY = "rust", "Eclipse", "Firefox", "SeaMonkey"
Figures = Mapping[str, Mapping[str, Any]]
"""By row and figure, as in the JSON of `aoe evaluate`."""


def main() -> None:
    """Read the flags, train and judge what is not yet, print two tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gis", type=Path, required=True, help="a dataset of `gis pair`")
    parser.add_argument("--work", type=Path, required=True, help="the crawl that it was made from")
    parser.add_argument("--bugs", type=Path, required=True, help="the folder of others' pairs")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="0", help="of training; empty: only the model as it comes")
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--max-length", type=int, default=128, help="of training")
    parser.add_argument("--precision", default="bf16", choices=["fp32", "bf16"])
    parser.add_argument("--only", action="append", choices=[RUST, ECLIPSE, FIREFOX, SEAMONKEY])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    seeds = [int(seed) for seed in options.seeds.split(",") if seed]
    models = {"MiniLM": "minilm"} | {f"MiniLM, rust {seed}": str(trained(options, seed)) for seed in seeds}
    names = options.only or [RUST, ECLIPSE, FIREFOX, SEAMONKEY]
    found = {name: judged(options, name, models) for name in names}
    report(found)


def trained(options: argparse.Namespace, seed: int) -> Path:
    """MiniLM trained on the train part of rust."""
    place: Path = options.out / "models" / f"rust-{seed}-{options.epochs:g}-{options.max_length}"
    begun = time.process_time()
    if not (place / "aoe.json").exists():
        aoe_train.train(
            options.gis / "positive",
            backbone="minilm",
            out=place,
            seed=seed,
            epochs=options.epochs,
            max_length=options.max_length,
            precision=options.precision,
            fresh=True,
            progress=False,
        )
        print(f"trained in {time.process_time() - begun:.0f} s of CPU time")
    return place


def judged(options: argparse.Namespace, name: str, models: Mapping[str, str]) -> Figures:
    """The figures of a tracker by row."""
    file: Path = options.out / f"{name}.json"
    stored: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    if stored.get("models") != dict(models):
        told = aoe_train.evaluate(
            list(models.values()), suite="duplicates", precision=options.precision, **tracker(options, name)
        ).to_dict()
        rows = {row: next(iter(tasks.values())) for row, tasks in told.items()}
        stored = {"models": dict(models), "rows": rows}
        file.write_text(json.dumps(stored, indent=1), "utf-8")
    names = {path: model for model, path in models.items()}
    return {_shown(row, names): _figures(told, names) for row, told in stored["rows"].items()}


def _figures(told: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {**told, "over": {_shown(row, names): ahead for row, ahead in told.get("over", {}).items()}}


def _shown(row: str, names: Mapping[str, str]) -> str:
    model, plus, words = row.partition(" + ")
    return names.get(model, model) + plus + words


def tracker(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """What `evaluate` is told of a tracker; tables are written once."""
    folder: Path = options.out / "trackers"
    folder.mkdir(exist_ok=True)
    if name == RUST:
        reports = folder / "rust.parquet"
        if not reports.exists():
            gis_builder.render(options.work, reports, progress=False)
        return {"data": options.gis, "reports": reports}
    if name == SEAMONKEY:
        return {
            "data": options.bugs / "seamonkey-duplicate-pairs.gitbugs.tsv",
            "reports": options.bugs / "seamonkey-issues.gitbugs.jsonl.gz",
            "columns": {"duplicate": "id1", "canonical": "id2"},
        }
    source = options.bugs / "bugzilla-duplicate-pairs.sigmajahan.jsonl.gz"
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        pairs = pl.DataFrame([row for row in map(json.loads, lines) if row["system"] == name])
    sides = [
        pairs.select(pl.col(number).alias("id"), title=f"title{side}", body=f"body{side}")
        for side, number in (("1", "bug_id"), ("2", "dup_id"))
    ]
    reports, data = folder / f"{name}.jsonl", folder / f"{name}.tsv"
    pl.concat(sides).unique("id", maintain_order=True).write_ndjson(reports)
    pairs.select(duplicate="bug_id", canonical="dup_id").write_csv(data, separator="\t")
    return {"data": data, "reports": reports}


def report(found: Mapping[str, Figures]) -> None:
    """Recall of each row on each tracker, and how far each is ahead of others."""
    first = next(iter(found.values()))
    queries = {name: next(iter(rows.values()))["n"] for name, rows in found.items()}
    told = ", ".join(f"{name} {n:,}" for name, n in queries.items())
    print(f"queries: {told}; {processor()}\n\nR@1 / R@5 / R@20\n")
    print(f"| ranked by | {' | '.join(found)} |\n|---|{'---|' * len(found)}")
    for row in first:
        cells = [" / ".join(f"{100 * of[row][depth]:.1f}" for depth in DEPTHS) for of in found.values()]
        print(f"| {row} | {' | '.join(cells)} |")
    for metric in ("recall@1", "recall@5"):
        print(f"\n{metric} gained\n\n| ranked by | beside | {' | '.join(found)} |")
        print(f"|---|---|{'---|' * len(found)}")
        for row, figures in first.items():
            for other in figures["over"]:
                cells = [_gain(of[row]["over"][other][metric]) for of in found.values()]
                print(f"| {row} | {other} | {' | '.join(cells)} |")


def _gain(ahead: Mapping[str, Any]) -> str:
    low, high = ahead["ci95"]
    return f"{100 * ahead['difference']:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


if __name__ == "__main__":
    main()
