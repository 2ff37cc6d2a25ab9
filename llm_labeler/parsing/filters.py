"""Decide which sentences become candidates: check each against its text, then against the other sentences.

If an LLM answers a question instead of rewriting it, its sentences are detected because they are not
questions and, with `min_shared`, because they share few words with the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from unicodedata import category

from llm_labeler.parsing.scripts import (
    UNSPACED,
    differing,
    fold,
    is_other_script,
    order_similarity,
    stem,
    words,
)
from llm_labeler.records import POLARITIES, AskKey, Candidate, Item, Polarity, Proposal, Text
from llm_labeler.settings import FilterSettings
from pairkit.base.printable import normalize

# Reasons that show that an LLM did another task.
OFF_TOPIC = ("meta", "nothing_shared", "not_a_question")
# Reasons that show that a negative has the same meaning.
COPIES = ("echo", "copy", "near_copy", "unchanged")

REASONS: Mapping[str, str] = {
    "control_characters": "has control characters or characters that could not be decoded",
    "no_letters": "has no letters",
    "markup_only": "is only a link or markup",
    "copy": "equals the text but for case, punctuation and white space",
    "meta": "is about sentences or about the LLM",
    "wrong_script": "is in another script than its text",
    "too_short": "is shorter than `min_length_ratio` times its text",
    "too_long": "is longer than `max_length_ratio` times its text",
    "near_copy": "a negative with the words of its text but for articles, inflection and order",
    "unchanged": "a negative that only drops words of its text or adds words at its end, without a"
    " negation, antonym, number or change of order",
    "few_differing_words": "a negative with fewer differing words than `min_differing_words`",
    "nothing_shared": "shares less with its text than `min_shared`; a negative, nothing at all",
    "not_a_question": "a positive of a question that is not a question, usually an answer",
    "repeated": "the same LLM proposed it before, for the same text and polarity",
    "both_polarities": "was proposed as a positive and as a negative of the same text",
    "few_words_kept": "a hard negative that shares less than `min_kept` of its text's words",
    "unwanted_kind": "a hard negative of a kind that was not requested",
    "asks_nothing": "task query: is not a question",
}

_CONTROL = ("Cc", "Cs", "Co", "Cf")  # control, surrogate, private-use and format characters
_JOINERS = ("\u200c", "\u200d")  # used in Persian, Indic scripts and emoji
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
_REORDERED = ("role", "tense", "modality")  # changes that may keep all words or their stems
# Stop words; characters of scripts without spaces.
_ENGLISH = (
    "a about after all also am an and any are as at be been being both but by can could did do "
    "does doing done for from get gets getting give given go goes going got had has have having "
    "he her here hers him his how i if in into is it its just let like make makes me more most "
    "much my no nor not of off on one only or other our out over own so some such than that the "
    "their them then there these they this those through to too under up us very was we well were "
    "what when where which while who whom whose why will with would you your yours there's im ive "
    "dont answer"
)
_COMMON = frozenset(_ENGLISH.split()) | frozenset(
    "的了是在我你他她它们这那有不个一也很都就和与吗呢吧啊把被将会能要可以はがをにのでとも"
)
# Words that may come and go without a change of meaning.
_NEUTRAL_WORDS = (
    "a an the this that these those is are was were be been being am has have had do does did it its "
    "there of in at by to with for and"
)
_NEUTRAL = frozenset(_NEUTRAL_WORDS.split())
# Words that change the meaning when they are added or removed.
_NEGATING_WORDS = (
    "no not nor never none nobody nothing nowhere neither without hardly scarcely barely rarely seldom "
    "few little only less least too but except unless instead else other before until till yet almost "
    "nearly if or can could may might must should will would stop cease quit fail lack refuse deny avoid "
    "prevent forbid reject false untrue wrong myth doubt unlikely impossible absence absent empty free "
    "far anything opposite contrary claim pretend incorrect remain impression zero supposedly allegedly "
    "fake former once nicht kein keine nie ohne ne pas jamais sans sin nunca non niet geen"
)
_NEGATING = frozenset(map(stem, _NEGATING_WORDS.split()))
_ASKING = re.compile(
    r"[\W_]*(?:(?:and|but|so|or|also|please|in|on|at|for|from|to|with|of|by|about|under|since"
    r"|until) )*(?:what|whats|when|where|which|who|whose|whom|why|how|is|are|am|was|were|do|does|did|can"
    r"|could|will|would|should|shall|may|might|must|has|have|had|isn['’]?t|aren['’]?t|don['’]?t|doesn['’]?t"
    r"|didn['’]?t|can['’]?t|couldn['’]?t|won['’]?t|wouldn['’]?t|shouldn['’]?t)\b",
    re.IGNORECASE,
)
_ASKED = re.compile(r"[?？؟՞]|[吗呢](?:\W|$)|(?:か|の)[。.]?$")
# An indirect question: `Tell me how …`, `I wonder whether …`.
_INDIRECT = re.compile(
    r"\b(?:tell|explain|describe|suggest|advise|advice|recommend|give|show|name|list|help|need|know|wonder"
    r"|wondering|curious|ask|asking|let me|looking for|question|please|inquire|information|clarify|like to"
    r"|want to|interested)\b|请|想知道|告诉|教えて|ください",
    re.IGNORECASE,
)


def reject(candidate: str, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
    """The reason, one of `REASONS`, why `candidate` is not a `polarity` of `text`; None if it is."""
    text = normalize("NFC", text)  # as answers are, so that lengths are comparable
    return (
        _reject_malformed(candidate)
        or _reject_unlike(candidate, text, settings)
        or _reject_copy(candidate, text, polarity, settings)
        or _reject_off_topic(candidate, text, polarity, settings)
    )


def _reject_malformed(candidate: str) -> str | None:
    has_control = not candidate.isprintable() and any(
        category(character) in _CONTROL and character not in _JOINERS for character in candidate
    )
    if has_control or "\ufffd" in candidate:
        return "control_characters"
    if not any(map(str.isalpha, candidate)):
        return "no_letters"
    has_markup = any(sign in candidate for sign in "/@<[&") or "www." in candidate
    is_markup = has_markup and not any(map(str.isalpha, _LINK_OR_MARKUP.sub("", candidate)))
    return "markup_only" if is_markup else None


def _reject_unlike(candidate: str, text: str, settings: FilterSettings) -> str | None:
    if _META.search(candidate) and not _META.search(text):
        return "meta"
    if settings.same_script and is_other_script(candidate, text):
        return "wrong_script"
    if len(candidate) < settings.min_length_ratio * len(text):
        return "too_short"
    return "too_long" if len(candidate) > settings.max_length_ratio * len(text) else None


def _reject_copy(
    candidate: str, text: str, polarity: Polarity, settings: FilterSettings
) -> str | None:
    if fold(candidate) == fold(text):
        return "copy"
    if polarity == "positive":
        return None
    candidate_words = words(candidate)
    text_words = words(text)
    if order_similarity(candidate_words, text_words) >= settings.antonym_similarity:
        return "near_copy"
    is_close = differing(candidate_words, text_words) < settings.min_differing_words
    return "few_differing_words" if is_close else None


def _reject_off_topic(
    candidate: str, text: str, polarity: Polarity, settings: FilterSettings
) -> str | None:
    if polarity == "negative":
        return "nothing_shared" if settings.min_shared and not shared(candidate, text) else None
    if settings.same_kind and is_question(text) and not asks(candidate):
        return "not_a_question"
    return "nothing_shared" if shared(candidate, text) < settings.min_shared else None


def is_unchanged(candidate: str, text: str) -> bool:
    """Whether a candidate only drops words of its text or adds words at its end, without a negation."""
    if UNSPACED.search(text):  # negations are parts of words there
        return False
    new, old = (
        [stem(word) for word in words(sentence) if word not in _NEUTRAL]
        for sentence in (candidate, text)
    )
    if len(new) < 2 or 2 * len(new) < len(old):
        return False
    rest = iter(old)
    if all(word in rest for word in new):
        return _NEGATING.isdisjoint(Counter(old) - Counter(new))
    return len(old) > 1 and new[: len(old)] == old and _NEGATING.isdisjoint(new[len(old) :])


def reject_hard_negative(
    item: Item, text: str, settings: FilterSettings, changes: Collection[str]
) -> str | None:
    """The reason why a sentence is not a hard negative: one of `REASONS`."""
    if item.change is not None and item.change not in changes:
        return "unwanted_kind"
    reason = reject_rewrite(item, text, "negative", settings)
    if reason in ("near_copy", "unchanged") and item.change in _REORDERED:
        reason = None
    if reason is None and shared(item.text, text) < settings.min_kept:
        return "few_words_kept"
    return reason


def reject_query(
    candidate: str, passage: str, polarity: Polarity, settings: FilterSettings
) -> str | None:
    """The reason why a sentence is not a question about a passage."""
    loose = settings.model_copy(update={"min_length_ratio": 0.0, "same_kind": False})
    reason = reject(candidate, passage, polarity, loose)
    return reason or (None if is_question(candidate) else "asks_nothing")


def shared(candidate: str, text: str) -> float:
    """Share of the shorter sentence that is in the other, in [0, 1]: the larger of words and trigrams."""
    first = _content(candidate)
    second = _content(text)
    if not first or not second:
        return 1.0
    return max(_share(first, second), _share(_trigrams(candidate), _trigrams(text)))


def is_question(sentence: str) -> bool:
    """Whether a sentence has a question mark or begins like a question."""
    return _ASKED.search(sentence) is not None or _ASKING.match(sentence) is not None


def asks(sentence: str) -> bool:
    """Whether a sentence is a direct or indirect question."""
    return is_question(sentence) or _INDIRECT.search(sentence) is not None


def _content(sentence: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(sentence) if word not in _COMMON)


def _trigrams(sentence: str) -> frozenset[str]:
    """Letter trigrams; none in scripts without spaces, where each character is a word."""
    folded = fold(sentence)
    is_unspaced = not folded.isascii() and UNSPACED.search(folded) is not None
    return (
        frozenset() if is_unspaced else frozenset(folded[n : n + 3] for n in range(len(folded) - 2))
    )


def _share(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / min(len(first), len(second)) if first and second else 0.0


# Returns the reason to drop an item of this text and polarity; None to keep it.
Reject: TypeAlias = Callable[[Item, str, Polarity, FilterSettings], str | None]
Answers = Sequence[tuple[AskKey, Sequence[Item]]]


@dataclass(frozen=True, slots=True)
class Screened:
    """The proposals and candidates of one text."""

    proposals: tuple[
        Proposal, ...
    ]  # one for each item, by LLM, polarity, prompt and position in the answer
    candidates: tuple[Candidate, ...]  # positives first, sorted


def reject_rewrite(
    item: Item, text: str, polarity: Polarity, settings: FilterSettings
) -> str | None:
    """The reason why an item is not a rewrite of a text."""
    reason = reject(item.text, text, polarity, settings)
    if reason is None and polarity == "negative" and is_unchanged(item.text, text):
        return "unchanged"
    return reason


def screen(
    text: Text, answers: Answers, settings: FilterSettings, reject_item: Reject = reject_rewrite
) -> Screened:
    """Filter the items of all answers about `text`."""
    proposals = list(_proposals(text, answers, settings, reject_item))
    folded = [fold(proposal.candidate) if proposal.reason is None else "" for proposal in proposals]
    by_polarity: dict[Polarity, set[str]] = {polarity: set() for polarity in POLARITIES}
    for key, proposal in zip(folded, proposals, strict=True):
        if proposal.reason is None:
            by_polarity[proposal.polarity].add(key)
    contested = set.intersection(*by_polarity.values())
    seen: set[tuple[str, Polarity, str]] = set()
    sources: dict[tuple[Polarity, str], list[Proposal]] = {}
    for index, (key, proposal) in enumerate(zip(folded, proposals, strict=True)):
        if proposal.reason is not None:
            continue
        if key in contested:
            proposals[index] = replace(proposal, reason="both_polarities")
            continue
        identity = (proposal.llm, proposal.polarity, key)
        if identity in seen:
            proposals[index] = replace(proposal, reason="repeated")
        sources.setdefault((proposal.polarity, key), []).append(proposal)
        seen.add(identity)
    candidates = [_candidate(equal) for equal in sources.values()]
    candidates.sort(key=lambda c: (POLARITIES.index(c.polarity), c.candidate))
    return Screened(tuple(proposals), tuple(candidates))


def _proposals(
    text: Text, answers: Answers, settings: FilterSettings, reject_item: Reject
) -> Iterator[Proposal]:
    """A proposal for each item, with the reason to drop it."""
    for key, items in sorted(
        answers, key=lambda a: (a[0].llm, a[0].task != "positive", a[0].prompt_hash)
    ):
        polarity: Polarity = "positive" if key.task == "positive" else "negative"
        for item in items:
            reason = item.reason or reject_item(item, text.text, polarity, settings)
            yield Proposal(
                text.text_id, key.llm, polarity, key.prompt_hash, item.text, reason, item.change
            )


def _candidate(proposals: list[Proposal]) -> Candidate:
    """Merge proposals of the same sentence; the first one's spelling is kept."""
    first = proposals[0]
    return Candidate(
        first.text_id,
        first.candidate,
        first.polarity,
        tuple(sorted({proposal.llm for proposal in proposals})),
        tuple(sorted({proposal.prompt_hash for proposal in proposals})),
        next((proposal.change for proposal in proposals if proposal.change), None),
    )
