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
_IDIOMS = frozenset(
    ("other hand", "one hand", "by mouth", "by heart", "by hand", "on foot")
)
_NAMING = frozenset("nsgJx#")  # codes
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
        longest = min(start + _MAX_WORDS, len(sentence.words))
        for end in range(longest, start, -1):
            sibling = _sibling(sentence, start, end)
            if sibling:
                confidence = _confidence(sentence, start, end)
                yield meaning_change("entity", confidence, Edit(start, end, sibling))
                start = end - 1
                break
        start += 1


def _confidence(sentence: TaggedSentence, start: int, end: int) -> float:
    """Lower for items of lists, and in the second half of the sentence."""
    confidence = _CONFIDENCE_OF_PHRASES if end - start > 1 else _CONFIDENCE
    if sentence.code_at(end) in (",", "C") or sentence.code_at(start - 1) in (",", "C"):
        confidence -= 0.06
    if start > len(sentence.words) // 2:
        confidence -= 0.02
    return confidence


def _sibling(sentence: TaggedSentence, start: int, end: int) -> str | None:
    match = _look_up(sentence, start, end)
    if match is None:
        return None
    group, matched, is_plural = match
    if group.governs and sentence.code_at(end) != "I":
        return None
    if not _stands_alone(sentence, start, end, literal=group.literal):
        return None
    text = f" {' '.join(sentence.low)} "
    siblings = []
    for name in group.names:
        forms = (name.lower(), plural(name.lower()))
        if name != matched and not any(f" {form} " in text for form in forms):
            siblings.append(name)
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
    *before, last = low
    for lemma in lemmas(last, "n"):
        if lemma != last:
            name = " ".join((*before, lemma))
            group = groups.get(name)
            return (group, name, True) if group and not group.literal else None
    return None


def _stands_alone(
    sentence: TaggedSentence, start: int, end: int, *, literal: bool
) -> bool:
    """Whether the words are not part of a longer name."""
    codes = sentence.codes
    low = sentence.low
    before = sentence.word_at(start - 1)
    after = sentence.word_at(end)
    code_before = sentence.code_at(start - 1)
    if codes[end - 1] in "vzd" or " ".join(low[max(0, start - 1) : end]) in _IDIOMS:
        return False
    if literal:
        has_name = start == 0 and sentence.words[0][:1].isupper()
    else:
        words = sentence.words[max(start, 1) : end]
        has_name = any(word[:1].isupper() for word in words)
        is_noun = codes[start] in "nsgx" or end - start > 1
        if not is_noun or not _NAMING.issuperset(codes[start:end]):
            return False
    if has_name:
        return False
    if sentence.code_at(end) in ("n", "s", "g") and after not in _HEADS:
        return False
    if code_before in ("n", "g", "x"):
        return False
    if code_before in ("J", "e") and before not in _PLAIN:
        return False
    if before == "(" or after == "(":
        return False  # brackets repeat a thing in other words
    if {before, after} & {"-", "/", "'"}:
        return False
    if after and after not in _HEADS and is_compound((*low[start:end], after)):
        return False
    return not (code_before == "J" and is_compound(low[start - 1 : end]))


@cache
def _groups() -> dict[str, _SiblingGroup]:
    groups: dict[str, _SiblingGroup] = {}
    for line in read_table("siblings").splitlines():
        if line and not line.startswith("#"):
            names = tuple(name.strip() for name in line.lstrip("=~").split(","))
            group = _SiblingGroup(
                names, literal=line[0] in "=~", governs=line[0] == "~"
            )
            for name in names:
                groups.setdefault(name, group)
    return groups
