"""In which script a sentence is written."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from unicodedata import name

from pairkit.composing import normalize

# Scripts without spaces, or whose characters say as much as words: each letter counts, elsewhere each word.
_BY_LETTER = frozenset(("CJK", "KANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR"))
_SAME = {"HIRAGANA": "KANA", "KATAKANA": "KANA"}
_MIXED = 0.2  # share of a text from which a second script is part of it, as terms in English often are


def is_other_script(candidate: str, text: str) -> bool:
    """Whether `candidate` is not written as `text` is.

    So it is if nothing of it is in the script of most of the text, or if most of it is in a script that less
    than a fifth of the text is in. What has no letters is in no script.
    """
    if candidate.isascii() and text.isascii():
        return False  # Latin, or no letters
    wanted, found = shares(text), shares(candidate)
    if not wanted or not found:
        return False
    most, found_most = max(wanted, key=wanted.__getitem__), max(found, key=found.__getitem__)
    return most not in found or (found_most != most and wanted.get(found_most, 0.0) < _MIXED)


def shares(text: str) -> dict[str, float]:
    """Share of each script in what a text says, by words, or by letters where words aren't spaced."""
    counts: Counter[str] = Counter()
    last: str | None = None
    for character in normalize("NFKC", text):
        script = _script(character)
        if script is not None and (script != last or script in _BY_LETTER):
            counts[script] += 1
        # Digits, apostrophes and marks stand within words.
        last = script if script is not None or character.isspace() else last
    total = counts.total()
    return {script: counts[script] / total for script in sorted(counts)}


@lru_cache(maxsize=4096)
def _script(character: str) -> str | None:
    """A letter's script, after the first word of its Unicode name; None for what is no letter."""
    if not character.isalpha():
        return None
    first = name(character, "UNKNOWN").split(" ", 1)[0]
    return _SAME.get(first, first)
