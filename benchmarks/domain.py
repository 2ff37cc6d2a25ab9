"""What `aoe train --preset domain` gains in domains without labels, judged by labels of people.

    python benchmarks/domain.py --out FOLDER [--domains NAME,…] [--ways "WAY;…"] [--seeds 0,1,2]
        [--texts 2000] [--backbone minilm] [--data FOLDER]
    python benchmarks/domain.py --out FOLDER --ways rules --llm chatgpt --max-cost 5  # needs OPENAI_API_KEY
    python benchmarks/domain.py --out FOLDER --ways rules --llm NAME --config llms.toml

A way is a training of the backbone, 128 tokens a text, on 2,000 texts of the domain; `KEY=VALUE` changes a
setting, as in "texts purpose=group". Several ways joined by "+" train one after the other.

- untrained
- texts: the texts themselves
- rules: triplets that an annotator (`--llm`; default: wordnet, which is rules) writes of the texts
- records: the two parts of each record, such as title and body

Training never sees a label of people. Evaluation, all x 100:

- banking (banking77's training utterances): P@1 and MAP@10 of the same intent among all test utterances
- topics (titles of Stack Overflow): the same, of the same tag, among 3,000 other titles
- opinions (customer reviews, CR): the same, of the same sentiment, among 1,800 other sentences
- questions (MedQuAD's) and sentences (MedQuAD's answers): AUC on RQE's test pairs
- eclipse, firefox (titles of reports): R@1 and R@5 of a duplicate's original among all titles
- quora (questions): AUC on 4,000 test pairs of QQP
- captions (SICK's training sentences): Spearman on SICK-R's test pairs
- PATH.tsv with the columns text and group: trained on a random half, the same as topics on the other half
- PATH.tsv with text1 and text2, the same item: R@1 and R@5 of text2 among all texts, which are trained on
- STS-B test, Spearman: what the model forgot

Prints one table per domain. Each result is a line of OUT/results.jsonl; the same command continues a stopped
run.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from machine import instruction_sets, processor
from peers_aoe.environments import add_flags
from peers_aoe.texts import stsb, table
from runs import Ledger, argument_parser, spread
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import aoe_train
import llm_labeler

Encode = Callable[[list[str]], np.ndarray]  # texts to unit vectors
Judge = Callable[[Encode], dict[str, float]]
UNTRAINED = "untrained"


def main() -> None:
    """Label, train and judge what has no result yet, then print the tables."""
    parser = argument_parser(__doc__)
    add_flags(parser)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--domains", default=",".join(DOMAINS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument(
        "--ways", default=f"{UNTRAINED};texts purpose=group;texts;texts purpose=match"
    )
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument(
        "--llm", default="wordnet", help="chatgpt, llama, chatglm or a name in --config"
    )
    parser.add_argument("--config", type=Path, help="a TOML file with [llm.NAME]")
    parser.add_argument(
        "--max-cost", type=float, help="US dollars for all domains together"
    )
    options = parser.parse_args()
    names, ledger = options.domains.split(","), Ledger(options.out)
    for name in names:
        folder = options.out / f"{Path(name).stem}-{options.llm}-{options.texts}"
        folder.mkdir(parents=True, exist_ok=True)
        judges = [domain_of(name).judge(options.data), judge_by_stsb(options.data)]
        for way in options.ways.split(";"):
            for seed in [0] if way == UNTRAINED else map(int, options.seeds.split(",")):
                run = {
                    "name": way,
                    "domain": name,
                    "seed": seed,
                    "texts": options.texts,
                }
                run |= {
                    "llm": options.llm if "rules" in way else "",
                    "backbone": Path(options.backbone).name,
                }
                train_and_score = partial(
                    result,
                    folder=folder,
                    way=way,
                    seed=seed,
                    judges=judges,
                    name=name,
                    options=options,
                )
                ledger.once(run, train_and_score)
    print(f"{processor()}, {instruction_sets()}")
    for name in names:
        print(
            "\n" + "\n".join(table_lines(ledger, name, options.backbone, options.texts))
        )


def result(
    model: Path,
    folder: Path,
    way: str,
    seed: int,
    judges: list[Judge],
    name: str,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Train a model and judge it."""
    seconds, backbone, rows = 0.0, options.backbone, None
    for number, (kind, *changes) in enumerate(map(str.split, way.split("+"))):
        if kind == UNTRAINED:
            continue
        source = rows_of(kind, folder, domain_of(name), options)
        start, out = time.process_time(), model / str(number)
        settings = {"preset": "domain", **dict(change.split("=") for change in changes)}
        run = aoe_train.train(
            source,
            backbone=backbone,
            out=out,
            seed=seed,
            max_length=128,
            settings=settings,
            progress=False,
        )
        seconds, backbone, rows = seconds + time.process_time() - start, out, run.pairs
    encoder = aoe_train.Encoder.load(backbone)

    def encode(texts: list[str]) -> np.ndarray:
        return encoder.encode(texts, normalize=True, progress=False)

    figures = {
        name: figure for judge in judges for name, figure in judge(encode).items()
    }
    shutil.rmtree(model, ignore_errors=True)
    return {"figures": figures, "cpu_s": seconds, "rows": rows}


def rows_of(
    kind: str, folder: Path, domain: Domain, options: argparse.Namespace
) -> Path:
    """The file or folder of training rows, made if it doesn't exist."""
    path = (
        folder
        / {"texts": "texts.txt", "records": "records.jsonl", "rules": "pairs/triplet"}[
            kind
        ]
    )
    if path.exists():
        return path
    if kind == "records":
        if domain.records is None:
            raise SystemExit(f"{folder.name}: no records of two parts")
        records = domain.records(options.data, options.texts)
        path.write_text(
            "".join(json.dumps(record) + "\n" for record in records), encoding="utf-8"
        )
        return path
    every = sorted({text for text in domain.texts(options.data) if text.strip()})
    texts = random.Random(0).sample(every, min(options.texts, len(every)))  # noqa: S311
    if kind == "texts":
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    else:
        cost = options.max_cost and options.max_cost / len(options.domains.split(","))
        out = folder / "pairs"
        print(
            llm_labeler.generate(
                texts, llm=options.llm, out=out, config=options.config, max_cost=cost
            )
        )
    return path


def table_lines(ledger: Ledger, domain: str, backbone: str, texts: int) -> list[str]:
    """A Markdown table: mean and deviation over the seeds for each way and annotator."""
    runs: dict[tuple[str, str], list[dict]] = {}
    for entry in ledger.read():
        run = entry["run"]
        if (run["domain"], run["texts"], run["backbone"]) == (
            domain,
            texts,
            Path(backbone).name,
        ):
            runs.setdefault((run["name"], run["llm"]), []).append(entry)
    if not runs:
        return []
    names = list(next(iter(runs.values()))[0]["figures"])
    lines = [
        f"| {domain} | rows by | seeds | {' | '.join(names)} | CPU s |",
        "|---" * (len(names) + 4) + "|",
    ]
    for (way, llm), entries in runs.items():
        seconds = np.mean([entry["cpu_s"] for entry in entries])
        cells = [
            spread([entry["figures"][name] for entry in entries]) for name in names
        ]
        lines.append(
            f"| {way} | {llm} | {len(entries)} | {' | '.join(cells)} | {seconds:.0f} |"
        )
    return lines


def cosines(encode: Encode, rows: list[dict], first: str, second: str) -> np.ndarray:
    """Cosines of pairs."""
    sides = [encode([row[side] for row in rows]) for side in (first, second)]
    return (sides[0] * sides[1]).sum(1)


def judge_by_stsb(data: Path) -> Judge:
    """Spearman on STS-B test."""
    rows = stsb(data, "test")
    labels = [row["label"] for row in rows]
    return lambda encode: {
        "STS-B": 100
        * spearmanr(labels, cosines(encode, rows, "text1", "text2")).statistic
    }


def judge_by_captions(data: Path) -> Judge:
    """Spearman on SICK-R's test pairs."""
    rows = table(data / "sick" / "sick-test.tsv")
    scores = [float(row["score"]) for row in rows]
    return lambda encode: {
        "SICK-R": 100
        * spearmanr(scores, cosines(encode, rows, "sentence1", "sentence2")).statistic
    }


def judge_by_auc(rows: list[dict], first: str, second: str) -> Judge:
    """AUC on labelled pairs."""
    labels = [int(row["label"]) for row in rows]
    return lambda encode: {
        "AUC": 100 * roc_auc_score(labels, cosines(encode, rows, first, second))
    }


def judge_by_rqe(data: Path) -> Judge:
    """AUC on RQE's test pairs."""
    return judge_by_auc(table(data / "rqe" / "rqe-test.tsv"), "sentence1", "sentence2")


def judge_by_quora(data: Path) -> Judge:
    """AUC on 4,000 test pairs of QQP."""
    return judge_by_auc(
        table(data / "pairs" / "qqp-test.tsv.gz")[:4000], "question1", "question2"
    )


class Ranking:
    """Judges which texts are found first for some of the texts, searched among all others."""

    def __init__(self, texts: list[str], queries: np.ndarray) -> None:
        self.texts, self.queries = texts, queries

    def __call__(self, encode: Encode) -> dict[str, float]:
        """The means of the outcomes, times 100."""
        vectors = encode(self.texts)
        outcomes = self.outcomes(vectors[self.queries] @ vectors.T)
        return {name: 100 * float(each.mean()) for name, each in outcomes.items()}

    def outcomes(self, similarity: np.ndarray) -> dict[str, np.ndarray]:
        """Each query's outcomes, (query,), for similarities (query, text)."""
        alone = similarity.copy()
        alone[np.arange(len(self.queries)), self.queries] = -np.inf
        return self._outcomes(alone)


class Groups(Ranking):
    """P@1 and MAP@10 of the same group."""

    def __init__(self, texts: list[str], groups: list[str]) -> None:
        super().__init__(texts, np.arange(len(texts)))
        self._names = np.array(groups)
        self._most = np.array(
            [min(10, (self._names == name).sum() - 1) for name in groups]
        )

    def _outcomes(self, similarity: np.ndarray) -> dict[str, np.ndarray]:
        same = (
            self._names[np.argsort(-similarity, axis=1)[:, :10]] == self._names[:, None]
        )
        precision = np.cumsum(same, axis=1) / np.arange(1, 11)
        average = (precision * same).sum(axis=1) / np.maximum(self._most, 1)
        return {"P@1": same[:, 0].astype(float), "MAP": average}


class Pairs(Ranking):
    """R@1 and R@5 of the second text of each pair, searched by the first."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        place = {text: number for number, text in enumerate(texts)}
        distinct = [
            (place[first], place[second]) for first, second in pairs if first != second
        ]
        queries, self._wanted = np.array(distinct).T
        super().__init__(texts, queries)

    def _outcomes(self, similarity: np.ndarray) -> dict[str, np.ndarray]:
        own = np.take_along_axis(similarity, self._wanted[:, None], 1)
        ranks = (similarity > own).sum(axis=1)
        return {f"R@{k}": (ranks < k).astype(float) for k in (1, 5)}


def judge_by_intents(data: Path) -> Judge:
    """The same intent among banking77's test utterances."""
    rows = table(data / "domain" / "banking77-test.tsv")
    return Groups([row["text"] for row in rows], [row["category"] for row in rows])


def shuffled(path: Path) -> list[dict[str, str]]:
    """The rows of a table in random order."""
    rows = table(path)
    random.Random(1).shuffle(rows)  # noqa: S311
    return rows


TOPICS, OPINIONS = "domain/stackoverflow-titles.tsv.gz", "senteval/CR.tsv.gz"


def judge_by_topics(data: Path) -> Judge:
    """The same tag among 3,000 titles."""
    rows = shuffled(data / TOPICS)[:3000]
    return Groups([row["title"] for row in rows], [row["tag_label"] for row in rows])


def judge_by_opinions(data: Path) -> Judge:
    """The same sentiment among 1,800 sentences."""
    rows = shuffled(data / OPINIONS)[:1800]
    return Groups([row["text"] for row in rows], [row["label"] for row in rows])


def judge_by_originals(tracker: str) -> Callable[[Path], Judge]:
    """R@1 and R@5 of the original of a duplicate report, by title."""
    return lambda data: Pairs(
        [(row["title1"], row["title2"]) for row in read_reports(data, tracker)]
    )


def read_reports(data: Path, tracker: str) -> list[dict[str, Any]]:
    """Pairs of a duplicate report and its original."""
    path = data / "dup-bugs" / "bugzilla-duplicate-pairs.sigmajahan.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        row
        for row in rows
        if row["system"].lower() == tracker and row["title1"] and row["title2"]
    ]


def title_body_pairs(tracker: str) -> Callable[[Path, int], list[dict[str, str]]]:
    """Titles with the first 600 characters of their bodies, in an order independent of duplicates."""

    def records(data: Path, count: int) -> list[dict[str, str]]:
        body_of = {
            row[f"title{side}"]: row[f"body{side}"][:600]
            for row in read_reports(data, tracker)
            for side in (1, 2)
            if row[f"body{side}"]
        }
        count = min(count, len(body_of))
        chosen = random.Random(0).sample(sorted(body_of.items()), count)  # noqa: S311
        return [{"anchor": title, "positive": body} for title, body in chosen]

    return records


def titles(tracker: str) -> Callable[[Path], list[str]]:
    """Titles of reports."""
    return lambda data: [
        row[f"title{side}"] for row in read_reports(data, tracker) for side in (1, 2)
    ]


def sentences(data: Path) -> list[str]:
    """Sentences of MedQuAD's answers."""
    with gzip.open(
        data / "domain" / "medquad-sentences.txt.gz", "rt", encoding="utf-8"
    ) as lines:
        return [line.strip() for line in lines if line.strip()]


def columns(path: str, *names: str, skip: int = 0) -> Callable[[Path], list[str]]:
    """The texts of some columns of a table; `skip` leaves out the first shuffled rows, which are the test."""
    return lambda data: [
        row[name]
        for row in (shuffled(data / path)[skip:] if skip else table(data / path))
        for name in names
    ]


class Domain(NamedTuple):
    """Where a domain's texts come from, what judges it, and its records with two parts, if it has any."""

    texts: Callable[[Path], list[str]]
    judge: Callable[[Path], Judge]
    records: Callable[[Path, int], list[dict[str, str]]] | None = None


DOMAINS = {
    "banking": Domain(columns("domain/banking77-train.tsv", "text"), judge_by_intents),
    "topics": Domain(columns(TOPICS, "title", skip=3000), judge_by_topics),
    "opinions": Domain(columns(OPINIONS, "text", skip=1800), judge_by_opinions),
    "questions": Domain(
        columns("domain/medquad-questions.tsv.gz", "question"), judge_by_rqe
    ),
    "sentences": Domain(sentences, judge_by_rqe),
    **{
        name: Domain(titles(name), judge_by_originals(name), title_body_pairs(name))
        for name in ("eclipse", "firefox")
    },
    "quora": Domain(
        columns("pairs/qqp-dev.tsv.gz", "question1", "question2"), judge_by_quora
    ),
    "captions": Domain(
        columns("sick/sick-train.tsv", "sentence1", "sentence2"), judge_by_captions
    ),
}


def domain_of(name: str) -> Domain:
    """A domain by its name, or from a table of texts and groups, or of pairs."""
    if name in DOMAINS:
        return DOMAINS[name]
    rows = shuffled(Path(name))
    if "text2" in rows[0]:
        pairs = [(row["text1"], row["text2"]) for row in rows]
        texts, judge = [text for pair in pairs for text in pair], Pairs(pairs)
    else:
        test, train = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        judge = Groups([row["text"] for row in test], [row["group"] for row in test])
        texts = [row["text"] for row in train]
    return Domain(lambda _: texts, lambda _: judge)


if __name__ == "__main__":
    main()
