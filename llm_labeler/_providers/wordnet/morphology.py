"""From a word's form to its lemma, and from a lemma back to the form that stood there."""

from __future__ import annotations

import re

from llm_labeler._providers.wordnet.files import Pos, WordNet
from llm_labeler._providers.wordnet.words import DEGREES, PAST, PLURALS

# What a regular form ends with, and what its lemma ends with instead.
_SUFFIXES: dict[Pos, tuple[tuple[str, str], ...]] = {
    "n": (
        ("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("sses", "ss"), ("xes", "x"), ("zes", "z"), ("s", ""),
    ),
    "v": (
        ("ies", "y"), ("ied", "y"), ("ches", "ch"), ("shes", "sh"), ("sses", "ss"), ("xes", "x"), ("es", "e"),
        ("es", ""), ("s", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""),
    ),
    "a": (("ier", "y"), ("iest", "y"), ("er", "e"), ("er", ""), ("est", "e"), ("est", "")),
    "r": (("ier", "y"), ("iest", "y"), ("er", ""), ("est", "")),
}  # fmt: skip
_VOWELS = "aeiou"
_DOUBLED = re.compile(r"(?:[bcdfghjklmnpqrstvwxyz]|qu|^)[aeiou][bdgklmnprtvz]")
_PARTICIPLES = {form: base for base, (_, form) in PAST.items()}
_PASTS = {form: base for base, (form, _) in PAST.items()}
_SINGULARS = {plural: singular for singular, plural in PLURALS.items()}
_BASES = {form: base for base, forms in DEGREES.items() for form in forms}


def lemmas(wordnet: WordNet, form: str, pos: Pos) -> tuple[str, ...]:
    """The lemmas that a form, in small letters, may belong to; those that WordNet has, the form first."""
    found = [form] if wordnet.knows(form, pos) else []
    if pos == "n" and form in _SINGULARS:
        return (_SINGULARS[form],)
    if pos == "v" and (base := _PASTS.get(form) or _PARTICIPLES.get(form)):
        return tuple(dict.fromkeys((*found, base)))
    if pos in "ar" and form in _BASES:
        return tuple(lemma for lemma in (_BASES[form],) if wordnet.knows(lemma, pos))
    found += wordnet.exceptions[pos].get(form, ())
    if pos == "n" and form.endswith(("ss", "us", "is")):
        return tuple(dict.fromkeys(found))
    for suffix, ending in _SUFFIXES[pos]:
        stem = form.removesuffix(suffix)
        if stem == form or len(stem) < 2:
            continue
        found += [lemma for lemma in (stem + ending, _undoubled(stem)) if wordnet.knows(lemma, pos)]
    return tuple(dict.fromkeys(found))


def plural(noun: str) -> str | None:
    """The plural; None where it can't be told, as of Latin words. Of a compound its last word's."""
    head, space, last = noun.rpartition(" ")
    if last in PLURALS:
        return head + space + PLURALS[last]
    if " of " in noun or (
        last.endswith(("us", "um", "on", "ix", "ex", "nx", "a", "eau", "f", "fe", "ics"))
        and not (last.endswith(("ion", "son", "eon")))
    ):
        return None
    if last.endswith("sis"):
        return noun[:-2] + "es"
    return noun if last.endswith("s") and not last.endswith("ss") else _with_s(noun)


def third_person(verb: str) -> str:
    """The form after he, she, it."""
    return {"have": "has", "be": "is", "do": "does", "go": "goes", "undergo": "undergoes"}.get(
        verb
    ) or _with_s(verb)


def inflected_verb(wordnet: WordNet, verb: str, code: str) -> str | None:
    """The form of a verb that a code stands for (see `words`); of a phrase, its first word's.

    Returns:
        The form, or None where it can't be told.
    """
    first, space, rest = verb.partition(" ")
    if code == "v":
        return verb
    if code == "z":
        form: str | None = third_person(first)
    elif code == "g":
        form = _ing(wordnet, first)
    else:
        form = _past(wordnet, first, participle=code == "e")
    return None if form is None else form + space + rest


def degree(adjective: str, ending: str) -> str:
    """The comparative (`er`) or superlative (`est`)."""
    if adjective in DEGREES:
        return DEGREES[adjective][ending == "est"]
    if len(re.findall(r"[aeiouy]+", adjective.removesuffix("e"))) > 1 and not adjective.endswith("y"):
        return f"{'more' if ending == 'er' else 'most'} {adjective}"
    if adjective.endswith("e"):
        return adjective + ending[1:]
    if adjective.endswith("y") and adjective[-2:-1] not in _VOWELS:
        return adjective[:-1] + "i" + ending
    doubled = len(adjective) < 5 and _DOUBLED.fullmatch(adjective[-3:])
    return adjective + (adjective[-1] if doubled else "") + ending


def with_article_for(word: str) -> str:
    """`a` or `an`, whichever a word wants."""
    low = word.lower()
    if re.match(r"(?:uni(?!n|m)|us[aeiu]|eu|one\b|once|ut[ei]|ubiq|u[bcdfghjklmnpqrstvwxz]?-)", low):
        return "a"
    if re.match(r"(?:hour|honest|heir|honou?r)", low) or re.fullmatch(r"[AEFHILMNORSX][A-Z0-9]*", word):
        return "an"
    return "an" if low[:1] in _VOWELS or re.match(r"8|11\b|18\b", low) else "a"


def _with_s(word: str) -> str:
    if word.endswith("y") and word[-2:-1] not in _VOWELS:
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _undoubled(stem: str) -> str:
    return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] else stem


def _doubling(wordnet: WordNet, verb: str, ending: str) -> str | None:
    """`stopped`, `permitted`: the form with its last letter twice, if that is how it is written."""
    form = verb + verb[-1] + ending
    if verb in wordnet.exceptions["v"].get(form, ()):
        return form
    short = len(re.findall(r"[aeiouy]+", verb)) == 1
    return form if short and len(verb) > 2 and _DOUBLED.fullmatch(verb[-3:]) else None


def _ing(wordnet: WordNet, verb: str) -> str:
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")) and verb != "be":
        return verb[:-1] + "ing"
    if verb in PAST and PAST[verb][0] == verb + "ed":
        return verb + "ing"
    return _doubling(wordnet, verb, "ing") or verb + "ing"


def _past(wordnet: WordNet, verb: str, *, participle: bool) -> str | None:
    if verb in PAST:
        return PAST[verb][participle]
    if verb.endswith("e"):
        regular = verb + "d"
    elif verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        regular = verb[:-1] + "ied"
    else:
        regular = _doubling(wordnet, verb, "ed") or verb + "ed"
    return None if verb in wordnet.irregular_verbs and regular not in wordnet.exceptions["v"] else regular
