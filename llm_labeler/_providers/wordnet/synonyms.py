"""Words replaced by what WordNet calls the same, or the opposite, in the form that stood there."""

from __future__ import annotations

from collections.abc import Iterator

from llm_labeler._providers.wordnet.files import Pos, WordNet
from llm_labeler._providers.wordnet.lexicon import antonyms, is_compound, synonyms
from llm_labeler._providers.wordnet.morphology import degree, inflected_verb, lemmas, plural
from llm_labeler._providers.wordnet.patterns import Change
from llm_labeler._providers.wordnet.sentence import Edit, Sentence

_POS: dict[str, Pos] = {
    "n": "n",
    "s": "n",
    "v": "v",
    "z": "v",
    "d": "v",
    "e": "v",
    "g": "v",
    "J": "a",
    "R": "r",
}
_DEGREES = frozenset(("more", "most", "less", "least"))
_LONGEST = 3  # words of a compound


def synonym_changes(wordnet: WordNet, sentence: Sentence) -> Iterator[Change]:
    """One change for each word that has a safe synonym."""
    for place, code in enumerate(sentence.codes):
        pos = _POS.get(code)
        if pos is None or not _is_plain(sentence, place) or _in_compound(wordnet, sentence, place):
            continue
        if place and sentence.low[place - 1] in _DEGREES:
            continue  # most commonly, but not most usually
        lemma = _only_lemma(wordnet, sentence.low[place], pos, code)
        if lemma is None:
            continue
        for word in synonyms(wordnet, lemma, pos):
            form = _form(wordnet, word, code, sentence.low[place], lemma)
            if form and not (pos == "n" and _modifies(sentence, place)):
                yield Change(0.84 if pos in "ra" else 0.82, (Edit(place, place + 1, form),))
                break


def antonym_changes(wordnet: WordNet, sentence: Sentence) -> Iterator[Change]:
    """One change for each adjective, adverb or verb that has a direct opposite."""
    for place, code in enumerate(sentence.codes):
        pos = _POS.get(code)
        if pos in (None, "n") or not _is_plain(sentence, place) or _in_compound(wordnet, sentence, place):
            continue
        lemma = _only_lemma(wordnet, sentence.low[place], pos, code)
        if lemma is None:
            continue
        for word in antonyms(wordnet, lemma, pos):
            form = _form(wordnet, word, code, sentence.low[place], lemma)
            if form:
                predicate = place > 0 and sentence.codes[place - 1] in "BbR"
                sure = {"a": 0.88 if predicate else 0.8, "r": 0.82, "v": 0.78}[pos]
                yield Change(sure, (Edit(place, place + 1, form),))
                break


def in_compound(wordnet: WordNet, sentence: Sentence, edit: Edit) -> bool:
    """Whether an edit would break up an entry of several words."""
    return any(_in_compound(wordnet, sentence, place) for place in range(edit.start, edit.end))


def _is_plain(sentence: Sentence, place: int) -> bool:
    word = sentence.words[place]
    return len(word) > 3 and (word.islower() or (place == 0 and word[1:].islower())) and word.isalpha()


def _only_lemma(wordnet: WordNet, low: str, pos: Pos, code: str) -> str | None:
    """The lemma of a form; None where it might be of two."""
    found = lemmas(wordnet, low, pos)
    if code in "zdeg" or (code == "s" and low not in found[:1]):
        found = tuple(lemma for lemma in found if lemma != low)
    elif low in found and len(found) > 1:
        return None if pos in "nv" else low
    return found[0] if len(found) == 1 else None


def _form(wordnet: WordNet, word: str, code: str, low: str, lemma: str) -> str | None:
    if code == "s":
        return plural(word)
    if code in "zdeg":
        return inflected_verb(wordnet, word, code)
    if code in "JR" and low != lemma:
        return degree(word, "est" if low.endswith("st") else "er")
    return word


def _modifies(sentence: Sentence, place: int) -> bool:
    """Whether a noun stands before another that it belongs to, or after one."""
    after = sentence.codes[place + 1 : place + 2]
    before = sentence.codes[place - 1] if place else "^"
    return after in ("n", "s") or before in ("n", "g")


def _in_compound(wordnet: WordNet, sentence: Sentence, place: int) -> bool:
    """Whether a word is part of an entry of several words."""
    for start in range(max(0, place - _LONGEST + 1), place + 1):
        if sentence.low[start] not in wordnet.first_of_compound:
            continue
        for end in range(max(start + 2, place + 1), min(start + _LONGEST, len(sentence.low)) + 1):
            words = sentence.low[start:end]
            last = lemmas(wordnet, words[-1], "n")
            if any(is_compound(wordnet, (*words[:-1], lemma)) for lemma in (words[-1], *last)):
                return True
    return False
