"""Saying no where a sentence says yes, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator

from llm_labeler._providers.wordnet.assertions import assertions
from llm_labeler._providers.wordnet.denials import denials
from llm_labeler._providers.wordnet.files import WordNet
from llm_labeler._providers.wordnet.patterns import Change
from llm_labeler._providers.wordnet.sentence import Sentence
from llm_labeler._providers.wordnet.words import word_set

_NEGATORS = word_set(
    """
    not no never cannot neither nor none nothing nobody without hardly barely rarely seldom few little
    unable unless until lack lacks nowhere dont doesnt didnt isnt arent cant wont
    """
)


def negations(wordnet: WordNet, sentence: Sentence) -> Iterator[Change]:
    """Candidates that deny the main clause, or assert what is denied; none of a question."""
    if not sentence.is_question:
        yield from (assertions if is_negative(sentence) else denials)(wordnet, sentence)


def is_negative(sentence: Sentence) -> bool:
    """Whether it says no anywhere."""
    return any(word in _NEGATORS or word.endswith("n't") for word in sentence.low)
