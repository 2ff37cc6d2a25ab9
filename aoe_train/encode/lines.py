"""Rows of text files, plain or gzipped, one at a time; whatever is wrong with one names its row."""

from __future__ import annotations

import csv
import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pairkit.errors import DataError

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
    csv.field_size_limit(sys.maxsize)  # a text may be longer than the module's 128 KiB
    return _named(csv.reader(_lines(path), strict=True), path)


def json_rows(path: Path) -> Iterator[Row]:
    """A JSON object a line."""
    for number, line in enumerate(_lines(path), start=1):
        try:
            row = json.loads(line)
            if "\\u" in line:
                json.dumps(row, ensure_ascii=False).encode()  # an escape may stand for half a character
        except ValueError as error:
            raise DataError(f"no JSON ({error}); expected an object a line", path=path, row=number) from error
        if not isinstance(row, dict):
            raise DataError(f"{type(row).__name__}, expected a JSON object", path=path, row=number)
        yield row


READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".txt": text_rows,
    ".csv": csv_rows,
    ".tsv": tsv_rows,
    ".jsonl": json_rows,
    ".ndjson": json_rows,
}
"""By the end of a file's name, before any `.gz`."""


def _lines(path: Path) -> Iterator[str]:
    """Lines with their ends; only a line feed ends one, as in most tools."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = _decoded(line, path, number)
                yield text.removeprefix("\ufeff") if number == 1 else text
    except FileNotFoundError as error:
        raise DataError("no such file", path=path) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"not readable ({error}); mend the file", path=path) from error


def _decoded(line: bytes, path: Path, number: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"not UTF-8 (byte 0x{line[error.start]:02x}); convert the file, such as with iconv -t UTF-8",
            path=path,
            row=number,
        ) from error


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
            f"not readable as CSV ({error}); mend its quoting", path=path, row=number + 1
        ) from error


def _unique(names: list[str], path: Path) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two columns are called {name!r}; rename one", path=path, row=1)
    return names
