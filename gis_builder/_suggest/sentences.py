"""The sentence of each candidate that is nearest to an issue: the first by BM25 among all their sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from pairkit.bm25 import Bm25

_END = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"\w")
_LONGEST = 300  # characters that are shown
_MOST = 2000  # sentences of a text that are looked at


def best_sentences(text: str, candidates: Sequence[str]) -> list[str]:
    """Of each candidate's text the sentence that shares most with `text`; its title where it has no more.

    Words that few of all the sentences have count most. Ties go to the earlier sentence.

    Args:
        text: Of the issue.
        candidates: Their texts: a title, an empty line, a body.
    """
    told = [_sentences(candidate) for candidate in candidates]
    scores = Bm25([sentence for sentences in told for sentence in sentences]).scores(text)
    found, start = [], 0
    for sentences in told:
        own = scores[start : start + len(sentences)]
        start += len(sentences)
        found.append(_shortened(sentences[int(np.argmax(own))]) if sentences else "")
    return found


def _sentences(text: str) -> list[str]:
    """Lines of a body, cut where sentences end; the title where there is no body."""
    title, _, body = text.partition("\n\n")
    lines = (piece.strip() for line in (body or title).splitlines() for piece in _END.split(line))
    return [line for line in lines if _WORD.search(line)][:_MOST] or [title]


def _shortened(sentence: str) -> str:
    line = " ".join(sentence.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
