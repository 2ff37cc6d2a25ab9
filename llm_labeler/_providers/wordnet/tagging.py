"""What part each word plays: the cheapest sequence of codes (see `words`) by Viterbi's algorithm.

A word's codes cost by how rarely WordNet's hand-tagged texts had it as that part of speech; a step from one
code to the next costs by a table written by hand. That is right often enough for rules that look twice.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import log

from llm_labeler._providers.wordnet.files import Pos, WordNet
from llm_labeler._providers.wordnet.morphology import lemmas
from llm_labeler._providers.wordnet.words import CLOSED, HALF_OPEN

# Steps that are usual, and steps that hardly occur; all others lie between.
_STEPS = {
    "^": ("DPJnsCSWRIvEg#O,MB", "zde"),
    "D": ("Jnseg#R", "vzdMBHOPDITCSWEb"),
    "P": ("MBHOvzdRN", "JnDPb"),
    "E": ("BMHOR", "nsJvzdegDPI"),
    "I": ("DPJns#gW", "vzdMBHOSTbE"),
    "C": ("nsJDPRvzdegI#SMTEB", ""),
    "S": ("DPnsJEgR#", "vz"),
    "W": ("MBHOvzdPDnsRT", "IC."),
    "T": ("vbRHO", "nsJDPIMBzde#CEW"),
    "M": ("vbRNHPDO", "nsJzdgeBI#"),
    "B": ("NReJDgIbn#WTPS", "vzdMBHO"),
    "H": ("DebRNJns#TPg", "vzMBO"),
    "O": ("NvRPDns", "zdegMBb"),
    "N": ("vebJRgDITHPS", "zdsn"),
    "R": ("JevzdgR,IDMBHOb.#SC", ""),
    "J": ("nsJ,C.ITgS", "vzdDPMWHO"),
    "n": ("nsIC,.zdMBHOWRSTe", "vDPJbE"),
    "s": ("IC,.vdMBHOWRSTeg", "zDPJnbE"),
    "#": ("nsJ,.I#Cg", "vzPb"),
    "v": ("DPJnsIRTSWeg#,.C", "vzdMBHO"),
    "z": ("DPJnsIRTSWeg#,.C", "vzdMBHO"),
    "d": ("DPJnsIRTSWeg#,.C", "vzdMBHO"),
    "e": ("I,.CRTSnsJg", "vzdPOE"),
    "g": ("DPJnsIR,.CTSW", "vdE"),
    "b": ("eJDRgIn#TPS", "vzdMBHOs"),
    ",": ("CDPJnsRWSIge,.vzdMBHT#E", ""),
    ".": ("DPJns,.I", ""),
    "x": ("nsI,.C", ""),
}
_STEP_COST = {
    (one, two): 0.0 if two in usual else 4.0 if two in rare else 1.5
    for one, (usual, rare) in _STEPS.items()
    for two in "DPEICSWTMBHObNRJns#vzdeg,.x"
}
_NUMBER = re.compile(r"[\d.,/%]*\d[\d.,/%-]*|[a-z]*\d[\w-]*")
_FOREIGN = re.compile(r".*(?:@|://|www\.|\w/\w).*")
_SUFFIX_CODES = (
    (re.compile(r".*ly"), {"R": 0.0}),
    (re.compile(r".*ing"), {"g": 0.3, "n": 1.0}),
    (re.compile(r".*ed"), {"e": 0.3, "d": 0.7, "J": 1.0}),
    (re.compile(r".*(?:ous|al|ive|ic|able|ible|less|ful|ary|ish|oid)"), {"J": 0.2, "n": 1.5}),
    (re.compile(r".*(?:[^s]s)"), {"s": 0.0}),
)


class Tagger:
    """Gives every token of a sentence its code."""

    def __init__(self, wordnet: WordNet) -> None:
        self._wordnet = wordnet
        self._codes = lru_cache(maxsize=20_000)(self._codes_of)

    def codes(self, words: tuple[str, ...]) -> str:
        """One letter a token."""
        best = {"^": (0.0, "")}
        for place, word in enumerate(words):
            reached: dict[str, tuple[float, str]] = {}
            for code, own in self._codes(word, place == 0):
                cost, path = min((cost + _STEP_COST[last, code], path) for last, (cost, path) in best.items())
                reached[code] = (cost + own, path + code)
            best = reached
        return min(best.values())[1]

    def _codes_of(self, word: str, is_first: bool) -> tuple[tuple[str, float], ...]:
        low = word.lower()
        if not any(map(str.isalnum, word)) and word not in "%&":
            return ((".", 0.0),) if word in ".!?" else ((",", 0.0),)
        if low in CLOSED and low not in HALF_OPEN:
            return tuple((code, 0.0) for code in CLOSED[low])
        if _NUMBER.fullmatch(low):
            return (("#", 0.0),)
        if _FOREIGN.fullmatch(low):
            return (("x", 0.0),)
        costs = self._open_codes(low)
        for code in CLOSED.get(low, ""):
            costs[code] = 0.0
        if not costs or (word[0].isupper() and not is_first and low not in CLOSED):
            guessed = next((codes for shape, codes in _SUFFIX_CODES if shape.fullmatch(low)), {"n": 0.0})
            costs = {**guessed, **costs}
        if word[0].isupper() and not is_first:
            costs["n"] = min(costs.get("n", 9.0), 0.5)
        return tuple(sorted(costs.items()))

    def _open_codes(self, low: str) -> dict[str, float]:
        seen: dict[Pos, float] = {}
        bases: dict[Pos, tuple[str, ...]] = {}
        for pos in ("n", "v", "a", "r"):
            bases[pos] = lemmas(self._wordnet, low, pos)
            if bases[pos]:
                seen[pos] = max(self._wordnet.count(lemma, pos) for lemma in bases[pos]) + 0.5
        total = sum(seen.values())
        costs: dict[str, float] = {}
        for pos, count in seen.items():
            for code, extra in _forms(low, pos, bases[pos]):
                costs[code] = min(costs.get(code, 99.0), min(log(total / count), 4.0) + extra)
        return costs


def _forms(low: str, pos: Pos, bases: tuple[str, ...]) -> list[tuple[str, float]]:
    if pos == "a":
        return [("J", 0.0)]
    if pos == "r":
        return [("R", 0.0)]
    is_base = low in bases
    if pos == "n":
        return ([("n", 0.0)] if is_base else []) + (
            [("s", 0.1)] if low not in bases[:1] or len(bases) > 1 else []
        )
    found = [("v", 0.5)] if is_base else []
    others = [base for base in bases if base != low]
    if others and low.endswith("ing"):
        return [*found, ("g", 0.2)]
    if others and low.endswith("s"):
        return [*found, ("z", 0.5)]
    if others:
        found += [("d", 0.6), ("e", 0.3)]
    elif is_base and low in (
        "put",
        "cut",
        "let",
        "hit",
        "hurt",
        "set",
        "spread",
        "read",
        "shut",
        "cost",
        "split",
    ):
        found += [("d", 1.5), ("e", 1.0)]
    return found
