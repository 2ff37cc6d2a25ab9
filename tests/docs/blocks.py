"""The blocks of code in a page of the documents."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_DOCS = ROOT / "docs"
RUN = (
    *(ROOT / "README.md", _DOCS / "start.md", _DOCS / "howto" / "extend.md", _DOCS / "howto" / "python.md"),
    *sorted((_DOCS / "tutorials").glob("*.md")),
)
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

_TAB = re.compile(r'^=== "(.+)"$')
_FENCE = re.compile(r"^( *)```(\w*)$")
_NOT_RUN = re.compile(r"^ *<!-- not run: (.+) -->$")


@dataclass(frozen=True)
class Block:
    """One block: where it begins, its language and text, the tab that it is in, and why it is not run."""

    page: Path
    line: int
    language: str
    text: str
    tab: str | None
    not_run: str | None


def blocks_of(page: Path) -> Iterator[Block]:
    """All blocks of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    tab: str | None = None
    number = 0
    while number < len(lines):
        line = lines[number]
        if found := _TAB.match(line):
            tab = found[1]
        elif line and not line.startswith(" "):
            tab = None
        if fence := _FENCE.match(line):
            end = lines.index(f"{fence[1]}```", number + 1)
            text = textwrap.dedent("\n".join(lines[number + 1 : end])) + "\n"
            reason = _NOT_RUN.match(lines[number - 1]) if number else None
            yield Block(page, number + 1, fence[2], text, tab, reason[1] if reason else None)
            number = end
        number += 1


def to_run(page: Path, language: str) -> list[Block]:
    """The blocks of a page that run one after another, in one of its languages."""
    return [block for block in blocks_of(page) if block.language == language and block.not_run is None]
