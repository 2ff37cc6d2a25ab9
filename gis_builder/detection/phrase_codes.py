"""Turn a masked text into sentences, each a string of lexicon codes with the spans of its tokens.

Sentences have a maximum length and a list of references is one token. So each rule spans a bounded number of
characters, and reading takes linear time for any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

from gis_builder.detection.issue_references import (
    REFERENCE_MARK,
    REST_OF_REFERENCE,
    UNSPACED,
    Reference,
)
from gis_builder.detection.lexicon import (
    PHRASES,
    SIGNS,
    WORDS,
    Code,
    code_pattern,
    foreign_phrases,
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


def _edit_distance(word: str, target: str) -> int:
    """Damerau-Levenshtein distance: insertions, deletions, substitutions and swaps of neighbours."""
    above: list[int] = []
    row = list(range(len(target) + 1))
    for i, letter in enumerate(word, 1):
        two_above = above
        above = row
        row = [i]
        for j, expected in enumerate(target, 1):
            substituted = above[j - 1]
            if letter != expected:
                substituted += 1
            cost = min(above[j] + 1, row[j - 1] + 1, substituted)
            can_swap = i > 1 and j > 1
            if can_swap and letter == target[j - 2] and word[i - 2] == expected:
                cost = min(cost, two_above[j - 2] + 1)
            row.append(cost)
    return row[-1]


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
    foreign = foreign_phrases(language, _GAP) if language else []
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
