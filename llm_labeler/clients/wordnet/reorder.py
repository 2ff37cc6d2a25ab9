"""Paraphrase by order: swap clauses or coordinated words, or change active to passive and back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_labeler.clients.wordnet.tagged_sentence import (
    NOUN_PHRASE,
    WITH_PHRASES,
    Change,
    Edit,
    TaggedSentence,
    capital,
    is_plural,
    main_start,
    main_verb,
    word_set,
)
from llm_labeler.clients.wordnet.wordnet_lexicon import inflected_verb, other_lemma

_PASSIVE = re.compile(rf"({WITH_PHRASES})(MR?b|B)R?(e)I({WITH_PHRASES})\.")
_ACTIVE = re.compile(
    rf"({NOUN_PHRASE})(?:(B)g|[vz])({NOUN_PHRASE})((?:I{NOUN_PHRASE})*)\."
)
_NO_PASSIVE = word_set("have become get do look seem resemble cost weigh take leave")
_TRANSITIVE = word_set(
    """
    affect cause damage treat control influence trigger destroy attack surround support protect regulate
    monitor remove relieve cover describe perform produce create determine disrupt impair block carry
    reduce diagnose confirm detect identify examine evaluate recommend prescribe provide follow use make
    release absorb store
    """
)
_MEANS = word_set("accident hand mouth itself age day year law")

# "x and y" without a word before or after it that belongs to only one of them.
_COORDINATED = re.compile(
    r"(?<=[DIvzB])([nsJ])C(\1)(?=[.MBHvzd])|(?<=[DIvzBb])(J)C(J)(?=[ns])"
)
_SERIES = re.compile(r"(?<=[Ivz])([ns]),([ns]),C[ns](?=\.)")
# First words of pairs with a fixed order.
_FIXED = word_set("black back law research trial wear pros arts bed more")
_CLAUSES = word_set("if because when although unless after before once until")
_FRONTED = word_set("in during at within throughout among")
_NO_PLACE = word_set(
    "addition general fact turn contrast other some many most rare summary particular all"
)
_MAX_TOKENS = 50


def to_active(sentence: TaggedSentence) -> str | None:
    """Change `A is caused by B.` to `B causes A.`."""
    match = _PASSIVE.fullmatch(sentence.codes)
    if not match:
        return None
    auxiliary = match.start(2)
    verb = match.start(3)
    agent = match.start(4)
    low = sentence.low
    last = len(sentence.words) - 1
    lemma = other_lemma(low[verb])
    if low[verb + 1] != "by" or sentence.codes[agent] == "#":
        return None
    if _MEANS & set(low[agent:last]) or not lemma:
        return None
    if sentence.codes[auxiliary] == "M":
        words = [word for word in (*low[auxiliary:verb], lemma) if word != "be"]
    elif low[auxiliary] in ("is", "are"):
        code = "v" if is_plural(sentence, agent, last) else "z"
        words = [*low[auxiliary + 1 : verb], inflected_verb(lemma, code)]
    else:
        return None
    return capital(
        f"{sentence.slice(agent, last)} {' '.join(words)} {sentence.opening(auxiliary)}."
    )


def to_passive(sentence: TaggedSentence) -> str | None:
    """Change `B is writing A.` to `A is being written by B.`, and `B affects A.` to `A is affected by B.`."""
    match = _ACTIVE.fullmatch(sentence.codes)
    if not match or "by" in sentence.low:
        return None
    thing = match.start(3)
    end = match.start(4)
    verb = thing - 1
    low = sentence.low
    base = low[verb] if sentence.codes[verb] == "v" else other_lemma(low[verb])
    if match[2]:
        fits = base not in _NO_PASSIVE and low[verb - 1] in ("is", "are")
    else:
        agrees = is_plural(sentence, 0, verb) == (sentence.codes[verb] == "v")
        fits = base in _TRANSITIVE and agrees and not match[4]
    if not fits or not base:
        return None
    be = "are" if is_plural(sentence, thing, end) else "is"
    if match[2]:
        be += " being"
    passive = f"{be} {inflected_verb(base, 'e')} by {sentence.opening(match.end(1))}"
    _, end_of_thing = sentence.spans[end - 1]
    after = sentence.text[end_of_thing:]
    return capital(f"{sentence.slice(thing, end)} {passive}{after}")


def reorderings(sentence: TaggedSentence) -> Iterator[Change]:
    """Changes to another order."""
    if len(sentence.words) > _MAX_TOKENS or sentence.is_question:
        return
    yield from _swapped_items(sentence)
    has_one_stop = sentence.codes.find(".") == len(sentence.codes) - 1
    if not has_one_stop or set(";:-") & set(sentence.words):
        return
    for text, confidence in (
        (_front_to_end(sentence), 0.92),
        (_clause_to_front(sentence), 0.9),
        (to_active(sentence), 0.92),
        (to_passive(sentence), 0.9),
    ):
        if text:
            yield Change(confidence, (Edit(0, len(sentence.words), text),))


def _swapped_items(sentence: TaggedSentence) -> Iterator[Change]:
    for match in (
        *_COORDINATED.finditer(sentence.codes),
        *_SERIES.finditer(sentence.codes),
    ):
        start = match.start()
        left, between, right = sentence.words[start : start + 3]
        is_fixed = left in _FIXED or not (left + right).islower()
        if is_fixed or between not in ("and", "or", ","):
            continue
        text = f"{right}, {left}" if between == "," else f"{right} {between} {left}"
        yield Change(0.93, (Edit(start, start + 3, text),))


def _front_to_end(sentence: TaggedSentence) -> str | None:
    """Change `If A, B.` to `B if A.`, and `In A, B.` to `B in A.`."""
    start = main_start(sentence)
    last = len(sentence.words) - 1
    if not start or start > 20 or main_verb(sentence) is None:
        return None
    begin = start + 1 if sentence.low[start] == "then" else start
    main = sentence.codes[begin:last]
    if sentence.low[0] in _CLAUSES:
        fits = re.search("[MBHOzdv]", sentence.codes[:start])
        unfit = "[CS]"
    elif sentence.low[0] in _FRONTED and not _NO_PLACE & set(sentence.low[1:start]):
        fits = re.fullmatch(WITH_PHRASES, sentence.codes[1 : start - 1])
        unfit = "[CSWIT]"
    else:
        return None
    if not fits or re.search(unfit, main):
        return None
    if len(main) < 3 or "," in sentence.low[begin:last]:
        return None
    front = sentence.slice(0, start - 1)
    return f"{sentence.slice(begin, last)} {front[:1].lower()}{front[1:]}{sentence.words[last]}"


def _clause_to_front(sentence: TaggedSentence) -> str | None:
    """Change `B if A.` to `If A, B.`."""
    last = len(sentence.words) - 1
    starts = [
        i
        for i in range(3, last - 2)
        if sentence.low[i] in _CLAUSES and sentence.codes[i] == "S"
    ]
    if len(starts) != 1 or "," in sentence.low or sentence.codes[0] in "SCWIRg,":
        return None
    start = starts[0]
    if sentence.codes[start - 1] in "RBvzdIC#W":
        return None
    if re.search("[CSWT]", sentence.codes[:start]):
        return None
    after = sentence.codes[start + 1 : last]
    if "W" in after or not re.match(r"(?:P|D?[RJ]?[Jen]*[ns])[RN]*[MBHOzdv]", after):
        return None
    return f"{capital(sentence.slice(start, last))}, {sentence.opening(start)}{sentence.words[last]}"
