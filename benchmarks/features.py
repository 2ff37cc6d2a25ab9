"""What `aoe` and sentence-transformers make of the same input: every cell is what happened in this run.

    python benchmarks/features.py [--sentence-transformers PYTHON] [--data FOLDER]

Training rows use a small random BERT, the others all-MiniLM-L6-v2, on a CPU in fp32. The table is about
behaviour: speed, memory and quality have scripts of their own.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from peers_aoe.environments import add_flags, minilm, pythons, run

ROWS = {
    "classes": "a column `label` of 0, 1, 2 (entailment, neutral, contradiction)",
    "columns": "`anchor, positive, negative_1, negative_2`: negatives that the loss sees",
    "same_text": "one text is the positive of both anchors in a batch: is it also a negative of both?",
    "diverged": "a learning rate at which the run diverges",
    "resumed": "killed half-way and continued: largest difference of vectors from an undisturbed run",
    "neighbours": "largest difference of a text's vector alone from that among 63 longer ones",
    "long_text": "a text of 400 words, of which the model reads a part",
    "leak": "a test set whose texts the model was trained on",
    "interval": "what a score on 64 pairs is told with",
    "contradictions": "one pair with two different labels",
}
PEERS = ("sentence-transformers",)


def main() -> None:
    """Read the flags, run both, print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser, *PEERS)
    options = parser.parse_args()
    python = pythons(options, *PEERS)
    with tempfile.TemporaryDirectory() as folder:
        bert = Path(folder) / "bert"
        job = {"minilm": str(minilm()), "bert": str(bert)}
        found = {}
        for who, script in (("ours", "features_ours.py"), ("sentence-transformers", "features_st.py")):
            found[who] = run(python[who], script, job)
    print("| | `aoe` | sentence-transformers |\n|---|---|---|")
    for key, title in ROWS.items():
        print(f"| {title} | {found['ours'][key]} | {found['sentence-transformers'][key]} |")


if __name__ == "__main__":
    main()
