"""Several sentences in one line: `1) … 2) …`, `#1 … #2 …`, `①…②…`, `First, … Second, …`, `…; …; …`."""

from __future__ import annotations

import re
from unicodedata import numeric

from llm_labeler._parse import wording
from llm_labeler._parse.marks import letter_ordinals
from llm_labeler._parse.remarks import speaks_of_words
from llm_labeler._parse.source import Source, size_of, tidy
from llm_labeler._parse.usual import with_usual_marks

_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_BEGIN = r"(?:(?<=[\s.!?。;,:\"”’'」』)\]*_])|^)"
_NEXT = r"(?=[^\Wa-z\d_]|[\"“‘「『*'«„])"
# By kind; in each the group is the number. Where it could be the sentence's own, more must stand around it.
_MARKS = tuple(
    re.compile(pattern)
    for pattern in (
        r"([①-⑳❶-❿➀-➓⓵-⓾])\s*",
        r"(\d)\ufe0f?\u20e3\s*",
        _BEGIN + r"#(\d{1,2})[.):]?\s*",
        _BEGIN + r"[(\[](\d{1,2})[)\]][.:]?\s*",
        _BEGIN + r"(\d{1,2})\)\s*",
        r"(?:(?<=[.!?。;:,\"”’'」』)\]*]\s)|(?<=[.!?。;\"”」』)\]])|^)(\d{1,2})(?:[.、:/]|\.\))\s*" + _NEXT,
        _BEGIN + r"[(\[]([a-jA-J])[)\]]\s*",
        _BEGIN + r"([a-jA-J])\)\s+",
        _BEGIN + r"\(?([ivx]{1,4})\)\s+",
        r"(?:(?<=[.!?。;\"”,]\s)|^)(?:and )?(?i:("
        + "|".join(_ORDINALS)
        + r")(?:ly)?(?: (?:sentence|option|version|one))?[:,])\s+",
        r"(?:(?<=[.!?。;\"”,]\s)|^)(?i:(?:sentence |option |number )?(" + "|".join(_WORDS) + r"):)\s+",
        r"(?:(?<=[.!?。;\"”,]\s)|^)(?i:(?:sentence|option|version|synonym|antonym"
        r"|paraphrase) #?(\d{1,2})[:.])\s+",
    )
)
_MOST_PIECES = 20
_COMMA = re.compile(",")
_CAPITALS = re.compile(r",\s+(?=[^\Wa-z\d_])")
_SIGNS = tuple(
    re.compile(sign)
    for sign in (
        r";\s*",
        r" \| ",
        " / ",
        " // ",
        " • ",
        " · ",
        r"(?<=[.!?。]),\s*",
        r"(?<=[.!?。]) (?:--?|[–—]) ",
        "、",
    )
)
_CONJUNCTION = re.compile(r"^(?:and|or|und|oder|y|o|ou|et)\s++(?=\W*[A-Z])")


def with_inline_lists(lines: list[str], source: Source) -> list[str]:
    """`lines` with usual marks, and with each list in one line as lines `1. …`."""
    found: list[str] = []
    for line in with_usual_marks(lines, source):
        inline = _listed_inline(line, source)
        if inline is None:
            found.append(line)
        else:
            found += [inline[0]] if inline[0].strip() else []
            found += [f"{number}. {item}" for number, item in enumerate(inline[1], start=1)]
    return found


def _listed_inline(line: str, source: Source) -> tuple[str, list[str]] | None:
    """What stands before a list in one line, and its items; None if there is no such list."""
    best: tuple[str, list[str]] | None = None
    for pattern in _MARKS:
        found = _chain(pattern, line)
        if len(found) < 2 or (best is not None and len(found) <= len(best[1])):
            continue
        before = line[: found[0][0]].strip("*_ \t>-")
        if len(_chain(pattern, source.text)) > 1 or (before and not _introduces(before, source)):
            continue
        ends = [start for start, _ in found[1:]] + [len(line)]
        items = [line[end:stop].strip(" ,;") for (_, end), stop in zip(found, ends, strict=True)]
        if _are_whole(items, source) and len({_first_letter(item).islower() for item in items}) == 1:
            best = before, [_CONJUNCTION.sub("", item) for item in items]
    return best


def _introduces(before: str, source: Source) -> bool:
    return before.endswith((":", "!", ".", "。")) or wording.aside(tidy(before), source, None) is not None


def separated(text: str, source: Source, size: int | None) -> list[str] | None:
    """Sentences of a line that signs part, as many as were asked for or as long as the source; or None."""
    if size == 1:
        return None
    for sign in _SIGNS:
        if not source.lacks(sign):
            continue
        pieces = [piece.strip() for piece in sign.split(text.strip(" ;|"))]
        is_list = 1 < len(pieces) <= _MOST_PIECES and _are_whole(pieces, source)
        if is_list and not any(speaks_of_words(piece, source) for piece in pieces):
            return pieces
    pieces = _CAPITALS.split(text.strip())
    is_list = len(pieces) == size and source.lacks(_COMMA) and _are_whole(pieces, source)
    return pieces if is_list and all(piece[:1].isupper() for piece in pieces) else None


def _are_whole(pieces: list[str], source: Source) -> bool:
    return all(3 * size_of(piece) >= source.size and _first_letter(piece) for piece in pieces)


def _first_letter(item: str) -> str:
    return next((character for character in item if character.isalpha()), "")


def _chain(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """Where marks stand that count 1, 2, 3 …: begin and end of each."""
    found: list[tuple[int, int]] = []
    for match in pattern.finditer(text):
        ordinals = _ordinals(match[1])
        if len(found) + 1 in ordinals:
            found.append(match.span())
        elif 1 in ordinals:
            return []  # it counts twice, so one count is the sentence's own
    return found


def _ordinals(mark: str) -> list[int]:
    """What a mark can count as; nothing if it is none, as the `xx` of `(xx)`."""
    word = mark.lower()
    for names in (_WORDS, _ORDINALS):
        if word in names:
            return [names.index(word) + 1]
    if word.isascii() and word.isalpha():
        return letter_ordinals(word)
    return [int(numeric(mark)) if len(mark) == 1 else int(mark)]
