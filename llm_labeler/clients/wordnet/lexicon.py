"""Words that say the same or the opposite, and compounds: what WordNet can say whatever sense is meant.

`lexicon.tsv` was derived from WordNet 3.0 (its head says how). A word is in it only for its dominant sense:
its only one, or the one that at least three quarters of its occurrences in hand-tagged text have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache, lru_cache
from importlib import resources
from typing import Literal

import lemminflect

Pos = Literal["n", "v", "a", "r"]  # noun, verb, adjective, adverb, as WordNet calls them
_UPOS: dict[Pos, str] = {"n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV"}
_VERB_TAGS = {"v": "VB", "z": "VBZ", "d": "VBD", "e": "VBN", "g": "VBG"}


@lru_cache(maxsize=50_000)
def lemmas(form: str, pos: Pos) -> tuple[str, ...]:
    """The lemmas that a form, in small letters, may belong to; none of a word that no dictionary has."""
    return tuple(lemminflect.getAllLemmas(form, _UPOS[pos]).get(_UPOS[pos], ()))


def other_lemma(form: str) -> str:
    """The verb of which a form is another than its lemma: `find` of found; empty if there is none."""
    known = lemmas(form, "v")
    return next((lemma for lemma in known if lemma != form), "".join(known[:1]))


@lru_cache(maxsize=10_000)
def plural(noun: str) -> str:
    """The plural; of a compound its last word's."""
    head, space, last = noun.rpartition(" ")
    forms: tuple[str, ...] = ("people",) if last == "person" else lemminflect.getInflection(last, "NNS")
    return head + space + next((form for form in forms if form != last), last)


@lru_cache(maxsize=10_000)
def inflected_verb(verb: str, code: str) -> str:
    """The form of a verb that a code stands for (see `tagging`); of a phrase, its first word's."""
    first, space, rest = verb.partition(" ")
    forms: tuple[str, ...] = lemminflect.getInflection(first, _VERB_TAGS[code])
    return (forms or (first,))[0] + space + rest


def degree(adjective: str, ending: str) -> str:
    """The comparative (`er`) or superlative (`est`)."""
    tag, word = ("JJR", "more") if ending == "er" else ("JJS", "most")
    known: tuple[str, ...] = lemminflect.getInflection(adjective, tag, inflect_oov=False)
    return known[0] if known else f"{word} {adjective}"


def with_article_for(word: str) -> str:
    """`a` or `an`, whichever a word wants."""
    low = word.lower()
    if re.match(r"(?:uni(?!n|m)|us[aeiu]|eu|one\b|once|ut[ei]|ubiq|u[bcdfghjklmnpqrstvwxz]?-)", low):
        return "a"
    if re.match(r"(?:hour|honest|heir|honou?r)", low) or re.fullmatch(r"[AEFHILMNORSX][A-Z0-9]*", word):
        return "an"
    return "an" if low[:1] in "aeiou" or re.match(r"8|11\b|18\b", low) else "a"


def synonyms(lemma: str, pos: Pos) -> tuple[str, ...]:
    """Words of the same dominant sense that are in use, the most frequent first."""
    return _rows()["synonym", pos].get(lemma, ())


def antonyms(lemma: str, pos: Pos) -> tuple[str, ...]:
    """Words that are the direct opposite in the dominant sense of both."""
    return _rows()["antonym", pos].get(lemma, ())


def is_prefixed(adjective: str) -> bool:
    """Whether it is the opposite of what stands after its first two letters: unknown, incorrect."""
    return adjective in _rows()["prefixed", "a"]


def is_compound(words: tuple[str, ...]) -> bool:
    """Whether words, in small letters, are one entry of several: `white blood cell`."""
    return words[0] in _compounds() and " ".join(words) in _compounds()[words[0]]


@cache
def _rows() -> dict[tuple[str, str], dict[str, tuple[str, ...]]]:
    found: dict[tuple[str, str], dict[str, tuple[str, ...]]] = defaultdict(dict)
    text = (resources.files(__package__) / "lexicon.tsv").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            kind, pos, lemma, *words = line.split("\t")
            found[kind, pos][lemma] = tuple(words)
    return found


@cache
def _compounds() -> dict[str, frozenset[str]]:
    by_first: dict[str, set[str]] = defaultdict(set)
    for compound in _rows()["compound", "n"]:
        by_first[compound.split(" ", 1)[0]].add(compound)
    return {first: frozenset(compounds) for first, compounds in by_first.items()}
