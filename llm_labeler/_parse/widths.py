"""Full-width signs: an answer is read as if they were narrow, and its sentences keep them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from llm_labeler._records import Item

# One character for one, so that places stay what they are.
_NARROW = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {
    0x3000: 0x20,
    0xFE55: 0x3A,
    0xFF61: 0x3002,
}
_SKIPPED = frozenset("*_`\\")  # markup, which may be gone from a sentence; white space too
_MOST_MISSES = 20


def narrow(text: str) -> str:
    """`text` with full-width forms of ASCII as ASCII, of the same length."""
    return text if text.isascii() else text.translate(_NARROW)


def widened(items: Iterable[Item], answer: str) -> list[Item]:
    """Sentences with the characters that `answer` has where they stand.

    Args:
        items: Read from `narrow(answer)`, in its order.
        answer: As it came.
    """
    narrowed = narrow(answer)
    if narrowed == answer:
        return [*items]
    places = [place for place, character in enumerate(narrowed) if not _is_skipped(character)]
    bare = "".join(narrowed[place] for place in places)
    found, start, misses = [], 0, 0
    for item in items:
        wanted = "".join(character for character in item.text if not _is_skipped(character))
        at = bare.find(wanted, start) if wanted and misses < _MOST_MISSES else -1
        if at < 0:
            misses += bool(wanted)
            found.append(item)
            continue
        wide = iter(answer[place] for place in places[at : at + len(wanted)])
        said = "".join(c if _is_skipped(c) else next(wide) for c in item.text)
        found.append(replace(item, text=said))
        start = at + len(wanted)
    return found


def _is_skipped(character: str) -> bool:
    return character.isspace() or character in _SKIPPED
