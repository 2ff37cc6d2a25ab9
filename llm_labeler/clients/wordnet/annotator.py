"""Make positives and negatives of a sentence by rules; precision matters more than recall."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product

from llm_labeler.clients.wordnet.denials import assertions, denials
from llm_labeler.clients.wordnet.questions import intent_questions, rephrased
from llm_labeler.clients.wordnet.reorder import reorderings
from llm_labeler.clients.wordnet.substitutions import (
    antonym_changes,
    in_compound,
    phrase_table,
    synonym_changes,
)
from llm_labeler.clients.wordnet.tagged_sentence import (
    Change,
    Edit,
    TaggedSentence,
    word_set,
)
from llm_labeler.records import Polarity

_MIN_CONFIDENCE = 0.78
_MAX_TOKENS = 120  # longer texts are lists
_SUBORDINATE = 0.9  # factor for a change in a subordinate clause or in brackets
_AFTER = word_set("to from")
_NOT = word_set("not longer cannot don't doesn't didn't isn't aren't can't")
_QUANTITIES = word_set("no few many")
_MAX_COMBINED = 6  # changes that are combined in pairs


def candidates(text: str, polarity: Polarity, size: int) -> list[str]:
    """Up to `size` distinct sentences that differ from the text."""
    sentence = TaggedSentence(" ".join(text.split()))
    if not 0 < len(sentence.words) <= _MAX_TOKENS:
        return []
    questions = intent_questions(sentence.text, polarity)
    if questions:
        return questions[:size]
    changes = _paraphrases(sentence) if polarity == "positive" else _opposites(sentence)
    ranked = sorted(_distinct(sentence, changes), key=lambda pair: (-pair[1], pair[0]))
    return [candidate for candidate, _ in ranked[:size]]


def _paraphrases(sentence: TaggedSentence) -> Iterator[Change]:
    for text, confidence in rephrased(sentence.text):
        yield Change(confidence, (Edit(0, len(sentence.words), text),))
    yield from reorderings(sentence)
    small = [*phrase_table("paraphrases").changes(sentence), *synonym_changes(sentence)]
    yield from small
    best = sorted(small, key=lambda change: -change.confidence)[:_MAX_COMBINED]
    for left, right in combinations(best, 2):
        pairs = product(left.edits, right.edits)
        if not any(first.overlaps(second) for first, second in pairs):
            confidence = left.confidence * right.confidence
            yield Change(confidence, left.edits + right.edits)


def _opposites(sentence: TaggedSentence) -> Iterator[Change]:
    """Changes that negate a sentence or replace a word by an antonym."""
    if not sentence.is_question:
        yield from (assertions if sentence.is_negative else denials)(sentence)
    contrasts = phrase_table("contrasts").changes(sentence)
    changes = [
        change for change in contrasts if not in_compound(sentence, change.first)
    ]
    for change in (*changes, *antonym_changes(sentence)):
        if _is_opposite(sentence, change.first):
            before = slice(1, change.first.start)
            confidence = change.confidence
            if "(" in sentence.words[before] or set("WS") & set(sentence.codes[before]):
                confidence *= _SUBORDINATE
            yield Change(confidence, change.edits)


def _is_opposite(sentence: TaggedSentence, edit: Edit) -> bool:
    """Whether an opposite word makes the sentence an opposite."""
    after = "".join(sentence.words[edit.end : edit.end + 1])
    if sentence.codes[edit.start] == "J" and after[:1].isupper():
        return False  # part of a name
    if sentence.is_question and set("JRDe") & set(
        sentence.codes[edit.start : edit.end]
    ):
        return False
    causes = edit.text.startswith(("prevent", "forbid", "cause"))
    if causes and not _AFTER.isdisjoint(sentence.low[edit.end : edit.end + 7]):
        return False  # "cause to do" needs "prevent from doing"
    if not sentence.is_negative:
        return True
    if edit.start == 0 or sentence.low[0] == "no" or edit.text in _QUANTITIES:
        return False
    return _NOT.isdisjoint(sentence.low[max(0, edit.start - 3) : edit.end + 1])


def _distinct(
    sentence: TaggedSentence, changes: Iterable[Change]
) -> list[tuple[str, float]]:
    """The distinct results of changes with their confidences, without changes of names."""
    original = sentence.text.casefold()
    results: dict[str, tuple[str, float]] = {}
    for change in changes:
        if change.confidence < _MIN_CONFIDENCE:
            continue
        if any(_changes_name(sentence, edit) for edit in change.edits):
            continue
        text = sentence.apply(change.edits)
        key = text.casefold()
        _, best = results.get(key, ("", 0.0))
        if key != original and best < change.confidence:
            results[key] = (text, change.confidence)
    return list(results.values())


def _changes_name(sentence: TaggedSentence, edit: Edit) -> bool:
    """Whether an edit of a part of the sentence changes a capitalised word inside it."""
    if edit.start == 0 and edit.end == len(sentence.words):
        return False
    for index in range(max(edit.start, 1), edit.end):
        is_capital = sentence.words[index][:1].isupper()
        is_name = is_capital and sentence.codes[index] != "P"
        if is_name and sentence.codes[index - 1] != ".":
            return True
    return False
