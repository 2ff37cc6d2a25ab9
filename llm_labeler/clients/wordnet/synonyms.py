"""Words replaced by what WordNet calls the same, or the opposite, in the form that stood there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from llm_labeler.clients.wordnet.lexicon import (
    Pos,
    antonyms,
    degree,
    inflected_verb,
    is_compound,
    lemmas,
    plural,
    synonyms,
)
from llm_labeler.clients.wordnet.sentence import Change, Edit, Sentence

_POS: dict[str, Pos] = {**dict.fromkeys("ns", "n"), **dict.fromkeys("vzdeg", "v"), "J": "a", "R": "r"}
_DEGREES = frozenset(("more", "most", "less", "least"))
_LONGEST = 3  # words of a compound


def synonym_changes(sentence: Sentence) -> Iterator[Change]:
    """One change for each word that has a safe synonym."""
    for place, pos, word in _replaced(sentence, synonyms):
        if place and sentence.low[place - 1] in _DEGREES:
            continue  # most commonly, but not most usually
        if not (pos == "n" and _modifies(sentence, place)):
            yield Change(0.84 if pos in "ra" else 0.82, (Edit(place, place + 1, word),))


def antonym_changes(sentence: Sentence) -> Iterator[Change]:
    """One change for each adjective, adverb or verb that has a direct opposite."""
    for place, pos, word in _replaced(sentence, antonyms):
        predicate = place > 0 and sentence.codes[place - 1] in "BbR"
        sure = {"a": 0.88 if predicate else 0.8, "r": 0.82, "v": 0.78}[pos]
        yield Change(sure, (Edit(place, place + 1, word),))


def in_compound(sentence: Sentence, edit: Edit) -> bool:
    """Whether an edit would break up an entry of several words."""
    return any(_in_compound(sentence, place) for place in range(edit.start, edit.end))


def _replaced(
    sentence: Sentence, others: Callable[[str, Pos], tuple[str, ...]]
) -> Iterator[tuple[int, Pos, str]]:
    """Each plain word that has others: its place, its part of speech, the best of them in its form."""
    for place, code in enumerate(sentence.codes):
        pos = _POS.get(code)
        lemma = _only_lemma(sentence.low[place], pos, code) if pos and _is_plain(sentence, place) else None
        if pos and lemma and (found := others(lemma, pos)) and not _in_compound(sentence, place):
            yield place, pos, _form(found[0], code, sentence.low[place], lemma)


def _is_plain(sentence: Sentence, place: int) -> bool:
    word = sentence.words[place]
    if sentence.low[place] in _DEGREES:
        return False
    return len(word) > 3 and (word.islower() or (place == 0 and word[1:].islower())) and word.isalpha()


def _only_lemma(low: str, pos: Pos, code: str) -> str | None:
    """The lemma of a form; None where it might be of two."""
    found = lemmas(low, pos)
    if code in "zdegs":
        found = tuple(lemma for lemma in found if lemma != low) or found
    elif low in found:
        return low if pos in "ar" or len(found) == 1 else None
    return found[0] if len(found) == 1 else None


def _form(word: str, code: str, low: str, lemma: str) -> str:
    if code == "s":
        return plural(word)
    if code in "zdeg":
        return inflected_verb(word, code)
    if code in "JR" and low != lemma:
        return degree(word, "est" if low.endswith("st") else "er")
    return word


def _modifies(sentence: Sentence, place: int) -> bool:
    """Whether a noun stands before another that it belongs to, or after one."""
    after = sentence.codes[place + 1 : place + 2]
    before = sentence.codes[place - 1] if place else "^"
    return after in ("n", "s") or before in ("n", "g")


def _in_compound(sentence: Sentence, place: int) -> bool:
    """Whether a word is part of an entry of several words."""
    for start in range(max(0, place - _LONGEST + 1), place + 1):
        for end in range(max(start + 2, place + 1), min(start + _LONGEST, len(sentence.low)) + 1):
            *first, last = sentence.low[start:end]
            if any(is_compound((*first, word)) for word in (last, *lemmas(last, "n"))):
                return True
    return False
