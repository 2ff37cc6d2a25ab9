"""Markdown as blocks, by markdown-it-py, which reads hostile texts in linear time."""

from __future__ import annotations

import re
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pairkit._mine.documents import Block, Link

# Tables are found so that they can be left out: a row of cells is no text.
_PARSER = MarkdownIt("commonmark").enable("table")
_FRONT = re.compile(r"---[ \t]*\r?\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_TITLE = "title:"


def markdown_blocks(text: str) -> tuple[str | None, list[Block]]:
    """The title, and headings and paragraphs; code, tables and HTML are left out.

    The title is that of the front matter, else the first heading.
    """
    front = _FRONT.match(text)
    skipped = 0 if front is None else text.count("\n", 0, front.end())
    blocks: list[Block] = []
    opened: list[str] = []
    for token in _PARSER.parse(text if front is None else text[front.end() :]):
        if token.nesting > 0:
            opened.append(token.type)
        elif token.nesting < 0:
            opened.pop()
        elif token.type == "inline" and "table_open" not in opened:
            words, links = _inline(token)
            place = f"line {skipped + 1 + (token.map[0] if token.map else 0)}"
            if words.strip():
                kind: Literal["heading", "paragraph"] = (
                    "heading" if opened[-1] == "heading_open" else "paragraph"
                )
                blocks.append(Block(kind, words, place, links))
    lines = [] if front is None else front[1].splitlines()
    title = next((line[len(_TITLE) :].strip(" \t\"'") for line in lines if line.startswith(_TITLE)), None)
    return title or next((block.text for block in blocks if block.kind == "heading"), None), blocks


def _inline(token: Token) -> tuple[str, tuple[Link, ...]]:
    """The words of a block, and the links among them; pictures have none."""
    words: list[str] = []
    links: list[Link] = []
    begun: tuple[int, str] | None = None
    for child in token.children or []:
        if child.type in ("text", "code_inline"):
            words.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            words.append("\n")
        elif child.type == "link_open":
            begun = len(words), str(child.attrGet("href") or "")
        elif child.type == "link_close" and begun is not None:
            links.append(Link("".join(words[begun[0] :]), begun[1]))
            begun = None
    return "".join(words), tuple(links)
