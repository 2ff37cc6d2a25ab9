"""The list rung: lines with a mark begin an item, lines without go on with it, the rest stands outside."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from llm_labeler._parse import wording
from llm_labeler._parse.inline import with_inline_lists
from llm_labeler._parse.labels import name_of, recurring_names
from llm_labeler._parse.marks import Mark, find_marks
from llm_labeler._parse.prose import read_prose
from llm_labeler._parse.sentence import refine
from llm_labeler._parse.source import Source, tidy
from llm_labeler._parse.titles import titles_of
from llm_labeler._records import Item
from llm_labeler._scripts import is_translation

_ENDED = (".", "!", "?", "。", '"', "”", "*")
_ORDINAL = re.compile(r"[(\[]?(\d{1,3})[.):、\]]{1,2}\s+")


@dataclass(slots=True)
class _Part:
    """Lines that belong together."""

    kind: Literal["item", "sub_item", "outside"]
    lines: list[str]
    mark: Mark | None = None

    @property
    def text(self) -> str:
        return " ".join(self.lines)

    @property
    def is_empty(self) -> bool:
        return not any(line.strip("*_ \t") for line in self.lines)


def read_list(text: str, source: Source) -> list[Item] | None:
    """Items of a list and what stands outside of it, in order; None if there is no list."""
    lines = with_inline_lists(text.split("\n"), source)
    marks = find_marks(lines, source)
    if not marks or (len(marks) == 1 and _counts_inside(next(iter(marks.values())))):
        return None
    if (titles := titles_of(lines, marks, source)) is not None:
        return _under_titles(lines, titles, source)
    parts = _parts(lines, marks, source)
    if all(mark.kind == "label" for mark in marks.values()) and _stands_outside(parts, source):
        return None
    items = [item for part in parts for item in _items(part, source)]
    return without_ordinals(items)


def _stands_outside(parts: list[_Part], source: Source) -> bool:
    """Whether what is labelled are words, and sentences stand below: `Opposites: old, slow⏎Result:⏎The …`."""
    if not source.text.endswith(_ENDED):
        return False
    labelled = [part for part in parts if part.kind == "item"]
    outside = [line for part in parts if part.kind == "outside" for line in part.lines]
    whole = [line for line in outside if tidy(line).endswith(_ENDED) and source.is_as_long_as(line)]
    return len(whole) >= len(labelled) and not any(tidy(part.text).endswith(_ENDED) for part in labelled)


def _under_titles(lines: list[str], titles: list[int], source: Source) -> list[Item]:
    """Items of the stretches between titles, each stretch a list or prose of its own."""
    items: list[Item] = []
    for start, end in pairwise([-1, *titles, len(lines)]):
        if start >= 0:
            items.append(Item(tidy(lines[start]), "preamble"))
        stretch = "\n".join(lines[start + 1 : end])
        listed = read_list(stretch, source)
        items += read_prose(stretch, source, 1) if listed is None else listed
    return items


def without_ordinals(items: list[Item]) -> list[Item]:
    """Items without numbers of their own, where those kept count 1, 2, 3 … from the first to the last."""
    for _ in range(3):
        matches = [_ORDINAL.match(item.text) for item in items if item.reason is None]
        ordinals = [int(match[1]) for match in matches if match]
        if len(matches) < 2 or ordinals != list(range(1, len(matches) + 1)):
            break
        items = [
            item if match is None or item.reason else Item(item.text[match.end() :])
            for item in items
            for match in [_ORDINAL.match(item.text)]
            if item.reason or match is None or match.end() < len(item.text)
        ]
    return items


def _counts_inside(mark: Mark) -> bool:
    """Whether the mark is the sentence's own: `1) one and 2) two`."""
    ordinal = mark.ordinal or 0
    is_number = mark.kind == "number"
    return (
        is_number and f" {ordinal + 1}{mark.sign} " in mark.rest and f"{ordinal}{mark.sign}" not in mark.rest
    )


def _parts(lines: list[str], marks: dict[int, Mark], source: Source) -> list[_Part]:
    parts: list[_Part] = []
    after_blank = False
    names = recurring_names(line for place, line in enumerate(lines) if place not in marks)
    for place, line in enumerate(lines):
        if (mark := marks.get(place)) is not None:
            parts.append(_Part(_kind(mark, parts), [mark.rest], mark))
        elif not any(character.isalnum() for character in line):
            after_blank = True
            continue
        elif name_of(line) not in names and _goes_on(line, parts, after_blank, source):
            parts[-1].lines.append(line)
        else:
            parts.append(_Part("outside", [line]))
        after_blank = False
    return parts


def _kind(mark: Mark, parts: list[_Part]) -> Literal["item", "sub_item"]:
    """A bullet deeper than the numbered item above it is a point of that item, unless that is a heading."""
    above = next((part for part in reversed(parts) if part.kind == "item"), None)
    if mark.kind != "bullet" or above is None or above.mark is None or above.is_empty:
        return "item"
    is_deeper = above.mark.kind in ("number", "letter") and mark.indent > above.mark.indent
    return "sub_item" if is_deeper and not above.text.rstrip("*_ ").endswith(":") else "item"


def _goes_on(line: str, parts: list[_Part], after_blank: bool, source: Source) -> bool:
    """Whether a line without a mark belongs to what stands above it."""
    if not parts:
        return False
    above = parts[-1]
    if above.kind != "outside" and above.is_empty:
        return True
    said = tidy(line)
    if (
        above.kind != "outside"
        and is_translation(said, above.lines[-1])
        and is_translation(said, source.text)
    ):
        return False
    reason = wording.aside(said, source, None) if above.kind != "outside" else None
    is_tail = line[:1] in " \t" and not after_blank and reason == "preamble"  # "… such⏎   as:"
    if reason is not None and not is_tail:
        return False
    if after_blank:
        return above.kind != "outside" and line[:1] in " \t"
    return above.kind != "outside" or wording.echoes(said, source) == wording.echoes(above.lines[0], source)


def _items(part: _Part, source: Source) -> list[Item]:
    if part.kind == "item" and part.is_empty and part.mark and part.mark.label:
        return [Item(tidy(part.mark.label), "preamble")]  # a label of what is no sentence is a heading
    if part.kind == "item":
        return refine(part.text, source)
    said = tidy(part.text)
    if not said:
        return []
    if part.kind == "sub_item":
        return [Item(said, "sub_item")]
    return [Item(said, wording.aside(said, source, "outside_list"))]
