"""Precision and recall of the parser on tests/llm_labeler/answers: `python benchmarks/label_formats.py`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.llm_labeler.answer_formats import NAMES, Format, read


def precision_and_recall(formats: Iterable[Format]) -> tuple[float, float]:
    """Precision and recall of exact sentences."""
    kept = expected = correct = 0
    for one in formats:
        sentences, reference = Counter(one.parsed()), Counter(one.expected)
        kept += sentences.total()
        expected += reference.total()
        correct += (sentences & reference).total()
    return correct / kept, correct / expected


print("| answers | formats | precision | recall | not as expected |")
print("|---|---:|---:|---:|---:|")
for name in NAMES:
    formats = [*read(name)]
    precision, recall = precision_and_recall(formats)
    wrong = sum(one.parsed() != one.expected for one in formats)
    print(f"| {name} | {len(formats)} | {precision:.3f} | {recall:.3f} | {wrong} |")
