"""The table rung: rows of Markdown, CSV or TSV."""

from __future__ import annotations

import csv
import re

from llm_labeler._parse import wording
from llm_labeler._parse.names import polarity_of, role_of
from llm_labeler._parse.sentence import refine
from llm_labeler._parse.source import Source, size_of, tidy
from llm_labeler._records import Item, Polarity
from llm_labeler._scripts import is_translation

_MOST_CHARACTERS = 131_072  # of a line of CSV: the csv module's own limit, which others may change
_RULE = re.compile(r"[ \t|:+-]+$")
_ORDINAL = re.compile(r"\W*\d{1,3}\W*$")

Rows = list[list[str] | None]  # a line's cells; None: it is no row


def read_table(text: str, source: Source, polarity: Polarity | None) -> list[Item] | None:
    """Items of the columns of sentences and of the text around, in order; None without a table."""
    lines = text.rstrip().split("\n")
    rows = _of_pipes(lines, source) or _of_tabs(lines) or _of_csv(lines)
    if rows is None:
        return None
    rules = {place for place, row in enumerate(rows) if row is not None and _RULE.match(lines[place])}
    header = _header(rows, rules)
    body = [
        row for place, row in enumerate(rows) if row is not None and place not in rules and place != header
    ]
    if not body:
        return None
    columns = _columns((rows[header] or []) if header is not None else [], body, source, polarity)
    chosen = [row[c] for row in body for c, reason in columns.items() if reason is None and c < len(row)]
    if len(rows) > len(body) + 2 and not any(source.is_as_long_as(cell) for cell in chosen):
        return None  # a table of words beside the sentences
    spoken = {_polarity(row) for row in body}
    items: list[Item] = []
    for place, (line, row) in enumerate(zip(lines, rows, strict=True)):
        said = tidy(line)
        if row is None and said:
            items.append(Item(said, wording.aside(said, source, "outside_list")))
        elif row is not None and place == header:
            items.append(Item(said, "preamble"))
        elif row is not None and place not in rules:
            is_cut = place == len(rows) - 1 and _breaks_off(line, lines[:place])
            found = _row_items(row, columns, source)
            if polarity in spoken and _polarity(row) not in (None, polarity):
                found = [Item(item.text, item.reason or "other_polarity") for item in found]
            items += [Item(item.text, item.reason or "cut_off") for item in found] if is_cut else found
    return items


def _polarity(row: list[str]) -> Polarity | None:
    """The polarity that a short cell of a row speaks of."""
    return next((found for cell in row if size_of(cell) <= 2 and (found := polarity_of(cell))), None)


def _breaks_off(line: str, above: list[str]) -> bool:
    """Whether the last row lacks the bar that ends all others: the answer ended within it."""
    rows = [row.rstrip() for row in above if row.lstrip().startswith("|")]
    return bool(rows) and all(row.endswith("|") for row in rows) and not line.rstrip().endswith("|")


def _of_pipes(lines: list[str], source: Source) -> Rows | None:
    rows: Rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.count("|") > 1 and line.lstrip().startswith("|")
        else None
        for line in lines
    ]
    if not any(rows) and "|" not in source.text and any("|" in line and _RULE.match(line) for line in lines):
        rows = [[cell.strip() for cell in line.split("|")] if "|" in line else None for line in lines]
    told = [place for place, row in enumerate(rows) if row is not None and not _RULE.match(lines[place])]
    return rows if len(told) > 1 or (told and len(told) < sum(row is not None for row in rows)) else None


def _of_tabs(lines: list[str]) -> Rows | None:
    rows: Rows = [
        [cell.strip() for cell in line.split("\t")] if "\t" in line.strip() else None for line in lines
    ]
    widths = {len(row) for row in rows if row is not None}
    return rows if len(widths) == 1 and sum(row is not None for row in rows) > 1 else None


def _of_csv(lines: list[str]) -> Rows | None:
    """Lines that all have as many cells, of which some are quoted, or stand under names."""
    told = [line for line in lines if line.strip()]
    if len(told) < 2 or any("," not in line and ";" not in line for line in told[-2:]):
        return None
    for sign in (",", ";"):
        rows: Rows = [_cells(line, sign) if sign in line else None for line in lines]
        widths = {len(row) for row in rows if row is not None}
        kept = [row for row in rows if row is not None]
        if len(widths) != 1 or widths == {1} or len(kept) < 2:
            continue
        names = [role_of(name) for name in kept[0]]
        named = None not in names and "sentence" in names and all(size_of(name) < 4 for name in kept[0])
        quoted = sum('"' in line for line in told) >= len(told) - 1 and all(
            row[0].strip('" ').isdigit() for row in kept[1:]
        )
        if named or quoted:
            return rows
    return None


def _cells(line: str, sign: str) -> list[str]:
    if len(line) > _MOST_CHARACTERS:
        return [line]
    try:
        return next(csv.reader([line.strip()], delimiter=sign, skipinitialspace=True), [])
    except csv.Error:
        return [line]


def _header(rows: Rows, rules: set[int]) -> int | None:
    ruled = next((place - 1 for place in sorted(rules) if place and rows[place - 1] is not None), None)
    if ruled is not None:
        return ruled
    first = next((place for place, row in enumerate(rows) if row is not None), None)
    names = (rows[first] or []) if first is not None else []
    are_names = all(size_of(name) <= 3 and not name.endswith((".", "。")) for name in names)
    return first if are_names and any(role_of(name) for name in names) else None


def _columns(
    names: list[str], body: list[list[str]], source: Source, polarity: Polarity | None
) -> dict[int, str | None]:
    """By column: None for one of sentences, else the reason for which its cells are turned down."""
    width = max(len(row) for row in body)
    reasons: dict[int, str | None] = {}
    roles = [role_of(name.strip("*_` ")) for name in names]
    has_own = any(polarity_of(name) == polarity for name in names)
    unnamed: list[int] = []
    translations = _translations(body, width, source)
    for column in range(width):
        cells = [row[column] for row in body if column < len(row) and row[column]]
        role = roles[column] if column < len(roles) else None
        spoken = polarity_of(names[column]) if column < len(names) else None
        if not any(c.isalpha() for cell in cells for c in cell):
            reasons[column] = "side_field"
        elif role == "echo" or (cells and all(source.is_said_by(cell) for cell in cells)):
            reasons[column] = "echo"
        elif polarity and has_own and spoken not in (None, polarity):
            reasons[column] = "other_polarity"
        elif role == "side" or column in translations:
            reasons[column] = "side_field"
        elif role == "sentence":
            reasons[column] = None
        else:
            unnamed.append(column)
    if None in reasons.values():
        reasons |= dict.fromkeys(unnamed, "side_field")
    elif unnamed:
        reasons |= _of_unnamed(unnamed, body, source)
    else:  # only columns that seemed to be none: the last with words
        words = [
            c for c in range(width) if any(row[c : c + 1] and row[c].strip(" 0123456789.") for row in body)
        ]
        reasons[words[-1] if words else width - 1] = None
    return reasons


def _translations(body: list[list[str]], width: int, source: Source) -> set[int]:
    """Columns in another script than the source, where one of sentences is in the same."""
    texts = [" ".join(row[column] for row in body if column < len(row)) for column in range(width)]
    foreign = {column for column, text in enumerate(texts) if is_translation(text, source.text)}
    whole = (
        all(
            source.is_as_long_as(row[column]) and not source.is_said_by(row[column])
            for row in body
            if row[column:]
        )
        for column in range(width)
        if column not in foreign
    )
    return foreign if any(whole) else set()


def _of_unnamed(columns: list[int], body: list[list[str]], source: Source) -> dict[int, str | None]:
    """Of columns without names those whose cells are as long as sentences, the last one if none is."""
    whole = [
        column
        for column in columns
        if all(source.is_as_long_as(row[column]) for row in body if column < len(row) and row[column])
    ]
    named = (
        len(body) == 1
        or len(whole) < 2
        or all("".join(row[whole[0] : whole[0] + 1]).endswith((".", "!", "?", "。")) for row in body)
    )
    kept = whole if named else whole[:1]
    kept = kept or columns[-1:]
    return {column: None if column in kept else "side_field" for column in columns}


def _row_items(row: list[str], columns: dict[int, str | None], source: Source) -> list[Item]:
    items: list[Item] = []
    role = role_of(row[0].strip("*_` ")) if len(row) == 2 and size_of(row[0]) <= 3 else None
    for place, cell in enumerate(row):
        reason = columns.get(place)
        if not any(character.isalpha() for character in cell):
            continue
        if reason is None and role in ("echo", "side") and place:
            items.append(Item(tidy(cell), "echo" if role == "echo" else "side_field"))
        elif reason is None:
            items += refine(cell, source)
        else:
            items.append(Item(tidy(cell), "echo" if source.is_said_by(cell) else reason))
    return items
