"""The same said in another order: clauses, coordinated words, active and passive."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_labeler._providers.wordnet.grammar import WITH_PHRASES, main_start, main_verb
from llm_labeler._providers.wordnet.sentence import Change, Edit, Sentence, capital, word_set
from llm_labeler._providers.wordnet.voice import progressive_to_passive, to_active, to_passive

# One item of "x and y" that nothing before or after it belongs to.
_COORDINATED = re.compile(r"(?<=[DIvzB])([nsJ])C(\1)(?=[.MBHvzd])|(?<=[DIvzBb])(J)C(J)(?=[ns])")
_SERIES = re.compile(r"(?<=[Ivz])([ns]),([ns]),C[ns](?=\.)")
# Pairs that have an order, by the first word.
_FIXED = word_set("black back law research trial wear pros arts bed more")
_CLAUSES = word_set("if because when although unless after before once until")
_FRONTED = word_set("in during at within throughout among")
_NO_PLACE = word_set("addition general fact turn contrast other some many most rare summary particular all")
_LONGEST = 50  # tokens


def reorderings(sentence: Sentence) -> Iterator[Change]:
    """Candidates with the same words in another order."""
    if len(sentence.words) > _LONGEST or sentence.is_question:
        return
    yield from _swapped_items(sentence)
    if sentence.codes.count(".") != 1 or not sentence.codes.endswith(".") or set(";:-") & set(sentence.words):
        return
    for text, sure in (
        (_clause_to_end(sentence), 0.93),
        (_clause_to_front(sentence), 0.9),
        (_phrase_to_end(sentence), 0.9),
        (to_active(sentence), 0.92),
        (to_passive(sentence), 0.9),
        (progressive_to_passive(sentence), 0.9),
    ):
        if text:
            yield Change(sure, (Edit(0, len(sentence.words), text),))


def _swapped_items(sentence: Sentence) -> Iterator[Change]:
    for match in (*_COORDINATED.finditer(sentence.codes), *_SERIES.finditer(sentence.codes)):
        start = match.start()
        one, between, other = sentence.words[start : start + 3]
        if not (one + other).islower() or one in _FIXED or between not in ("and", "or", ","):
            continue
        text = f"{other}, {one}" if between == "," else f"{other} {between} {one}"
        yield Change(0.93, (Edit(start, start + 3, text),))


def _clause_to_end(sentence: Sentence) -> str | None:
    """The text as `B if A.` where it is `If A, B.`; else None."""
    start, last = main_start(sentence), len(sentence.words) - 1
    if sentence.low[0] not in _CLAUSES or not start or start > 20:
        return None
    begin = start + 1 if sentence.low[start] == "then" else start
    opening, main = sentence.codes[:start], sentence.codes[begin:last]
    if last - begin < 3 or "," in sentence.low[begin:last] or re.search("[CS]", main):
        return None
    if main_verb(sentence) is None or not re.search("[MBHOzdv]", opening):
        return None
    return f"{sentence.slice(begin, last)} {_small(sentence, start - 1)}{sentence.words[last]}"


def _clause_to_front(sentence: Sentence) -> str | None:
    """The text as `If A, B.` where it is `B if A.`; else None."""
    last = len(sentence.words) - 1
    places = [at for at in range(3, last - 2) if sentence.low[at] in _CLAUSES and sentence.codes[at] == "S"]
    if len(places) != 1 or "," in sentence.low or sentence.codes[0] in "SCWIRg,":
        return None
    place = places[0]
    if sentence.codes[place - 1] in "RBvzdIC#W" or re.search("[CSWT]", sentence.codes[:place]):
        return None
    after = sentence.codes[place + 1 : last]
    if "W" in after or not re.match(r"(?:P|D?[RJ]?[Jen]*[ns])[RN]*[MBHOzdv]", after):
        return None
    return f"{capital(sentence.slice(place, last))}, {sentence.opening(place)}{sentence.words[last]}"


def _phrase_to_end(sentence: Sentence) -> str | None:
    """The text as `B in A.` where it is `In A, B.`; else None."""
    last = len(sentence.words) - 1
    if sentence.low[0] not in _FRONTED or sentence.low.count(",") != 1:
        return None
    comma = sentence.low.index(",")
    phrase, clause = sentence.codes[1:comma], sentence.codes[comma + 1 : last]
    if not re.fullmatch(WITH_PHRASES, phrase) or _NO_PLACE & set(sentence.low[1:comma]) or comma > 8:
        return None
    if main_verb(sentence) is None or re.search("[CSWIT]", clause) or not 3 <= len(clause) <= 14:
        return None
    return f"{sentence.slice(comma + 1, last)} {_small(sentence, comma)}{sentence.words[last]}"


def _small(sentence: Sentence, end: int) -> str:
    """An opening clause's text without its capital, which its first word, a small one, never keeps."""
    text = sentence.slice(0, end)
    return text[:1].lower() + text[1:]
