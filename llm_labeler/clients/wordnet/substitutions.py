"""Replace phrases by the rules of tables such as `paraphrases.txt`, and words by synonyms or antonyms.

```
@ 0.9                           confidence of the next rules; a semicolon or the end of the line ends a rule
because of <> due to            in both directions
go* away > disappear*           any form of the verb, replaced by the same form
doctor+ <> physician+           singular or plural
about {#} > around {}           a token with one of these codes, kept
^ to {v} > in order to {}       only at the beginning
```
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from llm_labeler.clients.wordnet.tagged_sentence import Change, Edit, TaggedSentence
from llm_labeler.clients.wordnet.wordnet_lexicon import (
    Pos,
    antonyms,
    degree,
    inflected_verb,
    is_compound,
    lemmas,
    plural,
    synonyms,
)

_VERBS = "vzdegH"
_NOUNS = "ns"
_POS: dict[str, Pos] = {
    **dict.fromkeys("ns", "n"),
    **dict.fromkeys("vzdeg", "v"),
    "J": "a",
    "R": "r",
}
_DEGREES = frozenset(("more", "most", "less", "least"))
_MAX_WORDS = 3  # of a compound


@dataclass(frozen=True, slots=True)
class PhraseRule:
    """One direction of one rule."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    opening: bool  # only at the beginning of the sentence
    confidence: float


class PhraseTable:
    """Rules, indexed by their first word."""

    def __init__(self, text: str) -> None:
        self.rules: list[PhraseRule] = []
        self._by_word: dict[str, list[PhraseRule]] = defaultdict(list)
        for left, right, confidence in parse(text):
            words = tuple(left.removeprefix("^ ").split())
            rule = PhraseRule(
                words, tuple(right.split()), left.startswith("^ "), confidence
            )
            first, *_ = words
            key = "{" if first.startswith("{") else first.rstrip("*+")
            self.rules.append(rule)
            self._by_word[key].append(rule)

    def changes(self, sentence: TaggedSentence) -> Iterator[Change]:
        """The changes of all matching rules, from left to right."""
        for start in range(len(sentence.words)):
            keys = {sentence.low[start], *_lemmas(sentence, start)}
            for key in (*sorted(keys), "{"):
                for rule in self._by_word.get(key, ()):
                    edit = _match(sentence, start, rule)
                    if edit:
                        yield Change(rule.confidence, (edit,))


def parse(text: str) -> Iterator[tuple[str, str, float]]:
    """Left side, right side and confidence of each rule; `<>` gives two rules."""
    confidence = 0.9
    for line in text.splitlines():
        if line.startswith("@"):
            confidence = float(line.removeprefix("@"))
            continue
        rules = "" if line.startswith("#") else line
        for rule in filter(None, map(str.strip, rules.split(";"))):
            left, arrow, right = re.split(" (<?>) ", rule)
            yield left, right, confidence
            if arrow == "<>":
                # The codes of the rule move to the new left side.
                start = "^ " if left.startswith("^ ") else ""
                left = left.removeprefix("^ ")
                if "{}" in right:
                    for code in re.findall(r"\{\S+\}", left):
                        right = right.replace("{}", code, 1)
                    left = re.sub(r"\{\S+\}", "{}", left)
                yield start + right, left, confidence


def read_table(name: str) -> str:
    """Read one of this package's tables."""
    return (resources.files(__package__) / f"{name}.txt").read_text(encoding="utf-8")


@cache
def phrase_table(name: str) -> PhraseTable:
    """The rules of one of this package's tables."""
    return PhraseTable(read_table(name))


def _lemmas(sentence: TaggedSentence, index: int) -> tuple[str, ...]:
    code = sentence.codes[index]
    if code in _VERBS:
        return lemmas(sentence.low[index], "v")
    if code in _NOUNS:
        return lemmas(sentence.low[index], "n")
    return ()


def _match(sentence: TaggedSentence, start: int, rule: PhraseRule) -> Edit | None:
    end = start + len(rule.left)
    if end > len(sentence.words) or (rule.opening and start > 0):
        return None
    kept = []
    code = ""  # of the inflected word
    for index, part in enumerate(rule.left, start):
        if not _fits(sentence, index, part):
            return None
        if part.startswith("{"):
            kept.append(sentence.words[index])
        elif _is_inflected(part):
            code = sentence.codes[index]
    if code == "H":
        code = {"has": "z", "had": "d", "having": "g"}.get(sentence.low[start], "v")
    words = [kept.pop(0) if part == "{}" else _form(part, code) for part in rule.right]
    # Leave out equal words at both ends.
    while end - start > 1 and words and words[0].lower() == sentence.low[start]:
        start += 1
        del words[0]
    while end - start > 1 and words and words[-1].lower() == sentence.low[end - 1]:
        end -= 1
        del words[-1]
    return Edit(start, end, " ".join(words))


def _is_inflected(part: str) -> bool:
    return part.endswith(("*", "+")) and len(part) > 1


def _fits(sentence: TaggedSentence, index: int, part: str) -> bool:
    """Whether a token fits a part of a rule's left side."""
    code = sentence.codes[index]
    if part.startswith("{"):
        return code in part
    if not _is_inflected(part):
        return sentence.low[index] == part
    codes = _VERBS if part.endswith("*") else _NOUNS
    return code in codes and part[:-1] in _lemmas(sentence, index)


def _form(part: str, code: str) -> str:
    if part.endswith("*"):
        return inflected_verb(part[:-1], code)
    if part.endswith("+"):
        return plural(part[:-1]) if code == "s" else part[:-1]
    return part


def synonym_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """One change for each word with a safe synonym."""
    for index, pos, word in _replaced(sentence, synonyms):
        if sentence.word_at(index - 1) in _DEGREES:
            continue  # "most commonly", but not "most usually"
        is_before_noun = sentence.code_at(index + 1) in ("n", "s")
        is_behind_noun = sentence.code_at(index - 1) in ("n", "g")
        if pos == "n" and (is_before_noun or is_behind_noun):
            continue
        yield Change(0.84 if pos in "ra" else 0.82, (Edit(index, index + 1, word),))


def antonym_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """One change for each adjective, adverb or verb with a direct opposite."""
    for index, pos, word in _replaced(sentence, antonyms):
        confidence = {"a": 0.8, "r": 0.82, "v": 0.78}[pos]
        if pos == "a" and sentence.code_at(index - 1) in ("B", "b", "R"):  # a predicate
            confidence = 0.88
        yield Change(confidence, (Edit(index, index + 1, word),))


def in_compound(sentence: TaggedSentence, edit: Edit) -> bool:
    """Whether an edit changes a part of a compound."""
    return any(_in_compound(sentence, index) for index in range(edit.start, edit.end))


def _replaced(
    sentence: TaggedSentence, alternatives: Callable[[str, Pos], tuple[str, ...]]
) -> Iterator[tuple[int, Pos, str]]:
    """The index and part of speech of each replaceable word, with the inflected best alternative."""
    for index, code in enumerate(sentence.codes):
        pos = _POS.get(code)
        if pos is None or not _is_plain(sentence, index):
            continue
        low = sentence.low[index]
        lemma = _only_lemma(low, pos, code)
        words = alternatives(lemma, pos)
        if not words or _in_compound(sentence, index):
            continue
        word = words[0]
        if code == "s":
            word = plural(word)
        elif code in "zdeg":
            word = inflected_verb(word, code)
        elif code in "JR" and low != lemma:
            word = degree(word, "est" if low.endswith("st") else "er")
        yield index, pos, word


def _is_plain(sentence: TaggedSentence, index: int) -> bool:
    """Whether a word has more than three letters and is neither a name nor a degree."""
    word = sentence.words[index]
    is_lower = word.islower() or (index == 0 and word[1:].islower())
    is_word = is_lower and word.isalpha() and len(word) > 3
    return is_word and sentence.low[index] not in _DEGREES


def _only_lemma(low: str, pos: Pos, code: str) -> str:
    """The lemma of a form; empty if it is ambiguous."""
    candidates = lemmas(low, pos)
    if code in "zdegs":
        candidates = tuple(lemma for lemma in candidates if lemma != low) or candidates
    elif low in candidates and pos in "ar":
        return low
    return candidates[0] if len(candidates) == 1 else ""


def _in_compound(sentence: TaggedSentence, index: int) -> bool:
    """Whether a word is part of a compound."""
    for start in range(max(0, index - _MAX_WORDS + 1), index + 1):
        longest = min(start + _MAX_WORDS, len(sentence.low))
        for end in range(max(start + 2, index + 1), longest + 1):
            *first, last = sentence.low[start:end]
            if any(is_compound((*first, word)) for word in (last, *lemmas(last, "n"))):
                return True
    return False
