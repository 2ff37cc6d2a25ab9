"""Read CSV and TSV files. The rules are the same for every command.

- The separator of CSV is the most frequent of comma, semicolon, tab and bar in the first line, or the one in
  Excel's line `sep=;`.
- Cells in double quotes may have separators, line breaks, and quotation marks written twice. Other quotation
  marks are text; between tabs all are, unless the file quotes wherever it needs to.
- A row may lack its last cells. Cells beyond the header must be empty.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.base.system.text_lines import MAX_LINE_BYTES, note_once, read_text_lines, read_whole
from pairkit.dataset.parquet import POLARS_ERRORS
from pairkit.dataset.reading.untrusted_tables import check_width

_QUOTED = re.compile(r'"[^"]*"')
_OPENS_CELL = re.compile(r'(?:^|\t)"')
_HINT = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_NO_NAME = re.compile(r"^[\s\ufeff\u200b-\u200f\u2060]+|[\s\ufeff\u200b-\u200f\u2060]+$")
_BLOCK = 8192  # rows that are held as Python objects
_WIDE = 1_000  # columns


def records(
    path: Path, broken: Callable[[DataError], None] | None = None, *, header: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Records with numbers from 1, the header; blank lines have no cells. `broken` gets their errors."""
    reader, first, blank = _reader(path), list[str](), 0
    for row in count(1):
        fault, first_line = "", reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            lines = f"lines {first_line} to {reader.line_num}: " if reader.line_num > first_line else ""
            fault, cells = f"{lines}{_in_words(error)}", []
        if cells is None:
            return
        if not (fault or any(map(str.strip, cells))):
            blank += bool(first)
            continue
        if not first:
            _check_header(cells, path)
            first = cells
        if len(cells) > len(first):
            further = [cell for cell in cells[len(first) :] if cell.strip()]
            del cells[len(first) :]
            if further:
                fault = (
                    f"{len(first) + len(further)} cells, expected {len(first)}, so"
                    f" {one_line(further[0], 40)!r} is beyond the last column; quote texts with"
                    f" {reader.dialect.delimiter!r}{', or delete rows above the header' * (len(first) == 1)}"
                )
        if header and cells == first and cells is not first and len(cells) > 1:
            fault = "repeats the first row, as in files that were joined; remove this row"
        if fault:
            if broken is None:
                raise DataError(fault, path=path, row=row)
            broken(DataError(fault, path=path, row=row))
            continue
        yield from ((row - number, []) for number in range(blank, 0, -1))
        blank = 0
        yield row, cells


def _check_header(cells: list[str], path: Path) -> None:
    """Remove the thousands of empty cells that spreadsheets add, and check the number of columns."""
    if len(cells) > _WIDE:
        used = [number for number, cell in enumerate(cells, 1) if cell.strip()]
        del cells[used[-1] :]
    check_width(len(cells), path)


def named_records(path: Path, *, header: bool) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The column names, numbers from 1 if there is no header; and the records of rows."""
    rows = records(path, header=header)
    first = next(rows, (1, []))
    if not header:
        return [str(number) for number in range(1, len(first[1]) + 1)], chain([first], rows)
    if repeated := next((name for name, times in Counter(first[1]).items() if name and times > 1), None):
        note_once("%s: several columns are named %s; a number tells them apart", path, one_line(repeated))
    return column_names(first[1]), rows


def read_separated(path: Path, *, header: bool) -> pl.DataFrame:
    """The table of a file, with all values as texts, and null for empty cells."""
    names, rows = named_records(path, header=header)
    if not names:
        raise DataError("is empty; expected a line with the names of the columns, then rows", path=path)
    if not header or (table := _read_by_polars(path, names)) is None:
        schema = dict.fromkeys(names, pl.String)
        blocks = [pl.DataFrame(schema=schema)]
        while block := [cells + [""] * (len(names) - len(cells)) for _, cells in islice(rows, _BLOCK)]:
            blocks.append(pl.DataFrame(block, schema, orient="row"))
        table = pl.concat(blocks)
    return table.select(pl.when(pl.col(name) != "").then(pl.col(name)) for name in names)


def _read_by_polars(path: Path, names: list[str]) -> pl.DataFrame | None:
    """The table, read twice as fast or more; None if polars' rules may give other rows than `records`."""
    separator, padded, _ = _separator(path)
    try:
        data = read_whole(path, as_utf8=True).removeprefix(codecs.BOM_UTF8)
        text = np.frombuffer(b"\n%b\n" % data, np.uint8)
        marks, ends = np.flatnonzero(text == ord('"')), [*f'{separator}\n"'.encode()]
        # Pairs of marks that begin and end a cell, or are next to another mark.
        is_plain = len(marks) % 2 == 0 and np.isin(text[marks[::2] - 1], ends).all()
        is_plain &= np.isin(text[marks[1::2] + 1], [*ends, ord("\r")]).all()
        is_plain &= data.count(b"\r") == data.count(b"\r\n") and not (separator == "\t" and len(marks))
        if not is_plain or padded:
            return None
        schema = dict.fromkeys(names, pl.String)
        table = pl.read_csv(data, has_header=False, separator=separator, schema=schema)
    except (*POLARS_ERRORS, DataError, ValueError):
        return None
    cells = pl.all().fill_null("")
    is_blank = ~pl.any_horizontal(cells.str.contains(r"[^\s\x1c-\x1f]"))
    is_header, size = pl.all_horizontal(cells == cells.first()), pl.sum_horizontal(cells.str.len_bytes())
    is_odd = is_blank.any() | (is_header.sum() > 1) | (size.max() > MAX_LINE_BYTES // 4)
    has_names = column_names(cell or "" for cell in table.row(0)) == names
    return None if table.select(is_odd).item() or not has_names else table[1:]


def column_names(names: Iterable[str]) -> list[str]:
    """Column names without blanks and invisible characters around them; each is unique and not empty."""
    unique = dict[str, None]()
    for number, raw in enumerate(names, 1):
        name = plain = _NO_NAME.sub("", raw) or f"column_{number}"
        others = count(2)
        while name in unique:
            name = f"{plain}_{next(others)}"
        unique[name] = None
    return [*unique]


def _reader(path: Path) -> Any:
    """A `csv.reader` with the rules of a file."""
    csv.field_size_limit(MAX_LINE_BYTES)  # not 128 KiB; still a limit for unclosed quotes
    separator, padded, has_hint = _separator(path)
    has_quotes = separator != "\t" or _is_quoted(path)
    return csv.reader(
        islice(_lines(path), has_hint, None),
        delimiter=separator,
        skipinitialspace=padded,
        quoting=csv.QUOTE_MINIMAL if has_quotes else csv.QUOTE_NONE,
        strict=True,
    )


def _separator(path: Path) -> tuple[str, bool, bool]:
    """The separator, whether blanks follow it, and whether the first line is Excel's hint at it."""
    first = next(read_text_lines(path), (1, ""))[1].split("\r")[0].rstrip("\n")
    if "\0" in first:
        raise DataError(
            "has NUL characters, as in UTF-16 without a byte order mark; save it as UTF-8", path=path, row=1
        )
    if path.name.lower().removesuffix(".gz").endswith(".tsv"):
        return "\t", False, False
    if hint := _HINT.fullmatch(first):
        return hint[1], False, True
    plain = _QUOTED.sub("", first)
    separator = max(",;\t|", key=plain.count)
    others = plain.split(separator)[1:]
    padded = separator != "\t" and bool(others) and all(name.startswith(" ") for name in others)
    return separator, padded, False


def _is_quoted(path: Path) -> bool:
    """Whether a file with tabs quotes cells: all that begin with a mark end with one, and some need it."""
    opens, needed, width = False, next(_lines(path), "").startswith('"'), 0
    for _, line in read_text_lines(path):
        if '"' in line:
            opens, needed = opens or bool(_OPENS_CELL.search(line)), needed or '""' in line
    if not opens:
        return False
    try:
        for cells in csv.reader(_lines(path), csv.excel_tab, strict=True):
            width = width or len(cells)
            needed = needed or any(mark in cell for cell in cells for mark in "\t\n")
            if len(cells) > width:
                return False
    except csv.Error:
        return False
    return needed


def _lines(path: Path) -> Iterator[str]:
    """Lines with their ends, which may be lone carriage returns."""
    for _, line in read_text_lines(path):
        if "\r" in line and "\r" in line[:-2].rstrip("\r"):
            yield from re.findall(r"[^\r]*\r+\n?|[^\r]+", line)
        else:
            yield line


def _in_words(error: csv.Error) -> str:
    if "after" in str(error):
        return r'text after a quoted cell; inside of quotation marks write a quotation mark as "", not as \"'
    return (
        'a quotation mark opens a cell and no mark closes it; close it, or quote the cell and write it as ""'
    )
