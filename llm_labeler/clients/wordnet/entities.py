"""Replace a thing by another of the same kind: an organ, drug, illness, relative or program."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from llm_labeler.clients.wordnet.substitutions import read_table
from llm_labeler.clients.wordnet.tagged_sentence import (
    Change,
    Edit,
    TaggedSentence,
    meaning_change,
    word_set,
)
from llm_labeler.clients.wordnet.wordnet_lexicon import is_compound, lemmas, plural
from pairkit.base.system.seeded import keyed_hash

_MAX_WORDS = 3  # of a name
# Nouns that a thing may precede: "liver cancer", but not "liver attack".
_HEADS = word_set(
    """
    cancer cancers disease diseases failure tumor tumors transplant transplants damage problems
    infection infections function tissue cell cells pain biopsy surgery specialist medicine medicines
    treatment treatments patients symptoms levels level deficiency injury injuries disorder disorders
    attacks users error errors
    """
)
# Adjectives that are not part of a name, unlike that of "fatty liver".
_PLAIN = word_set(
    """
    severe mild chronic acute other certain common serious persistent frequent small large high low
    increased decreased normal abnormal healthy many several some new oral regular similar affected
    older younger young old left right both your own first second main different human damaged excess
    recurrent bad strong possible pregnant sexual active infected
    """
)
_IDIOMS = frozenset(("other hand", "one hand", "by mouth", "by heart", "by hand", "on foot"))
_CONFIDENCE = 0.93
_CONFIDENCE_OF_PHRASES = 0.94


class _SiblingGroup(NamedTuple):
    """A line of `siblings.txt`."""

    names: tuple[str, ...]
    literal: bool  # not inflected
    governs: bool  # only before a preposition


def entity_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """One change for each thing that has a sibling which the sentence doesn't mention."""
    start = 0
    while start < len(sentence.words):
        for length in range(_MAX_WORDS, 0, -1):
            end = start + length
            if end <= len(sentence.words) and (sibling := _sibling(sentence, start, end)):
                yield meaning_change(
                    "entity", _confidence(sentence, start, end), Edit(start, end, sibling)
                )
                start = end - 1
                break
        start += 1


def _confidence(sentence: TaggedSentence, start: int, end: int) -> float:
    """Lower for items of lists, and in the second half of the sentence."""
    confidence = _CONFIDENCE_OF_PHRASES if end - start > 1 else _CONFIDENCE
    listed = sentence.codes[end : end + 1] in (",", "C") or (
        start and sentence.codes[start - 1] in ",C"
    )
    return (
        confidence - (0.06 if listed else 0.0) - (0.02 if start > len(sentence.words) // 2 else 0.0)
    )


def _sibling(sentence: TaggedSentence, start: int, end: int) -> str | None:
    match = _look_up(sentence, start, end)
    if match is None:
        return None
    group, matched, is_plural = match
    if group.governs and sentence.codes[end : end + 1] != "I":
        return None
    if not _stands_alone(sentence, start, end, literal=group.literal):
        return None
    text = f" {' '.join(sentence.low)} "
    forms = {name: {name.lower(), plural(name.lower())} for name in group.names if name != matched}
    siblings = [name for name in forms if not any(f" {form} " in text for form in forms[name])]
    if not siblings:
        return None
    chosen = min(siblings, key=lambda sibling: keyed_hash(0, sentence.text, sibling))
    return plural(chosen) if is_plural else chosen


def _look_up(
    sentence: TaggedSentence, start: int, end: int
) -> tuple[_SiblingGroup, str, bool] | None:
    """The group of some words, their name in it, and whether they are its plural."""
    low = sentence.low[start:end]
    groups = _groups()
    for name in (" ".join(sentence.words[start:end]), " ".join(low)):
        group = groups.get(name)
        if group and (group.literal or sentence.codes[end - 1] != "s"):
            return group, name, False
    singular = next((lemma for lemma in lemmas(low[-1], "n") if lemma != low[-1]), None)
    if singular is None:
        return None
    name = " ".join((*low[:-1], singular))
    group = groups.get(name)
    return (group, name, True) if group and not group.literal else None


def _stands_alone(sentence: TaggedSentence, start: int, end: int, *, literal: bool) -> bool:
    """Whether the words are not part of a longer name."""
    codes = sentence.codes
    low = sentence.low
    if not literal and not set(codes[start:end]) <= set("nsgJx#"):
        return False
    if codes[end - 1] in "vzd" or (end - start == 1 and codes[start] not in "nsgx" and not literal):
        return False
    if " ".join(low[max(0, start - 1) : end]) in _IDIOMS:
        return False
    if start == 0 and literal and sentence.words[0][:1].isupper():
        return False
    before = codes[start - 1 : start] if start else ""
    after = codes[end : end + 1]
    if after in ("n", "s", "g") and low[end] not in _HEADS:
        return False
    if before in ("n", "g", "x") or (before in ("J", "e") and low[start - 1] not in _PLAIN):
        return False
    if low[end : end + 1] == ("(",) or "(" in low[max(0, start - 1) : start]:
        return False  # brackets repeat a thing in other words
    if {*low[max(0, start - 1) : start], *low[end : end + 1]} & {"-", "/", "'"}:
        return False
    if any(word[:1].isupper() for word in sentence.words[max(start, 1) : end]) and not literal:
        return False
    if end < len(low) and is_compound((*low[start:end], low[end])) and low[end] not in _HEADS:
        return False
    return not (start and before == "J" and is_compound(low[start - 1 : end]))


@cache
def _groups() -> dict[str, _SiblingGroup]:
    groups: dict[str, _SiblingGroup] = {}
    for line in read_table("siblings").splitlines():
        if line and not line.startswith("#"):
            names = tuple(name.strip() for name in line.lstrip("=~").split(","))
            group = _SiblingGroup(names, literal=line[0] in "=~", governs=line[0] == "~")
            for name in names:
                groups.setdefault(name, group)
    return groups
