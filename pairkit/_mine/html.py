"""HTML as blocks, in one pass over its tags.

Python's own parser takes quadratic time over tags that don't end, minutes for a few hundred kilobytes. Here
a tag ends before the next `<`, so that no character is looked at twice, and what is no tag is text.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Literal

from pairkit._mine.documents import Block, Link, tidy

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s|/)[^<>]*)?>|<!--|<[!?][^<>]*>")
_HREF = re.compile(r"""\shref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary"))
_OTHERS = frozenset(
    (
        *("p", "li", "dd", "blockquote", "div", "section", "article", "main", "body", "header"),
        *("ul", "ol", "dl", "hr", "figure", "figcaption", "details"),
    )
)
_LEFT_OUT = frozenset(
    (
        *("script", "style", "noscript", "template", "svg", "nav", "footer", "aside", "table", "pre"),
        *("form", "textarea", "select", "button"),
    )
)
_RAW = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "textarea", "title")}
"""What looks like a tag in these is none."""


def html_blocks(text: str) -> tuple[str | None, list[Block]]:
    """The title, and headings and paragraphs; code, tables, navigation and forms are left out."""
    reader = _Reader()
    at = 0
    while (tag := _TAG.search(text, at)) is not None:
        reader.take(text[at : tag.start()])
        at = tag.end()
        reader.line += tag[0].count("\n")
        if tag[0] == "<!--":
            end = text.find("-->", at)
            at = len(text) if end < 0 else end + 3
            reader.line += text.count("\n", tag.end(), at)
        elif tag[2]:
            name = tag[2].lower()
            reader.tag(name, tag[3] or "", closes=bool(tag[1]))
            if name in _RAW and not tag[1]:
                ending = _RAW[name].search(text, at)
                end = ending.start() if ending else len(text)
                reader.take(text[at:end])
                at = end
    reader.take(text[at:])
    reader.end_block()
    first = next((block.text for block in reader.blocks if block.kind == "heading"), None)
    return tidy(reader.title) or first, reader.blocks


class _Reader:
    """Gathers words into blocks while tags go by."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.title = ""
        self.line = 1
        self._kind: Literal["heading", "paragraph"] = "paragraph"
        self._words: list[str] = []
        self._begun: int | None = None  # the line where the block's words begin
        self._links: list[Link] = []
        self._link: tuple[int, str] | None = None  # where its words begin, and where it leads
        self._left_out: tuple[str, int] | None = None  # the tag whose content is left out, and how deep
        self._in_title = False

    def take(self, words: str) -> None:
        """Words between two tags."""
        if self._in_title:
            self.title += unescape(words)
        elif self._left_out is None:
            if self._begun is None and words.strip():
                self._begun = self.line + words[: len(words) - len(words.lstrip())].count("\n")
            self._words.append(unescape(words).replace("\n", " "))
        self.line += words.count("\n")

    def tag(self, name: str, attributes: str, *, closes: bool) -> None:
        """A tag that opens or closes something."""
        if self._left_out is not None:
            outer, depth = self._left_out
            depth += (name == outer) * (-1 if closes else 1)
            self._left_out = (outer, depth) if depth else None
        elif name == "title":
            self._in_title = not closes and not self.title
        elif name in _LEFT_OUT and not closes:
            self.end_block()
            self._left_out = None if attributes.endswith("/") else (name, 1)
        elif name in _HEADINGS or name in _OTHERS:
            self.end_block()
            self._kind = "heading" if name in _HEADINGS and not closes else "paragraph"
        elif name == "br":
            self._words.append("\n")
        elif name == "a":
            self._end_link()
            if not closes and (href := _HREF.search(attributes)) is not None:
                self._link = len(self._words), unescape(href[1] or href[2] or href[3] or "")

    def end_block(self) -> None:
        """What was gathered is a block."""
        self._end_link()
        text = "\n".join(filter(None, map(tidy, "".join(self._words).split("\n"))))
        if text:
            self.blocks.append(
                Block(self._kind, text, f"line {self._begun or self.line}", tuple(self._links))
            )
        self._words, self._links, self._kind, self._begun = [], [], "paragraph", None

    def _end_link(self) -> None:
        if self._link is not None:
            begun, target = self._link
            self._links.append(Link("".join(self._words[begun:]), target))
            self._link = None
