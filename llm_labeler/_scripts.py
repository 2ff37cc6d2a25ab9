"""In which script a sentence is written, and whether two are written alike."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from unicodedata import name

from pairkit.composing import normalize

# Scripts that put no spaces between words: each character counts as one.
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
# The same, and whose characters say as much as words: each letter counts, elsewhere each word.
_BY_LETTER = frozenset(("CJK", "KANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR"))
_SAME = {"HIRAGANA": "KANA", "KATAKANA": "KANA"}
_MIXED = 0.2  # share of a text from which a second script is part of it, as terms in English often are
_MOSTLY = 0.7  # more of one script than another text has: then one is a translation of the other
_SHORT = 3  # characters of an abbreviation, which any script borrows


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


def is_translation(one: str, other: str) -> bool:
    """Whether two texts are in different scripts: then one is a translation, or a rendering of its sounds.

    Chinese and Japanese share their signs, so that neither can be told from the other.
    """
    if len(one) <= _SHORT or (one.isascii() and other.isascii()):
        return False
    ours, theirs = _with_kana_as_han(shares(one)), _with_kana_as_han(shares(other))
    return bool(ours) and any(share - ours.get(script, 0.0) > _MOSTLY for script, share in theirs.items())


def _with_kana_as_han(found: dict[str, float]) -> dict[str, float]:
    kana = found.pop("KANA", 0.0)
    return {**found, "CJK": found.get("CJK", 0.0) + kana} if kana else found


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
