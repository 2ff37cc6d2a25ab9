"""Threads in English and twelve other languages: closed as a duplicate, or for another reason."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from .detect_threads import check

DATA = Path(__file__).with_name("data")


def table(name: str) -> list[tuple[str, str, list[str]]]:
    """Rows of a language, the expected targets or `no`, and the lines of a thread."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [
            (row["language"], row["expected"], row["thread"].replace("\\n", "\n").split(" | "))
            for row in rows
        ]


@pytest.mark.parametrize(("language", "expected", "lines"), table("languages.tsv"))
def test_each_language(language: str, expected: str, lines: list[str]) -> None:
    check(expected, lines)
