"""Read one table, whatever its format, and say plainly what is wrong with a file that isn't one."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from pairkit.errors import ConfigError, DataError
from pairkit.lines import check_lines, is_gzipped, read_whole, read_whole_lines

SUFFIXES = (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv")


def is_table(path: Path) -> bool:
    """Whether the name is one of a table that `read_table` reads."""
    return _format(path) in SUFFIXES


def first_row(path: Path) -> int:
    """The number of a table's first row as an editor or a spreadsheet counts: a header is row 1."""
    return 2 if _format(path) in (".csv", ".tsv") else 1


def read_table(path: Path) -> pl.DataFrame:
    """Read Parquet, JSON lines, a JSON array of objects, CSV or TSV, each also as `.gz`.

    CSV follows the usual quoting. TSV has one header line and no quoting: a quotation mark is a character.
    Every column of both is text.

    Raises:
        ConfigError: The suffix is none of these.
        DataError: The file can't be read as what its suffix says.
    """
    suffix = _format(path)
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"{path}: unknown kind of file {suffix!r}; give {', '.join(SUFFIXES)}, each also as .gz"
        )
    try:
        return _read(_source(path, suffix), suffix)
    except FileNotFoundError as error:
        raise DataError("no such file", path=path) from error
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).split("\n")[0][:200]
        raise DataError(
            f"not readable as {suffix[1:]} ({reason}); mend or convert the file", path=path
        ) from error


def _format(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _source(path: Path, suffix: str) -> Path | io.BytesIO:
    """What polars is to read: the file itself, or its bytes, after its lines were seen to have an end."""
    if suffix == ".json":
        return io.BytesIO(read_whole(path, remedy="put an object on each line and name it .jsonl"))
    if suffix == ".parquet":
        return io.BytesIO(read_whole(path, remedy="unpack it")) if is_gzipped(path) else path
    if is_gzipped(path) or suffix not in (".csv", ".tsv"):
        return io.BytesIO(read_whole_lines(path))
    check_lines(path)
    return path


def _read(source: Path | io.BytesIO, suffix: str) -> pl.DataFrame:
    # A path is to be taken literally, brackets and stars included; not every reader can be told so.
    if suffix == ".parquet":
        return pl.read_parquet(source, glob=False)
    if suffix in (".csv", ".tsv"):
        return pl.read_csv(
            source,
            separator="\t" if suffix == ".tsv" else ",",
            quote_char=None if suffix == ".tsv" else '"',
            infer_schema=False,
            glob=False,
        )
    if suffix == ".json":
        return pl.read_json(source, infer_schema_length=None)
    return pl.read_ndjson(source, infer_schema_length=None)
