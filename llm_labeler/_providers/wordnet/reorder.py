"""The same said in another order: clauses, coordinated words, active and passive."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_labeler._providers.wordnet.grammar import WITH_PHRASES, main_start, main_verb
from llm_labeler._providers.wordnet.sentence import Change, Edit, Sentence, capital, word_set
from llm_labeler._providers.wordnet.voice import to_active, to_passive

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
        (_front_to_end(sentence), 0.92),
        (_clause_to_front(sentence), 0.9),
        (to_active(sentence), 0.92),
        (to_passive(sentence), 0.9),
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


def _front_to_end(sentence: Sentence) -> str | None:
    """The text as `B if A.` where it is `If A, B.`, or `B in A.` where it is `In A, B.`; else None."""
    start, last = main_start(sentence), len(sentence.words) - 1
    if not start or start > 20 or main_verb(sentence) is None:
        return None
    begin = start + 1 if sentence.low[start] == "then" else start
    main = sentence.codes[begin:last]
    if sentence.low[0] in _CLAUSES:
        fits = re.search("[MBHOzdv]", sentence.codes[:start]) and not re.search("[CS]", main)
    elif sentence.low[0] in _FRONTED and not _NO_PLACE & set(sentence.low[1:start]):
        fits = re.fullmatch(WITH_PHRASES, sentence.codes[1 : start - 1]) and not re.search("[CSWIT]", main)
    else:
        return None
    if not fits or len(main) < 3 or "," in sentence.low[begin:last]:
        return None
    front = sentence.slice(0, start - 1)  # begins with a small word, which never keeps its capital
    return f"{sentence.slice(begin, last)} {front[:1].lower()}{front[1:]}{sentence.words[last]}"


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
