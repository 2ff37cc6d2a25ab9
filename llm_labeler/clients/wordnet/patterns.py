"""A small language for tables of phrases that may stand for one another: `paraphrases.txt`, `contrasts.txt`.

```
@ 0.9                           how sure the rules below it are; a semicolon or a line's end ends a rule
because of <> due to            either way
go* away > disappear*           any form of the verb, and the same form of the other
doctor+ <> physician+           singular or plural
about {#} > around {}           a token with one of these codes, kept
^ to {v} > in order to {}       only at the beginning
```
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from llm_labeler.clients.wordnet.lexicon import Pos, inflected_verb, lemmas, plural
from llm_labeler.clients.wordnet.sentence import Change, Edit, Sentence

_VERBS = "vzdegH"


@dataclass(frozen=True, slots=True)
class Rule:
    """One direction of one rule."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    opening: bool  # only at the beginning of the sentence
    confidence: float


class Table:
    """Rules, found by the word they begin with."""

    def __init__(self, text: str) -> None:
        self.rules = [
            Rule(tuple(left.removeprefix("^ ").split()), tuple(right.split()), left.startswith("^ "), sure)
            for left, right, sure in parse(text)
        ]
        self._by_word: dict[str, list[Rule]] = defaultdict(list)
        for rule in self.rules:
            self._by_word["{" if rule.left[0][0] == "{" else rule.left[0].rstrip("*+")].append(rule)

    def changes(self, sentence: Sentence) -> Iterator[Change]:
        """Every place where a rule fits, from left to right."""
        for place in range(len(sentence.words)):
            for key in (*sorted({sentence.low[place], *_lemmas(sentence, place)}), "{"):
                for rule in self._by_word.get(key, ()):
                    edit = _match(sentence, place, rule)
                    if edit:
                        yield Change(rule.confidence, (edit,))


def parse(text: str) -> Iterator[tuple[str, str, float]]:
    """Left side, right side and confidence of each rule, those that work either way once for each."""
    sure = 0.9
    for line in text.splitlines():
        if line.startswith("@"):
            sure = float(line.removeprefix("@"))
            continue
        written = "" if line.startswith("#") else line
        for rule in filter(None, map(str.strip, written.split(";"))):
            left, arrow, right = re.split(" (<?>) ", rule)
            yield left, right, sure
            if arrow == "<>":
                yield *_turned(left, right), sure


def read_table(name: str) -> str:
    """The text of one of this package's tables."""
    return (resources.files(__package__) / f"{name}.txt").read_text(encoding="utf-8")


def _turned(left: str, right: str) -> tuple[str, str]:
    """Both sides of a rule that works the other way: codes go where what they keep now comes from."""
    start, left = "^ " if left.startswith("^ ") else "", left.removeprefix("^ ")
    if "{}" in right:
        codes = iter(re.findall(r"\{\S+\}", left))
        left, right = re.sub(r"\{\S+\}", "{}", left), re.sub(r"\{\}", lambda _: next(codes), right)
    return start + right, left


def _lemmas(sentence: Sentence, place: int) -> tuple[str, ...]:
    code = sentence.codes[place]
    pos: Pos | None = "v" if code in _VERBS else "n" if code in "ns" else None
    return lemmas(sentence.low[place], pos) if pos else ()


def _match(sentence: Sentence, place: int, rule: Rule) -> Edit | None:
    end = place + len(rule.left)
    if end > len(sentence.words) or (rule.opening and place > 0):
        return None
    kept: list[str] = []
    code = ""
    for at, part in enumerate(rule.left, place):
        if part[0] == "{":
            if sentence.codes[at] not in part:
                return None
            kept.append(sentence.words[at])
        elif part[-1] in "*+" and len(part) > 1:
            code = sentence.codes[at]
            if code not in (_VERBS if part[-1] == "*" else "ns") or part[:-1] not in _lemmas(sentence, at):
                return None
        elif sentence.low[at] != part:
            return None
    if code == "H":
        code = {"has": "z", "had": "d", "having": "g"}.get(sentence.low[place], "v")
    words = [kept.pop(0) if part == "{}" else _form(part, code) for part in rule.right]
    # What stands at either end of both is no part of the change.
    while end - place > 1 and words and words[0].lower() == sentence.low[place]:
        place, words = place + 1, words[1:]
    while end - place > 1 and words and words[-1].lower() == sentence.low[end - 1]:
        end, words = end - 1, words[:-1]
    return Edit(place, end, " ".join(words))


def _form(part: str, code: str) -> str:
    if part[-1] == "*":
        return inflected_verb(part[:-1], code)
    if part[-1] == "+":
        return plural(part[:-1]) if code == "s" else part[:-1]
    return part
