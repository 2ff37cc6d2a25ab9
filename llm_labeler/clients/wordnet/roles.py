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
_PRONOUNS = word_set("this that these those it they he she you we other others such some many most all")
# Verbs of movement; after other words, "from A to B" is a range, which can be swapped without a change.
_MOVING = word_set(
    """
    spread move travel pass go transfer migrate flow convert change switch transmit carry send transport
    transform progress return copy export hand
    """
)
_WITH = {"lead": "to", "result": "in"}


def has_odd_plural(sentence: TaggedSentence) -> bool:
    """Whether a singular word is tagged as a plural: osteosclerosis, virus."""
    return any(
        code == "s" and word.endswith(("sis", "itis", "us", "ss"))
        for code, word in zip(sentence.codes, sentence.low, strict=True)
    )


def role_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """Changes that swap the roles of two things."""
    if (
        len(sentence.words) > 32
        or has_odd_plural(sentence)
        or any(mark in sentence.words for mark in (":", ";", "-"))
    ):
        return
    for text, confidence in (*_swapped(sentence), *_compared(sentence), *_from_to(sentence)):
        yield meaning_change("role", confidence, Edit(0, len(sentence.words), text))


def _swapped(sentence: TaggedSentence) -> Iterator[tuple[str, float]]:
    codes, words = sentence.codes, sentence.words
    if match := _ACTIVE.fullmatch(codes):
        yield from _active(sentence, match)
    if match := _PASSIVE.fullmatch(codes):
        start, verb, agent = match.start(2), match.start(3), match.start(4)
        if sentence.low[verb + 1] == "by" and _can_swap(sentence, (0, start), (agent, match.end(4))):
            last = match.end(4)
            be = _agreeing(sentence, start, is_plural(sentence, agent, last))
            if be:
                middle = " ".join((be, *words[start + 1 : verb + 2]))
                yield _sentence(sentence, (agent, last), middle, (0, start)), 0.93
    if match := _KIND_OF.fullmatch(codes):
        head = sentence.low[match.end(3) - 2]
        if head in _OF and sentence.low[match.end(3) - 1] == "of":
            left, right = match.span(1), match.span(4)
            if (
                _can_swap(sentence, left, right)
                and not is_plural(sentence, *right)
                and not is_plural(sentence, *left)
            ):
                yield _sentence(sentence, right, sentence.slice(left[1], right[0]), left), 0.92
    if sentence.is_question and codes[0] in "MO":
        yield from _asked(sentence)


def _active(sentence: TaggedSentence, match: re.Match[str]) -> Iterator[tuple[str, float]]:
    left, right, verb = match.span(1), match.span(5), match.start(3)
    low = sentence.low[verb]
    lemma = low if sentence.codes[verb] == "v" else next(iter(lemmas(low, "v")), "")
    preposition = sentence.slice(*match.span(4)).lower()
    if lemma not in _DIRECTED or preposition != _WITH.get(lemma, "") or not _can_swap(sentence, left, right):
        return
    if sentence.codes[match.start(2) : match.end(2)].startswith("M"):
        middle = sentence.slice(left[1], right[0])
    else:
        plural = is_plural(sentence, *right)
        form = inflected_verb(lemma, "v" if plural else "z")
        adverb = sentence.words[left[1] : verb]
        middle = " ".join((*adverb, form, *sentence.words[verb + 1 : right[0]]))
    yield _sentence(sentence, right, middle, left), 0.94


def _asked(sentence: TaggedSentence) -> Iterator[tuple[str, float]]:
    """Change `Can A cause B?` to `Can B cause A?`; the verb is tagged as a noun, so its word is compared."""
    for verb in range(2, len(sentence.low) - 2):
        lemma = sentence.low[verb]
        if lemma not in _DIRECTED or not re.fullmatch(_THING, sentence.codes[1:verb]):
            continue
        after = sentence.low[verb + 1] == _WITH.get(lemma)
        left, right = (1, verb), (verb + 1 + after, len(sentence.low) - 1)
        if (lemma in _WITH) != after or not re.fullmatch(_THING, sentence.codes[slice(*right)]):
            continue
        if _can_swap(sentence, left, right):
            first = sentence.words[0]
            if sentence.low[0] in ("do", "does"):
                first = "Do" if is_plural(sentence, *right) else "Does"
            words = (first, sentence.slice(*right), sentence.slice(verb, right[0]), sentence.slice(*left))
            yield " ".join(words) + sentence.text[sentence.spans[right[1] - 1][1] :], 0.95


def _can_swap(sentence: TaggedSentence, left: tuple[int, int], right: tuple[int, int]) -> bool:
    """Whether both are nouns, not pronouns or numbers."""
    for start, end in (left, right):
        if sentence.low[start] in _PRONOUNS or sentence.codes[start] in "#Pg" or end - start > 12:
            return False
    return sentence.slice(*left).lower() != sentence.slice(*right).lower()


def _sentence(sentence: TaggedSentence, first: tuple[int, int], middle: str, last: tuple[int, int]) -> str:
    """`First middle last.`."""
    end = sentence.text[sentence.spans[-1][0] :] if sentence.codes[-1] == "." else ""
    tail = within(sentence, last[1]) if last[0] == 0 else sentence.slice(*last)
    return f"{capital(sentence.slice(*first))} {middle} {tail}{end}"


def within(sentence: TaggedSentence, end: int) -> str:
    """The first words in lower case, unless an unknown word is a name."""
    word = sentence.low[0]
    is_known = sentence.codes[0] in "DPIRC#" or any(lemmas(word, pos) for pos in ("n", "v", "a", "r"))
    return sentence.opening(end) if is_known else sentence.slice(0, end)


def _agreeing(sentence: TaggedSentence, verb: int, plural: bool) -> str | None:
    if sentence.codes[verb] == "M":
        return sentence.words[verb]
    pairs = {"is": ("is", "are"), "are": ("is", "are"), "was": ("was", "were"), "were": ("was", "were")}
    return pairs.get(sentence.low[verb], (None, None))[plural]


def _compared(sentence: TaggedSentence) -> Iterator[tuple[str, float]]:
    """Swap A and B in `more often in A than in B`."""
    if "than" not in sentence.low:
        return
    for match in _COMPARED.finditer(sentence.codes):
        if sentence.low[match.start(2)] != "than":
            continue
        left, right = match.span(1), match.span(3)
        if sentence.low[left[0] - 1] != sentence.low[right[0] - 1]:
            continue
        yield _exchanged(sentence, left, right), 0.95


def _from_to(sentence: TaggedSentence) -> Iterator[tuple[str, float]]:
    """Swap A and B in `from A to B`."""
    for match in _FROM_TO.finditer(sentence.codes):
        left, right = match.span(1), match.span(3)
        is_way = sentence.low[left[0] - 1] == "from" and sentence.low[match.start(2)] == "to"
        verb = sentence.low[max(0, left[0] - 2)]
        moves = bool(_MOVING & {verb, *lemmas(verb, "v")})
        if is_way and moves and _can_swap(sentence, left, right):
            yield _exchanged(sentence, left, right), 0.94


def _exchanged(sentence: TaggedSentence, left: tuple[int, int], right: tuple[int, int]) -> str:
    text, (start, end) = sentence.text, (sentence.spans[left[0]][0], sentence.spans[right[1] - 1][1])
    between = text[sentence.spans[left[1] - 1][1] : sentence.spans[right[0]][0]]
    return f"{text[:start]}{sentence.slice(*right)}{between}{sentence.slice(*left)}{text[end:]}"
