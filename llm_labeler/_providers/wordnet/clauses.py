"""Clauses and phrases moved to the other end of their sentence."""

from __future__ import annotations

import re

from llm_labeler._providers.wordnet.files import WordNet
from llm_labeler._providers.wordnet.grammar import WITH_PHRASES, main_start, main_verb, uncapitalised
from llm_labeler._providers.wordnet.sentence import Sentence
from llm_labeler._providers.wordnet.words import word_set

_CLAUSES = word_set("if because when although unless after before once until")
_FRONTED = word_set("in during at within throughout among")
_NO_PLACE = word_set("addition general fact turn contrast other some many most rare summary particular all")


def clause_to_end(sentence: Sentence) -> str | None:
    """The text as `B if A.` where it is `If A, B.`; else None."""
    start, last = main_start(sentence), len(sentence.words) - 1
    if sentence.low[0] not in _CLAUSES or not start or "," in sentence.low[:1] or start > 20:
        return None
    begin = start + 1 if sentence.low[start] == "then" else start
    opening = sentence.codes[:start]
    if "," in sentence.low[begin:last] or last - begin < 3 or not re.search("[MBHOzdv]", opening):
        return None
    if main_verb(sentence) is None or re.search("[CS]", sentence.codes[begin:last]):
        return None
    return f"{sentence.slice(begin, last)} {_small(sentence, start - 1)}{sentence.words[last]}"


def clause_to_front(wordnet: WordNet, sentence: Sentence) -> str | None:
    """The text as `If A, B.` where it is `B if A.`; else None."""
    last = len(sentence.words) - 1
    places = [at for at in range(3, last - 2) if sentence.low[at] in _CLAUSES and sentence.codes[at] == "S"]
    if len(places) != 1 or "," in sentence.low or sentence.codes[0] in "SCWIRg,":
        return None
    place = places[0]
    if sentence.codes[place - 1] in "RBvzdIC#W" or re.search("[CSWT]", sentence.codes[:place]):
        return None
    after = sentence.codes[place + 1 : last]
    finite = re.match(r"(?:P|D?[RJ]?[Jen]*[ns])[RN]*[MBHOzdv]", after)
    if not finite or re.search("[W]", after):
        return None
    clause, main = sentence.slice(place, last), uncapitalised(wordnet, sentence, place)
    return f"{clause[:1].upper()}{clause[1:]}, {main}{sentence.words[last]}"


def phrase_to_end(sentence: Sentence) -> str | None:
    """The text as `B in A.` where it is `In A, B.`; else None."""
    last = len(sentence.words) - 1
    if sentence.low[0] not in _FRONTED or sentence.low.count(",") != 1:
        return None
    comma = sentence.low.index(",")
    phrase, clause = sentence.codes[1:comma], sentence.codes[comma + 1 : last]
    if not re.fullmatch(WITH_PHRASES, phrase) or _NO_PLACE & set(sentence.low[1:comma]) or comma > 8:
        return None
    if main_verb(sentence) is None or re.search("[CSWIT]", clause) or not 3 <= len(clause) <= 14:
        return None
    return f"{sentence.slice(comma + 1, last)} {_small(sentence, comma)}{sentence.words[last]}"


def _small(sentence: Sentence, end: int) -> str:
    """An opening clause's text without its capital, which its first word, a small one, never keeps."""
    text = sentence.slice(0, end)
    return text[:1].lower() + text[1:]
