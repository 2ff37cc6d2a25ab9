"""From a sentence to candidates, the surest first. Rules, no LLM: better none than a wrong one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations

from llm_labeler.clients.wordnet.denials import assertions, denials
from llm_labeler.clients.wordnet.intents import intent_questions
from llm_labeler.clients.wordnet.reorder import reorderings
from llm_labeler.clients.wordnet.sentence import Change, Edit, TaggedSentence, capital, word_set
from llm_labeler.clients.wordnet.substitutions import (
    PhraseTable,
    antonym_changes,
    in_compound,
    parse,
    read_table,
    synonym_changes,
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
    """Other wordings of a question, each with how sure it is; none of what is no question that is known."""
    for shape, wording, sure in _rules(table):
        match = shape.fullmatch(text)
        if match:
            asked = capital(
                wording.format_map({name: part.strip() for name, part in match.groupdict().items()})
            )
            yield asked + ("?" if match["end"] else ""), sure


@cache
def _rules(table: str) -> tuple[tuple[re.Pattern[str], str, float], ...]:
    return tuple((_shape(left), right, sure) for left, right, sure in parse(read_table(table)))


def _shape(left: str) -> re.Pattern[str]:
    pieces = re.split(r"\{(\w+)\}", left)
    pattern = "".join(
        f"(?P<{piece}>{_PARTS[piece]})" if place % 2 else re.escape(piece)
        for place, piece in enumerate(pieces)
    )
    return re.compile(rf"{pattern}\s*(?P<end>\?*)", re.IGNORECASE)


_LEAST = 0.78  # below it a candidate is not worth having
_LONGEST = 120  # tokens; what is longer is a list or no sentence
_ASIDE = 0.9  # what a contrast is worth in a part of the sentence that others depend little on
_AFTER = word_set("to from")
_NOT = word_set("not longer cannot don't doesn't didn't isn't aren't can't")
_QUANTITIES = word_set("no few many")
_PAIRED = 6  # how many changes are tried two at a time


def candidates(text: str, polarity: Polarity, size: int) -> list[str]:
    """Up to `size` sentences, none of them equal to the text or to one another."""
    sentence = TaggedSentence(" ".join(text.split()))
    if not 0 < len(sentence.words) <= _LONGEST:
        return []
    if asked := intent_questions(sentence.text, polarity):
        return asked[:size]
    changes = _same(sentence) if polarity == "positive" else opposites(sentence)
    ranked = sorted(distinct(sentence, changes), key=lambda found: (-found[1], found[0]))
    return [candidate for candidate, _ in ranked[:size]]


def _same(sentence: TaggedSentence) -> Iterator[Change]:
    whole = (0, len(sentence.words))
    yield from (Change(sure, (Edit(*whole, text),)) for text, sure in rephrased(sentence.text))
    yield from reorderings(sentence)
    small = [*_table("paraphrases").changes(sentence), *synonym_changes(sentence)]
    yield from small
    best = sorted(small, key=lambda change: -change.confidence)[:_PAIRED]
    for one, other in combinations(best, 2):
        if not any(mine.meets(its) for mine in one.edits for its in other.edits):
            yield Change(one.confidence * other.confidence, (*one.edits, *other.edits))


def opposites(sentence: TaggedSentence) -> Iterator[Change]:
    """Changes that deny a sentence, or put an antonym into it."""
    if not sentence.is_question:
        yield from (assertions if sentence.is_negative else denials)(sentence)
    contrasts = (
        change
        for change in _table("contrasts").changes(sentence)
        if not in_compound(sentence, change.edits[0])
    )
    for change in (*contrasts, *antonym_changes(sentence)):
        if _is_opposite(sentence, change.edits[0]):
            yield _weighed(sentence, change)


@cache
def _table(name: str) -> PhraseTable:
    return PhraseTable(read_table(name))


def _weighed(sentence: TaggedSentence, change: Change) -> Change:
    """Less sure where it stands in a clause that another depends on, or in brackets: it says little there."""
    before = slice(1, change.edits[0].start)
    is_aside = "(" in sentence.words[before] or set("WS") & set(sentence.codes[before])
    return Change(change.confidence * _ASIDE if is_aside else change.confidence, change.edits)


def _is_opposite(sentence: TaggedSentence, edit: Edit) -> bool:
    """Whether a contrast of words makes one of sentences."""
    if sentence.codes[edit.start] == "J" and "".join(sentence.words[edit.end : edit.end + 1])[:1].isupper():
        return False  # part of a name
    if sentence.is_question and set(sentence.codes[edit.start : edit.end]) & set("JRDe"):
        return False
    causes = edit.text.startswith(("prevent", "forbid", "cause"))
    if causes and set(sentence.low[edit.end : edit.end + 7]) & _AFTER:
        return False  # one is caused to do, and prevented from doing
    near = sentence.low[max(0, edit.start - 3) : edit.end + 1]
    return not sentence.is_negative or (
        edit.start > 0 and sentence.low[0] != "no" and edit.text not in _QUANTITIES and not _NOT & set(near)
    )


def distinct(sentence: TaggedSentence, changes: Iterable[Change]) -> list[tuple[str, float]]:
    """The sentences that changes make, each once, with how sure its rule is; none that touches a name."""
    found: dict[str, tuple[str, float]] = {}
    for change in changes:
        if change.confidence < _LEAST or any(_is_named(sentence, edit) for edit in change.edits):
            continue
        text = sentence.apply(change.edits)
        key = text.casefold()
        if key != sentence.text.casefold():
            found[key] = max(found.get(key, (text, 0.0)), (text, change.confidence), key=lambda pair: pair[1])
    return list(found.values())


def _is_named(sentence: TaggedSentence, edit: Edit) -> bool:
    """Whether an edit of some words would touch a name: one with a capital inside the sentence."""
    if edit.start == 0 and edit.end == len(sentence.words):
        return False
    return any(
        sentence.words[place][:1].isupper() and sentence.codes[place] != "P"
        for place in range(max(edit.start, 1), edit.end)
        if sentence.codes[place - 1] != "."
    )
