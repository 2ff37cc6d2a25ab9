"""All rows of a dataset in one frame, each on one of two sides: negative or positive, low or high score."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from polars.datatypes import DataTypeClass

from pairkit.app.errors import DataError
from pairkit.dataset.labels import LabelsRead
from pairkit.dataset.records import PairDataset
from pairkit.system.folders import read_object
from pairkit.system.seeded import in_turns, keyed_hash

SIDE = "side"  # 0 or 1
_KNOWN = (
    "text1", "text2", "label", "repo", "number1", "number2", "url1", "url2", "created_at1", "created_at2",
    "relation", "evidence", "negative_kind", "llms", "project", "system", "source", "genre",
)  # fmt: skip
_NAMED_BY = {  # columns that say where a row comes from, the most telling first
    "repo": "repository",
    "llms": "LLM",
    "project": "project",
    "system": "system",
    "source": "source",
    "genre": "genre",
}
NOT_RECORDED = "not recorded"


@dataclass(frozen=True, slots=True)
class ReportRows:
    """A dataset as the report sees it."""

    frame: pl.DataFrame
    keys: tuple[str, str]
    names: tuple[str, str]
    cut: float | None
    named_by: str | None

    @property
    def splits(self) -> list[str]:
        """The splits that have rows, in the dataset's order."""
        return self.frame["split"].unique(maintain_order=True).to_list()

    def side(self, side: int, split: str | None = None) -> pl.DataFrame:
        """The rows of one side, of one split or of all."""
        wanted = pl.col(SIDE) == side
        return self.frame.filter(wanted if split is None else wanted & (pl.col("split") == split))


def collect_rows(dataset: PairDataset) -> ReportRows:
    """Join the splits and put every row on a side.

    Graded rows are cut at the middle between the lowest and the highest score found: two halves of whatever
    scale was used.
    """
    if not len(dataset):
        raise DataError(
            "no rows, so there is nothing to report on; give a dataset with pairs", path=dataset.source
        )
    frame = _joined(dataset)
    cut = None
    keys = names = ("negative", "positive")
    if dataset.label_kind == "graded":
        low, high = (
            float(bound) for bound in frame.select(pl.min("label"), pl.max("label").alias("top")).row(0)
        )
        cut = (low + high) / 2
        keys, names = ("low", "high"), (f"score below {cut:g}", f"score {cut:g} or more")
    side = (pl.col("label") >= (1 if cut is None else cut)).cast(pl.Int8).alias(SIDE)
    source = next((name for name in _NAMED_BY if name in frame.columns), None)
    frame = frame.with_columns(side, _kind(frame).alias("kind")).with_columns(
        _source(frame, source).alias("source")
    )
    return ReportRows(frame, keys, names, cut, _NAMED_BY[source] if source else None)


def _joined(dataset: PairDataset) -> pl.DataFrame:
    parts = [
        rows.select(pl.lit(split).alias("split"), *(name for name in _KNOWN if name in rows.columns))
        for split, rows in dataset.splits.items()
        if rows.height
    ]
    try:
        return pl.concat(parts, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        reason = str(error).split("\n")[0][:200]
        raise DataError(
            f"columns differ from split to split ({reason}); make them alike", path=dataset.source
        ) from error


def _source(frame: pl.DataFrame, column: str | None) -> pl.Expr:
    """Lists such as `llms` become one name, as a row is counted once."""
    if column is None:
        return pl.lit(None, dtype=pl.String)
    if frame.schema[column] == pl.List(pl.String):
        return pl.col(column).list.sort().list.join(" + ")
    return _plain(pl.col(column), frame.schema[column])


def _kind(frame: pl.DataFrame) -> pl.Expr:
    """How a negative was drawn, or what made a positive one: relation and evidence, as far as is known."""
    known: list[pl.Expr] = []
    if "negative_kind" in frame.columns:
        known.append(_plain(pl.col("negative_kind"), frame.schema["negative_kind"]))
    evidence = frame.schema.get("evidence")
    if isinstance(evidence, pl.Struct) and (dtype := dict(evidence).get("kind")) is not None:
        kind = _plain(pl.col("evidence").struct.field("kind"), dtype)
        if "relation" in frame.columns:
            relation = _plain(pl.col("relation"), frame.schema["relation"])
            known.append(pl.concat_str(relation, kind, separator=": "))
        known.append(kind)
    return pl.coalesce(*known, pl.lit(NOT_RECORDED))


def _plain(value: pl.Expr, dtype: pl.DataType | DataTypeClass) -> pl.Expr:
    """The value as text; nothing where it is no single value."""
    return pl.lit(None, dtype=pl.String) if dtype.is_nested() else value.cast(pl.String)


FILE = "statistics.json"

# Key of statistics.json to what its reasons are about; of `gis` first, then of `label`.
_TITLES = {
    "rejected_issues": "Issues left out",
    "dropped_positives": "Positives dropped",
    "dropped_negatives": "Negatives dropped",
    "missing_negatives": "Negatives that could not be drawn, by split",
    "uncertain": "Threads whose verdict was left open",
    "not": "Threads judged not to be duplicates",
    "removed_from_texts": "Taken out of texts",
    "dropped": "Proposals and texts dropped",
    "dropped_pairs": "Pairs dropped",
}


def drop_reasons(source: str) -> dict[str, dict[str, int]]:
    """What was dropped: what it is about, to reason, to number, the most frequent first."""
    path = Path(source) / FILE
    if not path.is_file():
        return {}
    statistics = read_object(path)
    verdicts = statistics.get("verdicts")
    sections = {**statistics, **(verdicts if isinstance(verdicts, dict) else {})}
    return {title: found for key, title in _TITLES.items() if (found := _reasons(sections.get(key)))}


def skipped_labels(labels: LabelsRead | None) -> dict[str, dict[str, int]]:
    """Rows that were left out while the dataset was read, by their label."""
    return {"Rows skipped by their label": _reasons(labels.skipped)} if labels and labels.skipped else {}


def _reasons(section: Any) -> dict[str, int]:
    if not isinstance(section, Mapping):
        return {}
    counts = {str(reason): n for reason, n in section.items() if isinstance(n, int) and n > 0}
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


_OF_EACH_SIDE = 10


@dataclass(frozen=True, slots=True)
class ReportSample:
    """Pairs of one side and kind, as rows by column name."""

    side: int
    kind: str
    pairs: list[dict[str, Any]]


def choose_samples(rows: ReportRows, seed: int) -> list[ReportSample]:
    """About ten positives and ten negatives, spread over the kinds of either; positives first."""
    return [sample for side in (1, 0) for sample in _of_side(rows.side(side), side, seed)]


def _of_side(part: pl.DataFrame, side: int, seed: int) -> list[ReportSample]:
    sizes = part.group_by("kind").len().sort("len", "kind", descending=[True, False])
    quotas = in_turns(dict(sizes.iter_rows()), max(_OF_EACH_SIDE, sizes.height))  # some of every kind
    return [
        ReportSample(side, kind, _chosen(part.filter(pl.col("kind") == kind), wanted, seed))
        for kind, wanted in quotas.items()
    ]


def _chosen(part: pl.DataFrame, wanted: int, seed: int) -> list[dict[str, Any]]:
    texts = part.select("text1", "text2").iter_rows()
    keys = [(keyed_hash(seed, "sample", *pair), place) for place, pair in enumerate(texts)]
    return [part.row(place, named=True) for _, place in heapq.nsmallest(wanted, keys)]
