"""Plain text as blocks: paragraphs with blank lines between them."""

from __future__ import annotations

from pairkit._mine.documents import Block


def plain_blocks(text: str) -> list[Block]:
    """The paragraphs."""
    blocks: list[Block] = []
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.strip():
            lines.append(line.strip())
        elif lines:
            blocks.append(Block("paragraph", "\n".join(lines), f"line {number - len(lines)}"))
            lines = []
    return blocks
