"""Read the sentences to label, and the pairs to judge, without repeats; unusable rows are counted by reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from glob import has_magic
from hashlib import sha256
from heapq import nsmallest
from itertools import chain
from pathlib import Path

import polars as pl

from llm_labeler.records import Candidate, Text, format_counts
from llm_labeler.settings import InputSettings
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import holds_no_text
from pairkit.base.system.folders import base_name
from pairkit.base.system.seeded import keyed_hash
from pairkit.base.system.text_lines import read_json_lines, read_text_lines
from pairkit.dataset.labels import MISSING, LabelRules
from pairkit.dataset.reading.columns import text_column, text_length
from pairkit.dataset.reading.in_memory import Source, contents_of, source_name
from pairkit.dataset.reading.parts import TablePart, parts_of, valid_path
from pairkit.dataset.reading.reader import read_pairs
from pairkit.dataset.reading.tables import SUFFIXES, format_of, json_values, sheet_of
from pairkit.dataset.records import label_scale
from pairkit.extracting.html_blocks import without_tags

_HEADER_WORDS = 4  # a single header with at least so many words is a sentence

Columns = Mapping[str, str] | None
Values = Iterator[tuple[str, int, object]]

_BREAKS = re.compile("[\t\n\r\u2028\u2029]+")
_LETTER = re.compile(r"[^\W\d_]")
_PLACEHOLDER = re.compile(MISSING)

PAIR = "pair_id"
GIVEN = "given_label"
# Columns that judging adds.
_ADDED = (
    "votes",
    "aggregation",
    "reason",
    "contradicts",
    PAIR,
    GIVEN,
    "judged",
    "confidence",
    "probability",
)


def read_values(source: Source, columns: Columns) -> Values:
    """Each row as (file or dataset, row, value), lazily and in the order of the source."""
    source = contents_of(source)
    if isinstance(source, Sequence) and not isinstance(source, str):
        yield from _record_values(enumerate(source, 1), source_name(source), columns)
        return
    path = valid_path(source) if isinstance(source, str | Path) else None
    if path and (path.is_file() or _names_file(path)):
        yield from _file_values(path, columns)
        return
    splits = parts_of(source, lines=True)
    if path and path.is_dir() and "train" not in splits:
        raise DataError(
            "has no train split, such as data/train-00000-of-00001.parquet or train.jsonl; give one of its"
            " files instead of the folder",
            path=path,
        )
    first_split = next(iter(splits.values()))
    for part in splits.get("train", first_split):
        if isinstance(part.table, Path):
            yield from _file_values(part.table, columns)
        else:
            yield from _frame_values(part, columns)


def _names_file(path: Path) -> bool:
    """Whether a path that may be missing is that of a file, not a pattern."""
    return format_of(path) in (".txt", *SUFFIXES) and not has_magic(str(path))


def _file_values(path: Path, columns: Columns) -> Values:
    if not sheet_of(path)[0].exists():
        raise ConfigError(
            f"{path}: no such file; give a file of sentences, such as sentences.txt or pairs.jsonl"
        )
    match format_of(path):
        case ".txt" if columns:
            raise ConfigError(
                f"{path}: a text file has no columns; leave out --columns"
            )
        case ".txt":
            return ((str(path), row, line) for row, line in read_text_lines(path))
        case ".jsonl" | ".ndjson":
            # Not as a table: these may also be strings, and one of them half of a surrogate pair.
            return _record_values(read_json_lines(path), str(path), columns)
        case ".json":
            return _record_values(enumerate(json_values(path), 1), str(path), columns)
        case _:
            return _frame_values(TablePart(str(path), path), columns)


def _record_values(
    records: Iterable[tuple[int, object]], where: str, columns: Columns
) -> Values:
    """The values of the column that the first object decides; anything else than an object is a value."""
    names: list[str] = []
    column = ""
    has_value = False
    for row, record in records:
        if not isinstance(record, dict):
            yield where, row, record
            has_value = True
            continue
        if not names:
            names = [*record]
            strings = [name for name, value in record.items() if text_length([value])]
            following = (later for _, later in records if isinstance(later, dict))
            if columns and "text" in columns:
                column = columns["text"]
            else:
                rows = chain([record], following)
                column = text_column(names, where, columns, rows, strings)
        has_value = has_value or column in record
        yield where, row, record.get(column)
    if names and not has_value:
        text_column(names, where, columns, ())  # raises the error of a missing column


def _frame_values(part: TablePart, columns: Columns) -> Values:
    frame, first = part.read(columns)
    strings = [name for name in frame.columns if text_length(frame[name].drop_nulls())]
    column = text_column(
        frame.columns, part.where, columns, frame.iter_rows(named=True), strings
    )
    if columns is None and first > 1 and len(column.split()) >= _HEADER_WORDS:
        raise DataError(
            "the name of its only column is a sentence, so the header line seems to be missing: give"
            " --columns text=1",
            path=part.where,
        )
    return ((part.where, row, value) for row, value in enumerate(frame[column], first))


@dataclass(frozen=True, slots=True)
class InputTexts:
    """The usable texts of an input, in its order; dropped rows by reason, and an example row of each."""

    name: str
    sha256: str  # of the texts in order, which doesn't depend on the file format
    texts: tuple[Text, ...]
    dropped: Mapping[str, int]
    examples: Mapping[str, str]


def read_texts(
    source: Source, *, columns: Columns, settings: InputSettings, seed: int = 0
) -> InputTexts:
    """Read the sentences to label."""
    kept = {}
    dropped: Counter[str] = Counter()
    examples: dict[str, str] = {}
    rows = 0
    for where, row, value in read_values(source, columns):
        rows += 1
        sentence = ""
        if isinstance(value, str):
            sentence = tidy(without_tags(value, where))
        text = Text.of(sentence, row)
        reason = why_unusable(value, sentence, settings)
        if reason is None and text.text_id in kept:
            reason = "repeated"
        if reason is not None:
            dropped[reason] += 1
            examples.setdefault(reason, f"{where}:{row}")
            continue
        kept[text.text_id] = text
        if len(kept) == settings.limit:
            break
    if not kept:
        message = (
            f"no usable text in {rows:,} rows ({format_counts(dropped)}); see the [input] settings, or"
            " give another input"
        )
        if not rows:
            message = "has no rows; give a file with one sentence per line, or a table of sentences"
        raise DataError(message, path=source_name(source))
    texts = tuple(kept.values())
    if settings.draw is not None:
        draw_order = partial(keyed_hash, seed, "draw")
        drawn = {*nsmallest(settings.draw, kept, key=draw_order)}
        texts = tuple(text for text in texts if text.text_id in drawn)
    sha = digest(text.text.encode() for text in texts)
    name = f"in memory, {sha[:16]}"
    if isinstance(source, str | Path):
        name = base_name(str(source))
    return InputTexts(name, sha, texts, dict(sorted(dropped.items())), examples)


def digest(parts: Iterable[bytes]) -> str:
    """Hex SHA-256; the lengths keep `ab`, `c` and `a`, `bc` apart."""
    result = sha256()
    for data in parts:
        result.update(b"%d:%s" % (len(data), data))
    return result.hexdigest()


def tidy(value: str) -> str:
    """Put a text on one line."""
    return " ".join(filter(None, map(str.strip, _BREAKS.split(value))))


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
    if _PLACEHOLDER.match(sentence):  # or invisible characters
        return "placeholder" if sentence.isascii() else "empty"
    if len(sentence) < settings.min_chars:
        return "too_short"
    return None if _LETTER.search(sentence) else "no_letters"


@dataclass(frozen=True, slots=True)
class ExistingPairs:
    """The pairs of a dataset, without repeats within a split."""

    name: str
    splits: tuple[str, ...]
    rows: pl.DataFrame  # of all splits
    by_text: Mapping[Text, tuple[Candidate, ...]]
    half: float  # labels from here on mean the same
    dropped: Mapping[str, int]

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of the pairs and their labels in order."""
        rows = self.rows.select("split", "text1", "text2", GIVEN).iter_rows()
        return digest(
            "\x1f".join(map(str, row)).encode("utf-8", "surrogatepass") for row in rows
        )


def read_existing_pairs(
    source: Source,
    columns: Mapping[str, str] | None,
    rules: LabelRules,
    settings: InputSettings,
    seed: int,
) -> ExistingPairs:
    """Read the usable pairs of a dataset."""
    dataset = read_pairs(source, columns, rules)
    rows = _with_ids(dataset.rows)
    reasons = _reasons(rows, settings)
    rows = rows.head(len(reasons))
    rows = rows.filter(pl.Series(reasons, dtype=pl.String).is_null())
    dropped = Counter(reason for reason in reasons if reason)
    if not rows.height:
        message = "holds no pairs to judge"
        if dropped:
            message += f" ({format_counts(dropped)}; see the [input] settings)"
        raise DataError(message, path=source_name(source))
    if settings.draw is not None:
        keys = rows.select("split", PAIR).rows()
        draw_order = partial(_draw_order, seed)
        drawn = {*nsmallest(settings.draw, keys, key=draw_order)}
        rows = rows.filter(pl.Series([key in drawn for key in keys]))
    name = source_name(source)
    if isinstance(source, str | Path) and Path(source).exists():
        name = Path(name).name
    splits = tuple(dataset.splits)
    half = label_scale(dataset.rows["label"]) / 2
    return ExistingPairs(name, splits, rows, _by_text(rows), half, dropped)


def _by_text(rows: pl.DataFrame) -> dict[Text, tuple[Candidate, ...]]:
    """The second texts by first text, as candidates without a proposer; judges don't see the polarity."""
    by_text: dict[Text, dict[str, Candidate]] = {}
    for first, second in rows.select("text1", "text2").iter_rows():
        text = Text.of(first, 0)
        seconds = by_text.setdefault(text, {})
        seconds[second] = Candidate(text.text_id, second, "positive", ())
    return {text: tuple(seconds.values()) for text, seconds in by_text.items()}


def _draw_order(seed: int, pair: tuple[str, str]) -> int:
    return keyed_hash(seed, "draw", *pair)


def _reasons(rows: pl.DataFrame, settings: InputSettings) -> list[str | None]:
    """Why each row is unusable (None: usable), up to the row where `limit` usable ones are reached."""
    reasons = []
    seen = set[tuple[str, str]]()
    for split, first, second, pair in rows.select(
        "split", "text1", "text2", PAIR
    ).iter_rows():
        if len(seen) == settings.limit:
            break
        reason = why_unusable(first, tidy(first), settings)
        reason = reason or why_unusable(second, tidy(second), settings)
        if reason is None and (split, pair) in seen:
            reason = "repeated"
        if reason is None:
            seen.add((split, pair))
        reasons.append(reason)
    return reasons


def _with_ids(rows: pl.DataFrame) -> pl.DataFrame:
    """Add ids of the pairs, and rename the source's columns whose names judging needs."""
    for name in _ADDED:
        renamed = name
        while renamed in rows.columns:
            renamed = f"source_{renamed}"
        rows = rows.rename({name: renamed}, strict=False)
    ids = [
        Candidate(Text.of(first, 0).text_id, second, "positive", ()).candidate_id
        for first, second in rows.select("text1", "text2").iter_rows()
    ]
    return rows.rename({"label": GIVEN}).with_columns(pl.Series(PAIR, ids, pl.String))
