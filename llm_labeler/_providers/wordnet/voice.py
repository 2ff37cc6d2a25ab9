"""Active sentences made passive, and passive ones active."""

from __future__ import annotations

import re

from llm_labeler._providers.wordnet.grammar import NOUN_PHRASE, WITH_PHRASES, is_plural
from llm_labeler._providers.wordnet.morphology import inflected_verb, lemmas
from llm_labeler._providers.wordnet.sentence import Sentence, capital, word_set

_PASSIVE = re.compile(rf"({WITH_PHRASES})(MR?b|B)(R?)(e)I({WITH_PHRASES})\.")
_ACTIVE = re.compile(rf"({WITH_PHRASES})(M?)(R?)([vz])({NOUN_PHRASE}(?:C{NOUN_PHRASE})?)\.")
_PROGRESSIVE = re.compile(rf"({NOUN_PHRASE})B(g)({NOUN_PHRASE})((?:I{NOUN_PHRASE})*)\.")
_NO_PASSIVE = word_set("have become get do look seem resemble cost weigh take leave")
_TRANSITIVE = word_set(
    """
    affect cause damage treat control influence trigger destroy attack surround support protect regulate
    monitor remove relieve cover describe perform produce create determine disrupt impair block carry
    reduce diagnose confirm detect identify examine evaluate recommend prescribe provide follow use make
    release absorb store
    """
)
_MEANS = word_set("accident hand mouth itself age day year law")


def to_active(sentence: Sentence) -> str | None:
    """The text as `B causes A.` where it is `A is caused by B.`; else None."""
    match = _PASSIVE.fullmatch(sentence.codes)
    if not match:
        return None
    auxiliary, verb, agent = match.start(2), match.start(4), match.start(5)
    low, last = sentence.low, len(sentence.words) - 1
    if low[verb + 1] != "by" or sentence.codes[agent] == "#" or _MEANS & set(low[agent:last]):
        return None
    lemma = next((each for each in lemmas(low[verb], "v") if each != low[verb]), None)
    if not lemma or low[0] == "there":
        return None
    if sentence.codes[auxiliary] == "M":
        words = [word for word in (*low[auxiliary:verb], lemma) if word != "be"]
    elif low[auxiliary] in ("is", "are"):
        code = "v" if is_plural(sentence, agent, last) else "z"
        words = [*low[auxiliary + 1 : verb], inflected_verb(lemma, code)]
    else:
        return None
    return capital(f"{sentence.slice(agent, last)} {' '.join(words)} {sentence.opening(auxiliary)}.")


def to_passive(sentence: Sentence) -> str | None:
    """The text as `A is affected by B.` where it is `B affects A.`; else None."""
    match = _ACTIVE.fullmatch(sentence.codes)
    if not match:
        return None
    verb, thing, last = match.start(4), match.start(5), len(sentence.words) - 1
    modal, adverb = (sentence.words[slice(*match.span(group))] for group in (2, 3))
    if sentence.codes[verb] == "v" and not modal and not is_plural(sentence, 0, verb - len(adverb)):
        return None
    lemma = next((each for each in lemmas(sentence.low[verb], "v") if each in _TRANSITIVE), None)
    if lemma is None:
        return None
    be = "are" if is_plural(sentence, thing, last) else "is"
    words = [*modal, *adverb, "be"] if modal else [be, *adverb]
    passive = f"{' '.join(words)} {inflected_verb(lemma, 'e')} by {sentence.opening(match.end(1))}."
    return capital(f"{sentence.slice(thing, last)} {passive}")


def progressive_to_passive(sentence: Sentence) -> str | None:
    """The text as `A is being written by B.` where it is `B is writing A.`; else None."""
    match = _PROGRESSIVE.fullmatch(sentence.codes)
    if not match:
        return None
    verb, thing, place = match.start(2), match.start(3), match.start(4)
    bases = [base for base in lemmas(sentence.low[verb], "v") if base != sentence.low[verb]]
    if len(bases) != 1 or bases[0] in _NO_PASSIVE or sentence.low[verb - 1] not in ("is", "are"):
        return None
    if "by" in sentence.low[place:]:
        return None
    be = "are" if is_plural(sentence, thing, place) else "is"
    passive = f"{be} being {inflected_verb(bases[0], 'e')} by {sentence.opening(verb - 1)}"
    return capital(f"{sentence.slice(thing, place)} {passive}{sentence.text[sentence.spans[place - 1][1] :]}")
