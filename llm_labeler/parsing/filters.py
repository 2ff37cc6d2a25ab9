"""Decide which sentences become candidates: check each against its text, then against the other sentences.

If an LLM answers a question instead of rewriting it, its sentences are detected because they are not
questions and, with `min_shared`, because they share few words with the text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias
from unicodedata import category

from llm_labeler.parsing.source_text import (
    UNSPACED,
    count_differing_words,
    fold,
    is_other_script,
    joined,
    order_similarity,
    stem,
    words,
)
from llm_labeler.records import (
    POLARITIES,
    AskKey,
    Candidate,
    Item,
    Polarity,
    Proposal,
    Text,
)
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

# Unicode's control, surrogate, private-use and format characters.
_CONTROL = ("Cc", "Cs", "Co", "Cf")
_JOINERS = ("\u200c", "\u200d")  # used in Persian, Indic scripts and emoji
_LINK_OR_MARKUP = re.compile(
    r"\b(?:https?|ftp)://\S+|\bwww\.\S+|[^\s@]{1,64}@\S+|</?[A-Za-z][^<>]{0,500}>"
    r"|\[[^\[\]]{0,500}\]\([^()]{0,500}\)|&[A-Za-z]{1,20};"
)
_META = re.compile(
    joined(r"""
    \bas an? (?:ai|artificial intelligence|large language model|language model)\b
    |\bi(?:['’]m| am) an? (?:ai|language model)\b
    |\b(?:opposite|antonym|synonym|negation|paraphrase|reverse|contrary)s? (?:of|for|to|meaning of)[ ]
    (?:(?:the|this|that|your|an?) )?(?:(?:original|given|input|above|provided) )?
    (?:sentence|statement|text|phrase|word|input|["“'‘])
    |^(?:this is |it is |it['’]s )?the opposite (?:of|meaning)\b
    |\b(?:synonym(?:ous)?|antonym(?:ous|ic)?|(?:same|opposite)[- ]meaning) (?:sentence|statement)s?\b
    |\b(?:original|input|given|provided|generated) sentences?\b
    |\b(?:has|have|conveys?|with) (?:the )?(?:same|opposite) meaning\b
    |作为(?:一个|一名)?(?:ai|人工智能|大?语言模型)
    |(?:同义|反义|近义)[句词]|(?:原句|原文|给定)的|与原句
"""),
    re.IGNORECASE,
)
# Changes that may keep all words or their stems.
_REORDERED = ("role", "tense", "modality")
# Stop words; characters of scripts without spaces.
_ENGLISH = """
    a about after all also am an and any are as at be been being both but by can could did do
    does doing done for from get gets getting give given go goes going got had has have having
    he her here hers him his how i if in into is it its just let like make makes me more most
    much my no nor not of off on one only or other our out over own so some such than that the
    their them then there these they this those through to too under up us very was we well were
    what when where which while who whom whose why will with would you your yours there's im ive
    dont answer
"""
_COMMON = frozenset(_ENGLISH.split()) | frozenset(
    "的了是在我你他她它们这那有不个一也很都就和与吗呢吧啊把被将会能要可以はがをにのでとも"
)
# Words that may come and go without a change of meaning.
_NEUTRAL_WORDS = """
    a an the this that these those is are was were be been being am has have had do does did it its
    there of in at by to with for and
"""
_NEUTRAL = frozenset(_NEUTRAL_WORDS.split())
# Words that change the meaning when they are added or removed.
# English first; then German, Dutch, French, Spanish, Italian, Portuguese, Romanian; Scandinavian and
# Slavic languages, Finnish, Hungarian, Turkish, Greek, Albanian, Basque; Arabic, Hebrew, Persian,
# Urdu, Hindi and its neighbours, Korean, Indonesian, Vietnamese.
_NEGATING_WORDS = """
    no not nor never none nobody nothing nowhere neither without hardly scarcely barely rarely seldom
    few little only less least too but except unless instead else other before until till yet almost
    nearly if or can could may might must should will would stop cease quit fail lack refuse deny avoid
    prevent forbid reject false untrue wrong myth doubt unlikely impossible absence absent empty free
    far anything opposite contrary claim pretend incorrect remain impression zero supposedly allegedly
    fake former once
    nicht kein keine keinen niemand nichts nie ohne niet geen nooit zonder ne pas jamais sans aucun
    sin nunca jamás nada nadie ningún non mai senza nessuno não sem ninguém nenhum nu fără
    inte icke ikke ikkje aldrig aldri utan uten uden ingen ekki nie bez nigdy není nikdy nije nisu
    не ни нет без никогда ні немає ei eivät emme ette ilman nem nincs nélkül değil yok hiç
    δεν δε μη μην όχι χωρίς ποτέ nuk ez
    لا لم لن ليس ليست ما غير بدون دون לא אין בלי אל نه نیست بدون نہیں नहीं न मत बिना नाही না নেই
    안 못 않 tidak bukan tanpa jangan không chẳng chưa đừng
"""
_NEGATING = frozenset(map(stem, _NEGATING_WORDS.split()))
_MARKUP_SIGNS = frozenset("/@<[&")
_ASKING = re.compile(
    joined(r"""
    [\W_]*(?:(?:and|but|so|or|also|please|in|on|at|for|from|to|with|of|by|about|under|since
    |until) )*(?:what|whats|when|where|which|who|whose|whom|why|how|is|are|am|was|were|do|does|did|can
    |could|will|would|should|shall|may|might|must|has|have|had|isn['’]?t|aren['’]?t|don['’]?t|doesn['’]?t
    |didn['’]?t|can['’]?t|couldn['’]?t|won['’]?t|wouldn['’]?t|shouldn['’]?t)\b
"""),
    re.IGNORECASE,
)
_ASKED = re.compile(r"[?？؟՞]|[吗呢](?:\W|$)|(?:か|の)[。.]?$|[α-ώ];")
_STATED = re.compile(r"[.!。！…]\W*$")
# An indirect question: `Tell me how …`, `I wonder whether …`.
_INDIRECT = re.compile(
    joined(r"""
    \b(?:tell|explain|describe|suggest|advise|advice|recommend|give|show|name|list|help|need|know|wonder
    |wondering|curious|ask|asking|let me|looking for|question|please|inquire|information|clarify|like to
    |want to|interested)\b|请|想知道|告诉|教えて|ください
    |\b(?:sag|erklär|nenn|zeig|hilf|wissen|wüsst|fra[gt]|dis-moi|dites|expli|montr|aide|savoir
    |demand|dime|d[ií]game|muéstr|ayúd|saber|dimmi|spieg|sapere|chied|diga|ajud|vertel|weten
    |powiedz|wyjaśn|söyle|anlat|açıkla|скаж|расскаж|подскаж|объясн|помог|узнать)
    |알려|설명|궁금|اشرح|أخبر|बता|समझा
"""),
    re.IGNORECASE,
)

# Returns the reason to drop an item of this text and polarity; None to keep it.
Reject: TypeAlias = Callable[[Item, str, Polarity, FilterSettings], str | None]
Answers = Sequence[tuple[AskKey, Sequence[Item]]]


def reject(
    candidate: str, text: str, polarity: Polarity, settings: FilterSettings
) -> str | None:
    """The reason, one of `REASONS`, why `candidate` is not a `polarity` of `text`; None if it is."""
    text = normalize("NFC", text)  # as answers are, so that lengths are comparable
    return (
        _reject_malformed(candidate)
        or _reject_unlike(candidate, text, settings)
        or _reject_copy(candidate, text, polarity, settings)
        or _reject_off_topic(candidate, text, polarity, settings)
    )


def _reject_malformed(candidate: str) -> str | None:
    if "\ufffd" in candidate:
        return "control_characters"
    if not candidate.isprintable():
        for character in candidate:
            if category(character) in _CONTROL and character not in _JOINERS:
                return "control_characters"
    if not any(map(str.isalpha, candidate)):
        return "no_letters"
    if _MARKUP_SIGNS.isdisjoint(candidate) and "www." not in candidate:
        return None
    without_markup = _LINK_OR_MARKUP.sub("", candidate)
    return None if any(map(str.isalpha, without_markup)) else "markup_only"


def _reject_unlike(candidate: str, text: str, settings: FilterSettings) -> str | None:
    if _META.search(candidate) and not _META.search(text):
        return "meta"
    if settings.same_script and is_other_script(candidate, text):
        return "wrong_script"
    if len(candidate) < settings.min_length_ratio * len(text):
        return "too_short"
    if len(candidate) > settings.max_length_ratio * len(text):
        return "too_long"
    return None


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
    is_close = (
        count_differing_words(candidate_words, text_words)
        < settings.min_differing_words
    )
    return "few_differing_words" if is_close else None


def _reject_off_topic(
    candidate: str, text: str, polarity: Polarity, settings: FilterSettings
) -> str | None:
    is_positive = polarity == "positive"
    if is_positive and settings.same_kind and is_question(text) and not asks(candidate):
        return "not_a_question"
    if not settings.min_shared:
        return None
    share = shared(candidate, text)
    is_too_low = share < settings.min_shared if is_positive else share == 0
    return "nothing_shared" if is_too_low else None


def is_unchanged(candidate: str, text: str) -> bool:
    """Whether a candidate only drops words of its text or adds words at its end, without a negation."""
    if UNSPACED.search(text):  # negations are parts of words there
        return False
    new = _stems(candidate)
    old = _stems(text)
    if len(new) < 2 or 2 * len(new) < len(old):
        return False
    rest = iter(old)
    if all(word in rest for word in new):
        dropped = Counter(old) - Counter(new)
        return _NEGATING.isdisjoint(dropped)
    added = new[len(old) :]
    return len(old) > 1 and new[: len(old)] == old and _NEGATING.isdisjoint(added)


def _stems(sentence: str) -> list[str]:
    return [stem(word) for word in words(sentence) if word not in _NEUTRAL]


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
    if reason is None and not is_question(candidate):
        return "asks_nothing"
    return reason


def shared(candidate: str, text: str) -> float:
    """Share of the shorter sentence that is in the other, in [0, 1]: the larger of words and trigrams."""
    first = _content(candidate)
    second = _content(text)
    if not first or not second:
        return 1.0
    return max(_share(first, second), _share(_trigrams(candidate), _trigrams(text)))


def is_question(sentence: str) -> bool:
    """Whether a sentence has a question mark, or begins like a question without a full stop."""
    if _ASKED.search(sentence):
        return True
    return _ASKING.match(sentence) is not None and not _STATED.search(sentence)


def asks(sentence: str) -> bool:
    """Whether a sentence may be a direct or indirect question."""
    patterns = (_ASKED.search, _ASKING.match, _INDIRECT.search)
    return any(pattern(sentence) for pattern in patterns)


def _content(sentence: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(sentence) if word not in _COMMON)


def _trigrams(sentence: str) -> frozenset[str]:
    """Letter trigrams; none in scripts without spaces, where each character is a word."""
    folded = fold(sentence)
    if not folded.isascii() and UNSPACED.search(folded):
        return frozenset()
    return frozenset(folded[start : start + 3] for start in range(len(folded) - 2))


def _share(first: frozenset[str], second: frozenset[str]) -> float:
    if not first or not second:
        return 0.0
    return len(first & second) / min(len(first), len(second))


def reject_rewrite(
    item: Item, text: str, polarity: Polarity, settings: FilterSettings
) -> str | None:
    """The reason why an item is not a rewrite of a text."""
    reason = reject(item.text, text, polarity, settings)
    if reason is None and polarity == "negative" and is_unchanged(item.text, text):
        return "unchanged"
    return reason


def screen(
    text: Text,
    answers: Answers,
    settings: FilterSettings,
    reject_item: Reject = reject_rewrite,
) -> tuple[tuple[Proposal, ...], tuple[Candidate, ...]]:
    """Filter the items of all answers about `text`.

    There is a proposal for each item, by LLM, polarity, prompt and position in the answer; the candidates are
    sorted, positives first.
    """
    proposals = list(_proposals(text, answers, settings, reject_item))
    # Equal sentences but for case and punctuation have the same key.
    keys = {
        index: fold(p.candidate)
        for index, p in enumerate(proposals)
        if p.reason is None
    }
    polarities = defaultdict(set)
    for index, key in keys.items():
        polarities[key].add(proposals[index].polarity)
    sources: dict[tuple[Polarity, str], list[Proposal]] = defaultdict(list)
    for index, key in keys.items():
        proposal = proposals[index]
        if len(polarities[key]) > 1:
            proposals[index] = replace(proposal, reason="both_polarities")
            continue
        equal = sources[proposal.polarity, key]
        if any(earlier.llm == proposal.llm for earlier in equal):
            proposals[index] = replace(proposal, reason="repeated")
        equal.append(proposal)
    candidates = [_candidate(equal) for equal in sources.values()]
    candidates.sort(key=lambda c: (POLARITIES.index(c.polarity), c.candidate))
    return tuple(proposals), tuple(candidates)


def _proposals(
    text: Text, answers: Answers, settings: FilterSettings, reject_item: Reject
) -> Iterator[Proposal]:
    """A proposal for each item, with the reason to drop it."""
    for key, items in sorted(answers, key=_answer_order):
        for item in items:
            reason = item.reason or reject_item(item, text.text, key.polarity, settings)
            yield Proposal(
                text_id=text.text_id,
                llm=key.llm,
                polarity=key.polarity,
                prompt_hash=key.prompt_hash,
                candidate=item.text,
                reason=reason,
                change=item.change,
            )


def _answer_order(answer: tuple[AskKey, Sequence[Item]]) -> tuple[str, bool, str]:
    key, _ = answer
    return key.llm, key.polarity != "positive", key.prompt_hash


def _candidate(proposals: list[Proposal]) -> Candidate:
    """Merge proposals of the same sentence; the first one's spelling is kept."""
    first = proposals[0]
    changes = (proposal.change for proposal in proposals if proposal.change)
    return Candidate(
        text_id=first.text_id,
        candidate=first.candidate,
        polarity=first.polarity,
        llms=tuple(sorted({proposal.llm for proposal in proposals})),
        prompt_hashes=tuple(sorted({proposal.prompt_hash for proposal in proposals})),
        change=next(changes, None),
    )
