"""Make positives and negatives of a sentence by rules; precision matters more than recall."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations

from llm_labeler.clients.wordnet.denials import assertions, denials
from llm_labeler.clients.wordnet.question_rules import intent_questions
from llm_labeler.clients.wordnet.reorder import reorderings
from llm_labeler.clients.wordnet.substitutions import (
    antonym_changes,
    in_compound,
    parse,
    phrase_table,
    read_table,
    synonym_changes,
)
from llm_labeler.clients.wordnet.tagged_sentence import (
    Change,
    Edit,
    TaggedSentence,
    capital,
    word_set,
)
from llm_labeler.records import Polarity

_PARTS = {
    "x": r"[^?;:]{2,80}?",
    "y": r"[^?;:]{2,80}?",
    "do": r"(?!be\b)[^?]+?",
    "word": r"\w+",
    "ing": r"\w+ing",
    "term": r"(?!(?:the|your|my|a|an|it|this|that|there)\b)[\w-]+(?: [\w-]+)?",
}


def rephrased(text: str, table: str = "questions") -> Iterator[tuple[str, float]]:
    """Other wordings of a question with their confidences; nothing for unknown questions."""
    for pattern, wording, confidence in _rules(table):
        match = pattern.fullmatch(text)
        if match:
            parts = {name: part.strip() for name, part in match.groupdict().items()}
            yield capital(wording.format_map(parts)) + ("?" if match["end"] else ""), confidence


@cache
def _rules(table: str) -> tuple[tuple[re.Pattern[str], str, float], ...]:
    rules = []
    for left, right, confidence in parse(read_table(table)):
        pieces = [*enumerate(re.split(r"\{(\w+)\}", left))]
        parts = (
            f"(?P<{piece}>{_PARTS[piece]})" if n % 2 else re.escape(piece) for n, piece in pieces
        )
        pattern = re.compile(rf"{''.join(parts)}\s*(?P<end>\?*)", re.IGNORECASE)
        rules.append((pattern, right, confidence))
    return tuple(rules)


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
    if questions := intent_questions(sentence.text, polarity):
        return questions[:size]
    changes = _paraphrases(sentence) if polarity == "positive" else opposites(sentence)
    ranked = sorted(distinct(sentence, changes), key=lambda pair: (-pair[1], pair[0]))
    return [candidate for candidate, _ in ranked[:size]]


def _paraphrases(sentence: TaggedSentence) -> Iterator[Change]:
    whole = (0, len(sentence.words))
    yield from (
        Change(confidence, (Edit(*whole, text),)) for text, confidence in rephrased(sentence.text)
    )
    yield from reorderings(sentence)
    small = [*phrase_table("paraphrases").changes(sentence), *synonym_changes(sentence)]
    yield from small
    best = sorted(small, key=lambda change: -change.confidence)[:_MAX_COMBINED]
    for left, right in combinations(best, 2):
        if not any(first.overlaps(second) for first in left.edits for second in right.edits):
            yield Change(left.confidence * right.confidence, (*left.edits, *right.edits))


def opposites(sentence: TaggedSentence) -> Iterator[Change]:
    """Changes that negate a sentence or replace a word by an antonym."""
    if not sentence.is_question:
        yield from (assertions if sentence.is_negative else denials)(sentence)
    contrasts = (
        change
        for change in phrase_table("contrasts").changes(sentence)
        if not in_compound(sentence, change.edits[0])
    )
    for change in (*contrasts, *antonym_changes(sentence)):
        if _is_opposite(sentence, change.edits[0]):
            before = slice(1, change.edits[0].start)
            is_subordinate = "(" in sentence.words[before] or set("WS") & set(
                sentence.codes[before]
            )
            yield Change(change.confidence * (_SUBORDINATE if is_subordinate else 1), change.edits)


def _is_opposite(sentence: TaggedSentence, edit: Edit) -> bool:
    """Whether an opposite word makes the sentence an opposite."""
    if (
        sentence.codes[edit.start] == "J"
        and "".join(sentence.words[edit.end : edit.end + 1])[:1].isupper()
    ):
        return False  # part of a name
    if sentence.is_question and set(sentence.codes[edit.start : edit.end]) & set("JRDe"):
        return False
    causes = edit.text.startswith(("prevent", "forbid", "cause"))
    if causes and set(sentence.low[edit.end : edit.end + 7]) & _AFTER:
        return False  # "cause to do" needs "prevent from doing"
    near = sentence.low[max(0, edit.start - 3) : edit.end + 1]
    return not sentence.is_negative or (
        edit.start > 0
        and sentence.low[0] != "no"
        and edit.text not in _QUANTITIES
        and not _NOT & set(near)
    )


def distinct(sentence: TaggedSentence, changes: Iterable[Change]) -> list[tuple[str, float]]:
    """The distinct results of changes with their confidences, without changes of names."""
    results: dict[str, tuple[str, float]] = {}
    for change in changes:
        if change.confidence < _MIN_CONFIDENCE or any(
            _changes_name(sentence, edit) for edit in change.edits
        ):
            continue
        text = sentence.apply(change.edits)
        key = text.casefold()
        if key != sentence.text.casefold() and (
            key not in results or results[key][1] < change.confidence
        ):
            results[key] = text, change.confidence
    return list(results.values())


def _changes_name(sentence: TaggedSentence, edit: Edit) -> bool:
    """Whether an edit of a part of the sentence changes a capitalised word inside it."""
    if edit.start == 0 and edit.end == len(sentence.words):
        return False
    return any(
        sentence.words[index][:1].isupper() and sentence.codes[index] != "P"
        for index in range(max(edit.start, 1), edit.end)
        if sentence.codes[index - 1] != "."
    )
