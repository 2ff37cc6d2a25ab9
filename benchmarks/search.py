"""Search in many texts: indexing time, bytes per text, query time and recall of each kind of index.

    python benchmarks/search.py --model MODEL [--texts 1000000] [--kinds flat,hnsw] [--queries 200]
        [--quantize float32] [--data FOLDER]

The texts combine halves of different NLI sentences. `--model` makes the vectors; use a static model (`aoe
distill`), because MiniLM would take most of an hour. All kinds are built from the same vectors. Prints CPU
seconds, bytes per text of the folder, median and 99th percentile of the wall time of a search (top 10, by
vectors and words), and recall@10 of vectors compared with exact search.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import instruction_sets, processor
from peers_aoe.environments import add_flags
from runs import argument_parser
from static_models import nli

import aoe_train


def main() -> None:
    """Make the texts and an index of each kind, and print a table."""
    parser = argument_parser(__doc__)
    add_flags(parser)
    parser.add_argument("--model", required=True)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--kinds", default="flat,hnsw")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--quantize", default="float32")
    options = parser.parse_args()
    texts = mixture(nli(options.data), options.texts)
    asked = mixture(nli(options.data), options.queries, seed=1)
    print(f"{processor()}, {instruction_sets()}\n")
    print(
        "| kind | texts | made in CPU s | bytes a text | query ms, median | 99 % | recall@10 |"
    )
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds.split(","):
            begun = time.process_time()
            made = aoe_train.index(
                texts,
                model=options.model,
                out=Path(folder) / options.quantize,
                kind=kind,
                quantize=options.quantize,
                cache=False,
                progress=False,
            )
            seconds = time.process_time() - begun
            found = 1000 * np.quantile(
                times(aoe_train.open_index(made.out), asked), [0.5, 0.99]
            )
            figures = f"{made.bytes / made.rows:,.0f} | {found[0]:.0f} | {found[1]:.0f} | {made.recall:.3f}"
            print(f"| {kind} | {made.rows:,} | {seconds:.0f} | {figures} |", flush=True)


def mixture(sentences: list[str], count: int, seed: int = 0) -> list[str]:
    """`count` different texts, each from halves of two sentences."""
    words = [sentence.split() for sentence in sentences]
    draw = random.Random(seed)  # noqa: S311 - a sample, not a secret
    found: dict[str, None] = {}
    while len(found) < count:
        first, second = draw.choice(words), draw.choice(words)
        found[
            " ".join([*first[: len(first) // 2 + 1], *second[len(second) // 2 :]])
        ] = None
    return list(found)


def times(index: aoe_train.SearchIndex, asked: list[str]) -> list[float]:
    """Seconds of each search, after a first one that loads files."""
    index.search(asked[0])
    found = []
    for text in asked:
        begun = time.perf_counter()
        index.search(text)
        found.append(time.perf_counter() - begun)
    return found


if __name__ == "__main__":
    main()
