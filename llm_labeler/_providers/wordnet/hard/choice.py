"""Which changes become sentences: the surest, and of as many kinds as there are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator

from llm_labeler._providers.wordnet.annotator import candidates, distinct
from llm_labeler._providers.wordnet.hard.denied import opposite_changes
from llm_labeler._providers.wordnet.hard.entities import entity_changes
from llm_labeler._providers.wordnet.hard.modality import modality_changes
from llm_labeler._providers.wordnet.hard.numbers import number_changes
from llm_labeler._providers.wordnet.hard.roles import has_odd_plural, role_changes
from llm_labeler._providers.wordnet.hard.tenses import tense_changes
from llm_labeler._providers.wordnet.hard.turned import Turned
from llm_labeler._providers.wordnet.questions import rephrased
from llm_labeler._providers.wordnet.sentence import Sentence, word_set
from llm_labeler._records import ChangeKind

_LEAST = 0.83
_SPARE = 4  # paraphrases beyond those wanted, from which the better are taken
# What the synonyms bring now and then that means something else there, or is the same but for a space.
_AMISS = word_set(
    """
    supra bullets shop tries try uptake intake gotten got cloths cloth afterwards writers lids yet under
    lots lot healthcare
    """
)
# Questions that are not of the one thing that they seem to be of.
_TWO_THINGS = re.compile(r" of choice|\bcause\b.* to [a-z]|between .* and .* and ", re.IGNORECASE)
_SHORTEST, _LONGEST = 4, 40  # tokens


def hard_negatives(text: str, size: int, kinds: Collection[ChangeKind]) -> list[tuple[ChangeKind, str]]:
    """Up to `size` sentences that keep most words of a text and say something else, each with its kind.

    The surest of each kind come before the second of any.
    """
    sentence = Sentence(" ".join(text.split()))
    if not is_fit(sentence):
        return []
    found: dict[str, tuple[float, ChangeKind, str]] = {}
    for kind, change in changes(sentence):
        if kind in kinds and change.confidence >= _LEAST:
            for candidate, sure in distinct(sentence, [change]):
                key = candidate.casefold()
                if key not in found or found[key][0] < sure:
                    found[key] = (sure, kind, candidate)
    ranked = sorted(found.values(), key=lambda one: (-one[0], one[2]))
    turns: Counter[ChangeKind] = Counter()
    placed = []
    for sure, kind, candidate in ranked:
        placed.append((turns[kind], -sure, candidate, kind))
        turns[kind] += 1
    return [(kind, candidate) for _, _, candidate, kind in sorted(placed)[:size]]


def changes(sentence: Sentence) -> Iterator[Turned]:
    """All changes of all kinds."""
    for rules in (
        opposite_changes,
        entity_changes,
        number_changes,
        role_changes,
        tense_changes,
        modality_changes,
    ):
        yield from rules(sentence)


def same_meaning(text: str, size: int) -> list[str]:
    """Up to `size` paraphrases."""
    sentence = Sentence(" ".join(text.split()))
    if not is_fit(sentence):
        return []
    was, is_odd = Counter(sentence.low), has_odd_plural(sentence)
    rules = () if _TWO_THINGS.search(sentence.text) else rephrased(sentence.text, "hard/questions")
    asked = sorted(rules, key=lambda found: (-found[1], found[0]))
    wordings = dict.fromkeys(
        [question for question, _ in asked] + candidates(text, "positive", size + _SPARE)
    )
    found = [
        (bool(_contracted(was, candidate)), place, candidate)
        for place, candidate in enumerate(wordings)
        if "not not" not in candidate
        and "choice for" not in candidate
        and not (is_odd and candidate.split()[0] != sentence.words[0])
        and not _AMISS & (set(Sentence(candidate).low) ^ set(was))
    ]
    return [candidate for _, _, candidate in sorted(found)[:size]]


def _contracted(was: Counter[str], candidate: str) -> bool:
    """Whether a paraphrase differs in nothing but an apostrophe: `isn't` for `is not`."""
    new = Counter(Sentence(candidate).low)
    return any("'" in word for word in (new - was) + (was - new))


def is_fit(sentence: Sentence) -> bool:
    """Whether a text is one sentence, and no list or heading with marks."""
    if not _SHORTEST <= len(sentence.words) <= _LONGEST or sentence.codes.count(".") > 1:
        return False
    if {"-", ":", "•", "[", "|"} & set(sentence.words) or sentence.codes[-1] != ".":
        return False
    return not any(sentence.low[:length] == sentence.low[length : 2 * length] for length in (1, 2, 3, 4))
