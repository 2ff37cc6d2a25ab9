"""Domains without labels, judged by people: what the preset `domain` gains there, and each of its parts.

    python benchmarks/domain.py --out FOLDER [--domains medicine,questions,bugs,banking]
        [--seeds 0,1,2,3,4] [--ways "domain;…"] [--texts 2000] [--data FOLDER]

No label of people takes part in training. Rules write triplets (`label generate`) of sentences of MedQuAD
(medicine), of questions of MedQuAD (questions), and of training utterances of banking77 without their intents
(banking), each drawn from the whole file. Reports of Eclipse and Firefox (bugs) are used as they are: the
title of a report and the beginning of its body are a pair. all-MiniLM-L6-v2 is trained on them, each way on
the same rows, with 128 tokens a text.

Labels of people are for evaluation only. Medicine and questions: area under the ROC curve on RQE's test pairs
(x 100). Bugs: share of duplicate reports whose original is the nearest, or among the five nearest, of all
titles of the tracker (x 100). Banking: 1,000 utterances of banking77's test set, drawn with seed 0 and
searched among themselves; P@1 and P@10 are the share of the nearest, and of the ten nearest, with the same
intent (x 100). STS-B test (Spearman x 100) measures what the model forgot.

Each run is a line of OUT/results.jsonl, and a run that has its line is not repeated.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from machine import instruction_sets, processor
from peers_aoe.environments import add_flags
from peers_aoe.texts import stsb, table
from runs import Ledger, spread
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import aoe_train

AS_IT_COMES = "as it comes"
DOMAIN = {"preset": "domain"}
# A way's `data` is what it trains on, of what is made of a domain.
WAYS: dict[str, dict[str, Any]] = {
    AS_IT_COMES: {},
    "domain": DOMAIN,
    "domain, soup 0.5": {**DOMAIN, "weight_mix": 0.5},
    "domain, soup 1": {**DOMAIN, "weight_mix": 1.0},
    "domain, all layers, 2e-5": {**DOMAIN, "top_layers": 6, "lr": 2e-5},
    "domain, one direction": {**DOMAIN, "settings": {"objective.symmetric": False}},
    "domain, without hard negatives": {**DOMAIN, "settings": {"objective.hard_negatives": False}},
    "domain, rows of like length": {**DOMAIN, "settings": {"batches.strategy": "length"}},
    "domain, without the angle": {**DOMAIN, "settings": {"objective.weights.angle": 0}},
    "domain, of `--task triplet`": {**DOMAIN, "data": "hard"},
    "AnglE, 3e-6": {"preset": "angle-paper", "lr": 3e-6, "data": "pairs"},
    "the defaults": {},
    "SimCSE, unsupervised": {"preset": "simcse", "data": "sentences.txt"},
}
Judge = Callable[[aoe_train.Encoder], dict[str, float]]


def main() -> None:
    """Make the rows, do the runs that have no result yet, and print a table for each domain."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--domains", default=",".join(DOMAINS))
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--ways", default=";".join(WAYS), help="with semicolons between them")
    parser.add_argument("--texts", type=int, default=2000)
    options = parser.parse_args()
    ledger = Ledger(options.out)
    for domain in options.domains.split(","):
        make, judge, rows = DOMAINS[domain]
        folder = options.out / domain
        folder.mkdir(parents=True, exist_ok=True)
        make(options.data, folder, options.texts)
        judges = [judge(options.data), by_stsb(options.data)]
        for way in options.ways.split(";"):
            if not (folder / WAYS[way].get("data", rows)).exists():
                continue
            for seed in [0] if way == AS_IT_COMES else map(int, options.seeds.split(",")):
                run = {"name": way, "domain": domain, "seed": seed, "texts": options.texts}
                ledger.once(run, lambda place: figures(place, folder, rows, way, seed, judges))  # noqa: B023 - called at once
    report(ledger)


def figures(place: Path, folder: Path, rows: str, way: str, seed: int, judges: list[Judge]) -> dict[str, Any]:
    """Train, where the way does, and judge."""
    given, model, begun = dict(WAYS[way]), Path("minilm"), time.process_time()
    if way != AS_IT_COMES:
        data = folder / given.pop("data", rows)
        how = {"backbone": "minilm", "out": place, "fresh": True, "max_length": 128, "progress": False}
        aoe_train.train(data, **how, seed=seed, **given)
        model = place
    seconds = time.process_time() - begun
    encoder = aoe_train.Encoder.load(model)
    found = {name: figure for judge in judges for name, figure in judge(encoder).items()}
    if model == place:
        shutil.rmtree(place)
    return {"figures": found, "cpu_s": seconds}


def by_stsb(data: Path) -> Judge:
    """Spearman on STS-B test."""
    rows = stsb(data, "test")
    return lambda encoder: {"STS-B": 100 * spearmanr(*cosines(encoder, rows, "text1", "text2")).statistic}


def cosines(
    encoder: aoe_train.Encoder, rows: list[dict], first: str, second: str
) -> tuple[list[float], np.ndarray]:
    """Each row's label, and the cosine of its two texts."""
    sides = [
        encoder.encode([row[side] for row in rows], normalize=True, progress=False).astype(np.float64)
        for side in (first, second)
    ]
    return [float(row["label"]) for row in rows], (sides[0] * sides[1]).sum(1)


def medicine(data: Path, folder: Path, texts: int) -> None:
    """Triplets and pairs that rules write of sentences of MedQuAD; made once."""
    written(data / "domain" / "medquad-sentences.txt.gz", folder, texts)


def questions(data: Path, folder: Path, texts: int) -> None:
    """The same of questions of MedQuAD."""
    with gzip.open(data / "domain" / "medquad-questions.tsv.gz", "rt", encoding="utf-8") as lines:
        found = sorted({line.split("\t")[1] for line in list(lines)[1:]})
    written(as_lines(folder, found), folder, texts)


def banking(data: Path, folder: Path, texts: int) -> None:
    """The same of training utterances of banking77, without their intents."""
    found = sorted({row["text"] for row in table(data / "domain" / "banking77-train.tsv")})
    written(as_lines(folder, found), folder, texts)


def as_lines(folder: Path, texts: list[str]) -> Path:
    """A file of texts, packed as MedQuAD's sentences are."""
    path = folder / "texts.txt.gz"
    path.write_bytes(gzip.compress("".join(f"{text}\n" for text in texts).encode(), mtime=0))
    return path


def written(source: Path, folder: Path, texts: int) -> None:
    """What rules write of texts that are drawn from all of a file."""
    for out, task in (("pairs", []), ("hard", ["--task", "triplet"])):
        command = ["generate", "-d", source, "--draw", texts, "--llm", "wordnet", "-o", folder / out, *task]
        subprocess.run([sys.executable, "-m", "llm_labeler", *map(str, command), "--quiet"], check=True)
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        drawn = random.Random(0).sample(list(lines), texts)  # noqa: S311 - a sample, not a secret
    (folder / "sentences.txt").write_text("".join(drawn), encoding="utf-8")


def by_rqe(data: Path) -> Judge:
    """Area under the ROC curve on RQE's test pairs."""
    rows = table(data / "rqe" / "rqe-test.tsv")
    return lambda encoder: {
        "RQE, AUC": 100 * roc_auc_score(*cosines(encoder, rows, "sentence1", "sentence2"))
    }


def by_intents(data: Path) -> Judge:
    """Share of the nearest utterances, and of the ten nearest, that have the same intent."""
    rows = table(data / "domain" / "banking77-test.tsv")
    drawn = random.Random(0).sample(rows, 1000)  # noqa: S311 - a sample, not a secret
    intents = np.array([row["category"] for row in drawn])

    def judge(encoder: aoe_train.Encoder) -> dict[str, float]:
        vectors = encoder.encode([row["text"] for row in drawn], normalize=True)
        near = vectors @ vectors.T
        np.fill_diagonal(near, -np.inf)
        same = intents[np.argsort(-near, axis=1)[:, :10]] == intents[:, None]
        return {"P@1": 100 * float(same[:, 0].mean()), "P@10": 100 * float(same.mean())}

    return judge


def reports(data: Path) -> list[dict[str, Any]]:
    """Pairs of a duplicate report and its original, of Eclipse and Firefox."""
    path = data / "dup-bugs" / "bugzilla-duplicate-pairs.sigmajahan.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    return [row for row in found if row["system"].lower() in TRACKERS and row["title1"] and row["title2"]]


def bugs(data: Path, folder: Path, texts: int) -> None:
    """A title and the beginning of its body, of so many reports in an order that tells nothing of pairs."""
    found = {
        row[f"title{side}"]: row[f"body{side}"][:BODY]
        for row in reports(data)
        for side in (1, 2)
        if row[f"body{side}"]
    }
    drawn = random.Random(0).sample(sorted(found.items()), texts)  # noqa: S311 - a sample, not a secret
    rows = (json.dumps({"anchor": title, "positive": body}) + "\n" for title, body in drawn)
    (folder / REPORTS).write_text("".join(rows), encoding="utf-8")
    (folder / "sentences.txt").write_text("".join(f"{title}\n" for title, _ in drawn), encoding="utf-8")


def by_originals(data: Path) -> Judge:
    """Share of the duplicates whose original is the nearest title of the tracker, or among five."""
    rows = reports(data)

    def judge(encoder: aoe_train.Encoder) -> dict[str, float]:
        found: dict[str, float] = {}
        for tracker in TRACKERS:
            own = [row for row in rows if row["system"].lower() == tracker]
            known = list(dict.fromkeys(row[side] for row in own for side in ("title1", "title2")))
            vectors = encoder.encode(known, normalize=True)
            number = {title: place for place, title in enumerate(known)}
            one, other = (np.array([number[row[side]] for row in own]) for side in ("title1", "title2"))
            near = vectors[one] @ vectors.T
            near[np.arange(len(one)), one] = -np.inf
            ranks = (near > np.take_along_axis(near, other[:, None], 1)).sum(1)[one != other]
            found |= {f"{tracker}, R@{k}": 100 * float((ranks < k).mean()) for k in (1, 5)}
        return found

    return judge


TRACKERS = ("eclipse", "firefox")
REPORTS = "reports.jsonl"
BODY = 600  # characters of a body
# What makes the rows, what judges, and the rows that are trained on where a way says nothing else.
DOMAINS: dict[str, tuple[Callable[[Path, Path, int], None], Callable[[Path], Judge], str]] = {
    "medicine": (medicine, by_rqe, "pairs/triplet"),
    "questions": (questions, by_rqe, "pairs/triplet"),
    "bugs": (bugs, by_originals, REPORTS),
    "banking": (banking, by_intents, "pairs/triplet"),
}


def report(ledger: Ledger) -> None:
    """Mean and deviation over the seeds."""
    found: dict[str, dict[str, list[dict]]] = {}
    for entry in ledger.read():
        ways = found.setdefault(entry["run"]["domain"], {})
        ways.setdefault(entry["run"]["name"], []).append(entry)
    print(f"{processor()}, {instruction_sets()}")
    for domain, ways in found.items():
        names = list(next(iter(ways.values()))[0]["figures"])
        print(f"\n| {domain} | seeds | {' | '.join(names)} | training CPU s |")
        print("|---" * (len(names) + 3) + "|")
        for way, entries in ways.items():
            cells = [spread([entry["figures"][name] for entry in entries]) for name in names]
            seconds = np.mean([entry["cpu_s"] for entry in entries])
            print(f"| {way} | {len(entries)} | {' | '.join(cells)} | {seconds:.0f} |")


if __name__ == "__main__":
    main()
