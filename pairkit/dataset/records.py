"""The pair dataset, which the packages exchange as a folder.

`docs/formats/dataset.md` describes it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import polars as pl

from pairkit.base.cli.result_table import ResultTable, html_table
from pairkit.base.printable import one_line
from pairkit.base.system.files import write_text
from pairkit.base.system.text_lines import note_once
from pairkit.dataset.frames import as_written, is_plain, join_frames
from pairkit.dataset.labels import SCORE_MAX, LabelsRead, describe_labels

_LOG = logging.getLogger(__name__)

SPLITS = ("train", "validation", "test")
CONFIG_FOLDERS = {"default": "data", "positive": "positive", "triplet": "triplet"}
_SHOWN_ROWS = 5  # in a notebook
_SHOWN_CHARS = 200  # of each text in a notebook
_MAX_REPR = 1000  # characters

LabelKind = Literal["binary", "graded"]
# The heading and format of the mean label.
MEAN_LABEL: dict[LabelKind, tuple[str, str]] = {
    "binary": ("label 1", ".1%"),
    "graded": ("mean label", ".2f"),
}


_NO_ROWS = {
    "split": pl.String,
    "text1": pl.String,
    "text2": pl.String,
    "label": pl.Int64,
}

# Columns of queries and search results to be judged, as `aoe sample-pairs` writes them.
QUERY_COLUMNS = ("query_top", "query_results", "query_share")

# Start of the columns with a result's rank for each candidate; null if it isn't a top
# result.
RANK = "rank of "

# Columns beside those of the source: its file, its row, and lists of texts.
FILE = "file of the source"
ROW = "row of the source"
NEGATIVES = "negatives"

# Rows that lack a text or a label, and were left out.
BAD_ROWS = {
    "file": pl.String,
    "row": pl.Int64,
    "reason": pl.String,
    "text1": pl.String,
    "text2": pl.String,
    "label": pl.String,
}

# Columns with the origin of rows.
_TEXTS = (
    "repo",
    "repo2",
    "number1",
    "number2",
    "url1",
    "url2",
    "cluster",
    "relation",
    "negative_kind",
)
_TYPED = (*_TEXTS, "confidence")
_EVIDENCE = ("kind", "url", "who", "when")

# Pairs that occur several times.
PAIR = ("low text", "high text")  # columns, as `unordered` makes them

# Labels that are closer than this share of the scale agree: a fifth, but for rounding.
_GRADE = 0.199


# Without `eq`, as frames can't be compared by ==.
@dataclass(frozen=True, repr=False, eq=False)
class PairDataset:
    """Pairs by split; each frame has text1, text2, label, and then other columns.

    `label_kind` is `binary` (integers 0 and 1) or `graded` (floats in [0, 5]) for all
    splits. `labels` has the meaning of the labels and the counts of rows skipped by
    label; None if the source had no labels. `bad_rows` are the rows left out because
    they lack a text or label.
    """

    splits: Mapping[str, pl.DataFrame]
    source: str
    label_kind: LabelKind = "binary"
    labels: LabelsRead | None = None
    bad_rows: pl.DataFrame | None = None

    def __len__(self) -> int:
        return sum(frame.height for frame in self.splits.values())

    def __getitem__(self, split: str) -> pl.DataFrame:
        """The rows of a split."""
        return self.splits[split]

    @property
    def rows(self) -> pl.DataFrame:
        """The rows of all splits as one DataFrame, with the column `split` first.

        An existing column of this name becomes `source_split`.
        """
        if not self.splits:
            return pl.DataFrame(schema=_NO_ROWS)
        return join_frames(
            [named_split(frame, name) for name, frame in self.splits.items()]
        )

    def table(self) -> ResultTable:
        """The number of rows and the labels of each split."""
        label, form = MEAN_LABEL[self.label_kind]
        caption = describe_labels(self.labels)
        counts = ResultTable(
            "split", "pairs", label, title=self.source, caption=caption
        )
        for name, frame in self.splits.items():
            mean = f"{mean_label(frame):{form}}" if frame.height else None
            counts.add_row(name, frame.height, mean)
        return counts

    def __repr__(self) -> str:
        mean = mean_label(self.rows)
        labels = f"scores of {mean:.2f} on average"
        if self.label_kind == "binary":
            labels = f"labels 0 and 1 ({100 * mean:.1f} % are 1)"
        sizes = ", ".join(
            f"{name} {frame.height:,}" for name, frame in self.splits.items()
        )
        text = f"PairDataset of {self.source}: {len(self):,} pairs, {labels}; {sizes}"
        return one_line(text, _MAX_REPR)

    def _repr_html_(self) -> str:
        begins = pl.col("text1", "text2").cast(pl.String).str.slice(0, _SHOWN_CHARS)
        few = self.rows.head(_SHOWN_ROWS).select("split", begins, "label")
        counts = self.table()._repr_html_()
        return counts + html_table(few.columns, few.rows(), words=range(3))


def all_texts(rows: pl.DataFrame) -> pl.Series:
    """The first texts of all pairs, then the second ones."""
    return pl.concat([rows["text1"], rows["text2"]])


def in_split_order(splits: Iterable[str]) -> list[str]:
    """Names of splits in the usual order, then others alphabetically."""
    names = {*splits}
    usual = [name for name in SPLITS if name in names]
    return usual + sorted(names.difference(SPLITS))


def named_split(frame: pl.DataFrame, split: str) -> pl.DataFrame:
    """Rows with the column `split` first.

    An existing one becomes `source_split`, or `source_source_split` if that exists.
    """
    name = "split"
    while name in frame.columns:
        name = f"source_{name}"
    frame = frame.rename({"split": name}, strict=False)
    return frame.select(pl.lit(split).alias("split"), pl.all())


def mean_label(frame: pl.DataFrame) -> float:
    """The mean label of a frame; 0 for no rows."""
    total = frame["label"].cast(pl.Float64).sum()
    return float(total) / max(1, frame.height)


def is_search(rows: pl.DataFrame) -> bool:
    """Whether rows are queries and search results."""
    return {*QUERY_COLUMNS} <= {*rows.columns}


def by_reason(bad: pl.DataFrame) -> Iterator[tuple[str, int, str]]:
    """Reasons by frequency, each with its count and the first row as `file:row`."""
    first = pl.format("{}:{}", "file", "row").first()
    counts = bad.group_by("reason", maintain_order=True).agg(pl.len(), first=first)
    yield from counts.sort("len", descending=True, maintain_order=True).iter_rows()


def format_bad_rows(bad: pl.DataFrame) -> str:
    """The counts by reason as text."""
    reasons = []
    for reason, count, first in by_reason(bad):
        place = one_line(first) if count == 1 else f"the first is {one_line(first)}"
        reasons.append(f"{reason.replace('_', ' ')} in {count:,} ({place})")
    return "; ".join(reasons)


def join_bad_rows(frames: Iterable[pl.DataFrame | None]) -> pl.DataFrame:
    """The bad rows of several tables as one; a table may be None."""
    tables = [frame for frame in frames if frame is not None]
    return pl.concat([pl.DataFrame(schema=BAD_ROWS), *tables])


def report_bad_rows(bad: pl.DataFrame | None) -> None:
    """Log a warning with the counts by reason, which commands print on stderr."""
    if bad is not None and bad.height:
        _LOG.warning("rows left out: %s", format_bad_rows(bad))


def write_bad_rows(out: Path, bad: pl.DataFrame | None) -> None:
    """Write rows that were left out to `OUT.bad-rows.jsonl`, and log its name."""
    if bad is not None and bad.height:
        out = out.resolve() if out.name in ("", "..") else out
        path = out.with_name(f"{out.name}.bad-rows.jsonl")
        write_text(path, bad.write_ndjson())
        _LOG.warning("rows left out are in %s", path)


def with_provenance(dataset: PairDataset) -> PairDataset:
    """The dataset with known columns in known types, see `typed_rows`."""
    splits = {name: typed_rows(rows) for name, rows in dataset.splits.items()}
    return replace(dataset, splits=splits)


def count_generated_rows(rows: pl.DataFrame) -> int:
    """The number of rows with generated texts, which name LLMs or rules in `llms`."""
    if not {"llms", "prompt_hashes"} <= {*rows.columns}:
        return 0
    named = rows["llms"]
    if isinstance(named.dtype, pl.List):
        has_names = named.list.len() > 0
    elif named.dtype == pl.String:
        has_names = ~named.is_in(["", "[]"])  # an empty list in CSV
    else:
        return 0
    return int(has_names.sum())


def typed_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with known columns in known types, or without them if they can't be cast."""
    columns = []
    for name in _TYPED:
        if name in rows.columns and is_plain(rows.schema[name]):
            column = rows[name]
            columns.append(as_written(column) if name in _TEXTS else _numbers(column))
    if "evidence" in rows.columns:
        columns += _typed_evidence(rows["evidence"])
    return rows.drop(*_TYPED, "evidence", strict=False).with_columns(columns)


def _numbers(column: pl.Series) -> pl.Series:
    """The numbers of a column; other values become null, with a warning."""
    numbers = column.cast(pl.Float64, strict=False)
    others = column.filter(numbers.is_null() & column.is_not_null()).cast(pl.String)
    others = others.filter(others.str.strip_chars() != "")
    if len(others):
        example = one_line(others[0])
        note_once(
            "%s: values that are not numbers are left out: %s", column.name, example
        )
    return numbers


def _typed_evidence(column: pl.Series) -> list[pl.Series]:
    """The evidence in known types, if it has all fields."""
    types = dict(column.dtype) if isinstance(column.dtype, pl.Struct) else {}
    plain = {name for name, dtype in types.items() if is_plain(dtype)}
    if not plain.issuperset(_EVIDENCE):
        return []
    texts = pl.Struct(dict.fromkeys(_EVIDENCE, pl.String))
    return [column.cast(texts, strict=False)]


def label_scale(labels: pl.Series) -> float:
    """The highest label of the scale of these labels."""
    return SCORE_MAX if (labels > 1).any() else 1.0


def labels_differ(scale: float) -> pl.Expr:
    """Whether a row's pair has labels that are a fifth of the scale or more apart."""
    label = pl.col("label")
    return (label.max() - label.min()).over(PAIR) > _GRADE * scale


def differs_from_first(scale: float) -> pl.Expr:
    """Whether a row's label differs from that of the first row of its pair.

    The least difference is that of `labels_differ`.
    """
    label = pl.col("label")
    first = label.first().over(PAIR)
    return (label - first).abs() > _GRADE * scale


def unordered(first: str | pl.Expr, second: str | pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """The columns `PAIR`, which are equal for a row and its reverse."""
    low = pl.min_horizontal(first, second)
    high = pl.max_horizontal(first, second)
    low_name, high_name = PAIR
    return low.alias(low_name), high.alias(high_name)
