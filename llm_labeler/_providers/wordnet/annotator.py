"""From a sentence to candidates, the surest first. Rules, no LLM: better none than a wrong one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, islice

from llm_labeler._providers.wordnet import contrasts, paraphrases
from llm_labeler._providers.wordnet.files import WordNet
from llm_labeler._providers.wordnet.negation import is_negative, negations
from llm_labeler._providers.wordnet.patterns import Change
from llm_labeler._providers.wordnet.questions import rephrased
from llm_labeler._providers.wordnet.reorder import reorderings
from llm_labeler._providers.wordnet.sentence import Edit, Sentence, tokens
from llm_labeler._providers.wordnet.synonyms import antonym_changes, in_compound, synonym_changes
from llm_labeler._providers.wordnet.tagging import Tagger
from llm_labeler._providers.wordnet.words import word_set
from llm_labeler._records import Polarity

_LEAST = 0.78  # below it a candidate is not worth having
_LONGEST = 120  # tokens; what is longer is a list or no sentence
_ASIDE = 0.9  # what a contrast is worth in a part of the sentence that others depend little on
_AFTER = word_set("to from")
_NOT = word_set("not longer cannot don't doesn't didn't isn't aren't can't")
_QUANTITIES = word_set("no few many")
_PAIRED = 6  # how many changes are tried two at a time


class Annotator:
    """Writes candidates by rules over one WordNet."""

    def __init__(self, wordnet: WordNet) -> None:
        self._wordnet = wordnet
        self._tagger = Tagger(wordnet)

    def candidates(self, text: str, polarity: Polarity, size: int) -> list[str]:
        """Up to `size` sentences, none of them equal to the text or to one another."""
        text = " ".join(text.split())
        if not 0 < len(tokens(text)) <= _LONGEST:
            return []
        sentence = self.read(text)
        changes = self._same(sentence) if polarity == "positive" else self._opposite(sentence)
        ranked = sorted(_distinct(sentence, changes), key=lambda found: (-found[1], found[0]))
        return [candidate for candidate, _ in ranked[:size]]

    def read(self, text: str) -> Sentence:
        """The sentence with its words' codes."""
        spans = tuple(tokens(text))
        words = tuple(text[start:end] for start, end in spans)
        return Sentence(text, spans, words, self._tagger.codes(words))

    def _same(self, sentence: Sentence) -> Iterable[Change]:
        whole = (0, len(sentence.words))
        yield from (Change(sure, (Edit(*whole, text),)) for text, sure in rephrased(sentence.text))
        yield from reorderings(self._wordnet, sentence)
        small = [
            *paraphrases.TABLE.changes(self._wordnet, sentence),
            *synonym_changes(self._wordnet, sentence),
        ]
        yield from small
        yield from _pairs(small)

    def _opposite(self, sentence: Sentence) -> Iterator[Change]:
        yield from negations(self._wordnet, sentence)
        for change in contrasts.TABLE.changes(self._wordnet, sentence):
            if not in_compound(self._wordnet, sentence, change.edits[0]) and _is_opposite(sentence, change):
                yield _weighed(sentence, change)
        for change in antonym_changes(self._wordnet, sentence):
            if _is_opposite(sentence, change):
                yield _weighed(sentence, change)


def _weighed(sentence: Sentence, change: Change) -> Change:
    """Less sure where it stands in a clause that another depends on, or in brackets: it says little there."""
    before = slice(1, change.edits[0].start)
    is_aside = "(" in sentence.words[before] or set("WS") & set(sentence.codes[before])
    return Change(change.confidence * _ASIDE if is_aside else change.confidence, change.edits)


def _is_opposite(sentence: Sentence, change: Change) -> bool:
    """Whether a contrast of words makes one of sentences.

    `How effective is it?` and `How ineffective is it?` ask the same, and so do `Is it possible?` and its
    like; and `no people don't …` says no twice.
    """
    edit = change.edits[0]
    if sentence.codes[edit.start] == "J" and "".join(sentence.words[edit.end : edit.end + 1])[:1].isupper():
        return False  # part of a name
    if sentence.is_question and set(sentence.codes[edit.start : edit.end]) & set("JRDe"):
        return False
    causes = edit.text.startswith(("prevent", "forbid", "cause"))
    if causes and set(sentence.low[edit.end : edit.end + 7]) & _AFTER:
        return False  # one is caused to do, and prevented from doing
    if not is_negative(sentence):
        return True
    near = sentence.low[max(0, edit.start - 3) : edit.end + 1]
    return (
        edit.start > 0 and sentence.low[0] != "no" and edit.text not in _QUANTITIES and not _NOT & set(near)
    )


def _pairs(changes: list[Change]) -> Iterator[Change]:
    best = sorted(changes, key=lambda change: -change.confidence)
    for one, other in combinations(islice(best, _PAIRED), 2):
        if not any(mine.meets(its) for mine in one.edits for its in other.edits):
            yield Change(one.confidence * other.confidence, (*one.edits, *other.edits))


def _distinct(sentence: Sentence, changes: Iterable[Change]) -> list[tuple[str, float]]:
    found: dict[str, tuple[str, float]] = {}
    for change in changes:
        if any(_is_named(sentence, edit) for edit in change.edits):
            continue
        text = sentence.apply(change.edits)
        key = text.casefold()
        if change.confidence >= _LEAST and key != sentence.text.casefold():
            found[key] = max(found.get(key, (text, 0.0)), (text, change.confidence), key=lambda pair: pair[1])
    return list(found.values())


def _is_named(sentence: Sentence, edit: Edit) -> bool:
    """Whether an edit of some words would touch a name: one with a capital inside the sentence."""
    if edit.start == 0 and edit.end == len(sentence.words):
        return False
    return any(
        sentence.words[place][:1].isupper() and sentence.codes[place] != "P"
        for place in range(max(edit.start, 1), edit.end)
        if sentence.codes[place - 1] != "."
    )
