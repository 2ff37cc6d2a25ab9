"""Phrases of languages other than English, from `languages/*.toml`.

A file has lists of regular expressions by `lexicon.Code`, in lower case; a blank in them matches a run of
blanks, or also none if the language is `unspaced`. A text is in the first language of which it has
`letters`, or else of which it has the most `words`. A `claim_stem` can make a claim without a reference.
"""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

from gis_builder.detection.lexicon import Code, has_any

_FILES = sorted(Path(__file__).with_name("languages").glob("*.toml"))
_LANGUAGES = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in _FILES}
_STEMS = tuple(chain.from_iterable(language["claim_stems"] for language in _LANGUAGES.values()))
_ASCII_STEMS = tuple(filter(str.isascii, _STEMS))
_WORDS = {name: frozenset(each["words"].split()) for name, each in _LANGUAGES.items() if "words" in each}
_LETTERS = {name: re.compile(each["letters"]) for name, each in _LANGUAGES.items() if "letters" in each}
_ALL_WORDS = frozenset(chain.from_iterable(_WORDS.values()))
_TO_BLANKS = str.maketrans(dict.fromkeys(".,:;!?()[]*_", " "))


def has_claim_stem(text: str) -> bool:
    """Whether a text in lower case has a `claim_stem` of any language."""
    return has_any(text, _ASCII_STEMS if text.isascii() else _STEMS)


def language_of(text: str) -> str | None:
    """The code of the language of a text in lower case; None if it's English or another."""
    script = None if text.isascii() else next((n for n, each in _LETTERS.items() if each.search(text)), None)
    words = text.translate(_TO_BLANKS).split()
    if script is not None or _ALL_WORDS.isdisjoint(words):
        return script
    return max(_WORDS, key=lambda name: len(_WORDS[name].intersection(words)))


def phrases(language: str, gap: str) -> list[tuple[Code, str]]:
    """Each code with a pattern for its phrases in a language; `gap` matches blanks between words."""
    about = _LANGUAGES[language]
    blank, end = ("[ ]*+", "") if about.get("unspaced") else (gap, r"(?!\w)")
    return [
        (Code[name], f"(?:{_bounded('|'.join(patterns)).replace(' ', blank)}){end}")
        for name, patterns in about["phrases"].items()
    ]


def _bounded(pattern: str) -> str:
    """The pattern with bounded runs of letters, so that reading takes linear time."""
    pattern = pattern.replace(r"\S", r"[^\s\x01\x02]")
    return re.sub(r"(\\w|\\x02])([*+])", lambda run: f"{run[1]}{{{int(run[2] == '+')},20}}", pattern)
