"""What the items of an answer say of each other, once each has been read by itself."""

from __future__ import annotations

from dataclasses import replace

from llm_labeler._parse import wording
from llm_labeler._parse.source import Source
from llm_labeler._records import Item
from llm_labeler._scripts import is_translation

_BEFORE = ("thinking", "echo", "preamble", "outside_list")
_SEPARATORS = (";", ",", "、")


def compared(items: list[Item], source: Source, size: int | None) -> list[Item]:
    """Items in which those are turned down that only the others betray."""
    items = _without_corrected(_without_made_up_turns(items, source), source, size)
    items = _without_separators(items, source)
    return _with_like_remarks(_without_translations(_without_source(items, source), source), source)


def after_refusal(items: list[Item]) -> list[Item]:
    """Nothing that follows a refusal is an answer."""
    first = next((item for item in items if item.reason not in _BEFORE), None)
    if first is None or first.reason != "refusal":
        return items
    return [item if item.reason else replace(item, reason="refusal") for item in items]


def _without_corrected(items: list[Item], source: Source, size: int | None) -> list[Item]:
    """Items without those that the answer takes back: all before, if as many follow; else the last one."""
    found: list[Item] = []
    standing: list[int] = []  # places of sentences that nothing took back yet
    left = sum(item.reason is None for item in items)
    for place, item in enumerate(items):
        found.append(item)
        if item.reason is None:
            standing.append(place)
            left -= 1
        elif standing and left and wording.corrects(item.text, source):
            keeps = 0 if left >= (size or len(standing)) else len(standing) - 1
            for taken in standing[keeps:]:
                found[taken] = replace(found[taken], reason="thinking")
            del standing[keeps:]
    return found


def _without_translations(items: list[Item], source: Source) -> list[Item]:
    """Items in which those of another script than the source are remarks, where others are of the same."""
    foreign = {
        n for n, item in enumerate(items) if item.reason is None and is_translation(item.text, source.text)
    }
    if all(n in foreign for n, item in enumerate(items) if item.reason is None):
        return items
    return [replace(item, reason="remark") if n in foreign else item for n, item in enumerate(items)]


def _without_separators(items: list[Item], source: Source) -> list[Item]:
    """Items without the semicolon or comma that parts each sentence from the next: the last may lack it."""
    kept = [item.text for item in items if item.reason is None]
    for sign in _SEPARATORS:
        if (
            len(kept) > 1
            and not source.text.endswith(sign)
            and all(said.endswith(sign) for said in kept[:-1])
        ):
            return [item if item.reason else Item(item.text.removesuffix(sign).rstrip()) for item in items]
    return items


def _without_made_up_turns(items: list[Item], source: Source) -> list[Item]:
    has_sentence = False
    for place, item in enumerate(items):
        has_sentence = has_sentence or item.reason is None
        if has_sentence and item.reason == "echo" and wording.opens_turn(item.text, source):
            return [*items[:place], *(Item(later.text, "runaway") for later in items[place:])]
    return items


def _without_source(items: list[Item], source: Source) -> list[Item]:
    """Items in which the sentence asked about, among others, is said again and takes nobody's place."""
    if sum(item.reason is None for item in items) < 2:
        return items
    return [
        replace(item, reason="echo") if item.reason is None and source.is_said_by(item.text) else item
        for item in items
    ]


def _with_like_remarks(items: list[Item], source: Source) -> list[Item]:
    """Items in which a bracket at the end is a remark, where that of another one is."""
    if "(" in source.text or not any(i.reason == "remark" and i.text.startswith("(") for i in items):
        return items
    found: list[Item] = []
    for item in items:
        start = item.text.rfind(" (") if item.reason is None and item.text.endswith(")") else -1
        if start > 0:
            found += [Item(item.text[:start]), Item(item.text[start + 1 :], "remark")]
        else:
            found.append(item)
    return found
