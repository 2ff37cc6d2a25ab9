"""The sentences to label: read from any input, each once, and what can't be used is counted by its reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from pairkit.dataset.in_memory import Source, source_name, tables_in_memory
from pairkit.dataset.parts import parts_of
from pairkit.dataset.tables import SUFFIXES, first_row, read_table
from pairkit.system.folders import own_name
from pairkit.system.lines import parse_json, read_json_lines, read_text_lines, read_whole
from pairkit.system.seeded import keyed_hash

# Of several that a table has, the first of these holds the sentences.
TEXT_COLUMNS = (
    "text", "sentence", "sentence1", "text1", "anchor", "premise", "content", "question", "title",
)  # fmt: skip
_HEADER_WORDS = 4  # a header of so many words, the only one of its file, is a sentence

Values = Iterator[tuple[str, int, object]]


def read_values(source: Source, column: str | None) -> Values:
    """Each row as (file or dataset, row, value), in the order of the source, read as it is asked for."""
    if not isinstance(source, str | Path):
        yield from _held_values(source, column)
        return
    path = Path(source)
    if path.is_file() or _kind(path) in (".txt", *SUFFIXES):
        yield from _file_values(path, column)
        return
    splits = parts_of(source)
    if path.is_dir() and "train" not in splits:
        raise DataError(
            "no file of a train split, such as data/train-00000-of-00001.parquet or train.jsonl; give one of"
            " its files instead of the folder",
            path=path,
        )
    for part in splits["train"] if "train" in splits else next(iter(splits.values())):
        if isinstance(part.table, Path):
            yield from _file_values(part.table, column)
        else:
            yield from _frame_values(part.table, part.where, column, 1)


def _held_values(source: Any, column: str | None) -> Values:
    """What is in memory; rows of a list may be anything, as lines of JSON may."""
    if isinstance(source, Sequence):
        return _record_values(enumerate(source, 1), source_name(source), column)
    tables = tables_in_memory(source)
    if not tables:
        raise DataError("holds no table; give one with sentences", path=source_name(source))
    split = "train" if "train" in tables else next(iter(tables))
    return _frame_values(tables[split], source_name(source), column, 1)


def _kind(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _file_values(path: Path, column: str | None) -> Values:
    if not path.exists():
        raise ConfigError(
            f"{path}: no such file; give one of sentences, such as sentences.txt or pairs.jsonl"
        )
    if path.is_file() and not path.stat().st_size:
        raise DataError(
            "is empty; give a file with one sentence per line, or a table of sentences", path=path
        )
    match _kind(path):
        case ".txt" if column is not None:
            raise ConfigError(
                f"{path}: a text file has no columns; leave out text_column (--text-column) {column}"
            )
        case ".txt":
            return ((str(path), row, line) for row, line in read_text_lines(path))
        case ".jsonl" | ".ndjson":
            # The tables' reader is not asked for JSON: it takes half a surrogate pair for text.
            return _record_values(read_json_lines(path), str(path), column)
        case ".json":
            return _record_values(enumerate(_json_array(path), 1), str(path), column)
        case kind if kind in SUFFIXES:
            return _frame_values(read_table(path), str(path), column, first_row(path))
        case kind:
            raise ConfigError(
                f"{path}: unknown kind of file {kind!r}; give .txt, {', '.join(SUFFIXES)}, each also as .gz"
            )


def _json_array(path: Path) -> list[Any]:
    data = read_whole(path, remedy="put an object on each line and name it .jsonl")
    try:
        found = parse_json(data.decode("utf-8-sig"), path)
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"not UTF-8 (byte {data[error.start]:#04x}); convert the file", path=path, row=row
        ) from error
    if not isinstance(found, list):
        raise DataError(
            "expected an array of objects or of strings; for an object a line use .jsonl", path=path
        )
    return found


def _record_values(records: Iterable[tuple[int, Any]], where: str, column: str | None) -> Values:
    """Objects by the column that the first of them decides; what is no object is its own value."""
    first: dict[str, Any] = {}
    found = False
    for row, record in records:
        if not isinstance(record, dict):
            yield where, row, record
            found = True
            continue
        if not first:
            first = record
            column = column or _choose([*record], [k for k, v in record.items() if isinstance(v, str)], where)
        found = found or column in record
        yield where, row, record.get(column)
    if first and not found:
        raise _no_column([*first], where, column)


def _frame_values(frame: pl.DataFrame, where: str, column: str | None, first: int) -> Values:
    names = frame.columns
    if column is None:
        column = _choose(names, [name for name in names if frame[name].dtype == pl.String], where)
        is_sentence = len(column.split()) >= _HEADER_WORDS
        if first > 1 and is_sentence:
            raise DataError(
                "its only column is named by a whole sentence, so it seems to lack a header line: put one,"
                " such as `text`, on top, or name the column with text_column (--text-column)",
                path=where,
            )
    elif column not in names:
        raise _no_column(names, where, column)
    return ((where, row, value) for row, value in enumerate(frame[column], first))


def _choose(names: Sequence[str], of_text: Sequence[str], where: str) -> str:
    known = {name.lower(): name for name in reversed(names)}
    for name in TEXT_COLUMNS:
        if name in known:
            return known[name]
    if len(of_text) == 1:
        return of_text[0]
    raise DataError(
        f"found the columns {one_line(', '.join(names)) or '(none)'}, and can't tell which holds the"
        " sentences; name it with text_column (--text-column)",
        path=where,
    )


def _no_column(names: Sequence[str], where: str, column: str | None) -> DataError:
    return DataError(
        f"no column {column!r}; there are {one_line(', '.join(names)) or '(none)'}: give one of them"
        " as text_column (--text-column)",
        path=where,
    )


_BREAKS = re.compile("[\t\n\r\u2028\u2029]+")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class InputTexts:
    """The usable texts of an input, in its order."""

    name: str
    texts: tuple[Text, ...]
    rows: int
    dropped: Mapping[str, int]
    examples: Mapping[str, str]

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of the usable texts in their order, wherever they were read from."""
        digest = sha256()
        for text in self.texts:
            data = text.text.encode()
            digest.update(b"%d:%s" % (len(data), data))
        return digest.hexdigest()


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
    found = InputTexts(
        "", _drawn([*kept.values()], settings.draw, seed), rows, dict(sorted(dropped.items())), examples
    )
    return replace(found, name=_name(source, found))


def _drawn(texts: Sequence[Text], count: int | None, seed: int) -> tuple[Text, ...]:
    """Some of the texts, in their order."""
    if count is None:
        return tuple(texts)
    chosen = set(nsmallest(count, (text.text_id for text in texts), key=partial(keyed_hash, seed, "draw")))
    return tuple(text for text in texts if text.text_id in chosen)


def _name(source: Source, texts: InputTexts) -> str:
    if not isinstance(source, str | Path):
        return f"in memory, {texts.sha256[:16]}"
    return own_name(str(source))


def tidy(value: str) -> str:
    """A text on one line, see `read_texts`."""
    parts = (part.strip() for part in _BREAKS.split(value))
    return " ".join(part for part in parts if part)


def why_unusable(value: object, sentence: str, settings: InputSettings) -> str | None:
    """Why a row is not used; None: it may be."""
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
        return "holds no rows; give a file with one sentence per line, or a table of sentences"
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(dropped.items()))
    return f"no usable text in {rows:,} rows ({reasons}); see the [input] settings, or name another input"
