"""What a document is, whatever it was written in: blocks of text in order, with headings and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

_QUESTION_CHARS = 300
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'(]?[A-Z0-9])")


@dataclass(frozen=True, slots=True)
class Link:
    """The words of a link, and where it leads, as the document writes it."""

    words: str
    target: str


@dataclass(frozen=True, slots=True)
class Block:
    """A heading or a paragraph.

    Attributes:
        kind: Which of both; an item of a list is a paragraph.
        text: Its words; a line end of the source is one here.
        place: Where it stands, such as `line 12`.
        links: Those within it.
    """

    kind: Literal["heading", "paragraph"]
    text: str
    place: str
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its parts.

    Attributes:
        name: By which it is known: a path below the folder, or `table:row`.
        blocks: Its blocks in order.
        title: What it is called; None where nothing says it.
        asked: A question and its answer, where columns of a table are these.
        place: Of a row in its table.
    """

    name: str
    blocks: tuple[Block, ...]
    title: str | None = None
    asked: tuple[str, str] | None = None
    place: str = ""

    @property
    def paragraphs(self) -> list[Block]:
        """The blocks that are no headings."""
        return [block for block in self.blocks if block.kind == "paragraph"]

    @property
    def opening(self) -> list[Block]:
        """The paragraphs of the first section that has any."""
        return next((section.paragraphs for section in self.sections() if section.paragraphs), [])

    def sections(self) -> Iterator[Section]:
        """Each heading with the paragraphs up to the next one; those before the first have none.

        A paragraph that is a question heads a section, too.
        """
        section = Section(None)
        for block in self.blocks:
            if block.kind == "heading" or asks(block.text):
                yield section
                section = Section(block)
            else:
                section.paragraphs.append(block)
        yield section


@dataclass(frozen=True, slots=True)
class Section:
    """What stands below a heading, or before the first one."""

    heading: Block | None
    paragraphs: list[Block] = field(default_factory=list)


def asks(text: str) -> bool:
    """Whether a text is one question, and no paragraph that ends with one."""
    line = tidy(text)
    return line.endswith("?") and len(line) <= _QUESTION_CHARS and len(sentences(line)) == 1


def tidy(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def sentences(text: str) -> list[str]:
    """The sentences of a text, by marks that end one before a capital or a digit."""
    return _SENTENCE_END.split(tidy(text))


def beginning(text: str, most: int) -> str:
    """The first whole sentences of a text that together have at most so many characters, else whole words."""
    line = tidy(text)
    if len(line) <= most:
        return line
    ends = [end.start() for end in _SENTENCE_END.finditer(line, 0, most + 1)]
    if ends:
        return line[: ends[-1]]
    words, space, _ = line[: most + 1].rpartition(" ")
    return words if space else line[:most]
