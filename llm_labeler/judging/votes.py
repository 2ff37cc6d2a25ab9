"""A judge's answer as votes: one word for each candidate, or `unsure` if the answer is not clear."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from llm_labeler.judging.questions import CANDIDATES, Scale
from llm_labeler.records import VOTES, Ask, Candidate, Ending, JudgeVote, ending_of
from pairkit.app.printable import normalize

Claim = tuple[int, str]  # a number and a word, which need not be one of the four

_ODD = ""
_DEEPEST = 4  # of JSON within JSON
_MOST_STARTS = 64  # places tried as the beginning of JSON
_NUMBER_KEYS = ("id", "number", "no", "index", "n", "sentence")
_WORD_KEYS = (*("verdict", "label", "relation", "relationship", "answer", "judgement", "judgment", "word"),)
_OF_THE_QUESTION = ("text", "sentences")  # an answer may give them back

Words = tuple[str, ...]
_LEAD = re.compile(r"[\W_]*")
_NUMBER = re.compile(r"\D{0,12}(\d{1,4})\D{0,3}")


class _Object(list[tuple[str, Any]]):
    """A JSON object with all its keys, repeated ones too."""


_DECODER = json.JSONDecoder(object_pairs_hook=_Object)


def json_claims(text: str, size: int) -> list[Claim]:
    """What the JSON values in a text claim; a plain list of words claims something if it is `size` long."""
    return [claim for value in _json_values(text) for claim in _within(value, size, _DEEPEST)]


def listed_words(text: str, size: int, known: Words = VOTES) -> list[Claim]:
    """What a text claims that is nothing but `size` of the known words."""
    words = re.findall(r"[^\W_]+", text.lower())
    return list(enumerate(words, 1)) if len(words) == size and set(words) <= set(known) else []


def line_claims(text: str, known: Words = VOTES) -> list[Claim]:
    """What the lines of a text claim: all of a line of numbers and words, else what a line begins with."""
    return [claim for line in text.splitlines() for claim in _of_line(line, known)]


def _of_line(line: str, known: Words) -> Iterator[Claim]:
    numbered, one_word = _patterns(known)
    pairs = [(int(number), word.lower()) for number, word in numbered.findall(line)]
    if not re.search(r"[^\W_]", numbered.sub("", line)):
        yield from pairs
    elif begin := numbered.match(line, _LEAD.match(line).end()):  # type: ignore[union-attr]  # matches anything
        words = {word.lower() for word in one_word.findall(line)}
        yield int(begin[1]), words.pop() if len(words) == 1 else _ODD


@cache
def _patterns(known: Words) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A number with one of the words after it, and such a word alone."""
    word = rf"(?:{'|'.join(known)})(?![^\W_])"
    lead = r"(?<![^\W_])(?:(?:sentence|number|item|no)[\W_]{1,3})?"
    numbered = re.compile(rf"{lead}(\d{{1,4}})[\W_]{{1,12}}({word})", re.IGNORECASE)
    return numbered, re.compile(rf"(?<![^\W_])({word})", re.IGNORECASE)


def _json_values(text: str) -> Iterator[Any]:
    at = 0
    for _ in range(_MOST_STARTS):
        start = re.compile(r"[{\[]").search(text, at)
        if start is None:
            return
        try:
            value, at = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.end()
        else:
            yield value


def _within(value: Any, size: int, depth: int) -> Iterator[Claim]:
    if not isinstance(value, list) or not depth:
        return
    if isinstance(value, _Object):
        yield from _of_object(value, size, depth)
    elif value and all(isinstance(word, str) for word in value):
        yield from enumerate(map(_word, value), 1) if len(value) == size else ()
    else:
        for inner in value:
            yield from _within(inner, size, depth - 1)


def _of_object(fields: _Object, size: int, depth: int) -> Iterator[Claim]:
    number, word = _named(fields, _NUMBER_KEYS), _named(fields, _WORD_KEYS)
    if number is not None and word is not None:
        if (read := _number(number)) is not None:
            yield read, _word(word)
        return
    for key, value in fields:
        if (read := _number(key)) is not None:
            yield read, _word(_named(value, _WORD_KEYS) if isinstance(value, _Object) else value)
        elif key.lower() not in _OF_THE_QUESTION:
            yield from _within(value, size, depth - 1)


def _named(fields: _Object, names: tuple[str, ...]) -> Any:
    return next((value for key, value in fields if key.lower() in names), None)


def _number(value: Any) -> int | None:
    found = _NUMBER.fullmatch(str(value)) if isinstance(value, int | str) else None
    return int(found[1]) if found else None


def _word(value: Any) -> str:
    return value.strip(" \t\n.,;:!*_\"'`").lower() if isinstance(value, str) else _ODD


_MOST_CHARACTERS = 20_000  # of an answer that is a few words long
_NO_ANSWER = ("refused", "filtered", "failed")
_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_UNFINISHED_THOUGHT = re.compile(r"<think(?:ing)?>.*\Z", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```(?:\w*(?=\s*\n))?")


def read_votes(
    ask: Ask, candidates: Sequence[Candidate], raw: str, finish: str, scale: Scale = CANDIDATES
) -> list[JudgeVote]:
    """One judgement for each candidate of the ask, in their order; never raises.

    Reads JSON (`{"1": "same"}`, `[{"id": 1, "verdict": "same"}]`, a list of words) and lines (`1: same`,
    `**1** - opposite`), within fences, thoughts and prose. Whatever is missing, odd, contradictory or none of
    the four words is `unsure`.
    """
    found = _words(ask, len(candidates), raw, finish, scale)
    return [
        JudgeVote(candidate.candidate_id, ask.key.llm, scale.votes[found.get(number, "unsure")])
        for number, candidate in enumerate(candidates, 1)
    ]


def _words(ask: Ask, size: int, raw: str, finish: str, scale: Scale) -> dict[int, str]:
    """The numbers of which the answer says one of the scale's words, and no other."""
    if (ending := ending_of(finish)) in _NO_ANSWER:
        return {}
    return _agreed(_claims(_without_wrapping(ask, raw), size, ending, scale), scale)


def _without_wrapping(ask: Ask, raw: str) -> str:
    # Some models give the question back first, and a candidate in it could pose as an answer.
    for message in ask.messages:
        raw = raw.replace(message.content, "\n")
    answer = _UNFINISHED_THOUGHT.sub("", _THOUGHT.sub("", raw))
    return normalize("NFKC", _FENCE.sub("", answer)[:_MOST_CHARACTERS])


def _claims(text: str, size: int, ending: Ending, scale: Scale) -> list[Claim]:
    if claims := json_claims(text, size):
        return claims
    whole = text[: max(text.rfind("\n"), text.rfind(","), 0)] if ending != "complete" else text
    return listed_words(whole, size, scale.words) or line_claims(whole, scale.words)


def _agreed(claims: list[Claim], scale: Scale) -> dict[int, str]:
    by_number: dict[int, set[str]] = {}
    for number, word in claims:
        by_number.setdefault(number, set()).add(word)
    if 0 in by_number:  # counted from nought: which is which can't be told
        return {}
    return {number: word for number, words in by_number.items() for word in scale.words if words == {word}}
