"""The gold pairs: what people say of pairs, and which candidates they speak of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from pairkit.app.errors import DataError
from pairkit.app.printable import without_apostrophes

_COLUMNS = ("text1", "text2", "label")
_EXAMPLES = 5
_EXAMPLE_CHARS = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """How many gold pairs something holds of, with a few of them."""

    count: int
    examples: tuple[str, ...]

    @classmethod
    def of(cls, pairs: pl.DataFrame) -> Finding:
        """Count pairs and show the first, shortened."""
        shown = pairs.head(_EXAMPLES).select("text1", "text2").iter_rows()
        return cls(len(pairs), tuple(" | ".join(text[:_EXAMPLE_CHARS] for text in pair) for pair in shown))


@dataclass(frozen=True, slots=True)
class Gold:
    """Gold pairs, each once."""

    pairs: pl.DataFrame
    repeated: int
    contradictory: Finding
    graded: bool
    threshold: float


def read_gold(rows: pl.DataFrame, threshold: float | None) -> Gold:
    """Check gold rows and tell `same` from the rest."""
    labels = _checked(rows)
    graded = not labels.is_in([0.0, 1.0]).all()
    least = _half(labels) if threshold is None else threshold
    known = rows.select("text1", "text2").with_columns(
        label=labels, same=labels >= least, key=pl.struct(normalised("text1"), normalised("text2"))
    )
    several = pl.col("label").n_unique().over("key") > 1
    contradictory = known.filter(several).unique("key", keep="first", maintain_order=True)
    consistent = known.filter(~several)
    pairs = consistent.unique("key", keep="first", maintain_order=True)
    return Gold(pairs, len(consistent) - len(pairs), Finding.of(contradictory), graded, least)


def normalised(column: str) -> pl.Expr:
    """A text as it is compared: Unicode's compatible forms, letter case and white space don't matter.

    Nor do apostrophes that a sheet has before what would be a formula, see `pairkit.app.printable`.
    """
    plain = without_apostrophes(pl.col(column)).str.normalize("NFKC").str.to_lowercase()
    return plain.str.replace_all(r"\s+", " ").str.strip_chars().alias(column)


def _checked(rows: pl.DataFrame) -> pl.Series:
    if missing := [name for name in _COLUMNS if name not in rows.columns]:
        raise DataError(
            f"gold pairs have columns {', '.join(rows.columns)}; add {', '.join(missing)} "
            "(two texts, and a label that a person gave them)"
        )
    if rows.is_empty():
        raise DataError("there are no gold pairs; label some by hand, with columns text1, text2, label")
    labels = rows["label"].cast(pl.Float64, strict=False)
    bad = (~labels.is_finite()).fill_null(value=True) | rows["text1"].is_null() | rows["text2"].is_null()
    if bad.any():
        row = int(bad.arg_true()[0])
        raise DataError(
            f"gold row {row + 1} has label {rows['label'][row]!r}; expected two texts and a number: "
            "fix the row"
        )
    return labels


def _half(labels: pl.Series) -> float:
    if labels.is_in([0.0, 1.0]).all():
        return 0.5
    low, high = np.min(labels.to_numpy()), np.max(labels.to_numpy())
    if low == high:
        raise DataError(f"all gold labels are {low:g}; say from which label on two texts mean the same")
    return float(low + high) / 2
