"""How many judged pairs it takes to show a model's gain over its backbone.

    python benchmarks/judged_pairs.py --model FOLDER [--pairs 100,200,400,800] [--draws 100] [--data FOLDER]

The model comes from `aoe train --preset domain` on sentences of MedQuAD. For each number of pairs, samples of
RQE's test pairs are drawn with replacement. Prints the share of samples in which `aoe evaluate --against
minilm` reports a gain.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from peers_aoe.environments import add_flags
from peers_aoe.texts import table

import aoe_train


def main() -> None:
    """Print the gain on all pairs, and the share of samples that show it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--pairs", default="100,200,400,800")
    parser.add_argument("--draws", type=int, default=100)
    options = parser.parse_args()
    rows = table(options.data / "rqe" / "rqe-test.tsv")
    texts = sorted({row[side] for row in rows for side in ("sentence1", "sentence2")})
    index = {text: number for number, text in enumerate(texts)}
    vectors = [
        aoe_train.Encoder.load(name).encode(texts, progress=False) for name in (options.model, "minilm")
    ]
    model, backbone = (lambda chosen, own=own: own[[index[text] for text in chosen]] for own in vectors)
    all_pairs = pl.DataFrame(
        [(row["sentence1"], row["sentence2"], int(row["label"])) for row in rows],
        schema=["text1", "text2", "label"],
        orient="row",
    )
    generator = np.random.default_rng(0)

    def gain(frame: pl.DataFrame) -> Any:
        result = aoe_train.evaluate(model, against=backbone, data=frame, resamples=500, progress=False)
        return next(iter(result.gains.values()))

    print(f"all {all_pairs.height} pairs: {gain(all_pairs)}\n\n| judged pairs | shown |\n|---|---|")
    for pairs in map(int, options.pairs.split(",")):
        samples = (all_pairs[generator.integers(0, all_pairs.height, pairs)] for _ in range(options.draws))
        shown = np.mean([gain(frame).word == "ship" for frame in samples])
        print(f"| {pairs} | {100 * shown:.0f} % |", flush=True)


if __name__ == "__main__":
    main()
