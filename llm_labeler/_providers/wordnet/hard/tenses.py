"""What is made what was, and what has happened what will."""

from __future__ import annotations

from collections.abc import Iterator

from llm_labeler._providers.wordnet.denials import UNDENIABLE
from llm_labeler._providers.wordnet.grammar import has_later_verb, main_verb
from llm_labeler._providers.wordnet.hard.turned import Turned, turned
from llm_labeler._providers.wordnet.morphology import other_lemma
from llm_labeler._providers.wordnet.sentence import Edit, Sentence, word_set

# What is said to happen at times can't be said to have ended.
_FREQUENCY = word_set(
    "often usually generally frequently typically occasionally sometimes rarely commonly seldom"
)
_PERFECT = ("has", "have")


def tense_changes(sentence: Sentence) -> Iterator[Turned]:
    """The main clause's verb in another tense."""
    place = main_verb(sentence)
    if place is None or sentence.is_negative or sentence.is_question:
        return
    if _FREQUENCY & set(sentence.low[: place + 1]):
        return
    if set("WS") & set(sentence.codes[:place]) or has_later_verb(sentence.codes[place + 1 :]):
        return  # it may be another clause's verb
    code, low, after = sentence.codes[place], sentence.low[place], sentence.codes[place + 1 : place + 3]
    if low in _PERFECT and after == "be":
        yield turned("tense", 0.93, Edit(place, place + 2, "will be"))
    elif low in _PERFECT and after[:1] == "e":
        base = other_lemma(sentence.low[place + 1])
        if base:
            yield turned("tense", 0.92, Edit(place, place + 2, f"will {base}"))
    elif low in ("was", "were") and after[:1] == "e":
        yield turned("tense", 0.93, Edit(place, place + 1, "will be"))
    elif low == "will" and after[:1] == "b":
        yield turned("tense", 0.9, Edit(place, place + 2, "has been"))
    elif low in ("is", "are") and after[:1] in ("e", "g") and sentence.codes[place - 1] != "E":
        yield turned("tense", 0.86, Edit(place, place + 1, f"{low} no longer"))
    elif code == "z" and not UNDENIABLE & set(sentence.low[place - 1 : place]):
        yield turned("tense", 0.84, Edit(place, place, "no longer"))
