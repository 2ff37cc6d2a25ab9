"""Make hard negatives by rules: sentences that keep most words of a text and change its meaning.

The changes with the highest confidence are chosen, of as many kinds as possible.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

from llm_labeler.clients.wordnet.annotator import candidates, distinct, opposites, rephrased
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

_NO = word_set("no not never none nobody nothing cannot neither nor without don't doesn't")
_DEGREES = word_set("more less most least")
_POSSIBLE = word_set("may might could")
# Words whose replacements are often not opposites.
_AMISS = word_set(
    "called having click stage iron slow marks scans little alone well long appear appears"
)


def opposite_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """Changes that negate a sentence or replace a word by an antonym."""
    for change in opposites(sentence):
        edit = change.edits[0]
        is_amiss = set(sentence.low[edit.start : edit.end]) & _AMISS and not _NO & {
            *edit.text.split()
        }
        if not is_amiss and not _is_misread(sentence, edit) and _fits(sentence, edit):
            yield _of_kind(sentence, change)
    yield from _impossible(sentence)
    for change in phrase_table("opposites").changes(sentence):
        edit = change.edits[0]
        if not in_compound(sentence, edit) and _fits(sentence, edit):
            yield replace(change, kind="antonym")


def _is_misread(sentence: TaggedSentence, edit: Edit) -> bool:
    """Whether a negated word may not be the clause's verb: another verb follows, or it is a participle."""
    if sentence.low[edit.start : edit.start + 1] in (("called",), ("be",)):
        return True
    if edit.text.endswith(" no") and sentence.low[edit.end : edit.end + 1] in (
        ("number",),
        ("lot",),
    ):
        return True  # "there are a number of"
    return edit.text.startswith(("do not", "does not", "did not")) and has_later_verb(
        sentence.codes[edit.end :]
    )


def _fits(sentence: TaggedSentence, edit: Edit) -> bool:
    """Whether a replacement fits: not next to an equal word, brackets or a degree."""
    low = sentence.low
    start = edit.start
    end = edit.end
    if edit.text.lower() in low[max(0, start - 3) : start] + low[end : end + 3]:
        return False  # "from mild to mild"
    if (low[end : end + 1] == ("(",) and sentence.codes[start] in "JRnse") or low[
        max(0, start - 1) : start
    ] == ("(",):
        return False
    return not (
        start and low[start - 1] in _DEGREES and end == start + 1 and sentence.codes[start] in "JR"
    )


def _of_kind(sentence: TaggedSentence, change: Change) -> Change:
    edit = change.edits[0]
    removed = {*sentence.low[edit.start : edit.end]}
    negates = bool(_NO & {*edit.text.lower().split()}) != bool(_NO & removed)
    if negates and removed & _POSSIBLE:
        return meaning_change(
            "negation", 0.0, *change.edits
        )  # "may" and "may not" can both be true
    return replace(change, kind="negation" if negates else "antonym")


def _impossible(sentence: TaggedSentence) -> Iterator[Change]:
    """Change `may cause` to `cannot cause`."""
    index = main_verb(sentence)
    if (
        index is None
        or sentence.low[index] not in _POSSIBLE
        or sentence.is_negative
        or sentence.is_question
    ):
        return
    if "sometimes" in sentence.low:
        return
    also = sentence.low[index + 1 : index + 2] == ("also",)
    if sentence.codes[index + 1 + also : index + 2 + also] in ("v", "b", "H"):
        yield meaning_change("negation", 0.93, Edit(index, index + 1 + also, "cannot"))


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
_SELDOM = word_set("sometimes often occasionally rarely usually seldom eventually first only")


def modality_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """Replace the modal verb of the main clause."""
    index = main_verb(sentence)
    if (
        index is None
        or sentence.codes[index] != "M"
        or sentence.is_negative
        or sentence.is_question
    ):
        return
    if _SELDOM & set(sentence.low) or (
        sentence.low[0] == "in" and sentence.low[1] in ("some", "many", "rare")
    ):
        return
    after = sentence.low[index + 1 : index + 2]
    if sentence.low[index] in _OTHER_MODALS and after != ("not",):
        new, confidence = _OTHER_MODALS[sentence.low[index]]
        if sentence.low[index] == "can" and not _ACTING & set(sentence.low[:index]):
            new = "will always"  # for "it can cause", "it must cause" doesn't fit
        elif (
            new == "will always"
            and _ACTING & set(sentence.low[:index])
            and after[0] not in _HAPPENING
        ):
            new = "must"
        skipped = after == ("also",)
        yield meaning_change("modality", confidence, Edit(index, index + 1 + skipped, new))


# Adverbs that contradict "no longer".
_FREQUENCY = word_set(
    "often usually generally frequently typically occasionally sometimes rarely commonly seldom"
)
_PERFECT = ("has", "have")


def tense_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """Change the tense of the main clause's verb."""
    index = main_verb(sentence)
    if index is None or sentence.is_negative or sentence.is_question:
        return
    if _FREQUENCY & set(sentence.low[: index + 1]):
        return
    if set("WS") & set(sentence.codes[:index]) or has_later_verb(sentence.codes[index + 1 :]):
        return  # it may be another clause's verb
    code = sentence.codes[index]
    low = sentence.low[index]
    after = sentence.codes[index + 1 : index + 3]
    if low in _PERFECT and after == "be":
        yield meaning_change("tense", 0.93, Edit(index, index + 2, "will be"))
    elif low in _PERFECT and after[:1] == "e":
        base = other_lemma(sentence.low[index + 1])
        if base:
            yield meaning_change("tense", 0.92, Edit(index, index + 2, f"will {base}"))
    elif low in ("was", "were") and after[:1] == "e":
        yield meaning_change("tense", 0.93, Edit(index, index + 1, "will be"))
    elif low == "will" and after[:1] == "b":
        yield meaning_change("tense", 0.9, Edit(index, index + 2, "has been"))
    elif low in ("is", "are") and after[:1] in ("e", "g") and sentence.codes[index - 1] != "E":
        yield meaning_change("tense", 0.86, Edit(index, index + 1, f"{low} no longer"))
    elif code == "z" and not UNDENIABLE & set(sentence.low[index - 1 : index]):
        yield meaning_change("tense", 0.84, Edit(index, index, "no longer"))


_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_OTHER_WORDS = dict(
    zip(_WORDS, ("five", "six", "nine", "two", "three", "four", "five", "six", "four"), strict=True)
)
# At most 15 digits before the point, as a float is exact up to there.
_DIGITS = re.compile(r"\d{1,3}(?:,\d{3}){1,4}|\d{1,15}(?:\.\d{1,15})?")
_GROUPED = re.compile(r"\d,$")  # before the rest of a number
_GROUP = re.compile(r",\d{3}(?!\d)")
_WITH_UNIT = re.compile(r"(\d{1,15})(-(?:year|month|week|day|hour|minute|mg|bit)(?:-old)?)")
_UNITS = word_set(
    "% percent mg mcg g kg ml mm cm m km mmhg hz khz mb gb kb ms °c °f iu kcal calories"
)
_PER_CENT = word_set("% percent")
_RANKED = word_set("type stage grade phase chromosome level version figure step class")
_RANGE = word_set("to - – and or")
_DATED = word_set("in since by until")
_NUMBER_CONFIDENCE = 0.94


def number_changes(sentence: TaggedSentence) -> Iterator[Change]:
    """One change for each number that counts or measures something; references are left out."""
    for index in range(len(sentence.low)):
        end = _end(sentence, index)
        new = _other_number(sentence, index, end) if end else None
        if new is not None and new != sentence.slice(index, end).lower():
            yield meaning_change("number", _NUMBER_CONFIDENCE, Edit(index, end, new))


def _end(sentence: TaggedSentence, index: int) -> int:
    """End of the number that begins at a token, including commas between digits; 0 within a number."""
    if _GROUPED.search(sentence.text[: sentence.spans[index][0]]):
        return 0
    end = index + 1
    while _GROUP.match(sentence.text, sentence.spans[end - 1][1]) and sentence.low[index].isdigit():
        end += 2
    return end


def _other_number(sentence: TaggedSentence, index: int, end: int) -> str | None:
    low = sentence.slice(index, end).lower()
    before = sentence.low[index - 1] if index else ""
    after = sentence.low[end] if end < len(sentence.low) else ""
    if low in _OTHER_WORDS:
        counts = sentence.codes[end : end + 1] in ("s", "J", "n") and before not in (
            "type",
            *_RANGE,
        )
        return _OTHER_WORDS[low] if counts and after not in _RANGE else None
    if match := _WITH_UNIT.fullmatch(low):
        return f"{round(_multiple(int(match[1])))}{match[2]}"
    if not _DIGITS.fullmatch(low) or after in _RANGE or before in _RANGE or before in "([#.-/$:":
        return None
    if after in ("/", ":", ",", ".") and "".join(sentence.low[end + 1 : end + 2])[:1].isdigit():
        return None
    if before in _RANKED:
        rank = int(low) if low.isdigit() else 0
        return (
            str({1: 2, 2: 1}.get(rank, rank + 1 if rank % 2 else rank - 1))
            if 0 < rank < 30
            else None
        )
    if after in ("(", "halves"):
        return None
    if after in _PER_CENT and {*sentence.low[end + 1 : end + 2]} & _RANGE:
        return None
    if after in _PER_CENT and "." not in low and "," not in low:
        share = int(low)
        return str(
            100 - share if 0 < share < 100 and abs(50 - share) > 10 else 20 if share > 20 else 80
        )
    if low.isdigit() and 1900 <= int(low) < 2100:
        return str(int(low) - 20) if before in _DATED else None
    counts = sentence.codes[end : end + 1] == "s" or after in _UNITS
    return _scaled(low) if counts else None


def _multiple(number: float) -> float:
    return number * 3 if number <= 30 else number / 2 if number % 2 == 0 else number * 2


def _scaled(low: str) -> str:
    number = float(low.replace(",", ""))
    scaled = _multiple(number)
    if "." in low:
        return f"{scaled:.{len(low.partition('.')[2])}f}"
    return f"{round(scaled):,}" if "," in low else str(round(scaled))


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
_TWO_THINGS = re.compile(r" of choice|\bcause\b.* to [a-z]|between .* and .* and ", re.IGNORECASE)
_SHORTEST, _LONGEST = 4, 40  # tokens


def hard_negatives(
    text: str, size: int, kinds: Collection[ChangeKind]
) -> list[tuple[ChangeKind, str]]:
    """Up to `size` hard negatives with their kinds."""
    sentence = TaggedSentence(" ".join(text.split()))
    if not is_fit(sentence):
        return []
    best: dict[str, tuple[float, ChangeKind, str]] = {}
    for change in changes(sentence):
        if (kind := change.kind) and kind in kinds and change.confidence >= _MIN_CONFIDENCE:
            for candidate, confidence in distinct(sentence, [change]):
                key = candidate.casefold()
                if key not in best or best[key][0] < confidence:
                    best[key] = (confidence, kind, candidate)
    ranked = sorted(best.values(), key=lambda entry: (-entry[0], entry[2]))
    turns: Counter[ChangeKind] = Counter()
    placed = []
    for confidence, kind, candidate in ranked:
        placed.append((turns[kind], -confidence, candidate, kind))
        turns[kind] += 1
    return [(kind, candidate) for _, _, candidate, kind in sorted(placed)[:size]]


def changes(sentence: TaggedSentence) -> Iterator[Change]:
    """All changes of all kinds."""
    yield from opposite_changes(sentence)
    yield from entity_changes(sentence)
    yield from number_changes(sentence)
    yield from role_changes(sentence)
    yield from tense_changes(sentence)
    yield from modality_changes(sentence)


def same_meaning(text: str, size: int) -> list[str]:
    """Up to `size` paraphrases."""
    sentence = TaggedSentence(" ".join(text.split()))
    if not is_fit(sentence):
        return []
    old = Counter(sentence.low)
    is_odd = has_odd_plural(sentence)
    rules = () if _TWO_THINGS.search(sentence.text) else rephrased(sentence.text, "hard_questions")
    questions = [question for question, _ in sorted(rules, key=lambda rule: (-rule[1], rule[0]))]
    wordings = dict.fromkeys(questions + candidates(text, "positive", size + _SPARE))
    ranked = []
    for index, candidate in enumerate(wordings):
        new = Counter(TaggedSentence(candidate).low)
        is_bad = (
            "not not" in candidate or "choice for" in candidate or _BAD & {*new} ^ _BAD & {*old}
        )
        if not is_bad and not (is_odd and candidate.split()[0] != sentence.words[0]):
            is_contracted = any(
                "'" in word for word in (new - old) + (old - new)
            )  # `isn't` for `is not`
            ranked.append((is_contracted, index, candidate))
    return [candidate for _, _, candidate in sorted(ranked)[:size]]


def is_fit(sentence: TaggedSentence) -> bool:
    """Whether a text is one sentence, not a list or a heading."""
    if not _SHORTEST <= len(sentence.words) <= _LONGEST or sentence.codes.count(".") > 1:
        return False
    if {"-", ":", "•", "[", "|"} & set(sentence.words) or sentence.codes[-1] != ".":
        return False
    return not any(
        sentence.low[:length] == sentence.low[length : 2 * length] for length in (1, 2, 3, 4)
    )
