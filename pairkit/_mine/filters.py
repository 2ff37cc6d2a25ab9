"""Why two texts that were found make no pair."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from pairkit._mine.documents import beginning
from pairkit._mine.strategies import Mined
from pairkit.printable import holds_no_text

# What links say that says nothing of where they lead.
_IDLE = {
    "here",
    "click here",
    "this",
    "link",
    "this link",
    "this page",
    "more",
    "read more",
    "see also",
    "next",
}
_LETTER = re.compile(r"[^\W\d_]")


def filtered(found: Sequence[Mined], *, least: int, most: int) -> list[tuple[Mined, str | None]]:
    """Each with its texts on one line and cut, and the reason why it is left out; None: it stays.

    Args:
        found: In the order in which the first of two equal pairs is to stay.
        least: Characters that a text must have.
        most: Characters that it is cut to, after a whole sentence or word.
    """
    cut = [
        replace(one, anchor=beginning(one.anchor, most), positive=beginning(one.positive, most))
        for one in found
    ]
    reasons = [_why_unusable(one, least) for one in cut]
    leads_to: defaultdict[str, set[str]] = defaultdict(set)
    for one, reason in zip(cut, reasons, strict=True):
        if reason is None and one.names:
            leads_to[one.anchor.casefold()].add(one.positive.casefold())
    seen: set[frozenset[str]] = set()
    for number, one in enumerate(cut):
        pair = frozenset((one.anchor.casefold(), one.positive.casefold()))
        if reasons[number] is not None:
            continue
        if one.names and len(leads_to[one.anchor.casefold()]) > 1:
            reasons[number] = "ambiguous"
        elif pair in seen:
            reasons[number] = "repeated"
        else:
            seen.add(pair)
    return list(zip(cut, reasons, strict=True))


def _why_unusable(one: Mined, least: int) -> str | None:
    texts = (one.anchor, one.positive)
    if not all(texts):
        return "empty"
    if any(map(holds_no_text, texts)):
        return "unusable_characters"
    if not all(map(_LETTER.search, texts)):
        return "no_letters"
    if min(map(len, texts)) < least:
        return "too_short"
    if one.strategy == "links" and one.anchor.casefold().strip(".,: ") in _IDLE:
        return "idle_words"
    return "same_texts" if one.anchor.casefold() == one.positive.casefold() else None
