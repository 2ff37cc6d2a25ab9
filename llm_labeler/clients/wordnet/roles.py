"""Make hard negatives by swapping roles: cause and effect, part and whole, both sides of a comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_labeler.clients.wordnet.tagged_sentence import (
    WITH_PHRASES,
    Change,
    Edit,
    TaggedSentence,
    capital,
    is_plural,
    meaning_change,
    word_set,
)
from llm_labeler.clients.wordnet.wordnet_lexicon import inflected_verb, lemmas

Span = tuple[int, int]  # of tokens
SwappedText = tuple[str, float]  # with the confidence in it

_THING = rf"(?:{WITH_PHRASES})"
_ACTIVE = re.compile(rf"({_THING})(MR?|R?)([vz])(I?)({_THING})[.]?")
_PASSIVE = re.compile(rf"({_THING})(MR?b|BR?)(e)I({_THING})[.]?")
_KIND_OF = re.compile(rf"({_THING})(BR?)(DJ?[ns]I)({_THING})[.]?")
_COMPARED = re.compile(rf"I({_THING})([SI])I({_THING})(?=[.,]|$)")
_FROM_TO = re.compile(r"I(D?J?[ns]{1,2})([IT])(D?J?[ns]{1,2})(?=[.,C]|$)")
_DIRECTED = word_set(
    """
    cause trigger affect damage treat control influence destroy attack support protect prevent produce
    create reduce increase lower raise block trigger replace follow precede lead result contain cover
    surround stimulate inhibit regulate relieve improve worsen weaken carry transmit infect need require
    help include cure kill
    """
)
_OF = word_set(
    "type form kind part result sign symptom complication cause consequence side example subtype variant"
)
_PRONOUNS = word_set(
    "this that these those it they he she you we other others such some many most all"
)
# Verbs of movement; after other words, "from A to B" is a range, which can be swapped without a change.
_MOVING = word_set(
    """
    spread move travel pass go transfer migrate flow convert change switch transmit carry send transport
    transform progress return copy export hand
    """
)
_WITH = {"lead": "to", "result": "in"}
_PARTING = word_set(": ; -")
_MAX_TOKENS = 32
_MAX_PHRASE = 12  # tokens
_BE = {
    "is": ("is", "are"),
    "are": ("is", "are"),
    "was": ("was", "were"),
    "were": ("was", "were"),
}


def has_odd_plural(sentence: TaggedSentence) -> bool:
    """Whether a singular word is tagged as a plural: osteosclerosis, virus."""
    return any(
        code == "s" and word.endswith(("sis", "itis", "us", "ss"))
        for code, word in zip(sentence.codes, sentence.low, strict=True)
    )


def role_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """Changes that swap the roles of two things."""
    has_parts = not _PARTING.isdisjoint(sentence.words)
    if len(sentence.words) > _MAX_TOKENS or has_parts or has_odd_plural(sentence):
        return
    for text, confidence in (
        *_swapped(sentence),
        *_compared(sentence),
        *_from_to(sentence),
    ):
        yield meaning_change("role", confidence, Edit(0, len(sentence.words), text))


def _swapped(sentence: TaggedSentence) -> Iterator[SwappedText]:
    codes = sentence.codes
    if match := _ACTIVE.fullmatch(codes):
        yield from _active(sentence, match)
    if match := _PASSIVE.fullmatch(codes):
        yield from _passive(sentence, match)
    if match := _KIND_OF.fullmatch(codes):
        yield from _kind_of(sentence, match)
    if sentence.is_question and codes[0] in "MO":
        yield from _asked(sentence)


def _active(sentence: TaggedSentence, match: re.Match[str]) -> Iterator[SwappedText]:
    """Change `A causes B` to `B causes A`."""
    left = match.span(1)
    right = match.span(5)
    verb = match.start(3)
    lemma = sentence.low[verb]
    if match[3] == "z":
        lemma = next(iter(lemmas(lemma, "v")), "")
    preposition = sentence.slice(*match.span(4)).lower()
    is_directed = lemma in _DIRECTED and preposition == _WITH.get(lemma, "")
    if not is_directed or not _can_swap(sentence, left, right):
        return
    words = [*sentence.words[match.end(1) : match.start(5)]]
    if not match[2].startswith("M"):
        form = inflected_verb(lemma, "v" if is_plural(sentence, *right) else "z")
        words[verb - match.end(1)] = form
    yield _sentence(sentence, right, " ".join(words), left), 0.94


def _passive(sentence: TaggedSentence, match: re.Match[str]) -> Iterator[SwappedText]:
    """Change `A is caused by B` to `B is caused by A`."""
    left = match.span(1)
    right = match.span(4)
    be_index = match.end(1)
    by_index = match.start(3) + 1
    if sentence.low[by_index] != "by" or not _can_swap(sentence, left, right):
        return
    be = sentence.words[be_index]
    if sentence.codes[be_index] != "M":
        forms = _BE.get(sentence.low[be_index])
        if forms is None:
            return
        be = forms[is_plural(sentence, *right)]
    middle = " ".join((be, *sentence.words[be_index + 1 : by_index + 1]))
    yield _sentence(sentence, right, middle, left), 0.93


def _kind_of(sentence: TaggedSentence, match: re.Match[str]) -> Iterator[SwappedText]:
    """Change `A is a kind of B` to `B is a kind of A`."""
    left = match.span(1)
    right = match.span(4)
    end = match.start(4)
    kind, of = sentence.low[end - 2 : end]
    if kind not in _OF or of != "of" or not _can_swap(sentence, left, right):
        return
    if not is_plural(sentence, *right) and not is_plural(sentence, *left):
        middle = sentence.slice(match.end(1), end)
        yield _sentence(sentence, right, middle, left), 0.92


def _asked(sentence: TaggedSentence) -> Iterator[SwappedText]:
    """Change `Can A cause B?` to `Can B cause A?`; the verb is tagged as a noun, so its word is compared."""
    last = len(sentence.low) - 1
    for verb in range(2, last - 1):
        lemma = sentence.low[verb]
        if lemma not in _DIRECTED:
            continue
        start = verb + 1
        if lemma in _WITH:
            if sentence.low[start] != _WITH[lemma]:
                continue
            start += 1
        left = (1, verb)
        right = (start, last)
        are_things = all(
            re.fullmatch(_THING, sentence.codes[slice(*span)]) for span in (left, right)
        )
        if not are_things or not _can_swap(sentence, left, right):
            continue
        first = sentence.words[0]
        if sentence.low[0] in ("do", "does"):
            first = "Do" if is_plural(sentence, *right) else "Does"
        middle = sentence.slice(verb, start)
        swapped = (first, sentence.slice(*right), middle, sentence.slice(*left))
        _, end = sentence.spans[-2]
        yield " ".join(swapped) + sentence.text[end:], 0.95


def _can_swap(sentence: TaggedSentence, left: Span, right: Span) -> bool:
    """Whether both are nouns, not pronouns or numbers."""
    for start, end in (left, right):
        if sentence.low[start] in _PRONOUNS or sentence.codes[start] in "#Pg":
            return False
        if end - start > _MAX_PHRASE:
            return False
    return sentence.slice(*left).lower() != sentence.slice(*right).lower()


def _sentence(sentence: TaggedSentence, first: Span, middle: str, last: Span) -> str:
    """`First middle last.`."""
    final = ""
    if sentence.codes.endswith("."):
        start, _ = sentence.spans[-1]
        final = sentence.text[start:]
    start, end = last
    tail = within(sentence, end) if start == 0 else sentence.slice(start, end)
    return f"{capital(sentence.slice(*first))} {middle} {tail}{final}"


def within(sentence: TaggedSentence, end: int) -> str:
    """The first words in lower case, unless an unknown word is a name."""
    word = sentence.low[0]
    is_known = sentence.codes[0] in "DPIRC#"
    if is_known or any(lemmas(word, pos) for pos in ("n", "v", "a", "r")):
        return sentence.opening(end)
    return sentence.slice(0, end)


def _compared(sentence: TaggedSentence) -> Iterator[SwappedText]:
    """Swap A and B in `more often in A than in B`."""
    if "than" not in sentence.low:
        return
    for match in _COMPARED.finditer(sentence.codes):
        first = sentence.low[match.start(1) - 1]
        second = sentence.low[match.start(3) - 1]
        if sentence.low[match.start(2)] == "than" and first == second:
            yield _exchanged(sentence, match.span(1), match.span(3)), 0.95


def _from_to(sentence: TaggedSentence) -> Iterator[SwappedText]:
    """Swap A and B in `from A to B`."""
    for match in _FROM_TO.finditer(sentence.codes):
        left = match.span(1)
        right = match.span(3)
        start = match.start(1)
        prepositions = (sentence.low[start - 1], sentence.low[match.start(2)])
        verb = sentence.low[max(0, start - 2)]
        moves = not _MOVING.isdisjoint((verb, *lemmas(verb, "v")))
        is_way = prepositions == ("from", "to") and moves
        if is_way and _can_swap(sentence, left, right):
            yield _exchanged(sentence, left, right), 0.94


def _exchanged(sentence: TaggedSentence, left: Span, right: Span) -> str:
    """The sentence with two spans of tokens exchanged."""
    left_start, _ = sentence.spans[left[0]]
    _, left_end = sentence.spans[left[1] - 1]
    right_start, _ = sentence.spans[right[0]]
    _, right_end = sentence.spans[right[1] - 1]
    text = sentence.text
    before = text[:left_start]
    between = text[left_end:right_start]
    first = text[right_start:right_end]
    second = text[left_start:left_end]
    return f"{before}{first}{between}{second}{text[right_end:]}"
