"""A small language for tables of phrases that may stand for one another: `paraphrases.txt`, `contrasts.txt`.

```
@ 0.9                           how sure the rules below it are; a semicolon or a line's end ends a rule
because of <> due to            either way
go* away > disappear*           any form of the verb, and the same form of the other
doctor+ <> physician+           singular or plural
about {#} > around {}           a token with one of these codes, kept
^ to {v} > in order to {}       only at the beginning
```

Synonyms and antonyms are of WordNet, in the form of the word that they replace.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources

from llm_labeler.clients.wordnet.lexicon import (
    Pos,
    antonyms,
    degree,
    inflected_verb,
    is_compound,
    lemmas,
    plural,
    synonyms,
)
from llm_labeler.clients.wordnet.sentence import Change, Edit, TaggedSentence

_VERBS = "vzdegH"


@dataclass(frozen=True, slots=True)
class PhraseRule:
    """One direction of one rule."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    opening: bool  # only at the beginning of the sentence
    confidence: float


class PhraseTable:
    """Rules, found by the word they begin with."""

    def __init__(self, text: str) -> None:
        self.rules = [
            PhraseRule(
                tuple(left.removeprefix("^ ").split()), tuple(right.split()), left.startswith("^ "), sure
            )
            for left, right, sure in parse(text)
        ]
        self._by_word: dict[str, list[PhraseRule]] = defaultdict(list)
        for rule in self.rules:
            self._by_word["{" if rule.left[0][0] == "{" else rule.left[0].rstrip("*+")].append(rule)

    def changes(self, sentence: TaggedSentence) -> Iterator[Change]:
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


def _lemmas(sentence: TaggedSentence, place: int) -> tuple[str, ...]:
    code = sentence.codes[place]
    pos: Pos | None = "v" if code in _VERBS else "n" if code in "ns" else None
    return lemmas(sentence.low[place], pos) if pos else ()


def _match(sentence: TaggedSentence, place: int, rule: PhraseRule) -> Edit | None:
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


_POS: dict[str, Pos] = {**dict.fromkeys("ns", "n"), **dict.fromkeys("vzdeg", "v"), "J": "a", "R": "r"}
_DEGREES = frozenset(("more", "most", "less", "least"))
_LONGEST = 3  # words of a compound


def synonym_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """One change for each word that has a safe synonym."""
    for place, pos, word in _replaced(sentence, synonyms):
        if place and sentence.low[place - 1] in _DEGREES:
            continue  # most commonly, but not most usually
        if not (pos == "n" and _modifies(sentence, place)):
            yield Change(0.84 if pos in "ra" else 0.82, (Edit(place, place + 1, word),))


def antonym_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """One change for each adjective, adverb or verb that has a direct opposite."""
    for place, pos, word in _replaced(sentence, antonyms):
        predicate = place > 0 and sentence.codes[place - 1] in "BbR"
        sure = {"a": 0.88 if predicate else 0.8, "r": 0.82, "v": 0.78}[pos]
        yield Change(sure, (Edit(place, place + 1, word),))


def in_compound(sentence: TaggedSentence, edit: Edit) -> bool:
    """Whether an edit would break up an entry of several words."""
    return any(_in_compound(sentence, place) for place in range(edit.start, edit.end))


def _replaced(
    sentence: TaggedSentence, others: Callable[[str, Pos], tuple[str, ...]]
) -> Iterator[tuple[int, Pos, str]]:
    """Each plain word that has others: its place, its part of speech, the best of them in its form."""
    for place, code in enumerate(sentence.codes):
        pos = _POS.get(code)
        lemma = _only_lemma(sentence.low[place], pos, code) if pos and _is_plain(sentence, place) else None
        if pos and lemma and (found := others(lemma, pos)) and not _in_compound(sentence, place):
            yield place, pos, _inflected(found[0], code, sentence.low[place], lemma)


def _is_plain(sentence: TaggedSentence, place: int) -> bool:
    word = sentence.words[place]
    if sentence.low[place] in _DEGREES:
        return False
    return len(word) > 3 and (word.islower() or (place == 0 and word[1:].islower())) and word.isalpha()


def _only_lemma(low: str, pos: Pos, code: str) -> str | None:
    """The lemma of a form; None where it might be of two."""
    found = lemmas(low, pos)
    if code in "zdegs":
        found = tuple(lemma for lemma in found if lemma != low) or found
    elif low in found:
        return low if pos in "ar" or len(found) == 1 else None
    return found[0] if len(found) == 1 else None


def _inflected(word: str, code: str, low: str, lemma: str) -> str:
    if code == "s":
        return plural(word)
    if code in "zdeg":
        return inflected_verb(word, code)
    if code in "JR" and low != lemma:
        return degree(word, "est" if low.endswith("st") else "er")
    return word


def _modifies(sentence: TaggedSentence, place: int) -> bool:
    """Whether a noun stands before another that it belongs to, or after one."""
    after = sentence.codes[place + 1 : place + 2]
    before = sentence.codes[place - 1] if place else "^"
    return after in ("n", "s") or before in ("n", "g")


def _in_compound(sentence: TaggedSentence, place: int) -> bool:
    """Whether a word is part of an entry of several words."""
    for start in range(max(0, place - _LONGEST + 1), place + 1):
        for end in range(max(start + 2, place + 1), min(start + _LONGEST, len(sentence.low)) + 1):
            *first, last = sentence.low[start:end]
            if any(is_compound((*first, word)) for word in (last, *lemmas(last, "n"))):
                return True
    return False
