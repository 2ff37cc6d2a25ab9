"""What a guide costs: CPU seconds of `aoe train --guide` and of sentence-transformers' GISTEmbedLoss.

    python benchmarks/guides.py [--pairs 640] [--epochs 2] [--rounds 1] [--sentence-transformers PYTHON]
        [--data FOLDER]

all-MiniLM-L6-v2 is trained on pairs of STS-B train of a score of 4 and more, batches of 32, with itself as
guide: temperature 0.01, anchors and positives among the candidates, no margin, which is GISTEmbedLoss as it
comes. Each library does the same without a guide too (there the peer is its MultipleNegativesRankingLoss), so
that the difference is what the guide costs. Counted are the CPU seconds of all threads, as the machine may be
busy: of the steps alone, and of the whole process, in which our guide's vectors are made.

The peer asks its guide in every step. Ours is asked once, so its share falls with the epochs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median

from peers_aoe.environments import add_flags, minilm, pythons, run
from peers_aoe.texts import stsb, write

PEER = "sentence-transformers"
SIMILAR = 4.0  # of 5: the texts of such a pair are a positive


def main() -> None:
    """Read the flags; time both libraries with and without a guide, in turns."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser, PEER)
    parser.add_argument("--pairs", type=int, default=640)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    python = pythons(options, PEER)
    alike = [row for row in stsb(options.data, "train") if row["label"] >= SIMILAR][: options.pairs]
    with tempfile.TemporaryDirectory() as folder:
        pairs = [{"anchor": row["text1"], "positive": row["text2"]} for row in alike]
        path = write(pairs, Path(folder) / "pairs.jsonl")
        found = {(who, guided): [] for who in python for guided in (False, True)}
        for _ in range(options.rounds):
            for (who, guided), answers in found.items():
                answers.append(run(python[who], "train_guided.py", job(who, guided, path, options.epochs)))
                print(json.dumps({"who": who, "guide": guided, **answers[-1]}), flush=True)
    print(f"\n{len(pairs)} pairs, {options.epochs} epochs; CPU seconds\n")
    print("| | steps | whole process | the guide's part of the process |\n|---|---|---|---|")
    for who in python:
        plain, guided = (
            {
                name: median(answer[name] for answer in found[who, with_guide])
                for name in ("steps_s", "whole_s")
            }
            for with_guide in (False, True)
        )
        print(
            f"| {who}, with a guide | {guided['steps_s']:.1f} (without {plain['steps_s']:.1f}) |"
            f" {guided['whole_s']:.1f} (without {plain['whole_s']:.1f}) |"
            f" {guided['whole_s'] - plain['whole_s']:.1f} |"
        )


def job(who: str, guided: bool, path: Path, epochs: int) -> dict:
    """What a contender does."""
    return {
        "who": who,
        "rows": str(path),
        "model": str(minilm()),
        "guide": str(minilm()) if guided else None,
        "epochs": epochs,
        "batch_size": 32,
        "max_length": 128,
        "tau": 0.01,
    }


if __name__ == "__main__":
    main()
