"""Codes of words and phrases, which turn a sentence into a string of codes.

The words and phrases are in `languages/*.toml`, in lower case and by code. Phrases are regular expressions; a
blank in them matches a run of blanks with at most one line break, or also none if the language is `unspaced`.

A text is in the first language of which it has `letters`, or else of which it has the most `words`. A
`claim_stem` can make a claim without a reference.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from itertools import chain
from pathlib import Path

_NAME = re.compile(r"[A-Z][A-Z_]+")

_PART = re.compile(r"\{([A-Z_]+)\}")
_FILES = sorted(Path(__file__).with_name("languages").glob("*.toml"))
_LANGUAGES = {
    path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in _FILES
}
ENGLISH = _LANGUAGES.pop("en")

_TO_BLANKS = str.maketrans(dict.fromkeys(".,:;!?()[]*_", " "))


class Code(StrEnum):
    """The meaning of a token, in one letter, so that regular expressions can match sentences of codes."""

    REFERENCE = "R"  # #12, a link to an issue, "issue 12"
    DUPLICATE = "D"  # the noun: dup, dupe, /duplicate, duplikat
    DUPLICATES = "d"  # the verb in the present, the plural: duplicates, dupes
    DUPLICATED = "Z"  # the verb in the past: duplicated
    HAS_DUPLICATES = "n"  # has many duplicates
    FAVOUR = "F"  # in favour of, superseded by, continued in
    MOVED = "m"  # merged into, moved to
    ADDED_TO = "g"  # added this to, updated ... with this info
    COVERS = "f"  # supersedes, covers, tracks
    TRACKED = "K"  # tracked in, covered by
    PART_OF = "P"  # part of, subsection of
    REPORTED = "A"  # already reported, reported as
    SAME_AS = "S"  # same issue as, identical to
    SAME = "s"  # the same issue
    SIMILAR_TO = "l"  # very similar to
    THIS = "T"  # this issue: this, it, that's
    THAT_ONE = "O"  # an issue named before: that one, the above, ^
    CORRECTION = "c"  # I meant, make that
    IS = "V"  # is, was, becomes
    NOT = "N"  # isn't, don't, never
    MAYBE = "H"  # seems, I think, looks like
    IF = "I"  # a condition or request: if, whether, please
    UNDECIDED = "Q"  # hard to tell, who knows
    YES = "Y"  # indeed, agreed, you're right
    NO = "B"  # no, as an answer: nope, no it isn't
    THANKS = "y"  # surprise, thanks or regret: oh, thanks, sorry
    CLOSE = "C"  # closing, closed
    REOPEN = "U"  # reopening
    KEEP_OPEN = "k"  # leave this open, won't close
    JOKE = "j"  # just kidding, /s
    FIXED = "X"  # fixed or not a bug: works now, by design
    RELATED = "L"  # similar, linked
    DIFFERENT = "E"  # unrelated, has nothing to do with
    SEARCH = "G"  # find, looked
    ALSO = "M"  # additionally
    WHICH = "W"  # relative pronouns: which, whose
    SEE = "e"  # cf, check, per
    OF = "o"  # of, to, with
    BY = "b"  # by, in, at
    AS = "a"  # as, als
    ARTICLE = "x"  # a, the, one
    ISSUE = "i"  # issue, bug, report
    FILLER = "J"  # words without meaning here: just, basically, now
    AND = "&"  # and, or, plus, +
    COMMA = ","  # comma, colon, bracket, line break
    QUESTION = "?"  # ?
    WORD = "w"  # any other word
    STOP = "."  # between sentences


def code_pattern(pattern: str, codes: type[StrEnum] = Code) -> re.Pattern[str]:
    """Compile a regular expression written with names of codes and blanks between them."""
    return re.compile(
        _NAME.sub(lambda name: re.escape(codes[name[0]]), pattern).replace(" ", "")
    )


def has_any(text: str, stems: tuple[str, ...]) -> bool:
    """Whether the text contains one of the stems."""
    for stem in stems:  # noqa: SIM110 - a generator takes twice the time
        if stem in text:
            return True
    return False


def filled(pattern: str, parts: Mapping[str, str]) -> str:
    """Replace each `{NAME}` by the part of this name."""
    return _PART.sub(lambda name: filled(parts[name[1]], parts), pattern)


WORDS = {
    word: Code[code]
    for code, words in ENGLISH["vocabulary"].items()
    for word in words.split()
}
PHRASES = [
    (Code[code], filled("".join(lines), ENGLISH["parts"]))
    for code, *lines in ENGLISH["phrases"]
]
SIGNS = [(Code[code], pattern) for code, pattern in ENGLISH["signs"]]

# Of other languages
_STEMS = tuple(
    chain.from_iterable(language["claim_stems"] for language in _LANGUAGES.values())
)
_ASCII_STEMS = tuple(filter(str.isascii, _STEMS))
_WORDS = {
    name: frozenset(data["words"].split())
    for name, data in _LANGUAGES.items()
    if "words" in data
}
_LETTERS = {
    name: re.compile(data["letters"])
    for name, data in _LANGUAGES.items()
    if "letters" in data
}
_ALL_WORDS = frozenset(chain.from_iterable(_WORDS.values()))


def has_claim_stem(text: str) -> bool:
    """Whether a text in lower case has a `claim_stem` of any language but English."""
    return has_any(text, _ASCII_STEMS if text.isascii() else _STEMS)


def language_of(text: str) -> str | None:
    """The code of the language of a text in lower case; None if it's English or another."""
    if not text.isascii():
        for name, letter in _LETTERS.items():
            if letter.search(text):
                return name
    words = text.translate(_TO_BLANKS).split()
    if _ALL_WORDS.isdisjoint(words):
        return None
    return max(_WORDS, key=lambda name: len(_WORDS[name].intersection(words)))


def foreign_phrases(language: str, gap: str) -> list[tuple[Code, str]]:
    """Each code with a pattern for its phrases in a language; `gap` matches blanks between words."""
    about = _LANGUAGES[language]
    blank = gap
    end = r"(?!\w)"
    if about.get("unspaced"):
        blank = "[ ]*+"
        end = ""
    phrases = []
    for name, patterns in about["phrases"].items():
        pattern = _bounded("|".join(patterns)).replace(" ", blank)
        phrases.append((Code[name], f"(?:{pattern}){end}"))
    return phrases


def _bounded(pattern: str) -> str:
    """The pattern with bounded runs of letters, so that reading takes linear time."""
    pattern = pattern.replace(r"\S", r"[^\s\x01\x02]")
    return re.sub(
        r"(\\w|\\x02])([*+])",
        lambda run: f"{run[1]}{{{int(run[2] == '+')},20}}",
        pattern,
    )
