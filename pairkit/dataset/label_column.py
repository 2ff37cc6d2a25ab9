"""The labels of one table: as texts, as numbers, counted, and refused with file and row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import polars as pl

from pairkit.app.errors import DataError
from pairkit.app.printable import one_line
from pairkit.dataset.labels import as_word

_SHOWN_CHARS = 60  # of a label in a message


class Found(NamedTuple):
    """Of distinct values, the row in which each stands first, from 0, and how often each is there."""

    first: pl.Series
    times: pl.Series


@dataclass(frozen=True)
class LabelColumn:
    """The labels of one table."""

    values: pl.Series
    where: str
    texts: tuple[str, str]
    classes: Sequence[str] = ()
    first_row: int = 1
    found: Found | None = None

    @cached_property
    def words(self) -> pl.Series:
        """The labels as texts; those that stand for classes by their names."""
        words = self.values.cast(pl.String).str.strip_chars()
        if not self.values.dtype.is_integer() or not self.classes:
            return words
        names = {str(number): name for number, name in enumerate(self.classes)}
        return words.replace(names)

    @cached_property
    def numbers(self) -> pl.Series:
        """The labels as float64, null where one is no number."""
        if self.values.dtype == pl.Boolean:
            return pl.Series(self.values.name, [None] * len(self.values), pl.Float64)
        plain = self.values.dtype.is_numeric() and not self.classes
        return (self.values if plain else self.words).cast(pl.Float64, strict=False)

    def names(self, word: str) -> tuple[str, ...]:
        """What one of `words` can be called: by its class, and by the class's number."""
        numbers = [str(number) for number, name in enumerate(self.classes) if name == word]
        return as_word(word), *numbers

    def counts(self) -> Iterator[tuple[str, int]]:
        """How often each of `words` is there, in the order in which they come first."""
        count = pl.lit(1) if self.found is None else self.found.times
        table = self.words.alias("word").to_frame().with_columns(count.alias("count"))
        yield from table.group_by("word", maintain_order=True).agg(pl.col("count").sum()).iter_rows()

    def check_present(self) -> None:
        """Refuse rows without a label."""
        missing = self.values.is_null()
        if not self.values.dtype.is_numeric():
            missing |= (self.words == "").fill_null(value=True)
        missing |= self.numbers.is_nan().fill_null(value=False)
        self.refuse(missing, "label {label}: there is none; fill it, or drop the row")

    def refuse(self, rows: pl.Series, says: str) -> None:
        """Raise `error` if there is any such row."""
        if rows.any():
            raise self.error(rows, says)

    def error(self, rows: pl.Series, says: str) -> DataError:
        """What is wrong with the first of these rows; `{label}` in what it says is its label."""
        place = rows.fill_null(value=False).arg_max() or 0
        label = one_line(repr(self.values[place]), _SHOWN_CHARS)
        message = says.replace("{label}", label)
        row = place if self.found is None else int(self.found.first[place])
        return DataError(message, path=self.where, row=self.first_row + row)


def distinct_labels(columns: Sequence[LabelColumn]) -> LabelColumn:
    """Each value of one table's labels once, as they come first: enough to decide what labels mean."""
    start = columns[0].first_row
    table = pl.concat(_counted(column, column.first_row - start) for column in columns)
    each = table.group_by("value").agg(pl.col("first").min(), pl.col("count").sum()).sort("first")
    values = each["value"].alias(columns[0].values.name)
    return replace(columns[0], values=values, found=Found(each["first"], each["count"]))


def _counted(column: LabelColumn, before: int) -> pl.DataFrame:
    """The values, in which row of the table each is first, and how often; `before` rows come before these."""
    count = len(column.values)
    first, times = column.found or (
        pl.int_range(count, dtype=pl.Int64, eager=True),
        pl.repeat(1, count, dtype=pl.Int64, eager=True),
    )
    own = column.values
    values = own.cast(pl.String) if isinstance(own.dtype, pl.Categorical | pl.Enum) else own
    return pl.DataFrame({"value": values, "first": first + before, "count": times})
