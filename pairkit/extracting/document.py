"""A document, and its sections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pairkit.extracting.html_blocks import Block


@dataclass(frozen=True, slots=True)
class Document:
    """A document with its blocks, or with a question and answer of a table."""

    name: str
    blocks: tuple[Block, ...]
    title: str | None = None
    asked: tuple[str, str] | None = None
    row: int = 0  # of a table
    unit: str = "line"  # of the numbers of blocks
    url: str = ""

    def place(self, block: Block) -> str:
        """Where a block begins, such as "line 3"."""
        return f"{self.unit} {block.first}"

    @property
    def opening(self) -> list[Block]:
        """The paragraphs of the first section that has any; of several questions and answers, none."""
        questions = [block for block in self.blocks if block.kind == "question"]
        for section in self.sections():
            if section.paragraphs:
                is_faq = section.heading in questions and len(questions) > 1
                return [] if is_faq else section.paragraphs
        return []

    def sections(self) -> Iterator[Section]:
        """Each heading or question with the paragraphs up to the next one."""
        section = Section(None)
        for block in self.blocks:
            if block.kind != "paragraph":
                yield section
                section = Section(block)
            else:
                section.paragraphs.append(block)
        yield section


@dataclass(frozen=True, slots=True)
class Section:
    """The paragraphs below a heading, or before the first heading."""

    heading: Block | None
    paragraphs: list[Block] = field(default_factory=list)
