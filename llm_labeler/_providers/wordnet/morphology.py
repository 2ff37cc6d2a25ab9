"""From a word's form to its lemmas, and from a lemma back to the form that stood there, by lemminflect."""

from __future__ import annotations

import re
from functools import lru_cache
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
