"""Synonyms, antonyms, compounds and inflected forms.

`lexicon.tsv` was derived from WordNet 3.0. It has a word only in its dominant sense: the only one, or that of
at least three quarters of its occurrences in hand-tagged text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache, lru_cache
from importlib import resources
from typing import Literal

import lemminflect

Pos = Literal["n", "v", "a", "r"]  # WordNet's noun, verb, adjective, adverb
_UPOS = {"n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV"}
_VERB_TAGS = {"v": "VB", "z": "VBZ", "d": "VBD", "e": "VBN", "g": "VBG"}
_SPOKEN_CONSONANT = re.compile(
    r"(?:uni(?!n|m)|us[aeiu]|eu|one\b|once|ut[ei]|ubiq|u[bcdfghjklmnpqrstvwxz]?-)"
)
_SPOKEN_VOWEL = re.compile(r"hour|honest|heir|honou?r|[aeiou]|8|11\b|18\b")
_SPELT_VOWEL = re.compile(r"[AEFHILMNORSX][A-Z0-9]*")  # an abbreviation such as FBI

Words = tuple[str, ...]
Rows = dict[str, Words]  # by lemma


@lru_cache(maxsize=50_000)
def lemmas(form: str, pos: Pos) -> Words:
    """The possible lemmas of a lower-case form; none for unknown words."""
    return tuple(lemminflect.getAllLemmas(form, _UPOS[pos]).get(_UPOS[pos], ()))


def other_lemma(form: str) -> str:
    """The lemma of a verb form, preferably one that differs: `find` for found; empty if unknown."""
    candidates = lemmas(form, "v")
    for lemma in candidates:
        if lemma != form:
            return lemma
    return form if candidates else ""


@lru_cache(maxsize=10_000)
def plural(noun: str) -> str:
    """The plural of a noun or compound."""
    head, space, last = noun.rpartition(" ")
    if last == "person":
        return head + space + "people"
    for form in lemminflect.getInflection(last, "NNS"):
        if form != last:
            return f"{head}{space}{form}"
    return noun


@lru_cache(maxsize=10_000)
def inflected_verb(verb: str, code: str) -> str:
    """The form of a verb for a code of `sentence`; in a phrase, the first word is inflected."""
    first, space, rest = verb.partition(" ")
    forms = lemminflect.getInflection(first, _VERB_TAGS[code]) or [first]
    return f"{forms[0]}{space}{rest}"


def degree(adjective: str, ending: str) -> str:
    """The comparative (`er`) or superlative (`est`)."""
    tag, word = ("JJS", "most") if ending == "est" else ("JJR", "more")
    forms = lemminflect.getInflection(adjective, tag, inflect_oov=False)
    return str(forms[0]) if forms else f"{word} {adjective}"


def with_article_for(word: str) -> str:
    """`a` or `an`, as a word needs it."""
    low = word.lower()
    if _SPOKEN_CONSONANT.match(low):
        return "a"
    return "an" if _SPOKEN_VOWEL.match(low) or _SPELT_VOWEL.fullmatch(word) else "a"


def synonyms(lemma: str, pos: Pos) -> Words:
    """Common words with the same dominant sense, by falling frequency."""
    return _rows()["synonym", pos].get(lemma, ())


def antonyms(lemma: str, pos: Pos) -> Words:
    """Words whose dominant sense is the direct opposite."""
    return _rows()["antonym", pos].get(lemma, ())


def is_prefixed(adjective: str) -> bool:
    """Whether an adjective is the opposite of its part after two letters: unknown, incorrect."""
    return adjective in _rows()["prefixed", "a"]


def is_compound(words: Words) -> bool:
    """Whether lower-case words are a compound: `white blood cell`."""
    return " ".join(words) in _compounds().get(words[0], ())


@cache
def _rows() -> dict[tuple[str, str], Rows]:
    """The rows of the lexicon by relation and part of speech."""
    rows: dict[tuple[str, str], Rows] = defaultdict(dict)
    file = resources.files(__package__) / "lexicon.tsv"
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            relation, pos, lemma, *words = line.split("\t")
            rows[relation, pos][lemma] = tuple(words)
    return rows


@cache
def _compounds() -> dict[str, set[str]]:
    """The compounds by first word."""
    by_first = defaultdict(set)
    for compound in _rows()["compound", "n"]:
        first, _, _ = compound.partition(" ")
        by_first[first].add(compound)
    return by_first
