"""A small language for tables of phrases that may stand for one another.

```
because of <> due to            either way
go* away > disappear*           any form of the verb, and the same form of the other
doctor+ <> physician+           singular or plural
about {#} > around {}           a token with one of these codes, kept
^ to {v} > in order to {}       only at the beginning
such as {DnsJ} > like {} @ 0.8  how sure the rule is; else 0.9
```
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from llm_labeler._providers.wordnet.files import WordNet
from llm_labeler._providers.wordnet.morphology import inflected_verb, lemmas, plural
from llm_labeler._providers.wordnet.sentence import Edit, Sentence

SURE = 0.9


@dataclass(frozen=True, slots=True)
class Change:
    """Edits that together make one candidate, and how sure the rule is that it says what it should."""

    confidence: float  # in [0, 1]
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """One direction of one line."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    opening: bool  # only at the beginning of the sentence
    confidence: float


class Table:
    """Rules, found by the word they begin with."""

    def __init__(self, lines: str) -> None:
        self._by_word: dict[str, list[Rule]] = defaultdict(list)
        for line in filter(None, map(str.strip, lines.splitlines())):
            for rule in _parse(line):
                self._by_word[_key(rule)].append(rule)

    def changes(self, wordnet: WordNet, sentence: Sentence) -> Iterator[Change]:
        """Every place where a rule fits, from left to right."""
        for place in range(len(sentence.words)):
            keys = {sentence.low[place], *_lemmas_here(wordnet, sentence, place)}
            for key in (*sorted(keys), "{"):
                for rule in self._by_word.get(key, ()):
                    edit = _match(wordnet, sentence, place, rule)
                    if edit:
                        yield Change(rule.confidence, (edit,))


def _parse(line: str) -> list[Rule]:
    text, _, sure = line.partition(" @ ")
    left, arrow, right = text.partition(" <> ")
    if not arrow:
        left, _, right = text.partition(" > ")
    opening, left = left.startswith("^ "), left.removeprefix("^ ")
    one, other = tuple(left.split()), tuple(right.split())
    confidence = float(sure or SURE)
    rules = [Rule(one, other, opening, confidence)]
    return [*rules, Rule(other, one, opening, confidence)] if arrow else rules


def _key(rule: Rule) -> str:
    """The first literal word: what comes before it is looked at from there."""
    first = rule.left[0]
    return "{" if first[0] == "{" else first.rstrip("*+")


def _lemmas_here(wordnet: WordNet, sentence: Sentence, place: int) -> tuple[str, ...]:
    code = sentence.codes[place]
    if code in "vzdegH":
        return lemmas(wordnet, sentence.low[place], "v")
    return lemmas(wordnet, sentence.low[place], "n") if code in "ns" else ()


def _match(wordnet: WordNet, sentence: Sentence, place: int, rule: Rule) -> Edit | None:
    end = place + len(rule.left)
    if end > len(sentence.words) or (rule.opening and place > 0):
        return None
    kept: list[str] = []
    code = ""
    for at, part in enumerate(rule.left, place):
        if part[0] == "{":
            if sentence.codes[at] not in part:
                return None
            kept.append(sentence.slice(at, at + 1))
        elif part[-1] in "*+" and len(part) > 1:
            if not _is_form(wordnet, sentence, at, part):
                return None
            code = sentence.codes[at]
        elif sentence.low[at] != part:
            return None
    if code == "H":
        code = {"has": "z", "had": "d", "having": "g"}.get(sentence.low[place], "v")
    return _edit(wordnet, place, end, rule, kept, code)


def _is_form(wordnet: WordNet, sentence: Sentence, at: int, part: str) -> bool:
    codes, pos = ("vzdegH", "v") if part[-1] == "*" else ("ns", "n")
    found = sentence.codes[at] in codes
    return found and part[:-1] in lemmas(wordnet, sentence.low[at], pos)  # type: ignore[arg-type]


def _edit(wordnet: WordNet, start: int, end: int, rule: Rule, kept: list[str], code: str) -> Edit | None:
    left, right = list(rule.left), list(rule.right)
    # What stands at either end of both is no part of the change.
    while len(left) > 1 and right and _is_same(left[0], right[0]):
        kept = kept[left[0][0] == "{" :]
        del left[0], right[0]
        start += 1
    while len(left) > 1 and right and _is_same(left[-1], right[-1]):
        kept = kept[: len(kept) - (left[-1][0] == "{")]
        del left[-1], right[-1]
        end -= 1
    words: list[str] = []
    for part in right:
        if part == "{}":
            words.append(kept.pop(0))
            continue
        word: str | None = part.rstrip("*+") if len(part) > 1 else part
        if word and part[-1] == "*":
            word = inflected_verb(wordnet, word, code)
        elif word and part[-1] == "+" and code == "s":
            word = plural(word)
        if word is None:
            return None
        words.append(word)
    return Edit(start, end, " ".join(words))


def _is_same(one: str, other: str) -> bool:
    return one[0] == other[0] == "{" or one == other
