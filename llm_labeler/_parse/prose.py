"""The rungs without marks: blocks between blank lines, lines, the sentences of one paragraph."""

from __future__ import annotations

import re

from llm_labeler._parse import wording
from llm_labeler._parse.inline import separated
from llm_labeler._parse.labels import name_of
from llm_labeler._parse.names import role_of
from llm_labeler._parse.remarks import comments_on_sentence, is_word_pair
from llm_labeler._parse.sentence import refine
from llm_labeler._parse.source import Source, size_of, tidy
from llm_labeler._records import Item

_ENDED = (".", "!", "?", "。", ".”", '."', "”", '"', "」", "…", ":", ")")
# A run of stops is looked at from its first alone: from each, a long one would take its length squared.
_STOP = re.compile(
    r"(?<![.!?])[.!?]++[\"”’')\]]*+\s++(?=[\"“‘'(]?[^\Wa-z\d_])"
    r"|(?<![。!?])[。!?]++[”」』\"]*+\s*+(?=[^\sA-Za-z。!?”」』\"])"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|figs?|e\.g|i\.e|dr|mrs?|ms|prof|st|vs|etc|nos?|approx|cf|al|vol|pp?|eq|sec|ref|jr"
    r"|sr|inc|ltd|co|u\.s|spp?|var|max|min)\.$",
    re.IGNORECASE,
)
_SEVERAL_QUOTED = re.compile(r'"[^"]+"(?: ?[,;/|]? ?(?:and )?"[^"]+")+[.,]?')
_QUOTED = re.compile(r'"([^"]+)"')


def read_prose(text: str, source: Source, size: int | None) -> list[Item]:
    """Items of an answer without any list, in order."""
    blocks = _blocks(text)
    one_a_line = sum(len(block) for block in blocks) == size or _is_title(source.text)
    pieces = [piece for block in blocks for piece in _pieces(block, source, one_a_line)]
    pieces = _without_headings(_without_comments(pieces, source), source)
    sentences = [n for n, (_, reason) in enumerate(pieces) if reason is None]
    if len(sentences) == 1 and size != 1:
        n = sentences[0]
        if _answers(pieces[n][0], source):
            return [Item(piece, reason or "refusal") for piece, reason in pieces]
        pieces[n : n + 1] = [(piece, None) for piece in _divided(pieces[n][0], source, size)]
    return [
        item
        for piece, reason in pieces
        for item in (refine(piece, source) if reason in (None, "echo") else [Item(piece, reason)])
    ]


def _without_headings(pieces: list[tuple[str, str | None]], source: Source) -> list[tuple[str, str | None]]:
    """Pieces in which those far shorter than the source are none, where others are as long as sentences."""
    whole = [piece for piece, reason in pieces if reason is None and source.is_as_long_as(piece)]
    if len(whole) < 2:
        return pieces
    ended = source.text.endswith(_ENDED) and sum(piece.endswith(_ENDED) for piece in whole) > 1
    return [
        (piece, "outside_list" if reason is None and _is_heading(piece, source, ended) else reason)
        for piece, reason in pieces
    ]


def _is_heading(piece: str, source: Source, others_end: bool) -> bool:
    """Whether a piece is far shorter than the source, or shorter and, unlike the others, without an end."""
    is_open = others_end and not piece.endswith(_ENDED)
    if is_open and role_of(name_of(piece)) == "side":
        return True  # `Key words: old, slow`
    return 3 * size_of(piece) < (2 * source.size + 2 if is_open else source.size)


def _without_comments(pieces: list[tuple[str, str | None]], source: Source) -> list[tuple[str, str | None]]:
    """Pieces in which those that comment on the one before are none, where others don't."""
    marked: list[tuple[str, str | None]] = [
        (piece, "closing_note" if n and reason is None and comments_on_sentence(piece, source) else reason)
        for n, (piece, reason) in enumerate(pieces)
    ]
    return marked if any(reason is None for _, reason in marked) else pieces


def sentences_of(text: str) -> list[str]:
    """The sentences of a tidy text; an abbreviation's full stop doesn't end one."""
    found, start = [], 0
    for match in _STOP.finditer(text):
        end = match.end()
        before = text[max(start, match.start() - 12) : match.start() + 1]
        if not _ABBREVIATION.search(before):
            found.append(text[start:end].strip())
            start = end
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def _blocks(text: str) -> list[list[str]]:
    """Runs of lines that say something; blank lines and rules stand between them."""
    blocks: list[list[str]] = [[]]
    for line in text.split("\n"):
        if any(character.isalnum() for character in line):
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def _pieces(block: list[str], source: Source, one_a_line: bool) -> list[tuple[str, str | None]]:
    """Sentences of a block, each of one line or of a broken one's parts, and asides with their reasons."""
    pieces: list[tuple[list[str], str | None]] = []
    for line in block:
        said = tidy(line.lstrip("> \t"))
        reason = "outside_list" if is_word_pair(said, source) else wording.aside(said, source, None)
        above, above_reason = pieces[-1] if pieces else ([""], "preamble")
        if reason is None and above_reason in ("closing_note", "refusal"):
            reason = above_reason
        goes_on = reason == above_reason and reason != "echo"
        if reason is None and (one_a_line or above[-1].endswith(_ENDED) or not said[:1].islower()):
            goes_on = False
        if goes_on and pieces:
            above.append(said)
        else:
            pieces.append(([said], reason))
    return [(" ".join(lines), reason) for lines, reason in pieces]


def _answers(piece: str, source: Source) -> bool:
    """Whether a paragraph answers the question that it should rewrite: it has sentences, and none asks."""
    asks = source.text.endswith("?")
    return asks and "?" not in piece and len(sentences_of(piece)) > 1


def _is_title(text: str) -> bool:
    """Whether neither a capital nor a full stop tells where such a text begins and ends."""
    return not text.endswith(_ENDED) or text[:1].islower()


def _divided(piece: str, source: Source, size: int | None) -> list[str]:
    """A paragraph as several answers, each of as many sentences as the source has."""
    if _SEVERAL_QUOTED.fullmatch(piece):
        return [match[1] for match in _QUOTED.finditer(piece)]
    if (parts := separated(piece, source, size)) is not None:
        return parts
    width = max(len(sentences_of(source.text)), 1)
    found = sentences_of(piece)
    if len(found) <= width or len(found) % width or (width > 1 and len(found) // width != size):
        return [piece]
    return [" ".join(found[n : n + width]) for n in range(0, len(found), width)]
