"""One candidate against its text: kept, or turned down and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from unicodedata import category

from llm_labeler._filters.kinship import asks, is_question, shared
from llm_labeler._filters.words import differing, fold, sameness, words
from llm_labeler._records import Polarity
from llm_labeler._scripts import is_other_script
from llm_labeler._settings import FilterSettings

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

_JOINERS = ("\u200c", "\u200d")  # Persian, Indic scripts and emoji have them
_LINK_OR_MARKUP = re.compile(
    r"\b(?:https?|ftp)://\S+|\bwww\.\S+|[^\s@]{1,64}@\S+|</?[A-Za-z][^<>]{0,500}>"
    r"|\[[^\[\]]{0,500}\]\([^()]{0,500}\)|&[A-Za-z]{1,20};"
)
_META = re.compile(
    r"\bas an? (?:ai|artificial intelligence|large language model|language model)\b"
    r"|\bi(?:['’]m| am) an? (?:ai|language model)\b"
    r"|\b(?:opposite|antonym|synonym|negation|paraphrase|reverse|contrary)s? (?:of|for|to|meaning of) "
    r"(?:(?:the|this|that|your|an?) )?(?:(?:original|given|input|above|provided) )?"
    r"(?:sentence|statement|text|phrase|word|input|[\"“'‘])"
    r"|^(?:this is |it is |it['’]s )?the opposite (?:of|meaning)\b"
    r"|\b(?:synonym(?:ous)?|antonym(?:ous|ic)?|(?:same|opposite)[- ]meaning) (?:sentence|statement)s?\b"
    r"|\b(?:original|input|given|provided|generated) sentences?\b"
    r"|\b(?:has|have|conveys?|with) (?:the )?(?:same|opposite) meaning\b"
    r"|作为(?:一个|一名)?(?:ai|人工智能|大?语言模型)"
    r"|(?:同义|反义|近义)[句词]|(?:原句|原文|给定)的|与原句",
    re.IGNORECASE,
)


def turned_down(candidate: str, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
    """Why `candidate` can't stand as a `polarity` of `text`, one of `REASONS`; None if it can.

    For negatives two rules look at words. A negative of the text's own words is the text again, unless their
    order makes the difference: `antonym_similarity` is the share of words in the same order from which it is
    turned down, see `words.sameness`. A word that differs in earnest, such as "not", keeps it whatever the
    share. `min_differing_words` counts words in only one of the two, see `words.differing`; 0 asks for none.

    What LLMs write who do something else than they were asked for is told from rewrites by `kinship`.

    Args:
        candidate: The sentence proposed.
        text: The sentence it was proposed for.
        polarity: As what.
        settings: The limits.
    """
    return (
        _unfit(candidate)
        or _unlike(candidate, text, settings)
        or _same(candidate, text, polarity, settings)
        or _beside(candidate, text, polarity, settings)
    )


def _unfit(candidate: str) -> str | None:
    """Why it is no sentence at all."""
    if not candidate.isprintable() and any(_is_control(character) for character in candidate):
        return "control_characters"
    if "\ufffd" in candidate:
        return "control_characters"
    if not _has_letters(candidate):
        return "no_letters"
    has_markup = any(sign in candidate for sign in "/@<[&") or "www." in candidate
    return "markup_only" if has_markup and not _has_letters(_LINK_OR_MARKUP.sub("", candidate)) else None


def _unlike(candidate: str, text: str, settings: FilterSettings) -> str | None:
    """Why it can't be about what the text is about."""
    if _META.search(candidate) and not _META.search(text):
        return "meta"
    if settings.same_script and is_other_script(candidate, text):
        return "wrong_script"
    if len(candidate) < settings.min_length_ratio * len(text):
        return "too_short"
    return "too_long" if len(candidate) > settings.max_length_ratio * len(text) else None


def _same(candidate: str, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
    """Why it says no more than the text."""
    if fold(candidate) == fold(text):
        return "copy"
    if polarity == "positive":
        return None
    proposed, given = words(candidate), words(text)
    if sameness(proposed, given) >= settings.antonym_similarity:
        return "near_copy"
    return "few_differing_words" if differing(proposed, given) < settings.min_differing_words else None


def _beside(candidate: str, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
    """Why it says something else instead: an answer to the text, or a talk of its own."""
    if polarity == "negative":
        return "nothing_shared" if settings.min_shared and not shared(candidate, text) else None
    if settings.same_kind and is_question(text) and not asks(candidate):
        return "not_a_question"
    return "nothing_shared" if shared(candidate, text) < settings.min_shared else None


def _is_control(character: str) -> bool:
    """Whether no sentence has it: control, surrogate, private, invisible, or turning the writing about."""
    return category(character) in ("Cc", "Cs", "Co", "Cf") and character not in _JOINERS


def _has_letters(text: str) -> bool:
    return any(character.isalpha() for character in text)
