"""Active sentences made passive, and passive ones active."""

from __future__ import annotations

import re

from llm_labeler._providers.wordnet.files import WordNet
from llm_labeler._providers.wordnet.grammar import NOUN_PHRASE, WITH_PHRASES, uncapitalised
from llm_labeler._providers.wordnet.morphology import inflected_verb, lemmas
from llm_labeler._providers.wordnet.sentence import Sentence
from llm_labeler._providers.wordnet.words import word_set

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


def to_active(wordnet: WordNet, sentence: Sentence) -> str | None:
    """The text as `B causes A.` where it is `A is caused by B.`; else None."""
    match = _PASSIVE.fullmatch(sentence.codes)
    if not match:
        return None
    auxiliary, verb, agent = match.start(2), match.start(4), match.start(5)
    low, last = sentence.low, len(sentence.words) - 1
    if (
        low[verb + 1] != "by"
        or sentence.codes[agent] == "#"
        or _MEANS & set(low[agent:last])
        or low[0] == "there"
    ):
        return None
    lemma = next((each for each in lemmas(wordnet, low[verb], "v") if each != low[verb]), None)
    if not lemma or (low[auxiliary] not in ("is", "are") and sentence.codes[auxiliary] != "M"):
        return None
    if sentence.codes[auxiliary] == "M":
        words = [low[auxiliary], *low[auxiliary + 1 : verb - 1], lemma]
        words = [word for word in words if word != "be"]
    else:
        code = "v" if _is_plural(sentence, agent, last) else "z"
        words = [*low[auxiliary + 1 : verb], inflected_verb(wordnet, lemma, code) or ""]
    subject = uncapitalised(wordnet, sentence, auxiliary)
    text = f"{sentence.slice(agent, last)} {' '.join(words)} {subject}."
    return text[:1].upper() + text[1:]


def to_passive(wordnet: WordNet, sentence: Sentence) -> str | None:
    """The text as `A is affected by B.` where it is `B affects A.`; else None."""
    match = _ACTIVE.fullmatch(sentence.codes)
    if not match:
        return None
    verb, thing, last = match.start(4), match.start(5), len(sentence.words) - 1
    if sentence.codes[verb] == "v" and not match[2] and not _is_plural(sentence, 0, verb - len(match[3])):
        return None
    lemma = next((each for each in lemmas(wordnet, sentence.low[verb], "v") if each in _TRANSITIVE), None)
    participle = inflected_verb(wordnet, lemma, "e") if lemma else None
    if participle is None:
        return None
    be = "be" if match[2] else "are" if _is_plural(sentence, thing, last) else "is"
    modal, adverb = (
        sentence.words[match.start(2) : match.end(2)],
        sentence.words[match.start(3) : match.end(3)],
    )
    words = [*modal, *adverb, be] if modal else [be, *adverb]
    subject = uncapitalised(wordnet, sentence, match.end(1))
    text = f"{sentence.slice(thing, last)} {' '.join(words)} {participle} by {subject}."
    return text[:1].upper() + text[1:]


def progressive_to_passive(wordnet: WordNet, sentence: Sentence) -> str | None:
    """The text as `A is being written by B.` where it is `B is writing A.`; else None."""
    match = _PROGRESSIVE.fullmatch(sentence.codes)
    if not match:
        return None
    verb, thing, place = match.start(2), match.start(3), match.start(4)
    bases = [base for base in lemmas(wordnet, sentence.low[verb], "v") if base != sentence.low[verb]]
    if len(bases) != 1 or bases[0] in _NO_PASSIVE or sentence.low[verb - 1] not in ("is", "are"):
        return None
    participle = inflected_verb(wordnet, bases[0], "e")
    if participle is None or "by" in sentence.low[place:]:
        return None
    be = "are" if _is_plural(sentence, thing, place) else "is"
    subject = uncapitalised(wordnet, sentence, verb - 1)
    rest = sentence.text[sentence.spans[place - 1][1] :]
    text = f"{sentence.slice(thing, place)} {be} being {participle} by {subject}{rest}"
    return text[:1].upper() + text[1:]


def _is_plural(sentence: Sentence, start: int, end: int) -> bool:
    """Whether a noun phrase is: its head is the last noun before any preposition."""
    codes = sentence.codes[start:end].split("I", 1)[0]
    return "C" in codes or codes.endswith("s")
