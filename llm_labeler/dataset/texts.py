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

from llm_labeler.records import Text, format_counts
from llm_labeler.settings import InputSettings
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import holds_no_text
from pairkit.base.system.folders import own_name
from pairkit.base.system.seeded import keyed_hash
from pairkit.base.system.text_lines import read_json_lines, read_text_lines
from pairkit.dataset.reading.columns import text_column
from pairkit.dataset.reading.in_memory import Source, contents_of, source_name
from pairkit.dataset.reading.parts import TablePart, parts_of
from pairkit.dataset.reading.tables import SUFFIXES, format_of, json_values, sheet_of

_HEADER_WORDS = 4  # a single header with at least so many words is a sentence

Columns = Mapping[str, str] | None
Values = Iterator[tuple[str, int, object]]


def read_values(source: Source, columns: Columns) -> Values:
    """Each row as (file or dataset, row, value), lazily and in the order of the source."""
    source = contents_of(source)
    if isinstance(source, Sequence) and not isinstance(source, str):
        yield from _record_values(enumerate(source, 1), source_name(source), columns)
        return
    path = Path(source) if isinstance(source, str | Path) else None
    if path and (path.is_file() or format_of(path) in (".txt", *SUFFIXES)):
        yield from _file_values(path, columns)
        return
    splits = parts_of(source)
    if path and path.is_dir() and "train" not in splits:
        raise DataError(
            "has no train split, such as data/train-00000-of-00001.parquet or train.jsonl; give one of its"
            " files instead of the folder",
            path=path,
        )
    for part in splits["train"] if "train" in splits else next(iter(splits.values())):
        if isinstance(part.table, Path):
            yield from _file_values(part.table, columns)
        else:
            yield from _frame_values(part, columns)


def _file_values(path: Path, columns: Columns) -> Values:
    if not sheet_of(path)[0].exists():
        raise ConfigError(
            f"{path}: no such file; give a file of sentences, such as sentences.txt or pairs.jsonl"
        )
    match format_of(path):
        case ".txt" if columns:
            raise ConfigError(f"{path}: a text file has no columns; leave out --columns")
        case ".txt":
            return ((str(path), row, line) for row, line in read_text_lines(path))
        case ".jsonl" | ".ndjson":
            # Not as a table: these may also be strings, and one of them half of a surrogate pair.
            return _record_values(read_json_lines(path), str(path), columns)
        case ".json":
            return _record_values(enumerate(json_values(path), 1), str(path), columns)
        case _:
            return _frame_values(TablePart(str(path), path), columns)


def _record_values(records: Iterable[tuple[int, Any]], where: str, columns: Columns) -> Values:
    """The values of the column that the first object decides; anything else than an object is a value."""
    names: list[str] = []
    column, has_value = "", False
    for row, record in records:
        if not isinstance(record, dict):
            yield where, row, record
            has_value = True
            continue
        if not names:
            names = [*record]
            strings = [name for name, value in record.items() if isinstance(value, str)]
            column = (
                columns["text"]
                if columns and "text" in columns
                else text_column(names, where, columns, strings)
            )
        has_value = has_value or column in record
        yield where, row, record.get(column)
    if names and not has_value:
        text_column(names, where, columns)  # raises the error of a missing column


def _frame_values(part: TablePart, columns: Columns) -> Values:
    frame, first = part.read(columns)
    strings = [name for name in frame.columns if frame[name].dtype == pl.String]
    column = text_column(frame.columns, part.where, columns, strings)
    if columns is None and first > 1 and len(column.split()) >= _HEADER_WORDS:
        raise DataError(
            "the name of its only column is a sentence, so the header line seems to be missing: give"
            " --columns text=1",
            path=part.where,
        )
    return ((part.where, row, value) for row, value in enumerate(frame[column], first))


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


def read_texts(source: Source, *, columns: Columns, settings: InputSettings, seed: int = 0) -> InputTexts:
    """Read the sentences to label."""
    kept: dict[str, Text] = {}
    dropped: Counter[str] = Counter()
    examples: dict[str, str] = {}
    rows = 0
    for where, row, value in read_values(source, columns):
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
        why = "has no rows; give a file with one sentence per line, or a table of sentences"
        if rows:
            why = (
                f"no usable text in {rows:,} rows ({format_counts(dropped)}); see the [input] settings, or"
                " give another input"
            )
        raise DataError(why, path=source_name(source))
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
