"""Make hard negatives by rules: sentences that keep most words of a text and change its meaning.

The changes with the highest confidence are chosen, of as many kinds as possible.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from llm_labeler.clients.wordnet.annotator import (
    candidates,
    distinct,
    opposites,
    rephrased,
)
from llm_labeler.clients.wordnet.denials import UNDENIABLE
from llm_labeler.clients.wordnet.entities import entity_changes
from llm_labeler.clients.wordnet.roles import has_odd_plural, role_changes
from llm_labeler.clients.wordnet.substitutions import in_compound, phrase_table
from llm_labeler.clients.wordnet.tagged_sentence import (
    Change,
    Edit,
    TaggedSentence,
    has_later_verb,
    main_verb,
    meaning_change,
    word_set,
)
from llm_labeler.clients.wordnet.wordnet_lexicon import other_lemma
from llm_labeler.records import ChangeKind

_NO = word_set(
    "no not never none nobody nothing cannot neither nor without don't doesn't"
)
_DEGREES = word_set("more less most least")
_POSSIBLE = word_set("may might could")
# Words whose replacements are often not opposites.
_AMISS = word_set(
    "called having click stage iron slow marks scans little alone well long appear appears"
)

_OTHER_MODALS = {
    "may": ("will always", 0.9),
    "might": ("will always", 0.9),
    "could": ("will always", 0.88),
    "can": ("must", 0.9),
    "must": ("need not", 0.93),
    "should": ("need not", 0.93),
}
# Subjects that may or must do something.
_ACTING = word_set(
    "you we they people patients women men parents doctors doctor users user person patient"
)
# Verbs of events that happen to a subject.
_HAPPENING = word_set("have be feel need experience develop notice also lose get")
# Adverbs that contradict "always".
_SELDOM = word_set(
    "sometimes often occasionally rarely usually seldom eventually first only"
)

# Adverbs that contradict "no longer".
_FREQUENCY = word_set(
    "often usually generally frequently typically occasionally sometimes rarely commonly seldom"
)
_PERFECT = ("has", "have")

_OTHER_WORDS = {
    "two": "five",
    "three": "six",
    "four": "nine",
    "five": "two",
    "six": "three",
    "seven": "four",
    "eight": "five",
    "nine": "six",
    "ten": "four",
}
# At most 15 digits before the point, as a float is exact up to there.
_DIGITS = re.compile(r"\d{1,3}(?:,\d{3}){1,4}|\d{1,15}(?:\.\d{1,15})?")
_GROUPED = re.compile(r"\d,$")  # before the rest of a number
_GROUP = re.compile(r",\d{3}(?!\d)")
_WITH_UNIT = re.compile(
    r"(\d{1,15})(-(?:year|month|week|day|hour|minute|mg|bit)(?:-old)?)"
)
_UNITS = word_set(
    "% percent mg mcg g kg ml mm cm m km mmhg hz khz mb gb kb ms °c °f iu kcal calories"
)
_PER_CENT = word_set("% percent")
_RANKED = word_set("type stage grade phase chromosome level version figure step class")
_RANGE = word_set("to - – and or")
_DATED = word_set("in since by until")
_NUMBER_CONFIDENCE = 0.94

_MIN_CONFIDENCE = 0.83
_SPARE = 4  # additional paraphrases to choose from
# Replacements that often mean something else, or differ only in a space.
_BAD = word_set(
    """
    supra bullets shop tries try uptake intake gotten got cloths cloth afterwards writers lids yet under
    lots lot healthcare
    """
)
# Questions about two things.
_TWO_THINGS = re.compile(
    r" of choice|\bcause\b.* to [a-z]|between .* and .* and ", re.IGNORECASE
)
_SHORTEST = 4  # tokens
_LONGEST = 40


def opposite_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """Changes that negate a sentence or replace a word by an antonym."""
    for change in opposites(sentence):
        edit = change.first
        is_denial = not _NO.isdisjoint(edit.text.split())
        removed = sentence.replaced(edit)
        is_amiss = _AMISS & removed and not is_denial
        if is_amiss or _is_misread(sentence, edit) or not _fits(sentence, edit):
            continue
        was_denial = not _NO.isdisjoint(removed)
        has_denial = not _NO.isdisjoint(edit.text.lower().split())
        if has_denial == was_denial:
            yield replace(change, kind="antonym")
        elif not removed & _POSSIBLE:  # "may" and "may not" can both be true
            yield replace(change, kind="negation")
    yield from _impossible(sentence)
    for change in phrase_table("opposites").changes(sentence):
        if not in_compound(sentence, change.first) and _fits(sentence, change.first):
            yield replace(change, kind="antonym")


def _is_misread(sentence: TaggedSentence, edit: Edit) -> bool:
    """Whether a negated word may not be the clause's verb: another verb follows, or it is a participle."""
    if sentence.word_at(edit.start) in ("called", "be"):
        return True
    if edit.text.endswith(" no") and sentence.word_at(edit.end) in ("number", "lot"):
        return True  # "there are a number of"
    is_denial = edit.text.startswith(("do not", "does not", "did not"))
    return is_denial and has_later_verb(sentence.codes[edit.end :])


def _fits(sentence: TaggedSentence, edit: Edit) -> bool:
    """Whether a replacement fits: not next to an equal word, brackets or a degree."""
    start = edit.start
    end = edit.end
    near = sentence.low[max(0, start - 3) : start] + sentence.low[end : end + 3]
    if edit.text.lower() in near:
        return False  # "from mild to mild"
    code = sentence.codes[start]
    before = sentence.word_at(start - 1)
    if before == "(" or (sentence.word_at(end) == "(" and code in "JRnse"):
        return False
    return not (before in _DEGREES and end == start + 1 and code in "JR")


def _impossible(sentence: TaggedSentence) -> Iterator[Change]:
    """Change `may cause` to `cannot cause`."""
    index = main_verb(sentence)
    if index is None or sentence.low[index] not in _POSSIBLE:
        return
    if sentence.is_negative or sentence.is_question or "sometimes" in sentence.low:
        return
    end = index + 1
    if sentence.word_at(end) == "also":
        end += 1
    if sentence.code_at(end) in ("v", "b", "H"):
        yield meaning_change("negation", 0.93, Edit(index, end, "cannot"))


def modality_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """Replace the modal verb of the main clause."""
    index = main_verb(sentence)
    if index is None or sentence.codes[index] != "M":
        return
    if sentence.is_negative or sentence.is_question:
        return
    if not _SELDOM.isdisjoint(sentence.low):
        return
    if sentence.low[0] == "in" and sentence.low[1] in ("some", "many", "rare"):
        return
    modal = sentence.low[index]
    after = sentence.word_at(index + 1)
    if modal not in _OTHER_MODALS or after == "not":
        return
    new, confidence = _OTHER_MODALS[modal]
    is_acting = not _ACTING.isdisjoint(sentence.low[:index])
    if modal == "can" and not is_acting:
        new = "will always"  # for "it can cause", "it must cause" doesn't fit
    elif new == "will always" and is_acting and after not in _HAPPENING:
        new = "must"
    end = index + 1
    if after == "also":
        end += 1
    yield meaning_change("modality", confidence, Edit(index, end, new))


def tense_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """Change the tense of the main clause's verb."""
    index = main_verb(sentence)
    if index is None or sentence.is_negative or sentence.is_question:
        return
    if not _FREQUENCY.isdisjoint(sentence.low[: index + 1]):
        return
    has_clause = set("WS") & set(sentence.codes[:index])
    if has_clause or has_later_verb(sentence.codes[index + 1 :]):
        return  # it may be another clause's verb
    verb = sentence.low[index]
    after = sentence.code_at(index + 1)
    if verb in _PERFECT and after == "b" and sentence.code_at(index + 2) == "e":
        yield meaning_change("tense", 0.93, Edit(index, index + 2, "will be"))
    elif verb in _PERFECT and after == "e":
        base = other_lemma(sentence.low[index + 1])
        if base:
            yield meaning_change("tense", 0.92, Edit(index, index + 2, f"will {base}"))
    elif verb in ("was", "were") and after == "e":
        yield meaning_change("tense", 0.93, Edit(index, index + 1, "will be"))
    elif verb == "will" and after == "b":
        yield meaning_change("tense", 0.9, Edit(index, index + 2, "has been"))
    elif verb in ("is", "are") and after in ("e", "g"):
        if sentence.codes[index - 1] != "E":
            edit = Edit(index, index + 1, f"{verb} no longer")
            yield meaning_change("tense", 0.86, edit)
    elif sentence.codes[index] == "z" and sentence.word_at(index - 1) not in UNDENIABLE:
        yield meaning_change("tense", 0.84, Edit(index, index, "no longer"))


def number_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """One change for each number that counts or measures something; references are left out."""
    for index, (start, _) in enumerate(sentence.spans):
        if _GROUPED.search(sentence.text[:start]):
            continue  # within a number
        end = index + 1
        if sentence.low[index].isdigit():
            while _GROUP.match(sentence.text, sentence.spans[end - 1][1]):
                end += 2
        new = _other_number(sentence, index, end)
        if new is not None and new != sentence.slice(index, end).lower():
            yield meaning_change("number", _NUMBER_CONFIDENCE, Edit(index, end, new))


def _other_number(sentence: TaggedSentence, index: int, end: int) -> str | None:
    low = sentence.slice(index, end).lower()
    before = sentence.word_at(index - 1)
    after = sentence.word_at(end)
    code_after = sentence.code_at(end)
    if low in _OTHER_WORDS:
        is_range = before in _RANGE or after in _RANGE
        is_count = code_after in ("s", "J", "n") and before != "type"
        return _OTHER_WORDS[low] if is_count and not is_range else None
    with_unit = _WITH_UNIT.fullmatch(low)
    if with_unit:
        return f"{round(_multiple(int(with_unit[1])))}{with_unit[2]}"
    if not _DIGITS.fullmatch(low) or {before, after} & _RANGE or before in "([#.-/$:":
        return None
    if after in ("/", ":", ",", ".") and sentence.word_at(end + 1)[:1].isdigit():
        return None
    if before in _RANKED:
        # The partner of a small ordinal: 2 and 1, 4 and 3.
        rank = int(low) if low.isdigit() else 0
        if not 0 < rank < 30:
            return None
        return str(rank + 1 if rank % 2 else rank - 1)
    if after in ("(", "halves"):
        return None
    if after in _PER_CENT and sentence.word_at(end + 1) in _RANGE:
        return None
    if after in _PER_CENT and low.isdigit():
        # A percentage that differs by more than 20.
        share = int(low)
        if 0 < share < 100 and abs(50 - share) > 10:
            return str(100 - share)
        return "20" if share > 20 else "80"
    if low.isdigit() and 1900 <= int(low) < 2100:
        return str(int(low) - 20) if before in _DATED else None
    if code_after == "s" or after in _UNITS:
        return _scaled(low)
    return None


def _multiple(number: float) -> float:
    if number <= 30:
        return number * 3
    return number / 2 if number % 2 == 0 else number * 2


def _scaled(low: str) -> str:
    scaled = _multiple(float(low.replace(",", "")))
    _, point, decimals = low.partition(".")
    if point:
        return f"{scaled:.{len(decimals)}f}"
    return f"{round(scaled):,}" if "," in low else str(round(scaled))


class _HardNegative(NamedTuple):
    kind: ChangeKind
    sentence: str
    confidence: float


def hard_negatives(
    text: str, size: int, kinds: Collection[ChangeKind]
) -> list[tuple[ChangeKind, str]]:
    """Up to `size` hard negatives with their kinds."""
    sentence = TaggedSentence(" ".join(text.split()))
    if not is_fit(sentence):
        return []
    best: dict[str, _HardNegative] = {}
    for change in changes(sentence):
        kind = change.kind
        if kind is None or kind not in kinds or change.confidence < _MIN_CONFIDENCE:
            continue
        for candidate, confidence in distinct(sentence, [change]):
            key = candidate.casefold()
            if key not in best or best[key].confidence < confidence:
                best[key] = _HardNegative(kind, candidate, confidence)

    # The best of each kind, then the second best of each, and so on.
    ranks: Counter[ChangeKind] = Counter()
    ranked = []
    for negative in sorted(best.values(), key=lambda n: (-n.confidence, n.sentence)):
        ranked.append((ranks[negative.kind], negative.kind, negative.sentence))
        ranks[negative.kind] += 1
    ranked.sort(key=itemgetter(0))
    return [(kind, candidate) for _, kind, candidate in ranked[:size]]


def changes(sentence: TaggedSentence) -> Iterator[Change]:
    """All changes of all kinds."""
    yield from opposite_changes(sentence)
    yield from entity_changes(sentence)
    yield from number_changes(sentence)
    yield from role_changes(sentence)
    yield from tense_changes(sentence)
    yield from modality_changes(sentence)


def same_meaning(text: str, size: int) -> list[str]:
    """Up to `size` paraphrases; those with other contractions come last."""
    sentence = TaggedSentence(" ".join(text.split()))
    if not is_fit(sentence):
        return []
    old = Counter(sentence.low)
    is_odd = has_odd_plural(sentence)
    paraphrases = candidates(text, "positive", size + _SPARE)
    if not _TWO_THINGS.search(sentence.text):
        questions = [*rephrased(sentence.text, "hard_questions")]
        questions.sort(key=lambda question: (-question[1], question[0]))
        paraphrases = [question for question, _ in questions] + paraphrases
    plain = []
    contracted = []
    for candidate in dict.fromkeys(paraphrases):
        new = Counter(TaggedSentence(candidate).low)
        if "not not" in candidate or "choice for" in candidate:
            continue
        if _BAD & new.keys() != _BAD & old.keys():
            continue
        if is_odd and not candidate.startswith(f"{sentence.words[0]} "):
            continue
        differing = (new - old) + (old - new)
        if any("'" in word for word in differing):  # `isn't` for `is not`
            contracted.append(candidate)
        else:
            plain.append(candidate)
    return (plain + contracted)[:size]


def is_fit(sentence: TaggedSentence) -> bool:
    """Whether a text is one sentence, not a list or a heading."""
    if not _SHORTEST <= len(sentence.words) <= _LONGEST:
        return False
    if sentence.codes.count(".") > 1:
        return False
    if {"-", ":", "•", "[", "|"} & set(sentence.words) or sentence.codes[-1] != ".":
        return False
    return not any(
        sentence.low[:length] == sentence.low[length : 2 * length]
        for length in (1, 2, 3, 4)
    )
