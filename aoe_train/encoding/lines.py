"""Rows of text files, plain or gzipped, one at a time; whatever is wrong with one names its row."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pairkit.app.errors import DataError
from pairkit.system.lines import MAX_LINE_BYTES, read_objects, read_text_lines

Row = dict[str, Any]
TEXT = "text"  # what the one column of a text file is called


def text_rows(path: Path) -> Iterator[Row]:
    """A row a line."""
    return ({TEXT: line.rstrip("\r\n")} for line in _lines(path))


def tsv_rows(path: Path) -> Iterator[Row]:
    """One header line, no quoting: a quotation mark is a character."""
    return _named((line.rstrip("\r\n").split("\t") for line in _lines(path)), path)


def csv_rows(path: Path) -> Iterator[Row]:
    """One header line and the usual quoting; a quoted field may hold line breaks."""
    csv.field_size_limit(
        MAX_LINE_BYTES
    )  # the module's 128 KiB are few, and a quotation mark may lack its end
    return _named(csv.reader(_lines(path), strict=True), path)


def json_rows(path: Path) -> Iterator[Row]:
    """A JSON object a line."""
    return (row for _, row in read_objects(path))


READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".txt": text_rows,
    ".csv": csv_rows,
    ".tsv": tsv_rows,
    ".jsonl": json_rows,
    ".ndjson": json_rows,
}
"""By the end of a file's name, before any `.gz`."""


def _lines(path: Path) -> Iterator[str]:
    """Lines with their ends."""
    return (line for _, line in read_text_lines(path))


def _named(records: Iterator[list[str]], path: Path) -> Iterator[Row]:
    """Records under the names in the first one, which is row 1."""
    names: list[str] = []
    number = 0
    try:
        for number, record in enumerate(records, start=1):
            if number == 1:
                names = _unique(record, path)
            elif len(record) == len(names):
                yield dict(zip(names, record, strict=True))
            else:
                raise DataError(f"{len(record)} fields, the header has {len(names)}", path=path, row=number)
    except csv.Error as error:
        raise DataError(
            f"not readable as CSV ({error}); fix its quoting", path=path, row=number + 1
        ) from error


def _unique(names: list[str], path: Path) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two columns are called {name!r}; rename one", path=path, row=1)
    return names
