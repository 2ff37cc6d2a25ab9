"""Read one table, whatever its format, and say plainly what is wrong with a file that isn't one."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

import polars as pl

from pairkit.arrow_stream import check_arrow_stream
from pairkit.errors import ConfigError, DataError
from pairkit.lines import (
    FREE_BYTES,
    MAX_RATIO,
    check_lines,
    is_gzipped,
    read_text_lines,
    read_whole,
    read_whole_lines,
)
from pairkit.parquet_sizes import FREE_VALUES, MAX_COLUMNS, MAX_VALUES_PER_BYTE, check_parquet
from pairkit.printable import one_line

SUFFIXES = (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".arrow")
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_TEXT = pl.String | pl.Categorical | pl.Enum


_CHECKS: dict[str, Callable[[IO[bytes], Path], object]] = {
    ".parquet": check_parquet,
    ".arrow": check_arrow_stream,
}
"""What a file holds, by its headers, before a library takes their word for it."""


class TextSizes:
    """Counts what a table's texts take: one long text may stand in ever so many rows.

    The file holds it once then, whoever reads the texts does not.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.begin()

    def begin(self) -> None:
        """Count anew."""
        self._bytes = 0

    def add(self, rows: pl.DataFrame) -> None:
        """Count these rows too.

        Raises:
            DataError: The texts are far longer than those of a file of such a size can be.
        """
        self._bytes += sum(
            int(text.cast(pl.String).str.len_bytes().cast(pl.Int64).sum()) for text in _texts(rows)
        )
        if self._bytes > FREE_BYTES and self._bytes > MAX_RATIO * self._path.stat().st_size:
            raise DataError(
                f"its texts are more than {MAX_RATIO} times its size: the same in too many rows; drop"
                " repeats",
                path=self._path,
            )


def is_table(path: Path) -> bool:
    """Whether the name is one of a table that `read_table` reads."""
    return _format(path) in SUFFIXES


def first_row(path: Path, *, header: bool = True) -> int:
    """The number of a table's first row as an editor or a spreadsheet counts: a header is row 1."""
    return 2 if header and _format(path) in _SEPARATORS else 1


def has_header(path: Path, columns: Mapping[str, str] | None) -> bool:
    """Whether the first line of a CSV or TSV file says what its columns are called.

    It doesn't where a person gives columns by their numbers, from 1, and that line has no such names.

    Args:
        path: A table; one of another format has names for its columns anyway.
        columns: Roles to names of columns.

    Raises:
        DataError: The file can't be read.
    """
    given = {*(columns or {}).values()} - {"none"}
    if not given or not all(name.isdecimal() for name in given) or _format(path) not in _SEPARATORS:
        return True
    _, first = next(read_text_lines(path), (1, ""))
    names = first.strip().split(_SEPARATORS[_format(path)])
    return given <= {name.strip('"') for name in names}


def read_table(path: Path, *, lines: bool = False, header: bool = True) -> pl.DataFrame:
    """Read Parquet, JSON lines, a JSON array of objects, CSV, TSV or an Arrow stream, each also as `.gz`.

    CSV follows the usual quoting. TSV has no quoting: a quotation mark is a character. Every column of both
    is text, named by the first line, or where there is no `header` by its number, from 1. With `lines` it is
    a text file, and each line a row of the column `text`: only a line feed ends one, as other marks may stand
    inside a text.

    Raises:
        ConfigError: The suffix is none of these.
        DataError: The file can't be read as what its suffix says.
    """
    if lines:
        texts = [line.removesuffix("\n").removesuffix("\r") for _, line in read_text_lines(path)]
        return pl.DataFrame({"text": texts}, schema={"text": pl.String})
    suffix = _format(path)
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"{path}: unknown kind of file {suffix!r}; give {', '.join(SUFFIXES)}, each also as .gz"
        )
    try:
        table = _read(_source(path, suffix), suffix, header=header)
    except FileNotFoundError as error:
        raise DataError("no such file", path=path) from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = one_line(str(error).split("\n")[0], 200)
        raise DataError(
            f"not readable as {suffix[1:]} ({reason}); fix or convert the file", path=path
        ) from error
    if suffix in (".parquet", ".arrow"):
        TextSizes(path).add(table)
    return table


def _format(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _source(path: Path, suffix: str) -> Path | io.BytesIO:
    """What polars is to read: the file itself, or its bytes, after its lines were seen to have an end."""
    if suffix == ".json":
        return io.BytesIO(read_whole(path, remedy="put an object on each line and name it .jsonl"))
    if suffix in _CHECKS:
        return _checked(path, _CHECKS[suffix])
    if suffix in _SEPARATORS and not is_gzipped(path):
        check_lines(path)
        return path
    lines = read_whole_lines(path)
    if suffix in (".jsonl", ".ndjson"):
        _check_keys(lines, path)
    return io.BytesIO(lines)


def _checked(path: Path, check: Callable[[IO[bytes], Path], object]) -> Path | io.BytesIO:
    if is_gzipped(path):
        whole = io.BytesIO(read_whole(path, remedy="unpack it"))
        check(whole, path)
        whole.seek(0)
        return whole
    with path.open("rb") as file:
        check(file, path)
    return path


def _check_keys(lines: bytes, path: Path) -> None:
    """Refuse lines of ever other keys: each key would be a column, in which each line has a value."""
    types = pl.scan_ndjson(io.BytesIO(lines), infer_schema_length=None).collect_schema().dtypes()
    keys, rows = sum(_fields(dtype) for dtype in types), lines.count(b"\n") + 1
    if keys > MAX_COLUMNS or keys * rows > max(FREE_VALUES, MAX_VALUES_PER_BYTE * len(lines)):
        raise DataError(
            f"has {keys:,} different keys in {rows:,} lines; expected much the same in every line", path=path
        )


def _fields(dtype: object) -> int:
    """How many columns a column stands for."""
    if isinstance(dtype, pl.Struct):
        return 1 + sum(_fields(field.dtype) for field in dtype.fields)
    return 1 + _fields(dtype.inner) if isinstance(dtype, pl.List) else 1


def _texts(table: pl.DataFrame) -> Iterator[pl.Series]:
    """Its columns of texts, and the texts of its columns of lists."""
    for column in table.iter_columns():
        dtype = column.dtype
        if isinstance(dtype, _TEXT):
            yield column
        elif isinstance(dtype, pl.List | pl.Array) and isinstance(dtype.inner, _TEXT):
            yield column.explode()


def _read(source: Path | io.BytesIO, suffix: str, *, header: bool) -> pl.DataFrame:
    # A path is to be taken literally, brackets and stars included; not every reader can be told so.
    if suffix == ".parquet":
        return pl.read_parquet(source, glob=False)
    if suffix == ".arrow":
        return pl.read_ipc_stream(source)
    if suffix in _SEPARATORS:
        table = pl.read_csv(
            source,
            has_header=header,
            separator=_SEPARATORS[suffix],
            quote_char=None if suffix == ".tsv" else '"',
            infer_schema=False,
            glob=False,
        )
        if not header:
            table.columns = [str(number) for number in range(1, table.width + 1)]
        return table
    if suffix == ".json":
        return pl.read_json(source, infer_schema_length=None)
    return pl.read_ndjson(source, infer_schema_length=None)
