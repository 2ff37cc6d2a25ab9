"""Static models of all-MiniLM-L6-v2: `aoe distill` (least squares) compared with Model2Vec.

    python benchmarks/static_models.py [--counts 2000,20000,58000] [--dims 384,128] [--data FOLDER]

`aoe distill` fits token vectors to sentences of NLI. Model2Vec (`pip install model2vec`) needs no texts; it
is skipped if it isn't installed. Prints Spearman x 100 on STS-B test, CPU seconds to make the model, and
STS-B texts encoded per CPU second: by `Encoder`, and static models also by sentence-transformers in batches
of 32 and 1,024.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from machine import instruction_sets, processor
from peers_aoe.environments import add_flags
from peers_aoe.texts import stsb, table
from runs import argument_parser
from scipy.stats import spearmanr

import aoe_train
from aoe_train.model.backbones.load_backbone import find_folder

TEACHER = "minilm"
# Of sentence-transformers: the default, and the best for static models.
BATCHES = (32, 1024)
Encode = Callable[[Sequence[str]], np.ndarray]


def main() -> None:
    """Make the models and print a table."""
    parser = argument_parser(__doc__)
    add_flags(parser)
    parser.add_argument("--counts", default="2000,20000,58000")
    parser.add_argument("--dims", default="384,128")
    options = parser.parse_args()
    dims = [int(dim) for dim in options.dims.split(",")]
    rows = stsb(options.data, "test")
    print(f"{processor()}, {instruction_sets()}\n")
    print(
        "| model | numbers | STS-B test | made in CPU s | texts a CPU s |\n|---|---|---|---|---|"
    )
    encoder = aoe_train.Encoder.load(TEACHER, precision="fp32", inference_only=True)
    line("MiniLM", encoder.dim, encoder.encode, rows, 0)
    for dim in dims:
        model2vec(dim, rows)
    sentences = nli(options.data)
    for count in map(int, options.counts.split(",")):
        for dim in dims:
            with tempfile.TemporaryDirectory() as folder:
                out, begun = Path(folder) / "static", time.process_time()
                aoe_train.distill(
                    sentences[:count], model=encoder, out=out, dim=dim, progress=False
                )
                seconds = time.process_time() - begun
                from sentence_transformers import SentenceTransformer

                name = f"`aoe distill`, {min(count, len(sentences)):,} texts"
                line(name, dim, aoe_train.Encoder.load(out).encode, rows, seconds)
                model = SentenceTransformer(str(out), device="cpu")
                for size in BATCHES:
                    theirs = partial(model.encode, batch_size=size)
                    line(
                        f"the same, by sentence-transformers ({size} at once)",
                        dim,
                        theirs,
                        rows,
                        seconds,
                    )


def nli(data: Path) -> list[str]:
    """The distinct sentences of NLI, shuffled with a fixed seed."""
    found = table(data / "nli" / "nli-triplets.derived.tsv.gz")
    texts = sorted(
        {
            " ".join(row[side].split())
            for row in found
            for side in ("anchor", "positive", "negative")
        }
    )
    random.Random(0).shuffle(texts)  # noqa: S311 - a sample, not a secret
    return texts


def model2vec(dim: int, rows: list[dict]) -> None:
    """Print the row of Model2Vec, if it is installed."""
    try:
        from model2vec.distill import distill
    except ImportError:
        return
    begun = time.process_time()
    model = distill(model_name=str(find_folder(TEACHER)), pca_dims=dim, device="cpu")
    line(
        "Model2Vec",
        dim,
        lambda texts: model.encode(list(texts)),
        rows,
        time.process_time() - begun,
    )


def line(name: str, dim: int, encode: Encode, rows: list[dict], seconds: float) -> None:
    """Print the row of a model."""
    sides = [[row[side] for row in rows] for side in ("text1", "text2")]
    encode(sides[0][:10])
    begun = time.process_time()
    first, second = (encode(side) for side in sides)
    speed = 2 * len(rows) / (time.process_time() - begun)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    cosines = (first * second).sum(1) / np.maximum(lengths, 1e-12)
    score = 100 * spearmanr(cosines, [float(row["label"]) for row in rows]).statistic
    print(
        f"| {name} | {dim} | {score:.1f} | {seconds:.0f} | {speed:,.0f} |", flush=True
    )


if __name__ == "__main__":
    main()
