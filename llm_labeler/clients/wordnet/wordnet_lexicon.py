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
_UPOS: dict[Pos, str] = {"n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV"}
_VERB_TAGS = {"v": "VB", "z": "VBZ", "d": "VBD", "e": "VBN", "g": "VBG"}


@lru_cache(maxsize=50_000)
def lemmas(form: str, pos: Pos) -> tuple[str, ...]:
    """The possible lemmas of a lower-case form; none for unknown words."""
    return tuple(lemminflect.getAllLemmas(form, _UPOS[pos]).get(_UPOS[pos], ()))


def other_lemma(form: str) -> str:
    """The lemma of a verb form, preferably one that differs: `find` for found; empty if unknown."""
    candidates = lemmas(form, "v")
    return next((lemma for lemma in candidates if lemma != form), "".join(candidates[:1]))


@lru_cache(maxsize=10_000)
def plural(noun: str) -> str:
    """The plural of a noun or compound."""
    head, space, last = noun.rpartition(" ")
    forms: tuple[str, ...] = ("people",) if last == "person" else lemminflect.getInflection(last, "NNS")
    return head + space + next((form for form in forms if form != last), last)


@lru_cache(maxsize=10_000)
def inflected_verb(verb: str, code: str) -> str:
    """The form of a verb for a code of `sentence`; in a phrase, the first word is inflected."""
    first, space, rest = verb.partition(" ")
    forms: tuple[str, ...] = lemminflect.getInflection(first, _VERB_TAGS[code])
    return (forms or (first,))[0] + space + rest


def degree(adjective: str, ending: str) -> str:
    """The comparative (`er`) or superlative (`est`)."""
    tag, word = ("JJR", "more") if ending == "er" else ("JJS", "most")
    forms: tuple[str, ...] = lemminflect.getInflection(adjective, tag, inflect_oov=False)
    return forms[0] if forms else f"{word} {adjective}"


def with_article_for(word: str) -> str:
    """`a` or `an`, as a word needs it."""
    low = word.lower()
    if re.match(r"(?:uni(?!n|m)|us[aeiu]|eu|one\b|once|ut[ei]|ubiq|u[bcdfghjklmnpqrstvwxz]?-)", low):
        return "a"
    if re.match(r"(?:hour|honest|heir|honou?r)", low) or re.fullmatch(r"[AEFHILMNORSX][A-Z0-9]*", word):
        return "an"
    return "an" if low[:1] in "aeiou" or re.match(r"8|11\b|18\b", low) else "a"


def synonyms(lemma: str, pos: Pos) -> tuple[str, ...]:
    """Common words with the same dominant sense, by falling frequency."""
    return _rows()["synonym", pos].get(lemma, ())


def antonyms(lemma: str, pos: Pos) -> tuple[str, ...]:
    """Words whose dominant sense is the direct opposite."""
    return _rows()["antonym", pos].get(lemma, ())


def is_prefixed(adjective: str) -> bool:
    """Whether an adjective is the opposite of its part after two letters: unknown, incorrect."""
    return adjective in _rows()["prefixed", "a"]


def is_compound(words: tuple[str, ...]) -> bool:
    """Whether lower-case words are a compound: `white blood cell`."""
    return words[0] in _compounds() and " ".join(words) in _compounds()[words[0]]


@cache
def _rows() -> dict[tuple[str, str], dict[str, tuple[str, ...]]]:
    rows: dict[tuple[str, str], dict[str, tuple[str, ...]]] = defaultdict(dict)
    text = (resources.files(__package__) / "lexicon.tsv").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            kind, pos, lemma, *words = line.split("\t")
            rows[kind, pos][lemma] = tuple(words)
    return rows


@cache
def _compounds() -> dict[str, frozenset[str]]:
    by_first: dict[str, set[str]] = defaultdict(set)
    for compound in _rows()["compound", "n"]:
        by_first[compound.split(" ", 1)[0]].add(compound)
    return {first: frozenset(compounds) for first, compounds in by_first.items()}
