"""What `aoe train --preset domain` gains in domains without labels, judged by labels of people.

    python benchmarks/domain.py --out FOLDER [--domains medicine,questions,bugs,banking] [--seeds 0,1,2]
        [--ways "domain;…"] [--texts 2000] [--data FOLDER]
    python benchmarks/domain.py --out FOLDER --llm chatgpt --max-cost 5        # with OPENAI_API_KEY set
    python benchmarks/domain.py --out FOLDER --llm NAME --config llms.toml     # see docs/howto/own-llm.md

An annotator (`--llm`; default: wordnet, which is rules) writes triplets of 2,000 texts of each domain, and
all-MiniLM-L6-v2 is trained on them, 128 tokens a text. With wordnet, bugs are trained on pairs of a report's
title and body instead. Training never sees a label of people. Evaluation, all x 100:

- medicine (sentences of MedQuAD) and questions (of MedQuAD): AUC on RQE's test pairs
- bugs (reports of Eclipse and Firefox): R@1 and R@5 of a duplicate's original among all titles
- banking (banking77's training utterances): P@1 and P@10 of the same intent among 1,000 test utterances
- STS-B test, Spearman: what the model forgot

Prints one table per domain. Each result is a line of OUT/results.jsonl; the same command continues a stopped
run. "centred": the mean vector of the domain's texts is subtracted from each unit vector.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from machine import instruction_sets, processor
from peers_aoe.environments import add_flags
from peers_aoe.texts import stsb, table
from runs import Ledger, spread
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import aoe_train
import llm_labeler

Encode = Callable[[list[str]], np.ndarray]  # texts to unit vectors
Judge = Callable[[Encode], dict[str, float]]
UNTRAINED = "untrained"
DOMAIN = {"preset": "domain"}
# Arguments of `aoe_train.train`. `data` is a file of the domain's folder; default: the annotator's triplets.
WAYS: dict[str, dict[str, Any]] = {
    UNTRAINED: {},
    "domain": DOMAIN,
    "domain, weight mix 0.5": {**DOMAIN, "weight_mix": 0.5},
    "domain, weight mix 1": {**DOMAIN, "weight_mix": 1.0},
    "domain, 36 steps, weight mix 1": {**DOMAIN, "settings": {"data.author": "people"}},
    "domain, all layers, 2e-5": {**DOMAIN, "top_layers": 6, "lr": 2e-5},
    "domain, one direction": {**DOMAIN, "settings": {"objective.symmetric": False}},
    "domain, without hard negatives": {**DOMAIN, "settings": {"objective.hard_negatives": False}},
    "domain, batches of similar length": {**DOMAIN, "settings": {"batches.strategy": "length"}},
    "domain, without the angle": {**DOMAIN, "settings": {"objective.weights.angle": 0}},
    "domain, rows of --task triplet": {**DOMAIN, "data": "task-triplet/triplet"},
    "AnglE, 3e-6": {"preset": "angle-paper", "lr": 3e-6, "data": "pairs"},
    "defaults": {},
    "SimCSE": {"preset": "simcse", "data": "texts.txt"},
}


def main() -> None:
    """Label, train and judge what has no result yet, then print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--domains", default=",".join(DOMAINS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--ways", default=f"{UNTRAINED};domain", help=f"separated by ;: {'; '.join(WAYS)}")
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--llm", default="wordnet", help="chatgpt, llama, chatglm or a name in --config")
    parser.add_argument("--config", type=Path, help="a TOML file with [llm.NAME]")
    parser.add_argument("--max-cost", type=float, help="US dollars for all domains together")
    options = parser.parse_args()
    names, ledger = options.domains.split(","), Ledger(options.out)
    for name in names:
        domain = DOMAINS[name]
        folder = options.out / f"{name}-{options.llm}-{options.texts}"
        folder.mkdir(parents=True, exist_ok=True)
        texts = random.Random(0).sample(sorted(set(domain.texts(options.data))), options.texts)  # noqa: S311
        (folder / "texts.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        rows = folder / "pairs" / "triplet"
        if domain.records is not None and options.llm == "wordnet":
            rows = folder / "records.jsonl"
            lines = (json.dumps(record) + "\n" for record in domain.records(options.data, options.texts))
            rows.write_text("".join(lines), encoding="utf-8")
        else:
            label(folder, texts, options, max_cost=options.max_cost and options.max_cost / len(names))
        judges = [domain.judge(options.data), judge_by_stsb(options.data)]
        for way in options.ways.split(";"):
            if not (folder / WAYS[way].get("data", rows)).exists():
                continue
            for seed in [0] if way == UNTRAINED else map(int, options.seeds.split(",")):
                rows_by = "" if way == UNTRAINED else options.llm
                run = {"name": way, "domain": name, "llm": rows_by, "seed": seed, "texts": options.texts}
                ledger.once(run, lambda place: result(place, folder, rows, way, seed, texts, judges))  # noqa: B023 - called at once
    print(f"{processor()}, {instruction_sets()}")
    for name in names:
        print("\n" + "\n".join(table_lines(ledger, name, options.texts)))


def label(folder: Path, texts: list[str], options: argparse.Namespace, *, max_cost: float | None) -> None:
    """Write the annotator's pairs and triplets."""
    if options.llm == "wordnet":
        llm_labeler.generate(
            texts, llms="wordnet", out=folder / "task-triplet", task="triplet", progress=False
        )
    config = options.config
    print(
        llm_labeler.generate(texts, llms=options.llm, out=folder / "pairs", config=config, max_cost=max_cost)
    )


def result(
    model: Path, folder: Path, rows: Path, way: str, seed: int, texts: list[str], judges: list[Judge]
) -> dict[str, Any]:
    """Train a model and judge it, plain and centred."""
    arguments, start = dict(WAYS[way]), time.process_time()
    if way != UNTRAINED:
        data = folder / arguments.pop("data", rows)
        fixed = {"backbone": "minilm", "out": model, "fresh": True, "max_length": 128, "progress": False}
        aoe_train.train(data, **fixed, seed=seed, **arguments)
    seconds = time.process_time() - start
    encoder = aoe_train.Encoder.load("minilm" if way == UNTRAINED else model)

    def encode(texts: list[str]) -> np.ndarray:
        return encoder.encode(texts, normalize=True, progress=False).astype(np.float64)

    mean = encode(texts).mean(axis=0)

    def encode_centred(texts: list[str]) -> np.ndarray:
        vectors = encode(texts) - mean
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    plain = {name: figure for judge in judges for name, figure in judge(encode).items()}
    centred = {name: figure for judge in judges for name, figure in judge(encode_centred).items()}
    if way != UNTRAINED:
        shutil.rmtree(model)
    return {"figures": plain, "centred": centred, "cpu_s": seconds}


def table_lines(ledger: Ledger, domain: str, texts: int) -> list[str]:
    """A Markdown table: mean and deviation over the seeds for each way and annotator."""
    runs: dict[tuple[str, str], list[dict]] = {}
    for entry in ledger.read():
        run = entry["run"]
        if run["domain"] == domain and run["texts"] == texts:
            runs.setdefault((run["name"], run["llm"]), []).append(entry)
    if not runs:
        return []
    names = list(next(iter(runs.values()))[0]["figures"])
    lines = [f"| {domain} | rows by | seeds | {' | '.join(names)} | CPU s |", "|---" * (len(names) + 4) + "|"]
    for (way, llm), entries in runs.items():
        seconds = np.mean([entry["cpu_s"] for entry in entries])
        for kind, suffix in (("figures", ""), ("centred", ", centred")):
            cells = [spread([entry[kind][name] for entry in entries]) for name in names]
            lines.append(f"| {way}{suffix} | {llm} | {len(entries)} | {' | '.join(cells)} | {seconds:.0f} |")
    return lines


def cosines(encode: Encode, rows: list[dict], first: str, second: str) -> tuple[list[float], np.ndarray]:
    """Labels and cosines of pairs."""
    sides = [encode([row[side] for row in rows]) for side in (first, second)]
    return [float(row["label"]) for row in rows], (sides[0] * sides[1]).sum(1)


def judge_by_stsb(data: Path) -> Judge:
    """Spearman on STS-B test."""
    rows = stsb(data, "test")
    return lambda encode: {"STS-B": 100 * spearmanr(*cosines(encode, rows, "text1", "text2")).statistic}


def judge_by_rqe(data: Path) -> Judge:
    """AUC on RQE's test pairs."""
    rows = table(data / "rqe" / "rqe-test.tsv")
    return lambda encode: {"AUC": 100 * roc_auc_score(*cosines(encode, rows, "sentence1", "sentence2"))}


def judge_by_intents(data: Path) -> Judge:
    """P@1 and P@10 of the same intent."""
    rows = random.Random(0).sample(table(data / "domain" / "banking77-test.tsv"), 1000)  # noqa: S311
    intents = np.array([row["category"] for row in rows])

    def judge(encode: Encode) -> dict[str, float]:
        vectors = encode([row["text"] for row in rows])
        similarity = vectors @ vectors.T
        np.fill_diagonal(similarity, -np.inf)
        same = intents[np.argsort(-similarity, axis=1)[:, :10]] == intents[:, None]
        return {"P@1": 100 * float(same[:, 0].mean()), "P@10": 100 * float(same.mean())}

    return judge


TRACKERS = ("eclipse", "firefox")


def judge_by_originals(data: Path) -> Judge:
    """R@1 and R@5 of the original of a duplicate report, by title."""
    reports = read_reports(data)

    def judge(encode: Encode) -> dict[str, float]:
        figures: dict[str, float] = {}
        for tracker in TRACKERS:
            pairs = [row for row in reports if row["system"].lower() == tracker]
            titles = list(dict.fromkeys(row[side] for row in pairs for side in ("title1", "title2")))
            vectors = encode(titles)
            index = {title: number for number, title in enumerate(titles)}
            first, second = (np.array([index[row[side]] for row in pairs]) for side in ("title1", "title2"))
            similarity = vectors[first] @ vectors.T
            similarity[np.arange(len(first)), first] = -np.inf
            own = np.take_along_axis(similarity, second[:, None], 1)
            ranks = (similarity > own).sum(1)[first != second]
            figures |= {f"{tracker} R@{k}": 100 * float((ranks < k).mean()) for k in (1, 5)}
        return figures

    return judge


def read_reports(data: Path) -> list[dict[str, Any]]:
    """Pairs of a duplicate report and its original."""
    path = data / "dup-bugs" / "bugzilla-duplicate-pairs.sigmajahan.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row for row in rows if row["system"].lower() in TRACKERS and row["title1"] and row["title2"]]


def title_body_pairs(data: Path, count: int) -> list[dict[str, str]]:
    """Titles with the first 600 characters of their bodies, in an order independent of duplicates."""
    body_of = {
        row[f"title{side}"]: row[f"body{side}"][:600]
        for row in read_reports(data)
        for side in (1, 2)
        if row[f"body{side}"]
    }
    chosen = random.Random(0).sample(sorted(body_of.items()), count)  # noqa: S311
    return [{"anchor": title, "positive": body} for title, body in chosen]


def sentences(data: Path) -> list[str]:
    """Sentences of MedQuAD's answers."""
    with gzip.open(data / "domain" / "medquad-sentences.txt.gz", "rt", encoding="utf-8") as lines:
        return [line.strip() for line in lines if line.strip()]


def questions(data: Path) -> list[str]:
    """Questions of MedQuAD."""
    with gzip.open(data / "domain" / "medquad-questions.tsv.gz", "rt", encoding="utf-8") as lines:
        return [line.split("\t")[1] for line in list(lines)[1:]]


def titles(data: Path) -> list[str]:
    """Titles of reports."""
    return [row[f"title{side}"] for row in read_reports(data) for side in (1, 2)]


def utterances(data: Path) -> list[str]:
    """banking77's training utterances."""
    return [row["text"] for row in table(data / "domain" / "banking77-train.tsv")]


class Domain(NamedTuple):
    """Where a domain's texts come from, what judges it, and its records with two parts, if it has any."""

    texts: Callable[[Path], list[str]]
    judge: Callable[[Path], Judge]
    records: Callable[[Path, int], list[dict[str, str]]] | None = None


DOMAINS = {
    "medicine": Domain(sentences, judge_by_rqe),
    "questions": Domain(questions, judge_by_rqe),
    "bugs": Domain(titles, judge_by_originals, title_body_pairs),
    "banking": Domain(utterances, judge_by_intents),
}


if __name__ == "__main__":
    main()
