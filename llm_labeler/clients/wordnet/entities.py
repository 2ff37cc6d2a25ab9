"""Another thing of the same kind: the other organ, drug, illness, relative, program."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from llm_labeler.clients.wordnet.lexicon import is_compound, lemmas, plural
from llm_labeler.clients.wordnet.sentence import Edit, MeaningChange, TaggedSentence, meaning_change, word_set
from llm_labeler.clients.wordnet.substitutions import read_table
from pairkit.system.seeded import keyed_hash

_LONGEST = 3  # words of a name
# What a thing may belong to: liver cancer, but no liver attack.
_HEADS = word_set(
    """
    cancer cancers disease diseases failure tumor tumors transplant transplants damage problems
    infection infections function tissue cell cells pain biopsy surgery specialist medicine medicines
    treatment treatments patients symptoms levels level deficiency injury injuries disorder disorders
    attacks users error errors
    """
)
# Adjectives that leave a thing what it is; others may be part of its name: fatty liver.
_PLAIN = word_set(
    """
    severe mild chronic acute other certain common serious persistent frequent small large high low
    increased decreased normal abnormal healthy many several some new oral regular similar affected
    older younger young old left right both your own first second main different human damaged excess
    recurrent bad strong possible pregnant sexual active infected
    """
)
_IDIOMS = (
    ("other", "hand"),
    ("one", "hand"),
    ("by", "mouth"),
    ("by", "heart"),
    ("by", "hand"),
    ("on", "foot"),
)
_SURE, _SURE_OF_NAMES = 0.93, 0.94


class _SiblingGroup(NamedTuple):
    """A word's group, and whether its words are taken as they stand."""

    group: tuple[str, ...]
    literal: bool
    governs: bool  # only where a preposition follows


def entity_changes(sentence: TaggedSentence) -> Iterator[MeaningChange]:
    """One change for each thing of which another of its kind is known that the sentence does not name."""
    place = 0
    while place < len(sentence.words):
        for length in range(_LONGEST, 0, -1):
            end = place + length
            if end <= len(sentence.words) and (new := _other(sentence, place, end)):
                yield meaning_change("entity", _sure(sentence, place, end), Edit(place, end, new))
                place = end - 1
                break
        place += 1


def _sure(sentence: TaggedSentence, start: int, end: int) -> float:
    """Surer of what the sentence is about, which stands at its beginning, than of one item of many."""
    sure = _SURE_OF_NAMES if end - start > 1 else _SURE
    listed = sentence.codes[end : end + 1] in (",", "C") or (start and sentence.codes[start - 1] in ",C")
    return sure - (0.06 if listed else 0.0) - (0.02 if start > len(sentence.words) // 2 else 0.0)


def _other(sentence: TaggedSentence, start: int, end: int) -> str | None:
    known = _known(sentence, start, end)
    if known is None:
        return None
    found, spoken, in_plural = known
    if found.governs and sentence.codes[end : end + 1] != "I":
        return None
    if not _stands_alone(sentence, start, end, literal=found.literal):
        return None
    here = f" {' '.join(sentence.low)} "
    others = [name for name in found.group if name != spoken and not _is_named(name, here)]
    if not others:
        return None
    chosen = min(others, key=lambda name: keyed_hash(0, sentence.text, name))
    return plural(chosen) if in_plural else chosen


def _known(sentence: TaggedSentence, start: int, end: int) -> tuple[_SiblingGroup, str, bool] | None:
    """The group that words are of, the name that they stand for in it, and whether they are its plural."""
    low, names = sentence.low[start:end], _names()
    for spoken in (" ".join(sentence.words[start:end]), " ".join(low)):
        found = names.get(spoken)
        if found and (found.literal or sentence.codes[end - 1] != "s"):
            return found, spoken, False
    singular = next((lemma for lemma in lemmas(low[-1], "n") if lemma != low[-1]), None)
    if singular is None:
        return None
    spoken = " ".join((*low[:-1], singular))
    found = names.get(spoken)
    return (found, spoken, True) if found and not found.literal else None


def _is_named(name: str, here: str) -> bool:
    """Whether a sentence speaks of a thing already, in the singular or plural."""
    low = name.lower()
    return any(f" {form} " in here for form in {low, plural(low)})


def _stands_alone(sentence: TaggedSentence, start: int, end: int, *, literal: bool) -> bool:
    """Whether the words are a thing of their own, and no part of another's name."""
    codes, low = sentence.codes, sentence.low
    if not literal and not set(codes[start:end]) <= set("nsgJx#"):
        return False
    if codes[end - 1] in "vzd" or (end - start == 1 and codes[start] not in "nsgx" and not literal):
        return False
    if low[max(0, start - 1) : end] in _IDIOMS or (
        start == 0 and literal and sentence.words[0][:1].isupper()
    ):
        return False
    before, after = codes[start - 1 : start] if start else "", codes[end : end + 1]
    if after in ("n", "s", "g") and low[end] not in _HEADS:
        return False
    if before in ("n", "g", "x") or (before in ("J", "e") and low[start - 1] not in _PLAIN):
        return False
    if low[end : end + 1] == ("(",) or "(" in low[max(0, start - 1) : start]:
        return False  # what stands in brackets says the same again
    if {*low[max(0, start - 1) : start], *low[end : end + 1]} & {"-", "/", "'"}:
        return False
    if any(word[:1].isupper() for word in sentence.words[max(start, 1) : end]) and not literal:
        return False
    if end < len(low) and is_compound((*low[start:end], low[end])) and low[end] not in _HEADS:
        return False
    return not (start and before == "J" and is_compound(low[start - 1 : end]))


@cache
def _names() -> dict[str, _SiblingGroup]:
    found: dict[str, _SiblingGroup] = {}
    for line in read_table("siblings").splitlines():
        if line and not line.startswith("#"):
            group = tuple(name.strip() for name in line.lstrip("=~").split(","))
            place = _SiblingGroup(group, literal=line[0] in "=~", governs=line[0] == "~")
            for name in group:
                found.setdefault(name, place)
    return found
