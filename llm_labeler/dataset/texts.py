"""Read the sentences to label, without repeats; unusable rows are counted by reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from heapq import nsmallest
from pathlib import Path
from typing import Any

import polars as pl

from llm_labeler.records import Text
from llm_labeler.settings import InputSettings
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import holds_no_text, one_line
from pairkit.dataset.in_memory import Source, contents_of, source_name, tables_in_memory
from pairkit.dataset.parts import parts_of
from pairkit.dataset.tables import SUFFIXES, first_row, read_table
from pairkit.system.folders import own_name
from pairkit.system.lines import parse_json, read_json_lines, read_text_lines, read_whole
from pairkit.system.seeded import keyed_hash

# The first of these that a table has is its column of sentences.
TEXT_COLUMNS = (
    "text", "sentence", "sentence1", "text1", "anchor", "premise", "content", "question", "title",
)  # fmt: skip
_HEADER_WORDS = 4  # a single header with at least so many words is a sentence

Values = Iterator[tuple[str, int, object]]


def read_values(source: Source, column: str | None) -> Values:
    """Each row as (file or dataset, row, value), lazily and in the order of the source."""
    source = contents_of(source)
    if not isinstance(source, str | Path):
        yield from _in_memory_values(source, column)
        return
    path = Path(source)
    if path.is_file() or _suffix(path) in (".txt", *SUFFIXES):
        yield from _file_values(path, column)
        return
    splits = parts_of(source)
    if path.is_dir() and "train" not in splits:
        raise DataError(
            "has no train split, such as data/train-00000-of-00001.parquet or train.jsonl; give one of its"
            " files instead of the folder",
            path=path,
        )
    for part in splits["train"] if "train" in splits else next(iter(splits.values())):
        if isinstance(part.table, Path):
            yield from _file_values(part.table, column)
        else:
            yield from _frame_values(part.table, part.where, column, 1)


def _in_memory_values(source: Any, column: str | None) -> Values:
    if isinstance(source, Sequence):
        return _record_values(enumerate(source, 1), source_name(source), column)
    tables = tables_in_memory(source)
    if not tables:
        raise DataError("has no table; give one with sentences", path=source_name(source))
    split = "train" if "train" in tables else next(iter(tables))
    return _frame_values(tables[split], source_name(source), column, 1)


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _file_values(path: Path, column: str | None) -> Values:
    if not path.exists():
        raise ConfigError(
            f"{path}: no such file; give a file of sentences, such as sentences.txt or pairs.jsonl"
        )
    if path.is_file() and not path.stat().st_size:
        raise DataError(
            "is empty; give a file with one sentence per line, or a table of sentences", path=path
        )
    match _suffix(path):
        case ".txt" if column is not None:
            raise ConfigError(
                f"{path}: a text file has no columns; leave out text_column (--text-column) {column}"
            )
        case ".txt":
            return ((str(path), row, line) for row, line in read_text_lines(path))
        case ".jsonl" | ".ndjson":
            # Not by `read_table`, which accepts half a surrogate pair as text.
            return _record_values(read_json_lines(path), str(path), column)
        case ".json":
            return _record_values(enumerate(_json_array(path), 1), str(path), column)
        case kind if kind in SUFFIXES:
            return _frame_values(read_table(path), str(path), column, first_row(path))
        case kind:
            raise ConfigError(
                f"{path}: unknown file type {kind!r}; expected .txt, {', '.join(SUFFIXES)}, also as .gz"
            )


def _json_array(path: Path) -> list[Any]:
    data = read_whole(path, remedy="put an object on each line and name it .jsonl")
    try:
        array = parse_json(data.decode("utf-8-sig"), path)
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"not UTF-8 (byte {data[error.start]:#04x}); convert the file", path=path, row=row
        ) from error
    if not isinstance(array, list):
        raise DataError(
            "expected an array of objects or strings; name a file with an object per line .jsonl", path=path
        )
    return array


def _record_values(records: Iterable[tuple[int, Any]], where: str, column: str | None) -> Values:
    """The values of the column that the first object decides; anything else than an object is a value."""
    first: dict[str, Any] = {}
    has_value = False
    for row, record in records:
        if not isinstance(record, dict):
            yield where, row, record
            has_value = True
            continue
        if not first:
            first = record
            string_columns = [name for name, value in record.items() if isinstance(value, str)]
            column = column or _text_column([*record], string_columns, where)
        has_value = has_value or column in record
        yield where, row, record.get(column)
    if first and not has_value:
        raise _no_column([*first], where, column)


def _frame_values(frame: pl.DataFrame, where: str, column: str | None, first: int) -> Values:
    names = frame.columns
    if column is None:
        column = _text_column(names, [name for name in names if frame[name].dtype == pl.String], where)
        if first > 1 and len(column.split()) >= _HEADER_WORDS:
            raise DataError(
                "the name of its only column is a sentence, so the header line seems to be missing: add one,"
                " such as `text`, or name the column with text_column (--text-column)",
                path=where,
            )
    elif column not in names:
        raise _no_column(names, where, column)
    return ((where, row, value) for row, value in enumerate(frame[column], first))


def _text_column(names: Sequence[str], string_columns: Sequence[str], where: str) -> str:
    by_lower = {name.lower(): name for name in reversed(names)}
    for name in TEXT_COLUMNS:
        if name in by_lower:
            return by_lower[name]
    if len(string_columns) == 1:
        return string_columns[0]
    raise DataError(
        f"no known text column among {one_line(', '.join(names)) or '(none)'}; name the column of the"
        " sentences with text_column (--text-column)",
        path=where,
    )


def _no_column(names: Sequence[str], where: str, column: str | None) -> DataError:
    return DataError(
        f"no column {column!r}; expected one of {one_line(', '.join(names)) or '(none)'} as text_column"
        " (--text-column)",
        path=where,
    )


_BREAKS = re.compile("[\t\n\r\u2028\u2029]+")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class InputTexts:
    """The usable texts of an input, in its order; dropped rows by reason, and an example row of each."""

    name: str
    sha256: str  # of the texts in order, which doesn't depend on the file format
    texts: tuple[Text, ...]
    rows: int
    dropped: Mapping[str, int]
    examples: Mapping[str, str]


def read_texts(source: Source, *, column: str | None, settings: InputSettings, seed: int = 0) -> InputTexts:
    """Read the sentences to label."""
    kept: dict[str, Text] = {}
    dropped: Counter[str] = Counter()
    examples: dict[str, str] = {}
    rows = 0
    for where, row, value in read_values(source, column):
        rows += 1
        sentence = tidy(value) if isinstance(value, str) else ""
        text = Text.of(sentence, row)
        reason = why_unusable(value, sentence, settings) or ("repeated" if text.text_id in kept else None)
        if reason is None:
            kept[text.text_id] = text
            if len(kept) == settings.limit:
                break
        else:
            dropped[reason] += 1
            examples.setdefault(reason, f"{where}:{row}")
    if not kept:
        raise DataError(_why_none(rows, dropped), path=source_name(source))
    texts = _sample([*kept.values()], settings.draw, seed)
    digest = sha256()
    for text in texts:
        data = text.text.encode()
        digest.update(b"%d:%s" % (len(data), data))
    hash_ = digest.hexdigest()
    name = own_name(str(source)) if isinstance(source, str | Path) else f"in memory, {hash_[:16]}"
    return InputTexts(name, hash_, texts, rows, dict(sorted(dropped.items())), examples)


def _sample(texts: Sequence[Text], count: int | None, seed: int) -> tuple[Text, ...]:
    """A random sample of the texts, in their order."""
    if count is None:
        return tuple(texts)
    chosen = set(nsmallest(count, (text.text_id for text in texts), key=partial(keyed_hash, seed, "draw")))
    return tuple(text for text in texts if text.text_id in chosen)


def tidy(value: str) -> str:
    """Put a text on one line."""
    parts = (part.strip() for part in _BREAKS.split(value))
    return " ".join(part for part in parts if part)


def why_unusable(value: object, sentence: str, settings: InputSettings) -> str | None:
    """The reason why a row is unusable; None if it is usable."""
    if value is not None and not isinstance(value, str):
        return "not_text"
    if not sentence:
        return "empty"
    if len(sentence) > settings.max_chars:
        return "too_long"
    if holds_no_text(sentence):
        return "unusable_characters"
    if len(sentence) < settings.min_chars:
        return "too_short"
    return None if _LETTER.search(sentence) else "no_letters"


def _why_none(rows: int, dropped: Mapping[str, int]) -> str:
    if not rows:
        return "has no rows; give a file with one sentence per line, or a table of sentences"
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(dropped.items()))
    return f"no usable text in {rows:,} rows ({reasons}); see the [input] settings, or give another input"
