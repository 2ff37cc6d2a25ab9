"""Questions asked in other words; `questions.txt` has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from llm_labeler._providers.wordnet.patterns import parse, read_table
from llm_labeler._providers.wordnet.sentence import capital

_PARTS = {
    "x": r"[^?;:]{2,80}?",
    "y": r"[^?;:]{2,80}?",
    "do": r"(?!be\b)[^?]+?",
    "word": r"\w+",
    "ing": r"\w+ing",
    "term": r"(?!(?:the|your|my|a|an|it|this|that|there)\b)[\w-]+(?: [\w-]+)?",
}


def rephrased(text: str, table: str = "questions") -> Iterator[tuple[str, float]]:
    """Other wordings of a question, each with how sure it is; none of what is no question that is known.

    Args:
        text: The question.
        table: The table of the wordings.
    """
    for shape, wording, sure in _rules(table):
        match = shape.fullmatch(text)
        if match:
            asked = capital(
                wording.format_map({name: part.strip() for name, part in match.groupdict().items()})
            )
            yield asked + ("?" if match["end"] else ""), sure


@cache
def _rules(table: str) -> tuple[tuple[re.Pattern[str], str, float], ...]:
    return tuple((_shape(left), right, sure) for left, right, sure in parse(read_table(table)))


def _shape(left: str) -> re.Pattern[str]:
    pieces = re.split(r"\{(\w+)\}", left)
    pattern = "".join(
        f"(?P<{piece}>{_PARTS[piece]})" if place % 2 else re.escape(piece)
        for place, piece in enumerate(pieces)
    )
    return re.compile(rf"{pattern}\s*(?P<end>\?*)", re.IGNORECASE)
