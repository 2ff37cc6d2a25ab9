"""How many judged pairs, or judged search results, it takes to show a model's gain over its backbone.

    python benchmarks/judged_pairs.py --model FOLDER [--search] [--pairs 100,200,400,800] [--draws 100]
        [--data FOLDER]

The model comes from `aoe train --preset domain`, on sentences of MedQuAD or, for --search, on texts of
banking77. For each number of pairs, samples are drawn with replacement. Prints the share of samples in which
`aoe evaluate --against minilm` reports a gain. The pairs are RQE's test pairs. With --search they are queries
and results as in `aoe sample-pairs --queries`: 1,000 test utterances of banking77 search each other, an
utterance of the same intent is relevant, and there is a column for each --top.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from peers_aoe.environments import add_flags
from peers_aoe.texts import table

import aoe_train
from pairkit.dataset.records import QUERY_COLUMNS

TOPS = (1, 5)


def main() -> None:
    """Print the gain on all pairs, and the share of samples that show it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--pairs", default="100,200,400,800")
    parser.add_argument("--draws", type=int, default=100)
    options = parser.parse_args()
    if options.search:
        rows = table(options.data / "domain" / "banking77-test.tsv")
        rows = random.Random(0).sample(rows, 1000)  # noqa: S311 - a sample, not a secret
        texts = [row["text"] for row in rows]
    else:
        rows = table(options.data / "rqe" / "rqe-test.tsv")
        texts = sorted(
            {row[side] for row in rows for side in ("sentence1", "sentence2")}
        )
    index = {text: number for number, text in enumerate(texts)}
    vectors = [
        aoe_train.Encoder.load(name).encode(texts, normalize=True, progress=False)
        for name in (options.model, "minilm")
    ]
    # A query that was drawn twice is made distinct by a number after a zero byte.
    model, backbone = (
        lambda chosen, own=own: own[[index[text.split("\0")[0]] for text in chosen]]
        for own in vectors
    )
    if options.search:
        intents = np.array([row["category"] for row in rows])
        samplers = {
            f"first {top}": queries_sampler(
                judged_results(texts, intents, vectors, top)
            )
            for top in TOPS
        }
    else:
        judged = [
            (row["sentence1"], row["sentence2"], int(row["label"])) for row in rows
        ]
        samplers = {
            "pairs": pairs_sampler(
                pl.DataFrame(judged, ["text1", "text2", "label"], orient="row")
            )
        }
    generator = np.random.default_rng(0)

    def gain(frame: pl.DataFrame) -> Any:
        result = aoe_train.evaluate(
            model, against=backbone, data=frame, resamples=500, progress=False
        )
        return next(iter(result.gains.values()))

    for name, sampler in samplers.items():
        everything = sampler(None, generator)
        print(f"{name}, all {everything.height} pairs: {gain(everything)}")
    print(f"\n| judged pairs | {' | '.join(samplers)} |\n|---{'|---' * len(samplers)}|")
    for pairs in map(int, options.pairs.split(",")):
        shown = [
            np.mean(
                [
                    gain(sampler(pairs, generator)).word == "better"
                    for _ in range(options.draws)
                ]
            )
            for sampler in samplers.values()
        ]
        print(
            f"| {pairs} | {' | '.join(f'{100 * share:.0f} %' for share in shown)} |",
            flush=True,
        )


Sampler = Callable[[int | None, np.random.Generator], pl.DataFrame]
"""Draws a number of pairs with replacement; all pairs once for None."""


def pairs_sampler(pairs: pl.DataFrame) -> Sampler:
    """Pairs, one by one."""
    return lambda number, generator: (
        pairs if number is None else pairs[generator.integers(0, pairs.height, number)]
    )


def queries_sampler(queries: list[pl.DataFrame]) -> Sampler:
    """Queries with all their results."""

    def sample(number: int | None, generator: np.random.Generator) -> pl.DataFrame:
        if number is None:
            return pl.concat(queries)
        drawn, left = list[pl.DataFrame](), number
        while (query := queries[generator.integers(len(queries))]).height <= left:
            drawn.append(query.with_columns(pl.col("text1") + f"\0{len(drawn)}"))
            left -= query.height
        return pl.concat(drawn)

    return sample


def judged_results(
    texts: list[str], intents: np.ndarray, vectors: list[np.ndarray], top: int
) -> list[pl.DataFrame]:
    """The results of each query with different results, judged by their intents."""
    found = []
    for own in vectors:
        similarity = own @ own.T
        np.fill_diagonal(similarity, -np.inf)
        found.append(np.argsort(-similarity, axis=1, kind="stable")[:, :top])
    differ = [
        query
        for query, (ours, theirs) in enumerate(zip(*found, strict=True))
        if ours[0] != theirs[0] or {*ours} != {*theirs}
    ]
    frames = []
    for query in differ:
        results = [*dict.fromkeys([*found[0][query], *found[1][query]])]
        labels = [int(intents[result] == intents[query]) for result in results]
        about = (top, len(results), len(differ) / len(texts))
        rows = [
            (texts[query], texts[result], label, *about)
            for result, label in zip(results, labels, strict=True)
        ]
        frames.append(
            pl.DataFrame(
                rows, ["text1", "text2", "label", *QUERY_COLUMNS], orient="row"
            )
        )
    return frames


if __name__ == "__main__":
    main()
