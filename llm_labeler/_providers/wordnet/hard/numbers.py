"""Another number: of years, of milligrams, of people in a hundred, of a stage."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_labeler._providers.wordnet.hard.turned import Turned, turned
from llm_labeler._providers.wordnet.sentence import Edit, Sentence, word_set

_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_OTHER_WORDS = dict(
    zip(_WORDS, ("five", "six", "nine", "two", "three", "four", "five", "six", "four"), strict=True)
)
# Of at most 15 digits before the point: a float holds no more, and nothing is counted in them.
_DIGITS = re.compile(r"\d{1,3}(?:,\d{3}){1,4}|\d{1,15}(?:\.\d{1,15})?")
_GROUPED = re.compile(r"\d,$")  # before the rest of a number
_GROUP = re.compile(r",\d{3}(?!\d)")
_WITH_UNIT = re.compile(r"(\d{1,15})(-(?:year|month|week|day|hour|minute|mg|bit)(?:-old)?)")
_UNITS = word_set("% percent mg mcg g kg ml mm cm m km mmhg hz khz mb gb kb ms °c °f iu kcal calories")
_PER_CENT = word_set("% percent")
_RANKED = word_set("type stage grade phase chromosome level version figure step class")
_RANGE = word_set("to - – and or")
_DATED = word_set("in since by until")
_SURE = 0.94


def number_changes(sentence: Sentence) -> Iterator[Turned]:
    """One change for each number that counts or measures something; none of references."""
    for place in range(len(sentence.low)):
        end = _end(sentence, place)
        new = _other(sentence, place, end) if end else None
        if new is not None and new != sentence.slice(place, end).lower():
            yield turned("number", _SURE, Edit(place, end, new))


def _end(sentence: Sentence, place: int) -> int:
    """Where a number ends that begins at a token, commas between its digits included; 0 within one."""
    if _GROUPED.search(sentence.text[: sentence.spans[place][0]]):
        return 0
    end = place + 1
    while _GROUP.match(sentence.text, sentence.spans[end - 1][1]) and sentence.low[place].isdigit():
        end += 2
    return end


def _other(sentence: Sentence, place: int, end: int) -> str | None:
    low = sentence.slice(place, end).lower()
    before = sentence.low[place - 1] if place else ""
    after = sentence.low[end] if end < len(sentence.low) else ""
    if low in _OTHER_WORDS:
        counts = sentence.codes[end : end + 1] in ("s", "J", "n") and before not in ("type", *_RANGE)
        return _OTHER_WORDS[low] if counts and after not in _RANGE else None
    if match := _WITH_UNIT.fullmatch(low):
        return f"{round(_multiple(int(match[1])))}{match[2]}"
    if not _DIGITS.fullmatch(low) or after in _RANGE or before in _RANGE or before in "([#.-/$:":
        return None
    if after in ("/", ":", ",", ".") and "".join(sentence.low[end + 1 : end + 2])[:1].isdigit():
        return None
    if before in _RANKED:
        return str(_ranked(int(low))) if low.isdigit() and 0 < int(low) < 30 else None
    if after in ("(", "halves"):
        return None
    if after in _PER_CENT and {*sentence.low[end + 1 : end + 2]} & _RANGE:
        return None
    if after in _PER_CENT and "." not in low and "," not in low:
        return str(_per_cent(int(low)))
    if low.isdigit() and 1900 <= int(low) < 2100:
        return str(int(low) - 20) if before in _DATED else None
    counts = sentence.codes[end : end + 1] == "s" or after in _UNITS
    return _scaled(low) if counts else None


def _ranked(number: int) -> int:
    return 1 if number == 2 else 2 if number == 1 else number + 1 if number % 2 else number - 1


def _per_cent(number: int) -> int:
    return 100 - number if 0 < number < 100 and abs(50 - number) > 10 else 20 if number > 20 else 80


def _multiple(number: float) -> float:
    return number * 3 if number <= 30 else number / 2 if number % 2 == 0 else number * 2


def _scaled(low: str) -> str:
    number = float(low.replace(",", ""))
    scaled = _multiple(number)
    if "." in low:
        return f"{scaled:.{len(low.partition('.')[2])}f}"
    return f"{round(scaled):,}" if "," in low else str(round(scaled))
