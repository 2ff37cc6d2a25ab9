"""Words and scripts of sentences: what two have in common, and whether they are written alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from unicodedata import category, name

from pairkit.app.printable import normalize

# Scripts that put no spaces between words: each character counts as one.
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
# The same, and whose characters say as much as words: each letter counts, elsewhere each word.
_BY_LETTER = frozenset(("CJK", "KANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR"))
_SAME = {"HIRAGANA": "KANA", "KATAKANA": "KANA"}
_MIXED = 0.2  # share of a text from which a second script is part of it, as terms in English often are
_MOSTLY = 0.7  # more of one script than another text has: then one is a translation of the other
_SHORT = 3  # characters of an abbreviation, which any script borrows
_APOSTROPHE = re.compile(r"(?<=\w)['’ʼ](?=\w)")
_NOT = re.compile(r"\b(?:can(?:not|['’]t)|won['’]t|shan['’]t|(\w+)n['’]t)\b")
_NOT_WORDS = {"can": "can not", "won": "will not", "sha": "shall not"}
_ASCII_LOOKS = re.compile(r"[\x00-\x20\x7f!\"#%&'()*,\-./:;?@\[\\\]_{}]")  # ASCII's part of `_LOOKS`
_LOOKS = "PZC"  # punctuation, spaces, control signs
_ARTICLES = frozenset(("a", "an", "the"))
_ENDING = re.compile(r"(?<=\w\w\w)(?:ing|ied|ies|ed|es|e|y|s)$")
_BRITISH = (("our", "or"), ("ise", "ize"), ("isa", "iza"), ("isi", "izi"), ("yse", "yze"), ("tre", "ter"))


def fold(sentence: str) -> str:
    """A sentence in NFKC without case, punctuation and white space: the same where only looks differ."""
    folded = normalize("NFKC", sentence).casefold()
    if folded.isascii():
        return _ASCII_LOOKS.sub("", folded)
    return "".join(character for character in folded if category(character)[0] not in _LOOKS)


def words(sentence: str) -> list[str]:
    """The words of a sentence without case and punctuation; contracted negations are spelled out."""
    plain = normalize("NFKC", sentence).casefold()
    plain = _NOT.sub(_spelled_out, plain)
    plain = UNSPACED.sub(r" \g<0> ", _APOSTROPHE.sub("", plain))
    if plain.isascii():
        return _ASCII_LOOKS.sub(" ", plain).split()
    return "".join(" " if category(character)[0] in _LOOKS else character for character in plain).split()


def _spelled_out(match: re.Match[str]) -> str:
    word = match.group()
    return _NOT_WORDS.get(word[:3], f"{match[1]} not")


def differing(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words stand in only one of two sentences, repeats counted; a replaced word counts twice."""
    return ((Counter(one) - Counter(other)) + (Counter(other) - Counter(one))).total()


def sameness(one: Sequence[str], other: Sequence[str]) -> float:
    """How much of two sentences of the same words is in the same order, in [0, 1]; 0 if any word differs."""
    left = [stem(word) for word in one if word not in _ARTICLES]
    right = [stem(word) for word in other if word not in _ARTICLES]
    if left == right:
        return 1.0
    if len(left) != len(right) or Counter(left) != Counter(right):
        return 0.0
    return SequenceMatcher(None, left, right).ratio()


def stem(word: str) -> str:
    """A word without its English ending; short words and those with digits are left as they are."""
    if len(word) <= 3 or not word.isalpha():
        return word
    for british, american in _BRITISH:
        word = word.replace(british, american)
    stem = _ENDING.sub("", _ENDING.sub("", word))  # twice: things, thing; played, play
    return stem[:-1] if len(stem) > 2 and stem[-1] == stem[-2] else stem


def is_other_script(candidate: str, text: str) -> bool:
    """Whether `candidate` is not written as `text` is."""
    if candidate.isascii() and text.isascii():
        return False  # Latin, or no letters
    wanted, found = shares(text), shares(candidate)
    if not wanted or not found:
        return False
    most, found_most = max(wanted, key=wanted.__getitem__), max(found, key=found.__getitem__)
    return most not in found or (found_most != most and wanted.get(found_most, 0.0) < _MIXED)


def is_translation(one: str, other: str) -> bool:
    """Whether two texts are in different scripts: then one is a translation, or a rendering of its sounds."""
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
