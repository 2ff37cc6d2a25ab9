"""Saying yes where a sentence says no."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_labeler._providers.wordnet.denials import PARTIAL
from llm_labeler._providers.wordnet.grammar import main_verb
from llm_labeler._providers.wordnet.morphology import inflected_verb, with_article_for
from llm_labeler._providers.wordnet.sentence import Change, Edit, Sentence, word_set

# Words that live on a `not` before them.
_POLAR = word_set(
    """
    yet either ever anymore until unless nor neither even necessarily much because enough only just but
    completely entirely fully all every both
    """
)
# Nouns that take no article.
_MASS = word_set(
    "evidence information pain research damage proof food help medicine knowledge money time water blood data"
)
_CONTRACTED = re.compile(r"(is|are|was|were|could|would|should|have|has|had)n't")
_IRREGULAR = {"can't": "can", "cannot": "can", "won't": "will"}
_DO = {"do": "v", "does": "z", "did": "d"}


def assertions(sentence: Sentence) -> Iterator[Change]:
    """Candidates that leave out one `not` or `no`, the main clause's first."""
    main = main_verb(sentence)
    for place in range(len(sentence.low)):
        edits = _asserted(sentence, place)
        after = sentence.low[place + 1 :]
        if edits and not set(after[:3]) & _POLAR and "until" not in after:
            near = main is not None and abs(place - main) <= 2
            if not (near and sentence.low[0] in PARTIAL):
                yield Change(0.93 if near else 0.82, (*edits, *_any_to_some(sentence, place + 1)))


def _asserted(sentence: Sentence, place: int) -> tuple[Edit, ...]:
    word, before = sentence.low[place], sentence.codes[place - 1] if place else "^"
    contracted = _CONTRACTED.fullmatch(word)
    if contracted or word in _IRREGULAR:
        return (Edit(place, place + 1, contracted[1] if contracted else _IRREGULAR[word]),)
    if word.removesuffix("n't") in _DO and word not in _DO:
        return _without_do(sentence, place, place + 1)
    if word == "not" and before == "O":
        return _without_do(sentence, place - 1, place + 1)
    if word == "not" and before in "BMH" and "or" not in sentence.low[place - 2 : place + 2]:
        return (Edit(place, place + 1, ""),)
    if word == "no" and sentence.low[place + 1 : place + 2] == ("longer",) and before in "PnsBMH":
        return (Edit(place, place + 2, "still"),)
    return _without_no(sentence, place) if word == "no" and before in "HvzdBI^" else ()


def _without_do(sentence: Sentence, start: int, place: int) -> tuple[Edit, ...]:
    """`does not often cause` becomes `often causes`."""
    end = place
    while sentence.codes[end : end + 1] == "R":
        end += 1
    if sentence.codes[end : end + 1] not in ("v", "H") or (start and sentence.codes[start - 1] in "CT"):
        return ()
    verb = inflected_verb(sentence.low[end], _DO[sentence.low[start].removesuffix("n't")])
    return (Edit(start, end + 1, " ".join((*sentence.words[place:end], verb))),)


def _without_no(sentence: Sentence, place: int) -> tuple[Edit, ...]:
    phrase = re.compile("[Jneg]*(?=[Jns])[ns]").match(sentence.codes, place + 1)
    if not phrase:
        return ()
    word = sentence.low[phrase.end() - 1]
    if sentence.codes[phrase.end() - 1] == "s":
        return (Edit(place, place + 1, "some" if place == 0 or sentence.codes[place - 1] == "I" else ""),)
    mass = word in _MASS or word.endswith(("ing", "ness", "ence"))
    return (Edit(place, place + 1, "some" if mass else with_article_for(sentence.words[place + 1])),)


def _any_to_some(sentence: Sentence, place: int) -> tuple[Edit, ...]:
    near = sentence.low[place : place + 4]
    return (Edit(place + near.index("any"), place + near.index("any") + 1, "some"),) if "any" in near else ()
