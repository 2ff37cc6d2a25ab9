"""Which sentences of answers become candidates: each is checked against its text, then against the others.

An LLM that answers a question instead of rewriting it writes sentences that look fine by themselves. They are
found because they don't ask and, with `min_shared`, by the words that they share with the text, next to none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias
from unicodedata import category

from llm_labeler.parsing.scripts import UNSPACED, differing, fold, is_other_script, sameness, stem, words
from llm_labeler.records import POLARITIES, AskKey, Candidate, Item, Polarity, Proposal, Text
from llm_labeler.settings import FilterSettings

# What tells that an LLM did something else than it was asked for.
BESIDE = ("meta", "nothing_shared", "not_a_question")
# What tells that a negative is none.
REPEATS = ("copy", "near_copy", "unchanged")

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
        "unchanged": "a negative that only leaves out words of its text or adds some at its end: no denial,"
        " antonym, number or order differs",
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
TASK_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "few_words_kept": "a hard negative that shares less than `min_kept` of its text's words",
        "unwanted_kind": "a hard negative of a kind that was not asked for",
        "asks_nothing": "of the task query: it is no question",
    }
)
# What may be done with the words that are there, or with other forms of them.
_REORDERED = ("role", "tense", "modality")
# Words that say nothing of what a sentence is about; of scripts without spaces, characters.
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
# Words that turn the meaning, wherever they come or go.
_TURNING_WORDS = (
    "no not nor never none nobody nothing nowhere neither without hardly scarcely barely rarely seldom "
    "few little only less least too but except unless instead else other before until till yet almost "
    "nearly if or can could may might must should will would stop cease quit fail lack refuse deny avoid "
    "prevent forbid reject false untrue wrong myth doubt unlikely impossible absence absent empty free "
    "far anything opposite contrary claim pretend incorrect remain impression zero supposedly allegedly "
    "fake former once nicht kein keine nie ohne ne pas jamais sans sin nunca non niet geen"
)
_TURNING = frozenset(map(stem, _TURNING_WORDS.split()))
_ASKING = re.compile(
    r"[\W_]*(?:(?:and|but|so|or|also|please|in|on|at|for|from|to|with|of|by|about|under|since"
    r"|until) )*(?:what|whats|when|where|which|who|whose|whom|why|how|is|are|am|was|were|do|does|did|can"
    r"|could|will|would|should|shall|may|might|must|has|have|had|isn['’]?t|aren['’]?t|don['’]?t|doesn['’]?t"
    r"|didn['’]?t|can['’]?t|couldn['’]?t|won['’]?t|wouldn['’]?t|shouldn['’]?t)\b",
    re.IGNORECASE,
)
_ASKED = re.compile(r"[?？؟՞]|[吗呢](?:\W|$)|(?:か|の)[。.]?$")
# A wish for the same answer: `Tell me how …`, `I wonder whether …`.
_WISH = re.compile(
    r"\b(?:tell|explain|describe|suggest|advise|advice|recommend|give|show|name|list|help|need|know|wonder"
    r"|wondering|curious|ask|asking|let me|looking for|question|please|inquire|information|clarify|like to"
    r"|want to|interested)\b|请|想知道|告诉|教えて|ください",
    re.IGNORECASE,
)


def turned_down(candidate: str, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
    """Why `candidate` can't stand as a `polarity` of `text`, one of `REASONS`; None if it can."""
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


def is_unchanged(candidate: str, text: str) -> bool:
    """Whether a sentence only drops words of its text or adds some at its end, none of which turns it."""
    if UNSPACED.search(text):  # denials are parts of words there
        return False
    said, given = ([stem(word) for word in words(one) if word not in _NEUTRAL] for one in (candidate, text))
    if len(said) < 2 or 2 * len(said) < len(given):
        return False
    rest = iter(given)
    if all(word in rest for word in said):
        return _TURNING.isdisjoint(Counter(given) - Counter(said))
    return len(given) > 1 and said[: len(given)] == given and _TURNING.isdisjoint(said[len(given) :])


def _is_control(character: str) -> bool:
    """Whether no sentence has it: control, surrogate, private, invisible, or turning the writing about."""
    return category(character) in ("Cc", "Cs", "Co", "Cf") and character not in _JOINERS


def _has_letters(text: str) -> bool:
    return any(character.isalpha() for character in text)


def hard_turned_down(item: Item, text: str, settings: FilterSettings, changes: Collection[str]) -> str | None:
    """Why a sentence is no hard negative of a text: `turned_down`'s reasons, or one of `TASK_REASONS`."""
    if item.change is not None and item.change not in changes:
        return "unwanted_kind"
    reason = rewrite_turned_down(item, text, "negative", settings)
    if reason in ("near_copy", "unchanged") and item.change in _REORDERED:
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


def shared(candidate: str, text: str) -> float:
    """How much of the shorter sentence's content stands in the other, in [0, 1]: the larger of two shares."""
    one, other = _content(candidate), _content(text)
    return max(_share(one, other), _share(_runs(candidate), _runs(text))) if one and other else 1.0


def is_question(sentence: str) -> bool:
    """Whether a sentence asks: by its sign, or by the word that it begins with."""
    return _ASKED.search(sentence) is not None or _ASKING.match(sentence) is not None


def asks(sentence: str) -> bool:
    """Whether a sentence asks, or wishes to be told."""
    return is_question(sentence) or _WISH.search(sentence) is not None


def _content(sentence: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(sentence) if word not in _COMMON)


def _runs(sentence: str) -> frozenset[str]:
    """Runs of three letters; none of what is written without spaces, whose words are single characters."""
    folded = fold(sentence)
    is_unspaced = not folded.isascii() and UNSPACED.search(folded) is not None
    return frozenset() if is_unspaced else frozenset(folded[n : n + 3] for n in range(len(folded) - 2))


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


# Why an item can't stand for a text as a polarity; None if it can.
TurnedDown: TypeAlias = Callable[[Item, str, Polarity, FilterSettings], str | None]
Answers = Sequence[tuple[AskKey, Sequence[Item]]]


@dataclass(frozen=True, slots=True)
class Screened:
    """What became of everything that was proposed for one text."""

    proposals: tuple[Proposal, ...]  # one for each item, by LLM, polarity, prompt and place in the answer
    candidates: tuple[Candidate, ...]  # positives first, each polarity by its spelling


def rewrite_turned_down(item: Item, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
    """Why an item is not a rewrite of a text."""
    reason = turned_down(item.text, text, polarity, settings)
    if reason is None and polarity == "negative" and is_unchanged(item.text, text):
        return "unchanged"
    return reason


def screen(
    text: Text, answers: Answers, settings: FilterSettings, turned_down: TurnedDown = rewrite_turned_down
) -> Screened:
    """Decide about every item of every answer to a question about `text`."""
    proposals = list(_proposals(text, answers, settings, turned_down))
    folds = [fold(proposal.candidate) if proposal.reason is None else "" for proposal in proposals]
    contested: set[str] = set.intersection(
        *(
            {
                key
                for key, proposal in zip(folds, proposals, strict=True)
                if proposal.reason is None and proposal.polarity == polarity
            }
            for polarity in POLARITIES
        )
    )
    seen: set[tuple[str, Polarity, str]] = set()
    sources: dict[tuple[Polarity, str], list[Proposal]] = {}
    for place, (key, proposal) in enumerate(zip(folds, proposals, strict=True)):
        if proposal.reason is not None:
            continue
        once = (proposal.llm, proposal.polarity, key)
        if key in contested:
            proposals[place] = replace(proposal, reason="both_polarities")
        elif once in seen:
            proposals[place] = replace(proposal, reason="repeated")
        if key not in contested:
            sources.setdefault((proposal.polarity, key), []).append(proposal)
        seen.add(once)
    candidates = [_candidate(found) for found in sources.values()]
    candidates.sort(key=lambda c: (POLARITIES.index(c.polarity), c.candidate))
    return Screened(tuple(proposals), tuple(candidates))


def _proposals(
    text: Text, answers: Answers, settings: FilterSettings, turned_down: TurnedDown
) -> Iterator[Proposal]:
    """A proposal for each item, with the reason it is turned down for by itself."""
    for key, items in sorted(answers, key=_order):
        if key.text_id != text.text_id or key.task == "judge":
            raise ValueError(f"an answer to {key.task} {key.text_id} proposes nothing for {text.text_id}")
        for item in items:
            reason = item.reason or turned_down(item, text.text, key.task, settings)
            yield Proposal(text.text_id, key.llm, key.task, key.prompt_hash, item.text, reason, item.change)


def _order(answer: tuple[AskKey, Sequence[Item]]) -> tuple[object, ...]:
    key, items = answer
    said = tuple((item.text, item.reason or "") for item in items)
    return (
        key.llm,
        POLARITIES.index(key.task) if key.task in POLARITIES else 2,
        key.prompt_hash,
        key.parameters,
        said,
    )


def _candidate(found: list[Proposal]) -> Candidate:
    """One candidate of the proposals that say the same, which stand in the order of their LLMs' names."""
    first = found[0]
    return Candidate(
        first.text_id,
        first.candidate,
        first.polarity,
        tuple(sorted({proposal.llm for proposal in found})),
        tuple(sorted({proposal.prompt_hash for proposal in found})),
        next((proposal.change for proposal in found if proposal.change), None),
    )
