"""Words that say the same or the opposite, and compounds: what WordNet can say whatever sense is meant.

`lexicon.tsv` was derived from WordNet 3.0 (its head says how). A word is in it only for its dominant sense:
its only one, or the one that at least three quarters of its occurrences in hand-tagged text have.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from importlib import resources

from llm_labeler._providers.wordnet.morphology import Pos


def synonyms(lemma: str, pos: Pos) -> tuple[str, ...]:
    """Words of the same dominant sense that are in use, the most frequent first."""
    return _rows()["synonym", pos].get(lemma, ())


def antonyms(lemma: str, pos: Pos) -> tuple[str, ...]:
    """Words that are the direct opposite in the dominant sense of both."""
    return _rows()["antonym", pos].get(lemma, ())


def is_prefixed(adjective: str) -> bool:
    """Whether it is the opposite of what stands after its first two letters: unknown, incorrect."""
    return adjective in _rows()["prefixed", "a"]


def is_compound(words: tuple[str, ...]) -> bool:
    """Whether words, in small letters, are one entry of several: `white blood cell`."""
    return words[0] in _compounds() and " ".join(words) in _compounds()[words[0]]


@cache
def _rows() -> dict[tuple[str, str], dict[str, tuple[str, ...]]]:
    found: dict[tuple[str, str], dict[str, tuple[str, ...]]] = defaultdict(dict)
    text = (resources.files(__package__) / "lexicon.tsv").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            kind, pos, lemma, *words = line.split("\t")
            found[kind, pos][lemma] = tuple(words)
    return found


@cache
def _compounds() -> dict[str, frozenset[str]]:
    by_first: dict[str, set[str]] = defaultdict(set)
    for compound in _rows()["compound", "n"]:
        by_first[compound.split(" ", 1)[0]].add(compound)
    return {first: frozenset(compounds) for first, compounds in by_first.items()}
