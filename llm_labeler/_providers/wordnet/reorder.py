"""The same said in another order: clauses, coordinated words, active and passive."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_labeler._providers.wordnet.clauses import clause_to_end, clause_to_front, phrase_to_end
from llm_labeler._providers.wordnet.files import WordNet
from llm_labeler._providers.wordnet.patterns import Change
from llm_labeler._providers.wordnet.sentence import Edit, Sentence
from llm_labeler._providers.wordnet.voice import progressive_to_passive, to_active, to_passive
from llm_labeler._providers.wordnet.words import word_set

# One item of "x and y" that nothing before or after it belongs to.
_COORDINATED = re.compile(r"(?<=[DIvzB])([nsJ])C(\1)(?=[.MBHvzd])|(?<=[DIvzBb])(J)C(J)(?=[ns])")
_SERIES = re.compile(r"(?<=[Ivz])([ns]),([ns]),C[ns](?=\.)")
# Pairs that have an order, by the first word.
_FIXED = word_set("black back law research trial wear pros arts bed more")
_LONGEST = 50  # tokens


def reorderings(wordnet: WordNet, sentence: Sentence) -> Iterator[Change]:
    """Candidates with the same words in another order."""
    if len(sentence.words) > _LONGEST or sentence.is_question:
        return
    yield from _swapped_items(sentence)
    if sentence.codes.count(".") != 1 or not sentence.codes.endswith(".") or set(";:-") & set(sentence.words):
        return
    for text, sure in (
        (clause_to_end(sentence), 0.93),
        (clause_to_front(wordnet, sentence), 0.9),
        (phrase_to_end(sentence), 0.9),
        (to_active(wordnet, sentence), 0.92),
        (to_passive(wordnet, sentence), 0.9),
        (progressive_to_passive(wordnet, sentence), 0.9),
    ):
        if text:
            yield Change(sure, (Edit(0, len(sentence.words), text),))


def _swapped_items(sentence: Sentence) -> Iterator[Change]:
    for match in _COORDINATED.finditer(sentence.codes):
        start, end = match.span()
        fixed = sentence.low[start] in _FIXED
        if sentence.low[start + 1] in ("and", "or") and not fixed and not _is_capital(sentence, start, end):
            one, between, other = (sentence.slice(place, place + 1) for place in range(start, end))
            yield Change(0.93, (Edit(start, end, f"{other} {between} {one}"),))
    for match in _SERIES.finditer(sentence.codes):
        start = match.start()
        if not _is_capital(sentence, start, start + 3) and sentence.low[start + 1] == ",":
            one, other = sentence.words[start], sentence.words[start + 2]
            yield Change(0.92, (Edit(start, start + 3, f"{other}, {one}"),))


def _is_capital(sentence: Sentence, start: int, end: int) -> bool:
    return any(not word.islower() and word != "," for word in sentence.words[start:end])
