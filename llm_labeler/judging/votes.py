"""What a judge answered: a word for each candidate, or `unsure` where it can't be told for certain."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llm_labeler.judging.claims import Claim, json_claims, line_claims, listed_words
from llm_labeler.judging.scales import CANDIDATES, Scale
from llm_labeler.parsing.finish import Ending, ending_of
from llm_labeler.records import Ask, Candidate, Judgement
from pairkit.app.printable import normalize

_MOST_CHARACTERS = 20_000  # of an answer that is a few words long
_NO_ANSWER = ("refused", "filtered", "failed")
_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_UNFINISHED_THOUGHT = re.compile(r"<think(?:ing)?>.*\Z", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```(?:\w*(?=\s*\n))?")


def read_votes(
    ask: Ask, candidates: Sequence[Candidate], raw: str, finish: str, scale: Scale = CANDIDATES
) -> list[Judgement]:
    """One judgement for each candidate of the ask, in their order; never raises.

    Reads JSON (`{"1": "same"}`, `[{"id": 1, "verdict": "same"}]`, a list of words) and lines (`1: same`,
    `**1** - opposite`), within fences, thoughts and prose. Whatever is missing, odd, contradictory or none of
    the four words is `unsure`.
    """
    found = _words(ask, len(candidates), raw, finish, scale)
    return [
        Judgement(candidate.candidate_id, ask.key.llm, scale.votes[found.get(number, "unsure")])
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
