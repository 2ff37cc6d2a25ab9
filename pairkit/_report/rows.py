"""All rows of a dataset in one frame, each on one of two sides: negative or positive, low or high score."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from polars.datatypes import DataTypeClass

from pairkit.errors import DataError
from pairkit.records import PairDataset

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
class Rows:
    """A dataset as the report sees it.

    Attributes:
        frame: split, text1, text2, label, side, source (null: unknown), kind, and what else is known.
        keys: What the sides are called in JSON.
        names: What they are called on the page.
        cut: The score from which a graded row counts as high; None for labels of 0 and 1.
        named_by: What a source is ("repository"); None if the dataset doesn't tell.
    """

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


def collect_rows(dataset: PairDataset) -> Rows:
    """Join the splits and put every row on a side.

    Graded rows are cut at the middle between the lowest and the highest score found: two halves of whatever
    scale was used.

    Raises:
        DataError: There are no rows, or the splits' columns differ in kind.
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
    return Rows(frame, keys, names, cut, _NAMED_BY[source] if source else None)


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
