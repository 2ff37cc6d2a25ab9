"""What the rules of `rules` become where a task asks for other things than rewrites."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from llm_labeler._filters.kinship import is_question, shared
from llm_labeler._filters.rules import turned_down
from llm_labeler._records import Item, Polarity
from llm_labeler._settings import FilterSettings

TASK_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "few_words_kept": "a hard negative that shares less than `min_kept` of its text's words",
        "unwanted_kind": "a hard negative of a kind that was not asked for",
        "asks_nothing": "of the task query: it is no question",
        "asks_back": "of the task answer: it is a question",
    }
)
# What may be done with the words that are there, or with other forms of them.
_REORDERED = ("role", "tense", "modality")
_LONGEST_ANSWER = 400  # characters that a short answer may have, however short the question


def hard_turned_down(item: Item, text: str, settings: FilterSettings, changes: Collection[str]) -> str | None:
    """Why a sentence is no hard negative of a text: `turned_down`'s reasons, or one of `TASK_REASONS`."""
    if item.change is not None and item.change not in changes:
        return "unwanted_kind"
    reason = turned_down(item.text, text, "negative", settings)
    if reason == "near_copy" and item.change in _REORDERED:
        reason = None
    if reason is None and shared(item.text, text) < settings.min_kept:
        return "few_words_kept"
    return reason


def query_turned_down(
    candidate: str, passage: str, polarity: Polarity, settings: FilterSettings
) -> str | None:
    """Why a sentence is no question about a passage."""
    loose = settings.model_copy(update={"min_length_ratio": 0.0, "same_kind": False})
    reason = turned_down(candidate, passage, polarity, loose)
    return reason or (None if is_question(candidate) else "asks_nothing")


def answer_turned_down(
    candidate: str, question: str, polarity: Polarity, settings: FilterSettings
) -> str | None:
    """Why a sentence is no answer to a question."""
    long = max(settings.max_length_ratio, _LONGEST_ANSWER / max(len(question), 1))
    loose = {"min_length_ratio": 0.0, "max_length_ratio": long, "same_kind": False, "min_shared": 0.0}
    reason = turned_down(candidate, question, polarity, settings.model_copy(update=loose))
    return reason or ("asks_back" if is_question(candidate) else None)
