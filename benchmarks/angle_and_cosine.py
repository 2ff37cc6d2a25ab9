"""How differently do the angle's forms and the cosine rank the same pairs?

    python benchmarks/angle_and_cosine.py [--model MODEL] [--data FILE]

Each pair of texts gets three similarities from the same vectors; printed are their Spearman correlations
with the gold scores and with each other, and how widely they spread. What ranks alike can teach little.
"""

from __future__ import annotations

import argparse

import torch
from peers_aoe.environments import DATA
from scipy.stats import spearmanr

from aoe_train.evaluation.pairs import read_pair_task
from aoe_train.evaluation.task import Vectors
from aoe_train.model.encoder import Encoder
from aoe_train.objectives.similarity import angle_phase, angle_reference, cosine

MEASURES = {"cosine": cosine, "angle, reference": angle_reference, "angle, phase": angle_phase}


def main() -> None:
    """Read the flags, encode, print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--data", default=str(DATA / "stsb" / "stsb-dev.tsv"))
    options = parser.parse_args()
    task = read_pair_task(options.data)
    vectors = Vectors(Encoder.load(options.model, precision="fp32").encode, [task.texts])
    one, other = (torch.from_numpy(vectors.matrix[vectors.rows(side)]) for side in (task.text1, task.text2))
    found = {name: measure(one, other).numpy() for name, measure in MEASURES.items()}
    print(f"| {len(task.labels):,} pairs | gold | {' | '.join(found)} | deviation |")
    print("|---" * (len(found) + 3) + "|")
    for name, values in found.items():
        against = [task.labels, *found.values()]
        cells = [f"{spearmanr(values, rival).statistic:.4f}" for rival in against]
        print(f"| {name} | {' | '.join(cells)} | {values.std():.3f} |")


if __name__ == "__main__":
    main()
