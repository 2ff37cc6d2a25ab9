"""What texts of a domain gain without labels: `aoe train`, `aoe index` and other methods on the same texts.

    python benchmarks/domain_peers.py --out FOLDER [--domains NAME,…] [--seeds 0,1] [--data FOLDER]

Trains all-MiniLM-L6-v2 on up to 2,000 texts of each domain, and searches the domain's test texts (those of
`domain.py`; also PATH.tsv). Labels of people only judge.

Models (sentence-transformers with the settings of its examples, one epoch, 10 % of it warmup, 128 tokens):

- untrained
- aoe: `aoe train --purpose`, group for groups of texts, match for pairs
- simcse: MultipleNegativesRankingLoss on equal texts, batches of 128, learning rate 5e-5
- ct: ContrastiveTensionLossInBatchNegatives, batches of 128, learning rate 5e-5
- tsdae: DenoisingAutoEncoderLoss, 60 % of words deleted, batches of 8, learning rate 3e-5; tsdae-40: 40 %
  deleted, as in version 6's examples

Rankings by each model's vectors: as they are; centred; whitened, to all dimensions or 256 (Su et al. 2021);
with TF-IDF (0.2 of the sum); with BM25 as in `aoe index`; and as in `aoe index --purpose`, without and with
words.

Prints a table per domain: the mean over seeds, and the difference to the untrained model with a 95 % interval
(paired bootstrap over queries, which leaves out how seeds differ). Each training is a line of
OUT/results.jsonl; the same command continues a stopped run.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from domain import UNTRAINED, Groups, Ranking, domain_of, judge_by_stsb
from machine import instruction_sets, processor
from peers_aoe.environments import add_flags, minilm
from runs import Ledger, argument_parser, spread

import aoe_train
from aoe_train.model.collection import RECIPES, WEIGHTS, Collection, TfIdf, fused
from pairkit.similarity.bm25 import Bm25

MODELS = UNTRAINED, "simcse", "ct", "tsdae", "aoe"
TF_IDF_WEIGHT, CANDIDATES, RESAMPLES = 0.2, 200, 1000


def main() -> None:
    """Train and judge what has no result yet, then print the tables."""
    parser = argument_parser(__doc__)
    add_flags(parser)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--domains", default="banking,topics,eclipse")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--texts", type=int, default=2000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.out)
    for name in options.domains.split(","):
        judge = domain_of(name).judge(options.data)
        if not isinstance(judge, Ranking):
            raise SystemExit(
                f"{name}: judged by pairs' labels; choose a domain that is searched"
            )
        for model in dict.fromkeys([UNTRAINED, *options.models.split(",")]):
            for seed in (
                [0] if model == UNTRAINED else map(int, options.seeds.split(","))
            ):
                run = {
                    "name": model,
                    "domain": name,
                    "seed": seed,
                    "texts": options.texts,
                }
                ledger.once(run, lambda place: result(place, run, judge, options))  # noqa: B023 - called at once
    print(f"{processor()}, {instruction_sets()}")
    for name in options.domains.split(","):
        print("\n" + "\n".join(table_lines(ledger, name, options)))


def result(
    place: Path, run: dict[str, Any], judge: Ranking, options: argparse.Namespace
) -> dict[str, Any]:
    """Train a model, and keep the outcomes of each query by ranking next to `place`."""
    every = sorted(
        {text for text in domain_of(run["domain"]).texts(options.data) if text.strip()}
    )
    texts = random.Random(0).sample(every, min(options.texts, len(every)))  # noqa: S311
    purpose = "group" if isinstance(judge, Groups) else "match"
    start = time.process_time()
    if run["name"] == "aoe":
        settings = {"purpose": purpose}
        aoe_train.train(
            texts,
            backbone="minilm",
            out=place,
            seed=run["seed"],
            max_length=128,
            settings=settings,
            progress=False,
        )
    elif run["name"] != UNTRAINED:
        train_peer(run["name"], texts, place, run["seed"])
    seconds = time.process_time() - start
    encoder = aoe_train.Encoder.load("minilm" if run["name"] == UNTRAINED else place)

    def encode(texts: list[str]) -> np.ndarray:
        return encoder.encode(texts, normalize=True, progress=False)

    figures = {}
    for ranking, similarity in rankings(
        judge, encode(judge.texts), purpose, run["name"]
    ):
        outcomes = judge.outcomes(similarity)
        np.savez(outcome_file(place, ranking), **outcomes)
        figures[ranking] = {
            name: 100 * float(each.mean()) for name, each in outcomes.items()
        }
    stsb = judge_by_stsb(options.data)(encode)
    shutil.rmtree(place, ignore_errors=True)
    return {"figures": figures, **stsb, "cpu_s": seconds}


def outcome_file(place: Path, ranking: str) -> Path:
    """The file of the outcomes of each query."""
    place.parent.mkdir(parents=True, exist_ok=True)
    return place.with_name(f"{place.name} {ranking}.npz")


def rankings(
    judge: Ranking, vectors: np.ndarray, purpose: Any, model: str
) -> Iterator[tuple[str, np.ndarray]]:
    """The similarities (query, text) of each way of searching."""
    cosines = vectors[judge.queries] @ vectors.T
    yield "vectors", cosines
    queries = [judge.texts[query] for query in judge.queries]
    by_tf_idf, by_bm25 = TfIdf(judge.texts), Bm25(judge.texts)
    tf_idf = np.stack([by_tf_idf.scores(text) for text in queries])
    bm25 = np.stack([by_bm25.scores(text) for text in queries])
    bm25[np.arange(len(queries)), judge.queries] = 0  # a text isn't its own result

    def both(cosines: np.ndarray, weight: float) -> np.ndarray:
        alone = cosines.copy()
        alone[np.arange(len(queries)), judge.queries] = -1
        return hybrid(alone, bm25, weight)

    if model == UNTRAINED:
        yield "TF-IDF only", tf_idf
        yield "BM25 only", bm25
    yield "with TF-IDF", (1 - TF_IDF_WEIGHT) * cosines + TF_IDF_WEIGHT * tf_idf
    yield "with BM25 (aoe index)", both(cosines, WEIGHTS["bm25"])
    for name, moved in (
        ("centred", unit(vectors - vectors.mean(axis=0))),
        ("whitened", whitened(vectors, vectors.shape[1])),
        ("whitened, 256", whitened(vectors, 256)),
    ):
        yield name, moved[judge.queries] @ moved.T
    moved = Collection(vectors, purpose).transform(vectors)
    cosines = moved[judge.queries] @ moved.T
    yield "aoe index --purpose, vectors", cosines
    yield "aoe index --purpose, both", both(cosines, RECIPES[purpose].weight)


def hybrid(cosines: np.ndarray, words: np.ndarray, weight: float) -> np.ndarray:
    """The fused scores of the first candidates of either ranking; the others are last."""
    scores = np.full(cosines.shape, -1.0)
    for row, (by_vectors, by_words) in enumerate(zip(cosines, words, strict=True)):
        first = [np.argsort(-each)[:CANDIDATES] for each in (by_vectors, by_words)]
        chosen = np.union1d(*first)
        chosen = chosen[by_vectors[chosen] > -1]
        scores[row, chosen] = fused(by_vectors[chosen], by_words[chosen], weight)
    return scores


def unit(vectors: np.ndarray) -> np.ndarray:
    """(text, dim), scaled to length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def whitened(vectors: np.ndarray, dimensions: int) -> np.ndarray:
    """The first principal axes with the unit matrix as covariance, scaled to length 1."""
    values, axes = np.linalg.eigh(np.cov((vectors - vectors.mean(axis=0)).T))
    kept = (values > 1e-6 * values.max()) & (
        np.arange(len(values)) >= len(values) - dimensions
    )
    return unit(
        (vectors - vectors.mean(axis=0)) @ (axes[:, kept] / np.sqrt(values[kept]))
    )


def train_peer(name: str, texts: list[str], out: Path, seed: int) -> None:
    """Train with sentence-transformers and save the model."""
    import torch
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer import losses

    torch.manual_seed(seed)
    model = SentenceTransformer(str(minilm()), device="cpu")
    model.max_seq_length = 128
    rows = Dataset.from_dict({"text": texts, "same": texts})
    batch_size, lr = (8, 3e-5) if name.startswith("tsdae") else (128, 5e-5)
    if name.startswith("tsdae"):
        deleted = 0.4 if name == "tsdae-40" else 0.6
        rows = Dataset.from_dict({"noisy": noisy(texts, deleted, seed), "text": texts})
        loss = losses.DenoisingAutoEncoderLoss(
            model, decoder_name_or_path=str(minilm()), tie_encoder_decoder=True
        )
    elif name == "ct":
        loss = losses.ContrastiveTensionLossInBatchNegatives(model)
    else:
        loss = losses.MultipleNegativesRankingLoss(model)
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=batch_size,
            learning_rate=lr,
            warmup_steps=0.1,  # the share of all steps
            dataloader_drop_last=True,
            use_cpu=True,
            seed=seed,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=rows, loss=loss
        ).train()
    model.save_pretrained(str(out))


def noisy(texts: list[str], deleted: float, seed: int) -> list[str]:
    """Each text without a share of its words, but with at least one."""
    rng = random.Random(seed)  # noqa: S311
    kept = []
    for text in texts:
        words = text.split()
        kept.append(
            " ".join(
                [word for word in words if rng.random() > deleted]
                or [rng.choice(words)]
            )
        )
    return kept


def table_lines(ledger: Ledger, domain: str, options: argparse.Namespace) -> list[str]:
    """A Markdown table with a row for each model and ranking."""
    runs: dict[str, list[dict]] = {}
    for entry in ledger.read():
        if (entry["run"]["domain"], entry["run"]["texts"]) == (domain, options.texts):
            runs.setdefault(entry["run"]["name"], []).append(entry)
    before = outcomes(ledger, runs[UNTRAINED], "vectors")
    names = [name for metric in before for name in (metric, "gained")]
    lines = [
        f"| {domain} | ranking | seeds | {' | '.join(names)} | STS-B | CPU s |",
        "|---" * (len(names) + 5) + "|",
    ]
    for model, entries in runs.items():
        once = [
            spread([entry["STS-B"] for entry in entries]),
            f"{np.mean([entry['cpu_s'] for entry in entries]):.0f}",
        ]
        for ranking in entries[0]["figures"]:
            cells = []
            for metric, after in outcomes(ledger, entries, ranking).items():
                cells.append(
                    spread([entry["figures"][ranking][metric] for entry in entries])
                )
                cells.append(interval(after - before[metric]))
            of_model = once if ranking == "vectors" else ["", ""]
            lines.append(
                "| "
                + " | ".join([model, ranking, str(len(entries)), *cells, *of_model])
                + " |"
            )
    return lines


def outcomes(
    ledger: Ledger, entries: list[dict], ranking: str
) -> dict[str, np.ndarray]:
    """The mean outcomes of each query over the seeds."""
    files = [
        np.load(outcome_file(ledger.place(entry["run"]), ranking)) for entry in entries
    ]
    return {
        metric: np.mean([file[metric] for file in files], axis=0) for metric in files[0]
    }


def interval(gained: np.ndarray) -> str:
    """The mean difference and its interval, times 100."""
    rng = np.random.default_rng(0)
    means = [rng.choice(gained, len(gained)).mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{100 * gained.mean():+.2f} [{100 * low:.2f}, {100 * high:.2f}]"


if __name__ == "__main__":
    main()
