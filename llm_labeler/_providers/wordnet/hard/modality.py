"""What may be made what must be, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator

from llm_labeler._providers.wordnet.grammar import main_verb
from llm_labeler._providers.wordnet.hard.turned import Turned, turned
from llm_labeler._providers.wordnet.sentence import Edit, Sentence, word_set

_OTHER = {
    "may": ("will always", 0.9),
    "might": ("will always", 0.9),
    "could": ("will always", 0.88),
    "can": ("must", 0.9),
    "must": ("need not", 0.93),
    "should": ("need not", 0.93),
}
# Who may do something, or must.
_ACTING = word_set("you we they people patients women men parents doctors doctor users user person patient")
# What one does not do, but has done to one.
_HAPPENING = word_set("have be feel need experience develop notice also lose get")
# What happens so often can't be said to happen always.
_SELDOM = word_set("sometimes often occasionally rarely usually seldom eventually first only")


def modality_changes(sentence: Sentence) -> Iterator[Turned]:
    """The main clause's modal verb, exchanged for one of another force."""
    place = main_verb(sentence)
    if place is None or sentence.codes[place] != "M" or sentence.is_negative or sentence.is_question:
        return
    if _SELDOM & set(sentence.low) or (
        sentence.low[0] == "in" and sentence.low[1] in ("some", "many", "rare")
    ):
        return
    after = sentence.low[place + 1 : place + 2]
    if sentence.low[place] in _OTHER and after != ("not",):
        new, sure = _OTHER[sentence.low[place]]
        if sentence.low[place] == "can" and not _ACTING & set(sentence.low[:place]):
            new = "will always"  # it can cause, and not: it must cause
        elif new == "will always" and _ACTING & set(sentence.low[:place]) and after[0] not in _HAPPENING:
            new = "must"
        skipped = after == ("also",)
        yield turned("modality", sure, Edit(place, place + 1 + skipped, new))
