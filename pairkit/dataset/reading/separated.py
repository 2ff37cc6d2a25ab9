"""Read CSV and TSV files. The rules are the same for every command.

- The separator of CSV is the most frequent of comma, semicolon, tab and bar in the first line that isn't
  blank, or the one in Excel's line `sep=;`.
- Cells in double quotes may have separators, line breaks, and quotation marks written twice. Other quotation
  marks are text; between tabs all are, unless the file quotes wherever it needs to.
- A row may lack its last cells. Cells beyond the header must be empty.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.base.system.machine import batched
from pairkit.base.system.text_lines import (
    MAX_LINE_BYTES,
    note_once,
    read_text_lines,
)
from pairkit.dataset.reading.untrusted_tables import check_width

_QUOTED = re.compile(r'"[^"]*"')
_SEPARATOR_HINT = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_BLANK = r"[\s\ufeff\u200b-\u200f\u2060]"
_BLANK_ENDS = re.compile(rf"^{_BLANK}+|(?<!{_BLANK}){_BLANK}+$")
_BLOCK = 8192  # rows that are held as Python objects
_MANY_COLUMNS = 1_000


def records(
    path: Path,
    broken: Callable[[DataError], None] | None = None,
    *,
    header: bool = True,
) -> Iterator[tuple[int, list[str]]]:
    """Records with their numbers, the header first; blank rows between others have no cells.

    Bad rows raise DataError; `broken` gets their errors instead. A bad header ends the records.
    """
    form = _form_of(path)
    first: list[str] = []
    blank = 0  # rows since the last record
    for row, cells, fault in _parsed(path, form):
        if not fault and not any(map(str.strip, cells)):
            blank += bool(first)
            continue
        yield from ((row - number, []) for number in range(blank, 0, -1))
        blank = 0
        if first:
            fault = fault or _fault_below(first, cells, form.separator, header=header)
        else:
            first = _without_empty_end(cells)
            check_width(len(first), path)
        if not fault:
            yield row, cells[: len(first)]
            continue
        bad_row = DataError(fault, path=path, row=row)
        if broken is None:
            raise bad_row
        broken(bad_row)
        if not first:
            return


def named_records(
    path: Path, *, header: bool
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The column names, numbers from 1 if there is no header; and the records of rows."""
    rows = records(path, header=header)
    number, cells = next(rows, (1, []))
    if not header:
        names = [str(column) for column in range(1, len(cells) + 1)]
        return names, chain([(number, cells)], rows)
    repeated = [name for name, times in Counter(cells).items() if name and times > 1]
    if repeated:
        note_once(
            "%s: several columns are named %s; a number tells them apart",
            path,
            one_line(repeated[0]),
        )
    return column_names(cells), rows


def read_separated(path: Path, *, header: bool) -> pl.DataFrame:
    """The table of a file, with all values as texts, and null for empty cells."""
    names, rows = named_records(path, header=header)
    if not names:
        raise DataError(
            "is empty; expected a line with the names of the columns, then rows",
            path=path,
        )
    schema = dict.fromkeys(names, pl.String)
    blocks = [pl.DataFrame(schema=schema)]
    for block in batched((cells for _, cells in rows), _BLOCK):
        for cells in block:
            cells += [""] * (len(names) - len(cells))
        blocks.append(pl.DataFrame(block, schema, orient="row"))
    table = pl.concat(blocks)
    return table.with_columns(pl.when(pl.all() != "").then(pl.all()))


def column_names(names: Iterable[str]) -> list[str]:
    """Column names without blanks and invisible characters around them; each is unique and not empty."""
    unique = dict[str, None]()
    for number, raw in enumerate(names, 1):
        name = plain = _BLANK_ENDS.sub("", raw) or f"column_{number}"
        suffixes = count(2)
        while name in unique:
            name = f"{plain}_{next(suffixes)}"
        unique[name] = None
    return [*unique]


def _parsed(path: Path, form: _SeparatedForm) -> Iterator[tuple[int, list[str], str]]:
    """The number of each record, its cells, and the fault of one that can't be parsed."""
    # The default, 128 KiB, is too low; unclosed quotes need some limit.
    csv.field_size_limit(MAX_LINE_BYTES)
    reader = csv.reader(
        islice(_text_lines(path), form.skipped, None),
        delimiter=form.separator,
        skipinitialspace=form.is_padded,
        quoting=csv.QUOTE_MINIMAL if form.is_quoted else csv.QUOTE_NONE,
        strict=True,
    )
    for row in count(1):
        first_line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            fault = _explain_csv_error(error)
            if reader.line_num > first_line:
                fault = f"lines {first_line} to {reader.line_num}: {fault}"
            yield row, [], fault
            continue
        if cells is None:
            return
        yield row, cells, ""


def _without_empty_end(header: list[str]) -> list[str]:
    """A header without the thousands of empty cells that spreadsheets may add."""
    if len(header) > _MANY_COLUMNS:
        while not header[-1].strip():
            header.pop()
    return header


def _fault_below(
    first: Sequence[str], cells: Sequence[str], separator: str, *, header: bool
) -> str:
    """The fault of a row that repeats the header, or has texts beyond the last column; else empty."""
    if header and len(first) > 1 and cells[: len(first)] == first:
        return "repeats the first row, as in files that were joined; remove this row"
    extra = [cell for cell in cells[len(first) :] if cell.strip()]
    if not extra:
        return ""
    remedy = f"quote texts with {separator!r}"
    if len(first) == 1:
        remedy += ", or delete rows above the header"
    return (
        f"{len(cells)} cells, expected {len(first)}, so {one_line(extra[0], 40)!r} is"
        f" beyond the last column; {remedy}"
    )


class _SeparatedForm(NamedTuple):
    """How a file separates and quotes cells."""

    separator: str
    is_padded: bool  # blanks follow separators
    is_quoted: bool
    skipped: int  # lines up to Excel's hint at the separator


def _form_of(path: Path) -> _SeparatedForm:
    """The form of a file, by its name and its first line that isn't blank."""
    lines = enumerate(_text_lines(path), 1)
    number, line = next(((n, line) for n, line in lines if line.strip()), (0, ""))
    line = line.rstrip("\r\n")
    if "\0" in line:
        raise DataError(
            "has NUL characters, as in UTF-16 without a byte order mark; save it as UTF-8",
            path=path,
            row=number,
        )
    plain = _QUOTED.sub("", line)
    hint = _SEPARATOR_HINT.fullmatch(line)
    if hint:
        separator = hint[1]
    elif path.name.lower().removesuffix(".gz").endswith(".tsv"):
        separator = "\t"
    else:
        separator = max(",;\t|", key=plain.count)
    names = plain.split(separator)
    are_padded = len(names) > 1 and all(name.startswith(" ") for name in names[1:])
    return _SeparatedForm(
        separator,
        is_padded=are_padded and separator != "\t",
        is_quoted=separator != "\t" or _quotes_between_tabs(path),
        skipped=number if hint else 0,
    )


def _quotes_between_tabs(path: Path) -> bool:
    """Whether a file with tabs quotes cells: all that begin with a mark end with one, and some need it."""
    opens_cells = False
    needs_quotes = next(_text_lines(path), "").startswith('"')
    tabs = set()
    for line in _text_lines(path):
        if not line.isspace():
            tabs.add(line.count("\t"))
        if '"' in line:
            opens_cells |= '\t"' in f"\t{line}"
            needs_quotes |= '""' in line
    # If each line is a row, a mark may open speech which ends in a later row.
    if not opens_cells or (not needs_quotes and len(tabs) == 1):
        return False
    width = 0
    try:
        for cells in csv.reader(_text_lines(path), csv.excel_tab, strict=True):
            width = width or len(cells)
            if len(cells) > width:
                return False
            needs_quotes |= any("\t" in cell or "\n" in cell for cell in cells)
    except csv.Error:
        return False
    return needs_quotes


def _text_lines(path: Path) -> Iterator[str]:
    """Lines with their ends, which may be lone carriage returns."""
    for _, line in read_text_lines(path):
        if "\r" in line and "\r" in line.rstrip("\r\n"):
            yield from re.findall(r"[^\r]*\r+\n?|[^\r]+", line)
        else:
            yield line


def _explain_csv_error(error: csv.Error) -> str:
    if "after" in str(error):
        return r'text after a quoted cell; inside of quotation marks write a quotation mark as "", not as \"'
    return 'a quotation mark opens a cell and no mark closes it; close it, or quote the cell and write it as ""'
