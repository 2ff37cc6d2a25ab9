"""The code blocks of the documents."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.shorthand import ROOT, parametrize, text_lines

_DOCS = ROOT / "docs"
RUN = [
    ROOT / "README.md",
    *(
        _DOCS / name
        for name in text_lines("""
            start.md
            howto/duplicates.md
            howto/extend.md
            howto/faq.md
            howto/groups.md
            howto/python.md
            howto/mixtures.md
            howto/objectives.md
            howto/search.md
            howto/vector-databases.md
        """)
    ),
    *sorted((_DOCS / "tutorials").glob("*.md")),
]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

_FENCE = re.compile(r"^```(\w*)$")
_NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")


@dataclass(frozen=True)
class Block:
    """A code block; the comment above it has the reason `not_run`, or names results (`measured`)."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str | None
    measured: bool


def each_page(pages):
    """Run a test for each document."""
    return parametrize("page", pages, ids=lambda page: str(page.relative_to(ROOT)))


def blocks_of(page):
    """All blocks of a page, in order."""
    lines = page.read_text().splitlines()
    number = 0
    while number < len(lines):
        if fence := _FENCE.match(lines[number]):
            end = lines.index("```", number + 1)
            text = "".join(f"{line}\n" for line in lines[number + 1 : end])
            above = lines[number - 1] if number else ""
            reason = _NOT_RUN.match(above)
            measured = above.startswith("<!-- results: ")
            yield Block(
                page,
                number + 1,
                fence[1],
                text,
                reason[1] if reason else None,
                measured,
            )
            number = end
        number += 1


def without_figures(line):
    """A line of output without decimals, which differ between processors and are compared with results."""
    return re.sub(r"[+-]?\d+\.\d+", "#", line)


def to_run(page, language):
    """The blocks of a page in one language that run one after another."""
    return [
        block
        for block in blocks_of(page)
        if block.language == language and block.not_run is None
    ]


def shown(page, language):
    """The output that a page shows for one language; of a step in both languages it is the shell's."""
    lines = []
    ran = set()
    for block in blocks_of(page):
        if block.language == "text":
            if block.not_run is None and language == (
                "sh" if "sh" in ran else "python"
            ):
                texts = [" ".join(line.split()) for line in block.text.splitlines()]
                lines += (
                    [without_figures(text) for text in texts]
                    if block.measured
                    else texts
                )
            ran.clear()
        elif block.not_run is None:
            ran.add(block.language)
    return lines
