"""Read a table of any supported format, with clear errors for invalid files."""

from __future__ import annotations

import io
import json
import re
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.dataset.table_limits import (
    FREE_VALUES,
    MAX_COLUMNS,
    MAX_VALUES_PER_BYTE,
    check_dictionaries,
    check_size,
    check_texts,
    shared_bytes,
)
from pairkit.system.folders import read_object
from pairkit.system.lines import (
    FREE_BYTES,
    MAX_RATIO,
    UNLIMITED,
    is_gzipped,
    open_regular,
    read_text_lines,
    read_whole,
)

SUFFIXES = (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".arrow")
_SEPARATED = (".csv", ".tsv")
_QUOTED = re.compile(r'"[^"]*"')


def is_table(path: Path) -> bool:
    """Whether `read_table` reads files of this name."""
    return _format(path) in SUFFIXES


def first_row(path: Path, *, header: bool = True) -> int:
    """The number of the first row as in an editor or spreadsheet, where a header is row 1."""
    return 2 if header and _format(path) in _SEPARATED else 1


def has_header(path: Path, columns: Mapping[str, str] | None) -> bool:
    """Whether a CSV or TSV file has a header; not if columns are given by numbers that aren't names."""
    given = {*(columns or {}).values()} - {"none"}
    if not given or not all(name.isdecimal() for name in given) or _format(path) not in _SEPARATED:
        return True
    names = _first_line(path).split(separator_of(path))
    return given <= {name.strip('"') for name in names}


def _first_line(path: Path) -> str:
    return next(read_text_lines(path), (1, ""))[1].strip()


def separator_of(path: Path) -> str:
    """The separator: in CSV the most frequent of comma, semicolon and tab in the first line."""
    if _format(path) == ".tsv":
        return "\t"
    return max(",;\t", key=_QUOTED.sub("", _first_line(path)).count)


def read_table(path: Path, *, lines: bool = False, header: bool = True) -> pl.DataFrame:
    """Read a table; with `lines` each line of a text file is a row of the column `text`."""
    if lines:
        texts = [line.removesuffix("\n").removesuffix("\r") for _, line in read_text_lines(path)]
        return pl.DataFrame({"text": texts}, schema={"text": pl.String})
    suffix = _format(path)
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"{path}: unknown file type {suffix!r}; give {', '.join(SUFFIXES)}, also gzipped (.gz)"
        )
    try:
        source = _source(path, suffix)
        mark = separator_of(path) if suffix in _SEPARATED else ""
        table = (
            _read_arrow(source, path) if suffix == ".arrow" else _read(source, suffix, mark, header=header)
        )
    except FileNotFoundError as error:
        raise DataError("no such file", path=path) from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = one_line(str(error).split("\n")[0], 200)
        if "utf-8" in reason.lower():  # raises an error with the row and a remedy
            deque(read_text_lines(path), maxlen=0)
        raise DataError(
            f"not readable as {suffix[1:]} ({reason}); fix or convert the file", path=path
        ) from error
    if suffix in (".parquet", ".arrow"):
        check_texts(table, path)
    return table


def _format(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _source(path: Path, suffix: str) -> Path | io.BytesIO:
    """The input for polars: the file, or its bytes within the limits."""
    if suffix == ".json":
        return io.BytesIO(read_whole(path, remedy="put an object on each line and name it .jsonl"))
    if suffix in (".parquet", ".arrow"):  # `_read_arrow` checks Arrow
        whole = io.BytesIO(read_whole(path, remedy="decompress it")) if is_gzipped(path) else None
        if suffix == ".parquet" and whole:
            check_dictionaries(whole, path)
            whole.seek(0)
        elif suffix == ".parquet":
            with path.open("rb") as file:
                check_dictionaries(file, path)
        return whole or path
    if suffix in _SEPARATED and not is_gzipped(path):
        with open_regular(path):
            return path
    lines = read_whole(path, UNLIMITED)
    if suffix in (".jsonl", ".ndjson"):
        _check_keys(lines, path)
    return io.BytesIO(lines)


def _read_arrow(source: Path | io.BytesIO, path: Path) -> pl.DataFrame:
    """An Arrow stream as written by `Dataset.save_to_disk`, memory-mapped unless gzipped."""
    import pyarrow as pa

    try:
        with (
            (
                pa.memory_map(str(source)) if isinstance(source, Path) else pa.BufferReader(source.getvalue())
            ) as file,
            pa.ipc.open_stream(file) as reader,
        ):
            size, rows, unpacked, shared, batches = file.size(), 0, 0, 0, []
            for batch in reader:
                rows += batch.num_rows
                unpacked += batch.get_total_buffer_size()
                if rows > max(FREE_VALUES, MAX_VALUES_PER_BYTE * size) or unpacked > max(
                    FREE_BYTES, MAX_RATIO * size
                ):
                    raise DataError(f"has {rows:,} rows in {size:,} bytes; save the dataset again", path=path)
                shared += sum(map(shared_bytes, batch.columns))
                check_size(shared, path, size)
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
            table.validate(full=True)
            return pl.DataFrame(table)
    except pa.ArrowException as error:
        reason = one_line(str(error), 200)
        raise DataError(
            f"not readable as an Arrow stream ({reason}); save the dataset again", path=path
        ) from error


def _check_keys(lines: bytes, path: Path) -> None:
    """Refuse too many distinct keys: each becomes a column with a value in every row."""
    types = pl.scan_ndjson(io.BytesIO(lines), infer_schema_length=None).collect_schema().dtypes()
    keys, rows = sum(_fields(dtype) for dtype in types), lines.count(b"\n") + 1
    if keys > MAX_COLUMNS or keys * rows > max(FREE_VALUES, MAX_VALUES_PER_BYTE * len(lines)):
        raise DataError(
            f"has {keys:,} distinct keys in {rows:,} lines; expected similar keys in every line", path=path
        )


def _fields(dtype: object) -> int:
    """The number of columns including nested fields."""
    if isinstance(dtype, pl.Struct):
        return 1 + sum(_fields(field.dtype) for field in dtype.fields)
    return 1 + _fields(dtype.inner) if isinstance(dtype, pl.List) else 1


def _read(source: Path | io.BytesIO, suffix: str, separator: str, *, header: bool) -> pl.DataFrame:
    # glob=False, as a path may contain brackets and stars; not every reader has it.
    if suffix == ".parquet":
        return pl.read_parquet(source, glob=False)
    if separator:
        table = pl.read_csv(
            source,
            has_header=header,
            separator=separator,
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


ClassNames: TypeAlias = Mapping[str, tuple[str, ...]]
"""The class names of each column, in the order of class numbers."""

_INFO_FILE = "dataset_info.json"  # of `save_to_disk`
_PARQUET_KEY = "huggingface"
_MAX_CLASSES = 1000


def class_names_of_file(path: Path) -> ClassNames:
    """The class names of a file written by `datasets`; empty for other files."""
    if path.suffix.lower() == ".parquet" and not is_gzipped(path):
        return _of_parquet(path)
    info = path.parent / _INFO_FILE
    if path.suffix.lower() == ".arrow" and info.is_file():
        return class_names_of_features(read_object(info).get("features"))
    return {}


def class_names_of_features(features: Any) -> ClassNames:
    """The class names in `Dataset.features` or its JSON form."""
    if not isinstance(features, Mapping):
        return {}
    found = {}
    for column, feature in features.items():
        kind = feature.get("_type") if isinstance(feature, Mapping) else type(feature).__name__
        names = feature.get("names") if isinstance(feature, Mapping) else getattr(feature, "names", None)
        if kind == "ClassLabel" and isinstance(names, list) and len(names) <= _MAX_CLASSES:
            found[column] = tuple(map(str, names))
    return found


def _of_parquet(path: Path) -> ClassNames:
    with suppress(pl.exceptions.PolarsError, ValueError, RecursionError, AttributeError):
        metadata = json.loads(pl.read_parquet_metadata(path).get(_PARQUET_KEY, "{}"))
        return class_names_of_features(metadata.get("info", {}).get("features"))
    return {}
