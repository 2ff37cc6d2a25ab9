"""Active sentences made passive, and passive ones active."""

from __future__ import annotations

import re

from llm_labeler._providers.wordnet.grammar import NOUN_PHRASE, WITH_PHRASES, is_plural
from llm_labeler._providers.wordnet.morphology import inflected_verb, other_lemma
from llm_labeler._providers.wordnet.sentence import Sentence, capital, word_set

_PASSIVE = re.compile(rf"({WITH_PHRASES})(MR?b|B)R?(e)I({WITH_PHRASES})\.")
_ACTIVE = re.compile(rf"({NOUN_PHRASE})(?:(B)g|[vz])({NOUN_PHRASE})((?:I{NOUN_PHRASE})*)\.")
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
    auxiliary, verb, agent = match.start(2), match.start(3), match.start(4)
    low, last = sentence.low, len(sentence.words) - 1
    lemma = other_lemma(low[verb])
    if low[verb + 1] != "by" or sentence.codes[agent] == "#" or _MEANS & set(low[agent:last]) or not lemma:
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
    """The text as `A is being written by B.` where it is `B is writing A.`, or `B affects A.`; else None."""
    match = _ACTIVE.fullmatch(sentence.codes)
    if not match or "by" in sentence.low:
        return None
    thing, place = match.start(3), match.start(4)
    verb, low = thing - 1, sentence.low
    base = low[verb] if sentence.codes[verb] == "v" else other_lemma(low[verb])
    if match[2]:
        fits = base not in _NO_PASSIVE and low[verb - 1] in ("is", "are")
    else:
        agrees = is_plural(sentence, 0, verb) == (sentence.codes[verb] == "v")
        fits = base in _TRANSITIVE and agrees and not match[4]
    if not fits or not base:
        return None
    be = ("are" if is_plural(sentence, thing, place) else "is") + " being" * bool(match[2])
    passive = f"{be} {inflected_verb(base, 'e')} by {sentence.opening(match.end(1))}"
    return capital(f"{sentence.slice(thing, place)} {passive}{sentence.text[sentence.spans[place - 1][1] :]}")
