"""What settings do for rows of each kind: the study that the defaults of `aoe train` were chosen by.

    python benchmarks/aoe_defaults.py --gis DATASET --rules DATASET --out FILE [--data FOLDER]
        [--tasks stsb,stsb-500,mrpc,qqp,nli,gis,gis-200,rules] [--seeds 0] [--rows N] [--score N]
        [--backbone minilm] [--settings JSON] ... [--prompt TEMPLATE] [--test]
        [--peers sentence-transformers,angle-emb] [--sentence-transformers PYTHON] [--angle-emb PYTHON]

Each task is a set of rows as people have them: graded (STS-B, and 500 rows of it), yes or no (MRPC, QQP,
duplicate issues of `gis`, and 200 rows of them), triplets (NLI), and what `label` wrote; `--gis` and
`--rules` are datasets that those commands made. `--settings` holds arguments of `aoe_train.train`; `{}` are
the defaults and `null` trains nothing. A run has no dev data, so that it leaves its last weights. It is
scored on the task's dev and test (Spearman x 100, for labels 0 and 1 the area under the ROC curve x 100,
for triplets the share x 100) and on STS-B's. Every run is a line of FILE and is not repeated. Test is
printed with `--test` only: choose on dev first.

`--peers` trains all-MiniLM-L6-v2 as they document it for rows of each kind (`WAYS`), in bf16 and with 128
tokens, as ours; what they leave after their last step is read and scored by the same code.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from aoe_quality import run_missing, spread
from peers_aoe.environments import add_flags, minilm, pythons
from peers_aoe.environments import run as run_peer
from peers_aoe.texts import stsb, table, write
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import aoe_train
import pairkit

Rows = list[dict]


class Task(NamedTuple):
    """Rows to train on, to choose by and to report."""

    train: Rows
    dev: Rows
    test: Rows


def pairs(rows: Rows, first: str, second: str) -> Rows:
    """Rows with labels 0 and 1, in the names of the pair dataset."""
    return [{"text1": row[first], "text2": row[second], "label": float(row["label"])} for row in rows]


def shuffled(rows: Rows) -> Rows:
    """The same rows in an order that says nothing."""
    return [rows[at] for at in np.random.default_rng(0).permutation(len(rows))]


def _stsb(options: argparse.Namespace) -> Task:
    return Task(*(stsb(options.data, split) for split in ("train", "dev", "test")))


def _yes_or_no(train: str, test: str, text: str, held_out: int) -> Callable[[argparse.Namespace], Task]:
    """Two files of pairs, of the first of which some rows become dev; columns are `text` 1 and 2."""

    def task(options: argparse.Namespace) -> Task:
        rows, others = (
            pairs(table(options.data / "pairs" / name), f"{text}1", f"{text}2") for name in (train, test)
        )
        rows = shuffled(rows)
        return Task(rows[held_out:], rows[:held_out], others)

    return task


def _nli(options: argparse.Namespace) -> Task:
    rows = shuffled(table(options.data / "nli" / "nli-triplets.derived.tsv.gz"))
    return Task(rows[2000:], rows[:1000], rows[1000:2000])


def _dataset(folder: Path) -> Task:
    """What else the rows say stays with those to train on: who wrote them decides how they are learnt."""
    made = pairkit.read(folder)
    train, dev, test = (made[name].to_dicts() for name in ("train", "validation", "test"))
    return Task(train, pairs(dev, "text1", "text2"), pairs(test, "text1", "text2"))


def _first(count: int, task: Callable[[argparse.Namespace], Task]) -> Callable[[argparse.Namespace], Task]:
    def fewer(options: argparse.Namespace) -> Task:
        whole = task(options)
        return Task(shuffled(whole.train)[:count], whole.dev, whole.test)

    return fewer


def _gis(options: argparse.Namespace) -> Task:
    return _dataset(options.gis)


def _rules(options: argparse.Namespace) -> Task:
    return _dataset(options.rules)


TASKS: dict[str, Callable[[argparse.Namespace], Task]] = {
    "stsb": _stsb,
    "stsb-500": _first(500, _stsb),
    "mrpc": _yes_or_no("mrpc-train.tsv", "mrpc-test.tsv", "sentence", 400),
    "qqp": _yes_or_no("qqp-dev.tsv.gz", "qqp-test.tsv.gz", "question", 1000),
    "nli": _nli,
    "gis": _gis,
    "gis-200": _first(200, _gis),
    "rules": _rules,
}

ST, ANGLE = "sentence-transformers", "angle-emb"
SCRIPTS = {ST: "train_st.py", ANGLE: "train_angle.py"}
TAUS = {"cosine_tau": 20, "ibn_tau": 20, "angle_tau": 20}
# angle-emb's README on STS-B, and its advice on triplets with the weights that its command line takes.
README = {"epochs": 5, "batch_size": 32, "lr": 2e-5, "warmup": 0, "filter_duplicate": True}
LABELLED = {**README, "loss": {"cosine_w": 1, "ibn_w": 1, "angle_w": 0.02, **TAUS}}
TRIPLETS = {**README, "loss": {"cosine_w": 0, "ibn_w": 1, "cln_w": 1, "angle_w": 0.02, **TAUS}}
# sentence-transformers' examples of training on STS-B, Quora and NLI; 5e-5 is its trainer's default.
EXAMPLE = {"epochs": 1, "lr": 5e-5, "warmup": 0.1}
WAYS: dict[str, dict[str, dict]] = {
    "graded": {ST: {**EXAMPLE, "loss": "cosent", "epochs": 4, "batch_size": 16}, ANGLE: LABELLED},
    "binary": {ST: {**EXAMPLE, "loss": "online-contrastive", "batch_size": 64}, ANGLE: LABELLED},
    "triplet": {
        ST: {**EXAMPLE, "loss": "mnrl", "batch_size": 128, "no_duplicates": True},
        ANGLE: TRIPLETS,
    },
}


def kind_of(rows: Rows) -> str:
    """Which of `WAYS` is for such rows."""
    if "anchor" in rows[0]:
        return "triplet"
    return "binary" if {row["label"] for row in rows} <= {0.0, 1.0} else "graded"


def cosines(encoder: aoe_train.Encoder, first: list[str], second: list[str]) -> np.ndarray:
    """Of each first text with its second."""
    both = encoder.encode([*first, *second], progress=False).astype(np.float64)
    both /= np.linalg.norm(both, axis=1, keepdims=True)
    return (both[: len(first)] * both[len(first) :]).sum(1)


def scored(encoder: aoe_train.Encoder, rows: Rows) -> float:
    """The metric of these rows, times 100."""
    kind = kind_of(rows)
    if kind == "triplet":
        anchors, positives, negatives = (
            [row[name] for row in rows] for name in ("anchor", "positive", "negative")
        )
        near, far = cosines(encoder, anchors, positives), cosines(encoder, anchors, negatives)
        return 100 * float((near > far).mean())
    labels = np.array([row["label"] for row in rows])
    found = cosines(encoder, [row["text1"] for row in rows], [row["text2"] for row in rows])
    if kind == "binary":
        return 100 * float(roc_auc_score(labels, found))
    return 100 * float(spearmanr(labels, found).statistic)


def main() -> None:
    """Do the runs that have no line yet, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser, ST, ANGLE)
    parser.add_argument("--gis", type=Path, help="a dataset that `gis` made, with its three splits")
    parser.add_argument("--rules", type=Path, help="a dataset that `label` made, with its three splits")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", default="stsb,mrpc,nli")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--rows", type=int, help="train on so many at most")
    parser.add_argument("--score", type=int, help="score so many rows of dev and of test at most")
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument(
        "--settings", action="append", default=[], type=json.loads, help="arguments of aoe_train.train"
    )
    parser.add_argument("--peers", default="", help="train by their ways, too")
    parser.add_argument("--prompt", help="of the backbone where it is not trained")
    parser.add_argument("--test", action="store_true", help="print the test columns")
    options = parser.parse_args()
    peers = options.peers.split(",") if options.peers else []
    python = pythons(options, *peers)
    wanted = [
        {"task": task, "seed": int(seed), "rows": options.rows, "score": options.score}
        | {"backbone": options.backbone, "settings": settings}
        for settings in [*(options.settings or ([] if peers else [{}])), *peers]
        for task in options.tasks.split(",")
        for seed in (options.seeds.split(",") if settings is not None else ["0"])
    ]
    found = run_missing(wanted, options.out, lambda run: result(run, python, options))
    report(found, wanted, options)


def result(run: dict, python: dict[str, str], options: argparse.Namespace) -> dict:
    """Train, where settings or a peer are given (null trains nothing), and score."""
    task = TASKS[run["task"]](options)
    train = shuffled(task.train)[: options.rows]
    guard = {name: stsb(options.data, name) for name in ("dev", "test")}
    with tempfile.TemporaryDirectory() as folder:
        model, seconds, peer = run["backbone"], 0.0, run["settings"]
        reading: dict = {}
        if isinstance(peer, str):
            model, reading = Path(folder) / "model", {"pooling": "avg"}
            seconds = trained_by(peer, python[peer], train, model, run["seed"])
        elif run["settings"] is not None:
            begun = time.process_time()
            done = aoe_train.train(
                train,
                backbone=model,
                out=f"{folder}/model",
                seed=run["seed"],
                progress=False,
                **run["settings"],
            )
            model, seconds = done.out, time.process_time() - begun
        elif options.prompt:
            reading = {"prompts": {"given": options.prompt}, "default_prompt_name": "given"}
        encoder = aoe_train.Encoder.load(model, precision="bf16", max_length=128, **reading)
        return {
            "trained": len(train),
            "cpu_s": round(seconds, 1),
            "dev": scored(encoder, task.dev[: options.score]),
            "test": scored(encoder, task.test[: options.score]),
            "STS-B dev": scored(encoder, guard["dev"][: options.score]),
            "STS-B test": scored(encoder, guard["test"][: options.score]),
        }


def trained_by(peer: str, python: str, rows: Rows, out: Path, seed: int) -> float:
    """Train as the peer documents it; CPU seconds of its process."""
    work = {**WAYS[kind_of(rows)][peer], "max_length": 128}
    columns = {name: name for name in ("text1", "text2", "label", "anchor", "positive", "negative")}
    if peer == ANGLE:
        columns["anchor"] = "query"
    rows = [{columns[name]: row[name] for name in row if name in columns} for row in rows]
    begun = os.times()
    with tempfile.TemporaryDirectory() as folder:
        given = {"model": str(minilm()), "rows": str(write(rows, Path(folder) / "rows.jsonl"))}
        same = {"score": {}, "out": str(out), "seed": seed, "precision": "bf16"}
        run_peer(python, SCRIPTS[peer], work | given | same)
    ended = os.times()
    return ended.children_user + ended.children_system - begun.children_user - begun.children_system


def report(found: list[dict], wanted: list[dict], options: argparse.Namespace) -> None:
    """A row for each task and settings: mean and deviation over the seeds."""
    columns = ["dev", "STS-B dev", *(["test", "STS-B test"] if options.test else []), "cpu_s"]
    print(f"| task | settings | seeds | {' | '.join(columns)} |\n" + "|---" * (len(columns) + 3) + "|")
    shown = {json.dumps([run["task"], run["settings"]]): run for run in wanted}
    for task in options.tasks.split(","):
        for run in (run for run in shown.values() if run["task"] == task):
            runs = [entry for entry in found if {**entry["run"], "seed": 0} == {**run, "seed": 0}]
            cells = [spread([entry[name] for entry in runs]) for name in columns]
            told = "untrained" if run["settings"] is None else json.dumps(run["settings"])
            print(f"| {task} | {told} | {len(runs)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
