"""How often so many judged pairs show the gain that a model has over its backbone.

    python benchmarks/judged_pairs.py --model FOLDER [--pairs 100,200,400,800] [--draws 100] [--data FOLDER]

The model is one that `aoe train --preset domain` made of sentences of MedQuAD. RQE's test pairs stand for all
pairs that could be judged: as many as asked for are drawn from them with replacement, and `aoe evaluate
--against minilm` gives its verdict on each draw.
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
    """Print the gain on all pairs, and the share of the draws that show one."""
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
    place = {text: number for number, text in enumerate(texts)}
    found = [aoe_train.Encoder.load(one).encode(texts, progress=False) for one in (options.model, "minilm")]
    model, backbone = (lambda asked, own=own: own[[place[text] for text in asked]] for own in found)
    whole = pl.DataFrame(
        [(row["sentence1"], row["sentence2"], int(row["label"])) for row in rows],
        schema=["text1", "text2", "label"],
        orient="row",
    )
    generator = np.random.default_rng(0)

    def gain(frame: pl.DataFrame) -> Any:
        result = aoe_train.evaluate(model, against=backbone, data=frame, resamples=500, progress=False)
        return next(iter(result.gains.values()))

    print(f"all {whole.height} pairs: {gain(whole)}\n\n| judged pairs | shown |\n|---|---|")
    for pairs in map(int, options.pairs.split(",")):
        drawn = (whole[generator.integers(0, whole.height, pairs)] for _ in range(options.draws))
        shown = np.mean([gain(frame).word == "ship" for frame in drawn])
        print(f"| {pairs} | {100 * shown:.0f} % |", flush=True)


if __name__ == "__main__":
    main()
