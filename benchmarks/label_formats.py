"""Precision and recall of the parser on tests/llm_labeler/answers: `python benchmarks/label_formats.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.llm_labeler.answer_formats import NAMES, precision_and_recall, read

print("| answers | formats | precision | recall | not as expected |")
print("|---|---:|---:|---:|---:|")
for name in NAMES:
    formats = [*read(name)]
    precision, recall = precision_and_recall(formats)
    wrong = sum(one.parsed() != one.expected for one in formats)
    print(f"| {name} | {len(formats)} | {precision:.3f} | {recall:.3f} | {wrong} |")
