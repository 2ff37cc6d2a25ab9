"""The table rung: Markdown tables with one sentence a row."""

from __future__ import annotations

import re

from llm_labeler.parse import wording
from llm_labeler.parse.sentence import refine
from llm_labeler.parse.source import Source, tidy
from llm_labeler.records import Item

_RULE = re.compile(r"[ \t|:+-]+$")
_NOT_SENTENCES = re.compile(
    r"(?:original|input|source|given|#|no\b|number|id\b|explanation|note|reason|change|difference|type|原|输入|序号"
    r"|编号|说明|解释)",
    re.IGNORECASE,
)


def read_table(text: str, source: Source) -> list[Item] | None:
    """Items of the rows' last column of sentences and of the text around, in order; None without a table."""
    lines = text.split("\n")
    if not any(_is_row(line) for line in lines):
        return None
    rows = [_cells(line) if _is_row(line) else None for line in lines]
    rules = {place for place, row in enumerate(rows) if row is not None and _RULE.match(lines[place])}
    header = next((place - 1 for place in rules if place and rows[place - 1] is not None), None)
    if len([row for row in rows if row is not None]) - len(rules) < 2:
        return None
    column = _column(rows, rules, header)
    items: list[Item] = []
    for place, (line, row) in enumerate(zip(lines, rows, strict=True)):
        said = tidy(line)
        if row is None and said:
            items.append(Item(said, wording.aside(said, source, "outside_list")))
        elif row is not None and place == header:
            items.append(Item(said, "preamble"))
        elif row is not None and place not in rules:
            items += _row_items(row, column, source)
    return items


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|") and line.count("|") > 1


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _column(rows: list[list[str] | None], rules: set[int], header: int | None) -> int:
    """The last column with words, of those whose name is not against it."""
    names = (rows[header] or []) if header is not None else []
    body = [
        row for place, row in enumerate(rows) if row is not None and place not in rules and place != header
    ]
    width = max(len(row) for row in body)
    for column in reversed(range(width)):
        cells = [row[column] for row in body if column < len(row)]
        named_against = column < len(names) and _NOT_SENTENCES.match(names[column].strip("*_ "))
        if not named_against and any(character.isalpha() for cell in cells for character in cell):
            return column
    return width - 1


def _row_items(row: list[str], column: int, source: Source) -> list[Item]:
    items: list[Item] = []
    for place, cell in enumerate(row):
        if place == column:
            items += refine(cell, source)
        elif any(character.isalpha() for character in cell):
            items.append(Item(tidy(cell), "echo" if source.is_said_by(cell) else "side_field"))
    return items
