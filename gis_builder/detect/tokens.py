"""Turn a masked text into sentences, each a string of lexicon codes with the places of its tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gis_builder.detect.lexicon import code_of
from gis_builder.detect.phrases import PHRASES, UNSPACED_PHRASES
from gis_builder.detect.references import Reference

REFERENCE_MARK, _REST_OF_REFERENCE = "\x01", "\x02"
_GAP = r"[ \t]*[ \t\n][ \t]*"


def _phrases() -> list[str]:
    """Every phrase as a branch that ends with an empty named group.

    The group stands last because the regular expression engine skips a branch at once when the branch begins
    with a letter that isn't there, and can't look past the beginning of a group.
    """
    spaced = [
        f"(?:{rule.replace(' ', _GAP)})(?!\\w)(?P<{code}_{i}>)" for i, (code, rule) in enumerate(PHRASES)
    ]
    return spaced + [f"(?:{rule})(?P<{code}_u{i}>)" for i, (code, rule) in enumerate(UNSPACED_PHRASES)]


_TOKEN = re.compile(
    "|".join(
        [
            r"(?P<blank>[ \t]+)",
            rf"(?P<reference>{REFERENCE_MARK}{_REST_OF_REFERENCE}*)",
            *_phrases(),
            r"(?P<abbreviation>(?:e\.g|i\.e|cf|etc|vs|approx|resp|incl)\.)",
            r"(?P<cjk>[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])",
            r"(?P<word>@?[^\W_]+(?:['.-][^\W_]+)*)",
            r"(?P<and>[&+/])",
            r"(?P<ask>\?)",
            r"(?P<lesser>[,:;()\[\]、，：（）—–\n]|-+(?=\s)|->|=>|→|⇒|…)",
        ]
    )
)
_SENTENCE_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bcf)(?<!\betc)(?<!\bvs)[.!?;]+(?=[\s)\]*_\"']|\Z)[)\]*_\"']*"
    r"|[。！？；]|\n[ \t]*\n\s*|\n(?=[ \t]*(?:[-*+]|\d+[.)])[ ])"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One statement: `codes[i]` is the lexicon code of the token at `spans[i]` of the text."""

    codes: str
    spans: tuple[tuple[int, int], ...]
    references: tuple[Reference | None, ...]  # at the places of code `R`
    is_question: bool


def hide_references(text: str, references: Sequence[Reference]) -> str:
    """Put one marker in place of each reference, so that a link's dots and words are not read as text."""
    pieces, place = [], 0
    for reference in references:
        length = reference.end - reference.start
        pieces += [text[place : reference.start], REFERENCE_MARK, _REST_OF_REFERENCE * (length - 1)]
        place = reference.end
    return "".join([*pieces, text[place:]])


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text stand; blank lines and list items end a sentence too."""
    spans, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        if text[start : match.end()].strip():
            spans.append((start, match.end()))
        start = match.end()
    if text[start:].strip():
        spans.append((start, len(text)))
    return spans


def tokenise(text: str, span: tuple[int, int], by_start: dict[int, Reference]) -> Sentence:
    """Read one sentence of a lower-case text whose references are hidden.

    Args:
        text: The whole text, as `hide_references` returns it, in lower case and with plain apostrophes.
        span: Where the sentence stands.
        by_start: The references by their place in the text.
    """
    codes: list[str] = []
    spans: list[tuple[int, int]] = []
    for match in _TOKEN.finditer(text, *span):
        group = match.lastgroup or ""
        if group != "blank":
            codes.append(_code(group, match))
            spans.append(match.span())
    references = tuple(by_start.get(place) for place, _ in spans)
    is_question = "?" in text[span[1] - 4 : span[1]] or "？" in text[span[1] - 2 : span[1]]
    return Sentence("".join(codes), tuple(spans), references, is_question)


def _code(group: str, match: re.Match[str]) -> str:
    if group == "word":
        return code_of(match.group())
    return _FIXED_CODES.get(group) or group.partition("_")[0]


_FIXED_CODES = {"reference": "R", "abbreviation": "e", "cjk": "w", "and": "&", "ask": "?", "lesser": ","}
