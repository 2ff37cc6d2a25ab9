"""Why a sentence that was found in an answer is no candidate."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# What tells that an LLM did something else than it was asked for.
BESIDE = ("meta", "nothing_shared", "not_a_question")

REASONS: Mapping[str, str] = MappingProxyType(
    {
        "control_characters": "it has signs that no sentence has, or that could not be decoded",
        "no_letters": "it has no letters",
        "markup_only": "it is a link or markup and nothing else",
        "copy": "it is the text itself, but for case, punctuation and white space",
        "meta": "it speaks of sentences, or of itself, instead of saying one",
        "wrong_script": "it is written in another script than its text",
        "too_short": "it is shorter than `min_length_ratio` times its text",
        "too_long": "it is longer than `max_length_ratio` times its text",
        "near_copy": "a negative with the words of its text, articles, inflection and order aside",
        "few_differing_words": "a negative with fewer differing words than `min_differing_words`",
        "nothing_shared": "it has less in common with its text than `min_shared`; a negative, nothing at all",
        "not_a_question": "a positive of a question that asks nothing: an answer to it, as a rule",
        "repeated": "the same LLM proposed it before, for the same text and polarity",
        "both_polarities": "it was proposed as a positive and as a negative of the same text",
    }
)
