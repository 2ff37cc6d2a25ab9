"""A student of all-MiniLM-L6-v2 trained on texts without labels, with and without its teacher.

    python benchmarks/students.py [--texts 2560] [--layers 2] [--seed 0] [--data FOLDER]

The student is the first layers of the model. It is trained on sentences of STS-B train that the seed draws,
with the defaults of `aoe train`: with `--teacher minilm` (embed_distill), and without (unsupervised SimCSE).
Prints Spearman x 100 on STS-B dev, the mean cosine between vectors of student and teacher, and CPU seconds.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

import numpy as np
from peers_aoe.environments import add_flags
from peers_aoe.texts import stsb
from runs import argument_parser
from scipy.stats import spearmanr

import aoe_train

TEACHER = "minilm"


def main() -> None:
    """Train with and without the teacher, and print a table."""
    parser = argument_parser(__doc__)
    add_flags(parser)
    parser.add_argument("--texts", type=int, default=2560)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    train, dev = (stsb(options.data, split) for split in ("train", "dev"))
    texts = sorted(
        {" ".join(row[side].split()) for row in train for side in ("text1", "text2")}
    )
    drawn = random.Random(options.seed).sample(texts, options.texts)  # noqa: S311 - a sample, not a secret
    judge = Judge(dev)
    print(
        "| | Spearman × 100 on STS-B dev | cosine with the teacher | CPU s |\n|---|---|---|---|"
    )
    print(f"| the teacher | {judge(TEACHER)} | |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        student = Path(folder) / "student"
        aoe_train.export(TEACHER, out=student, layers=options.layers, progress=False)
        print(f"| its first {options.layers} layers | {judge(student)} | |", flush=True)
        for name, teacher in (
            ("trained without a teacher", None),
            ("trained with it", TEACHER),
        ):
            out, begun = Path(folder) / name.replace(" ", "-"), time.process_time()
            aoe_train.train(
                drawn,
                backbone=student,
                out=out,
                teacher=teacher,
                seed=options.seed,
                progress=False,
            )
            print(
                f"| {name} | {judge(out)} | {time.process_time() - begun:.0f} |",
                flush=True,
            )


class Judge:
    """Scores a model on dev, and its mean cosine with the teacher."""

    def __init__(self, rows: list[dict]) -> None:
        self.sides = [[row[side] for row in rows] for side in ("text1", "text2")]
        self.labels = [row["label"] for row in rows]
        self.teacher = self.vectors(TEACHER)[0]

    def vectors(self, model: str | Path) -> list[np.ndarray]:
        """Normalised vectors of both sides."""
        encoder = aoe_train.Encoder.load(model, inference_only=True)
        return [encoder.encode(texts, normalize=True) for texts in self.sides]

    def __call__(self, model: str | Path) -> str:
        """Two cells of the table."""
        one, other = self.vectors(model)
        spearman = spearmanr((one * other).sum(1), self.labels).statistic
        return f"{100 * spearman:.1f} | {(one * self.teacher).sum(1).mean():.3f}"


if __name__ == "__main__":
    main()
