"""Headings and labels of both polarities: only what stands under the one that was asked for is meant."""

from __future__ import annotations

import re

from llm_labeler._parse.names import polarity_of
from llm_labeler._parse.source import Source
from llm_labeler._records import Polarity

_CLOTHES = " \t#*_>-•+="
_LABEL = re.compile(r"[ \t#*_>•+-]*(?:\(?\d{1,2}[.):]\s*)?[#*_]*(?P<label>[^:\n.!?\"“「]{2,60}):(?P<rest>.*)")
_HEADING = re.compile(r"[ \t]*(?:#{1,6} |\*\*|__)[^.!?\n]{2,60}$")
_MOST_WORDS = 6


def of_polarity(text: str, source: Source, polarity: Polarity | None) -> list[tuple[str, bool]]:
    """Stretches of lines in order, each with whether it stands under the other polarity."""
    lines = text.split("\n")
    spoken = [_polarity(line, source) for line in lines]
    told = set(spoken) - {None}
    if polarity is None or len(told) < 2:
        return [(text, False)]
    stretches: list[tuple[list[str], bool]] = [([], False)]
    for line, of_line in zip(lines, spoken, strict=True):
        is_other = stretches[-1][1] if of_line is None else of_line != polarity
        if is_other != stretches[-1][1]:
            stretches.append(([], is_other))
        stretches[-1][0].append(line)
    return [("\n".join(part), is_other) for part, is_other in stretches if part]


def _polarity(line: str, source: Source) -> Polarity | None:
    match = _LABEL.match(line[:400])
    if match is not None and len(match["label"].split()) <= _MOST_WORDS:
        return None if source.is_like(match["label"]) else polarity_of(match["label"])
    if match is None and _HEADING.match(line) and len(line.split()) <= _MOST_WORDS + 1:
        return polarity_of(line)
    return None
