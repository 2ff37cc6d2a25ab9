"""Saying yes where a sentence says no."""

from __future__ import annotations

from collections.abc import Iterator

from llm_labeler._providers.wordnet.denials import PARTIAL
from llm_labeler._providers.wordnet.files import WordNet
from llm_labeler._providers.wordnet.grammar import main_verb
from llm_labeler._providers.wordnet.morphology import inflected_verb, with_article_for
from llm_labeler._providers.wordnet.patterns import Change
from llm_labeler._providers.wordnet.sentence import Edit, Sentence
from llm_labeler._providers.wordnet.words import word_set

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
_CONTRACTED = {
    "isn't": "is", "aren't": "are", "wasn't": "was", "weren't": "were", "can't": "can", "cannot": "can",
    "couldn't": "could", "won't": "will", "wouldn't": "would", "shouldn't": "should", "haven't": "have",
    "hasn't": "has", "hadn't": "had",
}  # fmt: skip
_DO = {"do": "v", "does": "z", "did": "d", "don't": "v", "doesn't": "z", "didn't": "d"}


def assertions(wordnet: WordNet, sentence: Sentence) -> Iterator[Change]:
    """Candidates that leave out one `not` or `no`, the main clause's first."""
    main = main_verb(sentence)
    for place, word in enumerate(sentence.low):
        edits = _asserted(wordnet, sentence, place, word)
        after = sentence.low[place + 1 :]
        if edits and not set(after[:3]) & _POLAR and "until" not in after:
            near = main is not None and abs(place - main) <= 2
            if near and sentence.low[0] in PARTIAL:
                continue
            yield Change(0.93 if near else 0.82, (*edits, *_any_to_some(sentence, place + 1)))


def _asserted(wordnet: WordNet, sentence: Sentence, place: int, word: str) -> tuple[Edit, ...]:
    before = sentence.codes[place - 1] if place else "^"
    if word in _CONTRACTED:
        return (Edit(place, place + 1, _CONTRACTED[word]),)
    if word in ("don't", "doesn't", "didn't"):
        return _without_do(wordnet, sentence, place, place + 1)
    if word == "not" and before == "O":
        return _without_do(wordnet, sentence, place - 1, place + 1)
    if word == "not" and before in "BMH" and "or" not in sentence.low[place - 2 : place + 2]:
        return (Edit(place, place + 1, ""),)
    if word == "no" and sentence.low[place + 1 : place + 2] == ("longer",) and before in "PnsBMH":
        return (Edit(place, place + 2, "still"),)
    if word == "no" and (before in "HvzdBI" or place == 0):
        return _without_no(sentence, place)
    return ()


def _without_do(wordnet: WordNet, sentence: Sentence, start: int, place: int) -> tuple[Edit, ...]:
    """`does not often cause` becomes `often causes`."""
    end = place
    while sentence.codes[end : end + 1] == "R":
        end += 1
    if sentence.codes[end : end + 1] not in ("v", "H") or (start and sentence.codes[start - 1] in "CT"):
        return ()
    verb = inflected_verb(wordnet, sentence.low[end], _DO[sentence.low[start]])
    return (Edit(start, end + 1, " ".join((*sentence.words[place:end], verb))),) if verb else ()


def _without_no(sentence: Sentence, place: int) -> tuple[Edit, ...]:
    end = place + 1
    while sentence.codes[end : end + 1] in ("J", "n", "e", "g") and sentence.codes[
        end + 1 : end + 2
    ] in tuple("Jns"):
        end += 1
    head = sentence.codes[end : end + 1]
    if head == "s":
        return (Edit(place, place + 1, "some" if place == 0 or sentence.codes[place - 1] == "I" else ""),)
    if head != "n":
        return ()
    word = sentence.words[end]
    article = "some" if word.lower() in _MASS or word.endswith(("ing", "ness", "ence")) else ""
    return (Edit(place, place + 1, article or with_article_for(sentence.words[place + 1])),)


def _any_to_some(sentence: Sentence, place: int) -> tuple[Edit, ...]:
    for at in range(place, min(place + 4, len(sentence.low))):
        if sentence.low[at] == "any":
            return (Edit(at, at + 1, "some"),)
    return ()
