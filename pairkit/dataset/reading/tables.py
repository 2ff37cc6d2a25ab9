"""Read a table of any supported format, with clear errors for invalid files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line, unescape_formulas
from pairkit.base.system.folders import read_json_object
from pairkit.base.system.machine import batched
from pairkit.base.system.text_lines import (
    note_once,
    parse_json,
    read_json_lines,
    read_objects,
    read_text,
    read_text_lines,
    readable,
)
from pairkit.dataset.frames import frame_of, join_blocks
from pairkit.dataset.reading.columns import are_usual_names
from pairkit.dataset.reading.separated import (
    column_names,
    named_records,
    read_separated,
    records,
)
from pairkit.dataset.reading.untrusted_tables import (
    FREE_VALUES,
    MAX_COLUMNS,
    MAX_VALUES_PER_BYTE,
    check_expansion,
    check_parquet,
    check_texts,
    check_width,
    read_sheet,
)
from pairkit.dataset.table_files import POLARS_ERRORS

_SEPARATED = (".csv", ".tsv")
_JSON_LINES = (".jsonl", ".ndjson")
SHEETS = (".xlsx", ".xls", ".ods")
SUFFIXES = (".parquet", *_JSON_LINES, ".json", *_SEPARATED, ".arrow", *SHEETS)
_SHEET = re.compile(r"(.+\.(?:xlsx|xls|ods)):(.+)", re.IGNORECASE)
_BLOCK = 8192  # JSON objects that are held as Python objects
_MAX_LEVELS = 30  # of lists and objects in a JSON object
# Keys of Squad, the Hub's viewer, and web APIs.
_ARRAYS = ("data", "rows", "items", "records")
_INFO_FILE = "dataset_info.json"  # of `save_to_disk`
_PARQUET_KEY = "huggingface"
_MAX_CLASSES = 1000
_Items = list[tuple[str, Any]]  # places in a JSON object, with their values

ClassNames: TypeAlias = Mapping[str, tuple[str, ...]]
"""The class names of each column, in the order of class numbers."""


def is_table(path: Path) -> bool:
    """Whether `read_table` reads files of this name."""
    return format_of(path) in SUFFIXES


def is_lines(path: Path) -> bool:
    """Whether each line of a file is a text."""
    return format_of(path) == ".txt"


def is_parquet(path: Path) -> bool:
    """Whether a file can be read in batches."""
    return path.suffix.lower() == ".parquet"


def is_sheet(path: Path) -> bool:
    """Whether a file is CSV, TSV or a spreadsheet, which begins with a header and may have blank rows."""
    return format_of(path) in (*_SEPARATED, *SHEETS)


def first_row(path: Path, *, header: bool = True) -> int:
    """The number of the first row as in an editor or spreadsheet, where a header is row 1."""
    return 2 if header and is_sheet(path) else 1


def has_header(path: Path, columns: Mapping[str, str] | None) -> bool:
    """Whether a CSV or TSV file has a header; not if columns are given by numbers that aren't names."""
    used = {*(columns or {}).values()} - {"none"}
    are_numbers = bool(used) and all(map(str.isdecimal, used))
    if not are_numbers or format_of(path) not in _SEPARATED:
        return True
    _, cells = next(records(path), (1, []))
    names = column_names(cells)
    if used <= {*names}:
        return True
    if are_usual_names(names):
        note_once(
            "%s: row 1 (%s) looks like a header but is read as data; give --columns with names, not numbers",
            path,
            one_line(", ".join(names)),
        )
    return False


def table_rows(
    path: Path, *, header: bool = True
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows by column name with their numbers."""
    kind = format_of(path)
    if kind in _SEPARATED:
        names, rows = named_records(path, header=header)
        for row, cells in rows:
            yield row, dict(zip_longest(names, cells, fillvalue=""))
    elif kind in _JSON_LINES:
        yield from read_objects(path)
    else:
        yield from enumerate(read_table(path).iter_rows(named=True), first_row(path))


def read_table(path: Path, *, lines: bool = False, header: bool = True) -> pl.DataFrame:
    """Read a table; with `lines` each line of a text file is a row of the column `text`."""
    if lines:
        ended = [line.removesuffix("\n") for _, line in read_text_lines(path)]
        texts = [line.removesuffix("\r") for line in ended]
        if texts and all("\t" in text for text in texts):
            note_once(
                "%s: each line is read as one text; name it .tsv if it is a table", path
            )
        return pl.DataFrame({"text": texts}, schema={"text": pl.String})
    suffix = format_of(path)
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"{path}: unknown file type {suffix!r}; give {', '.join(SUFFIXES)}, texts also gzipped (.gz), and"
            " name a table in a text file .csv or .tsv"
        )
    if suffix in _SEPARATED:
        return unescape_formulas(read_separated(path, header=header))
    with readable(path, suffix[1:], *POLARS_ERRORS):
        table = _READERS[suffix](path)
    table.columns = column_names(table.columns)
    return unescape_formulas(table)


def format_of(path: Path) -> str:
    """The suffix of a file's name in lower case, without .gz."""
    file, _ = sheet_of(path)
    return Path(file.name.lower().removesuffix(".gz")).suffix


def sheet_of(path: Path) -> tuple[Path, str | None]:
    """The file and the name of a sheet in `book.xlsx:Sheet`."""
    match = _SHEET.fullmatch(path.name)
    if match is None:
        return path, None
    return path.with_name(match[1]), match[2]


def _read_sheet(path: Path) -> pl.DataFrame:
    """A sheet with integers in each column of whole numbers, as a spreadsheet has no integers."""
    table = read_sheet(*sheet_of(path))
    integers = []
    for column in table.select(pl.col(pl.Float64)):
        whole = column.cast(pl.Int64, strict=False)
        if whole.cast(pl.Float64).eq_missing(column).all():
            integers.append(whole)
    return table.with_columns(integers)


def _read_parquet(path: Path) -> pl.DataFrame:
    with path.open("rb") as file:
        check_parquet(file, path)
    # glob=False, as a path may contain brackets and stars.
    table = pl.read_parquet(path, glob=False)
    check_texts(table, path)
    return table


def _read_json_lines(path: Path) -> pl.DataFrame:
    return _from_objects((value for _, value in read_objects(path)), path)


def _read_json(path: Path) -> pl.DataFrame:
    values = json_values(path)
    if not all(isinstance(value, dict) for value in values):
        raise DataError(
            "expected an array of objects (pandas: orient='records')", path=path
        )
    return _from_objects(values, path)


def _is_rows(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(row, dict) for row in value)


def json_values(path: Path) -> list[Any]:
    """The values of a JSON array, also of the only array of rows in an object, or of JSON lines."""
    text = read_text(path, remedy="put an object on each line and name it .jsonl")
    try:
        values = parse_json(text, path)
    except DataError:
        with suppress(ValueError, RecursionError):
            # If the first line is JSON, the file may have JSON lines.
            json.loads(text.lstrip().partition("\n")[0])
            return [value for _, value in read_json_lines(path)]
        raise
    if isinstance(values, dict):
        arrays = [
            values[name] for name in _ARRAYS if isinstance(values.get(name), list)
        ]
        arrays = arrays[:1] or [value for value in values.values() if _is_rows(value)]
        if len(arrays) != 1:
            keys = one_line(", ".join(values), 200)
            raise DataError(
                f"found an object with the keys {keys}; expected an array of rows (JSON lines: .jsonl;"
                " pandas: orient='records')",
                path=path,
            )
        (values,) = arrays
    if not isinstance(values, list):
        raise DataError("expected an array of rows", path=path)
    return values


def _from_objects(objects: Iterable[Mapping[str, Any]], path: Path) -> pl.DataFrame:
    """A table of JSON objects, made in blocks."""
    frames = []
    rows = 0
    keys = set[str]()
    limit = max(FREE_VALUES, MAX_VALUES_PER_BYTE * path.stat().st_size)
    for block in batched(objects, _BLOCK):
        rows += len(block)
        for row in block:
            keys.update(row)
            if nested := _nested(row.items()):
                keys.update(_inner_keys(nested, path))
        # Each key becomes a column, or part of one, with a value in every row.
        if len(keys) > MAX_COLUMNS or len(keys) * rows > limit:
            raise DataError(
                f"has {len(keys):,} distinct keys in {rows:,} lines; expected similar keys in every line",
                path=path,
            )
        frames.append(frame_of(block))
    return join_blocks(frames) if frames else pl.DataFrame()


def _nested(items: Iterable[tuple[str, Any]]) -> _Items:
    return [item for item in items if isinstance(item[1], list | dict)]


def _inner_keys(level: _Items, path: Path) -> Iterator[str]:
    """The keys of objects in lists and objects; raises DataError for too many levels."""
    for _ in range(_MAX_LEVELS):
        inner: _Items = []
        for place, value in level:
            if isinstance(value, list):
                inner += _nested((place, item) for item in value)
                continue
            items = [(f"{place}/{key}", item) for key, item in value.items()]
            yield from map(itemgetter(0), items)
            inner += _nested(items)
        if not inner:
            return
        level = inner
    raise DataError(f"has values of more than {_MAX_LEVELS} levels", path=path)


def _read_arrow(path: Path) -> pl.DataFrame:
    """An Arrow stream as written by `Dataset.save_to_disk`, memory-mapped."""
    import pyarrow as pa

    with readable(
        path, "an Arrow stream", pa.ArrowException, remedy="save the dataset again"
    ):
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as reader:
            check_width(len(reader.schema), path)
            size = file.size()
            rows = 0
            unpacked = 0
            batches = []
            for batch in reader:
                rows += batch.num_rows
                unpacked += batch.get_total_buffer_size()
                check_expansion(rows, unpacked, path, size)
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
            table.validate(full=True)
            frame = pl.DataFrame(table)
        check_texts(frame, path)
    return frame


_READERS = {
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".json": _read_json,
    **dict.fromkeys(_JSON_LINES, _read_json_lines),
    **dict.fromkeys(SHEETS, _read_sheet),
}


def class_names_of_file(path: Path) -> ClassNames:
    """The class names of a file written by `datasets`; empty for other files."""
    if is_parquet(path):
        with suppress(
            pl.exceptions.PolarsError, ValueError, RecursionError, AttributeError
        ):
            metadata = json.loads(
                pl.read_parquet_metadata(path).get(_PARQUET_KEY, "{}")
            )
            return class_names_of_features(metadata.get("info", {}).get("features"))
    info = path.parent / _INFO_FILE
    if path.suffix.lower() == ".arrow" and info.is_file():
        return class_names_of_features(read_json_object(info).get("features"))
    return {}


def class_names_of_features(features: Any) -> ClassNames:
    """The class names in `Dataset.features` or its JSON form."""
    if not isinstance(features, Mapping):
        return {}
    class_names = {}
    for column, feature in features.items():
        if not isinstance(feature, Mapping):
            feature = {
                "_type": type(feature).__name__,
                "names": getattr(feature, "names", None),
            }
        names = feature.get("names")
        is_class = feature.get("_type") == "ClassLabel" and isinstance(names, list)
        if is_class and len(names) <= _MAX_CLASSES:
            class_names[column] = tuple(map(str, names))
    return class_names
