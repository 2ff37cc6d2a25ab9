"""The labels of one table as words and as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from pairkit.base.errors import DataError
from pairkit.base.printable import INVISIBLE, one_line
from pairkit.dataset.labels import MISSING, Meaning, as_word

_DECIMAL_COMMA = r"^([+-]?\d+),(\d+)(\s*%)?$"
_SHOWN_CHARS = 60  # of a label in a message


@dataclass(frozen=True)
class LabelColumn:
    """The labels of one table with the numbers of their rows; or each distinct one with its first row."""

    values: pl.Series
    rows: pl.Series
    times: pl.Series  # how often each occurs
    where: str  # the table, in messages
    texts: tuple[str, str]  # names of the columns of the texts
    classes: Sequence[str] = ()  # names of the classes that numbers stand for

    @cached_property
    def words(self) -> pl.Series:
        """The labels as texts in NFKC, numbers of classes as class names, with decimal points for commas."""
        visible = self.values.cast(pl.String).str.replace_all(INVISIBLE, "")
        # NFKC, so that numbers in full width are numbers.
        words = visible.str.normalize("NFKC").str.strip_chars()
        words = words.str.replace(_DECIMAL_COMMA, "$1.$2$3")
        if not self.values.dtype.is_integer():
            return words
        numbers = map(str, range(len(self.classes)))
        return words.replace(dict(zip(numbers, self.classes, strict=True)))

    @cached_property
    def numbers(self) -> pl.Series:
        """The labels as float64; null for words."""
        if self.values.dtype.is_numeric() and not self.classes:
            return self.values.cast(pl.Float64)
        words = self.words
        is_percent = words.str.ends_with("%").fill_null(value=False)
        plain = words.str.strip_suffix("%").str.strip_chars_end()
        numbers = plain.cast(pl.Float64, strict=False)
        return (numbers / 100).zip_with(is_percent, numbers)

    def known(self, meanings: Mapping[str, Meaning]) -> dict[str, str]:
        """The labels with a meaning, each with its name there: its word, or the number of its class."""
        known: dict[str, str] = {}
        if not meanings:
            return known
        for word in self.words.unique(maintain_order=True):
            names = [as_word(word)]
            names += [
                str(number) for number, name in enumerate(self.classes) if name == word
            ]
            for name in names:
                if name in meanings:
                    known.setdefault(word, name)
        return known

    def is_known(self, meanings: Mapping[str, Meaning]) -> pl.Series:
        """A mask of labels with a meaning."""
        return self.words.is_in([*self.known(meanings)], nulls_equal=True)

    def missing(self) -> pl.Series:
        """A mask of rows without a label."""
        is_finite = self.numbers.is_finite().fill_null(value=True)
        missing = self.values.is_null() | ~is_finite
        if not self.values.dtype.is_numeric():
            missing |= self.words.str.contains(f"(?i){MISSING}").fill_null(value=True)
        return missing

    def filter(self, kept: pl.Series) -> LabelColumn:
        """The labels of these rows."""
        return replace(
            self,
            values=self.values.filter(kept),
            rows=self.rows.filter(kept),
            times=self.times.filter(kept),
        )

    def distinct(self) -> LabelColumn:
        """Each distinct label once, which is enough to decide their meaning."""
        values = self.values
        if isinstance(values.dtype, pl.Categorical | pl.Enum):
            values = values.cast(pl.String)
        columns = {"value": values, "row": self.rows, "times": self.times}
        by_value = pl.DataFrame(columns).group_by("value", maintain_order=True)
        distinct = by_value.agg(pl.first("row"), pl.sum("times"))
        return replace(
            self,
            values=distinct["value"].alias(values.name),
            rows=distinct["row"],
            times=distinct["times"],
        )

    def refuse(self, rows: pl.Series, message: str) -> None:
        """Raise `error` if any row is selected."""
        if rows.any():
            raise self.error(rows, message)

    def error(self, rows: pl.Series, message: str) -> DataError:
        """An error for the first selected row, whose label replaces `{label}` in the message."""
        place = rows.fill_null(value=False).arg_max() or 0
        label = one_line(repr(self.values[place]), _SHOWN_CHARS)
        message = message.replace("{label}", label)
        return DataError(message, path=self.where, row=int(self.rows[place]))
