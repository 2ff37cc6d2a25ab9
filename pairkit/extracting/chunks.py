"""Documents as chunks for a search: whole paragraphs, code and tables below their path of headings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest

from pairkit.extracting.documents import Document
from pairkit.extracting.html_blocks import Block, opening_text, sentence_ends

CountTokens = Callable[[Sequence[str]], Sequence[int]]
"""The number of tokens of each text, without special tokens."""
_TITLE_SHARE = 4  # at most this part of a chunk is its title
_OVERLAP_SHARE = 8  # and this part repeats the end of the chunk before
_HEADER_SHARE = 16  # and of a table that is cut, its first row
_RESERVED = 4  # tokens that joining texts may add
_BETWEEN = " > "
_LINED = ("code", "table")  # blocks that are cut between lines


@dataclass(frozen=True)
class Chunk:
    """Part of a document; `title` is the path of headings above it."""

    title: str
    text: str
    anchor: str
    first: int  # line, page or paragraph
    last: int


@dataclass(frozen=True)
class _Piece:
    """A block, or part of a long one."""

    block: Block
    tokens: int


def split_into_chunks(
    document: Document, count_tokens: CountTokens, max_tokens: int
) -> Iterator[Chunk]:
    """The chunks of a document, of at most `max_tokens` tokens with their titles.

    The chunks of a section overlap by sentences. Code and tables are whole if a chunk can contain them; each
    part of a longer table begins with its first row.
    """
    sections = groupby(_content(document), lambda block: (block.path, block.anchor))
    for (path, anchor), section in sections:
        blocks = list(section)
        title = _title(document, path, count_tokens, max_tokens // _TITLE_SHARE)
        (title_tokens,) = count_tokens([title])
        budget = max_tokens - title_tokens - _RESERVED
        texts = [block for block in blocks if block.kind != "heading"]
        if not texts:
            heading = blocks[0]
            yield Chunk(title, "", anchor, heading.first, heading.last)
        most = budget - budget // _OVERLAP_SHARE
        for pieces in _packed(_pieces(texts, count_tokens, most), budget):
            parts = [piece.block for piece in pieces]
            text = "\n\n".join(block.text for block in parts)
            last = max(block.last for block in parts)
            yield Chunk(title, text, anchor, parts[0].first, last)


def _content(document: Document) -> Iterator[Block]:
    """The blocks of a document without headings that the title of a chunk below them contains."""
    for block, following in zip_longest(document.blocks, document.blocks[1:]):
        depth = len(block.path)
        is_above = following is not None and following.path[:depth] == block.path
        if block.kind != "heading" or not is_above:
            yield block


def _title(
    document: Document,
    path: Sequence[str],
    count_tokens: CountTokens,
    most: int,
) -> str:
    """The headings that fit, from the last one back; the document's title if they don't begin with it."""
    name = document.title or ""
    headings = list(path)
    is_repeated = path and (path[0] in name or name in path[0])
    if name and not is_repeated:
        headings.insert(0, name)
    title = _BETWEEN.join(headings)
    (tokens,) = count_tokens([title])
    while tokens > most and len(title) > 1:
        if len(headings) > 1:
            del headings[0]
            title = _BETWEEN.join(headings)
        else:
            title = opening_text(title, len(title) * most // (tokens + 1))
        (tokens,) = count_tokens([title])
    return title


def _pieces(
    blocks: Sequence[Block], count_tokens: CountTokens, most: int
) -> list[_Piece]:
    """The blocks, long ones in parts of at most `most` tokens."""
    if not blocks:
        return []
    pieces = []
    token_counts = count_tokens([block.text for block in blocks])
    for block, tokens in zip(blocks, token_counts, strict=True):
        if tokens <= most or len(block.text) < 2:
            pieces.append(_Piece(block, tokens))
        else:
            pieces += _pieces(_halves(block), count_tokens, most)
    return pieces


def _halves(block: Block) -> list[Block]:
    """Two parts of a block, cut near its middle."""
    text = block.text
    is_lined = block.kind in _LINED
    cut = _middle(text, by_lines=is_lined)
    before = replace(block, text=text[:cut].rstrip())
    after = replace(block, text=text[cut:].strip("\n" if is_lined else None))
    if is_lined:
        last = min(block.first + before.text.count("\n"), block.last)
        before = replace(before, last=last)
        after = replace(after, first=min(last + 1, block.last))
        header, _, _ = before.text.partition("\n")
        if block.kind == "table" and len(header) * _HEADER_SHARE < len(text):
            after = replace(after, text=f"{header}\n{after.text}")
    return [part for part in (before, after) if part.text]


def _middle(text: str, *, by_lines: bool) -> int:
    """Where a text is cut: the end of a line or sentence near its middle, else a blank, else the middle."""
    middle = len(text) // 2
    margin = len(text) // 8
    inner = text[margin : len(text) - margin]
    if by_lines:
        ends = [place for place, letter in enumerate(inner) if letter == "\n"]
    else:
        ends = sentence_ends(inner)
    if not ends:
        ends = [blank.start() for blank in re.finditer(r"\s", inner)]
    cuts = [margin + end for end in ends]
    return min(cuts, key=lambda cut: abs(cut - middle), default=middle)


def _packed(pieces: Sequence[_Piece], budget: int) -> Iterator[list[_Piece]]:
    """Consecutive pieces of at most `budget` tokens together; the next ones begin with the last sentences."""
    chosen: list[_Piece] = []
    for piece in pieces:
        used = sum(chosen_piece.tokens for chosen_piece in chosen)
        if chosen and used + piece.tokens > budget:
            yield chosen
            chosen = _overlap(chosen[-1], budget // _OVERLAP_SHARE)
        chosen.append(piece)
    if chosen:
        yield chosen


def _overlap(piece: _Piece, most: int) -> list[_Piece]:
    """The last sentences of a piece of prose, of about `most` tokens; none if they are longer."""
    text = piece.block.text
    if piece.block.kind in _LINED:
        return []
    if piece.tokens <= most:
        return [piece]
    length = len(text)
    for end in sentence_ends(text):
        fits = (length - end) * piece.tokens <= most * length
        if fits and end < length:
            rest = replace(piece.block, text=text[end:].strip())
            return [_Piece(rest, most)]
    return []
