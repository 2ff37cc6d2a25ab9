"""What two sentences have in common, word by word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from unicodedata import category

from llm_labeler._scripts import UNSPACED
from pairkit.composing import normalize

_APOSTROPHE = re.compile(r"(?<=\w)['’ʼ](?=\w)")
_NOT = re.compile(r"\b(?:can(?:not|['’]t)|won['’]t|shan['’]t|(\w+)n['’]t)\b")
_NOT_WORDS = {"can": "can not", "won": "will not", "sha": "shall not"}
_ASCII_LOOKS = re.compile(r"[\x00-\x20\x7f!\"#%&'()*,\-./:;?@\[\\\]_{}]")  # ASCII's part of `_LOOKS`
_LOOKS = "PZC"  # punctuation, spaces, control signs
_ARTICLES = frozenset(("a", "an", "the"))
_ENDING = re.compile(r"(?<=\w\w\w)(?:ing|ied|ies|ed|es|e|y|s)$")
_BRITISH = (("our", "or"), ("ise", "ize"), ("isa", "iza"), ("isi", "izi"), ("yse", "yze"), ("tre", "ter"))


def fold(sentence: str) -> str:
    """A sentence in NFKC without case, punctuation and white space: the same where only looks differ.

    Signs of mathematics and money stay: they can be all that tells two sentences apart.
    """
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
    """How much of two sentences of the same words stands in the same order, in [0, 1]; 0 if a word differs.

    Articles don't count as words, and English inflection or spelling doesn't make a word differ. "not", an
    antonym, a number or any other word that only one of them has does, and makes it 0 however long they are:
    one word is enough for the opposite.
    """
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
