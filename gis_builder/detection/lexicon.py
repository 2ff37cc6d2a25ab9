"""Codes of words and phrases, and sentences as strings of these codes.

The words and phrases are in `languages/*.toml`, in lower case and by code. Phrases are regular expressions; a
blank in them matches a run of blanks with at most one line break, or also none if the language is `unspaced`.

A text is in the first language of which it has `letters`, or else of which it has the most `words`. A
`claim_stem` can make a claim without a reference.

Sentences have a maximum length and a list of references is one token. So each rule spans a bounded number of
characters, and reading takes linear time for any text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from gis_builder.detection.issue_references import (
    REFERENCE_MARK,
    REST_OF_REFERENCE,
    UNSPACED,
    Reference,
)

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


def _foreign_phrases(language: str) -> list[tuple[Code, str]]:
    """Each code with a pattern for its phrases in a language."""
    about = _LANGUAGES[language]
    blank = _GAP
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


Span = tuple[int, int]


# Words similar to "duplicate" that aren't typos of it.
_SIMILAR_WORDS = (
    "duplication duplicating duplicative duplicable duplicator duplicators duplicity duplicities"
    " deduplicate deduplicates deduplicated duplex duplices replicate"
)
_NO_TYPO = frozenset(_SIMILAR_WORDS.split())
# The word that a misspelling stands for, by its last letter; any other letter: the noun "duplicate".
_TYPO_OF = {
    "s": ("duplicates", Code.DUPLICATES),
    "d": ("duplicated", Code.DUPLICATED),
}
_MAX_EDITS = 2

_GAP = r"(?:[ \t]++(?:\n[ \t]*+)?|\n[ \t]*+)"
_WORD_END = r"(?![^\W_])"  # underscores are markup: "_won't fix_"
# Characters; longer sentences are data, not prose, and are read in pieces.
_MAX_SENTENCE = 4000
# "#1, #2 and also #3", in codes.
_REFERENCE_LIST = code_pattern(
    "REFERENCE (?:[COMMA AND]{1,3} ALSO? OF? ARTICLE? ISSUE? COMMA? REFERENCE"
    " | AND? ALSO? COMMA? ISSUE? REFERENCE)++"
)

# The stops come first and lookbehinds follow, so that the engine skips from stop to stop instead of looking
# behind at every character.
_SENTENCE_END = re.compile(
    r"[.!?;\n。！？；](?:"
    # A run of stops from its start, or after the stop of an abbreviation.
    r"(?<=[.!?;])(?:(?<![.!?;][.!?;])|(?<=\be\.g\..)|(?<=\bi\.e\..)|(?<=\bcf\..)|(?<=\betc\..)|(?<=\bvs\..))"
    r"(?<!\be\.g.)(?<!\bi\.e.)(?<!\bcf.)(?<!\betc.)(?<!\bvs.)"
    # "It's a known issue; see #1" is one statement.
    r"(?:(?<!known issue.)(?<!known bug.)(?<!known problem.)"
    rf"|(?!(?<=[.;])\s{{1,3}}(?:see|cf\.?) {REFERENCE_MARK}))"
    r"[.!?;]*+(?=[\s)\]*_\"']|\Z)[)\]*_\"']*+"
    r"|(?<=[。！？；])"
    r"|(?<=\n)(?:[ \t]*+\n\s*+|(?=[ \t]*+(?:[-*+]|\d{1,9}[.)])[ ]))"
    # "Duplicate of #1", and on the next line "Duplicate of #2"
    rf"|(?<=[{REFERENCE_MARK}{REST_OF_REFERENCE}]\n)(?=dup(?:licat)?e? of ))"
)

_CODE_OF_NAME = dict(Code.__members__)


@lru_cache(maxsize=1 << 16)
def code_of(word: str) -> Code:
    """The code of one lower-case word; misspellings of "duplicate" count as that word."""
    code = WORDS.get(word)
    if code:
        return code
    if word.endswith("n't"):
        return Code.NOT
    if word.endswith(("'s", "'re")):
        return Code.THIS if word in ("that's", "it's", "they're") else Code.WORD
    if "-dup" in word:
        before, _, last = word.rpartition("-")
        return Code.NOT if before == "non" else code_of(last)
    might_be_typo = word.startswith("d") and ("p" in word or "b" in word)
    if not might_be_typo or not 6 <= len(word) <= 12 or word in _NO_TYPO:
        return Code.WORD
    target, code = _TYPO_OF.get(word[-1], ("duplicate", Code.DUPLICATE))
    return code if _edit_distance(word, target) <= _MAX_EDITS else Code.WORD


@lru_cache(1 << 12)
def _edit_distance(word: str, target: str) -> int:
    """Damerau-Levenshtein distance: insertions, deletions, substitutions and swaps of neighbours."""
    if not word or not target:
        return len(word) + len(target)
    if word[-1] == target[-1]:
        return _edit_distance(word[:-1], target[:-1])
    shorter = [(word[:-1], target), (word, target[:-1]), (word[:-1], target[:-1])]
    if word[-2:] == target[:-3:-1]:
        shorter.append((word[:-2], target[:-2]))
    return 1 + min(_edit_distance(*ends) for ends in shorter)


def _phrases() -> list[str]:
    """Each phrase as a branch; its empty group is last, so that a wrong first letter ends the branch."""
    spaced = [
        f"(?:{rule.replace(' ', _GAP)}){_WORD_END}(?P<{code.name}_{i}>)"
        for i, (code, rule) in enumerate(PHRASES)
    ]
    return spaced + [
        f"(?:{rule})(?P<{code.name}_s{i}>)" for i, (code, rule) in enumerate(SIGNS)
    ]


@cache
def _token(language: str | None) -> re.Pattern[str]:
    """The pattern of a token; the phrases of another language come before the English."""
    letter = rf"(?:(?!{UNSPACED})[^\W_])" if language else r"[^\W_]"
    foreign = _foreign_phrases(language) if language else []
    branches = [
        rf"(?P<blank>[ \t]++|\[(?={REFERENCE_MARK}))",  # also the bracket of "[#12](...)"
        rf"(?P<REFERENCE_>{REFERENCE_MARK}{REST_OF_REFERENCE}*+)",
        *(
            f"{pattern}(?P<{code.name}_f{i}>)"
            for i, (code, pattern) in enumerate(foreign)
        ),
        *_phrases(),
        r"(?P<SEE_>(?:e\.g|i\.e|cf|etc|vs|approx|resp|incl)\.)",
        rf"(?P<WORD_>{UNSPACED})",
        rf"(?P<word>@?{letter}++(?:['.-]{letter}++)*+)",
        r"(?P<AND_>[&+/])",
        r"(?P<QUESTION_>\?)",
        r"(?P<COMMA_>[,:;()\[\]、，：（）—–\n]|(?<!-)-++(?=\s)|->|=>|→|⇒|…)",
    ]
    return re.compile("|".join(branches))


@dataclass(frozen=True, slots=True)
class CodedSentence:
    """A sentence: `codes[i]` is the code of the token at `spans[i]`; `references[i]` are its references."""

    codes: str
    spans: tuple[Span, ...]
    references: tuple[tuple[Reference, ...], ...]  # several if the token is a list
    is_question: bool
    is_foreign: bool = False


def sentence_spans(text: str) -> list[Span]:
    """The spans of the sentences; blank lines and list items also end a sentence."""
    spans = []
    start = 0
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    for end in (*ends, len(text)):
        for piece_start, piece_end in _pieces(text, start, end):
            if text[piece_start:piece_end].strip():
                spans.append((piece_start, piece_end))
        start = end
    return spans


def _pieces(text: str, start: int, end: int) -> Iterator[Span]:
    """Cut a sentence between words into pieces of the maximum length."""
    while end - start > _MAX_SENTENCE:
        blank = text.rfind(" ", start, start + _MAX_SENTENCE)
        cut = blank + 1 if blank > start else start + _MAX_SENTENCE
        yield start, cut
        start = cut
    yield start, end


def tokenise(
    text: str,
    span: Span,
    by_start: dict[int, Reference],
    language: str | None = None,
) -> CodedSentence:
    """Tokenise one sentence of a lower-case text with hidden references."""
    tokens = []
    for match in _token(language).finditer(text, *span):
        group = match.lastgroup or ""
        if group != "blank":
            reference = by_start.get(match.start())
            references = (reference,) if reference else ()
            tokens.append(_Token(_code(group, match), match.span(), references))
    _join_lists(tokens)
    codes = _codes_of(tokens)
    _, end = span
    is_foreign = language is not None
    last_signs = text[max(0, end - 4) : end]
    is_question = "?" in last_signs or "？" in last_signs[-2:]
    if is_foreign and Code.QUESTION in codes:
        is_question = True
    return CodedSentence(
        codes,
        tuple(token.span for token in tokens),
        tuple(token.references for token in tokens),
        is_question,
        is_foreign,
    )


class _Token(NamedTuple):
    code: str
    span: Span
    references: tuple[Reference, ...]


def _codes_of(tokens: Iterable[_Token]) -> str:
    return "".join(token.code for token in tokens)


def _join_lists(tokens: list[_Token]) -> None:
    """Replace each list of references by one token."""
    lists = list(_REFERENCE_LIST.finditer(_codes_of(tokens)))
    for match in reversed(lists):  # so that earlier places stay the same
        items = tokens[slice(*match.span())]
        start, _ = items[0].span
        _, end = items[-1].span
        references = tuple(chain(*(item.references for item in items)))
        tokens[slice(*match.span())] = [
            _Token(Code.REFERENCE, (start, end), references)
        ]


def _code(group: str, match: re.Match[str]) -> str:
    if group == "word":
        return code_of(match.group())
    return _CODE_OF_NAME[group.rpartition("_")[0]]
