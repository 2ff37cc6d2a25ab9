"""Marked lines that are titles of the sentences below them: `### Variation 1 – Formal`, `2. Another verb`."""

from __future__ import annotations

from llm_labeler._parse.marks import Mark
from llm_labeler._parse.source import Source, size_of

_ENDED = (".", "!", "?", "。", "…", '"', "”", "»", "」", ")", ";", ",")


def titles_of(lines: list[str], marks: dict[int, Mark], source: Source) -> list[int] | None:
    """The places of lines that are titles, where all marks of the first one's kind are; else None."""
    first = next(iter(marks.values()))
    outer = [
        place for place, mark in marks.items() if mark.indent <= first.indent and mark.kind == first.kind
    ]
    alike = all(
        mark.indent > first.indent or mark.kind == first.kind or mark.kind == "bullet"
        for mark in marks.values()
    )
    below = _below(lines, outer)
    if not alike or any(not _is_title(marks[place], lines[place], below[place], source) for place in outer):
        return None
    return outer if len(outer) > 1 or (first.kind == "label" and not first.rest.strip("*_ ")) else None


def _below(lines: list[str], places: list[int]) -> dict[int, str]:
    """The first line with words below each place, up to the next one."""
    found: dict[int, str] = {}
    for start, end in zip(places, [*places[1:], len(lines)], strict=True):
        inner = (line for line in lines[start + 1 : end] if any(c.isalnum() for c in line))
        found[start] = next(inner, "")
    return found


def _is_title(mark: Mark, line: str, below: str, source: Source) -> bool:
    said = mark.rest.strip("*_: \t")
    first = next((character for character in below if character.isalpha()), "")
    if not first or first.islower():
        return False
    if not said:
        return mark.kind == "label"
    is_short = not source.is_as_long_as(said) or 2 * size_of(said) <= size_of(below)
    return is_short and not said.endswith(_ENDED) and not line.rstrip("*_ ").endswith(":")
