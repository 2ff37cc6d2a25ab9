"""What labels mean: 0 and 1, scores, or classes. What is not certain is refused, with the words that say it.

| found | read as |
|---|---|
| 0 and 1 | 1 is similar; refused beside NLI columns, where 0 is often entailment |
| true, false; yes, no; duplicate, not_duplicate and the like | 1 and 0 |
| entailment, contradiction, neutral (words or class names) | 1, 0, left out |
| numbers in [0, 5] with fractions, in a column such as `score`, or float32 | scores |
| whole numbers from 0 to 5, if 5 occurs | scores |
| other whole numbers, such as 0, 1 and 2 | refused: they may be classes |
| anything else | refused, with its first row |

A person decides otherwise with `labels` (a number, or skip, for a word or number; others keep theirs) and
`label_range` (the scale of scores, which becomes 0 to 1). That neutral pairs are left out is how the papers
train on NLI.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import polars as pl

from pairkit.app.errors import DataError
from pairkit.app.printable import one_line
from pairkit.dataset.labels import (
    LEAVE_OUT,
    SCORE_MAX,
    SKIP,
    LabelRules,
    LabelsRead,
    Meaning,
    as_word,
    score_scale,
)

_NLI: Mapping[str, Meaning] = {"entailment": 1.0, "contradiction": 0.0, "neutral": SKIP}
_CERTAIN: tuple[Mapping[str, Meaning], ...] = (
    {"true": 1.0, "false": 0.0},
    {"yes": 1.0, "no": 0.0},
    {"duplicate": 1.0, "not_duplicate": 0.0},
    {"equivalent": 1.0, "not_equivalent": 0.0},
    {"paraphrase": 1.0, "not_paraphrase": 0.0},
    {"entailment": 1.0, "not_entailment": 0.0},
    _NLI,
)
_NO_GOLD: Mapping[str, Meaning] = {"-": SKIP, "-1": SKIP}  # beside classes: nobody agreed, or none is told
_DEGREES = ("score", "similarity", "similarity_score", "relatedness_score", "relevance")
_NLI_TEXTS = (("premise", "hypothesis"), ("question", "sentence"))
_OF_NLI = {-1.0, 0.0, 1.0, 2.0}
_NAMED = 6  # labels that a message names


_SHOWN_CHARS = 60  # of a label in a message


class DistinctValues(NamedTuple):
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
    found: DistinctValues | None = None

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

    def missing(self) -> pl.Series:
        """Which rows have no label."""
        missing = self.values.is_null()
        if not self.values.dtype.is_numeric():
            missing |= (self.words == "").fill_null(value=True)
        return missing | self.numbers.is_nan().fill_null(value=False)

    def filter(self, kept: pl.Series) -> LabelColumn:
        """Some of the labels."""
        found = self.found and DistinctValues(*(own.filter(kept) for own in self.found))
        return replace(self, values=self.values.filter(kept), found=found)

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


def distinct_labels(column: LabelColumn) -> LabelColumn:
    """Each value of a table's labels once, as they come first: enough to decide what labels mean."""
    own = column.values
    values = own.cast(pl.String) if isinstance(own.dtype, pl.Categorical | pl.Enum) else own
    each = (
        values.alias("value")
        .to_frame()
        .with_row_index("first")
        .group_by("value", maintain_order=True)
        .agg(pl.col("first").min().cast(pl.Int64), pl.len().alias("count"))
    )
    return replace(
        column, values=each["value"].alias(own.name), found=DistinctValues(each["first"], each["count"])
    )


@dataclass(frozen=True)
class LabelMeaning:
    """What labels count as, once that is decided over all tables that belong together."""

    words: Mapping[str, Meaning] | None = None
    scale: tuple[float, float] | None = None

    def of(self, column: LabelColumn) -> pl.Series:
        """float64 labels, null where the row is to be left out."""
        labels = column.numbers if self.words is None else _by_word(column, self.words)
        return labels if self.scale is None else _scaled(column, labels, *self.scale)


def decide_labels(columns: Sequence[LabelColumn], rules: LabelRules) -> tuple[LabelMeaning, LabelsRead]:
    """What the labels of tables count as that belong together; each value of a table once will do."""
    for column in columns:
        column.refuse(column.missing(), f"label {{label}}: there is none; fill it, drop the row, {LEAVE_OUT}")
    given = rules.values or {}
    rest = [_without(column, given) for column in columns]
    is_words = any(column.numbers.is_null().any() for column in rest)
    known = _certain_words(columns, rest, given) if is_words else {}
    if not is_words and rules.scale is None:
        _check_beside_numbers(columns, rest, given)
        _check_numbers(rest, [column.numbers for column in rest])
    told = _in_use(columns, {**given, **known})
    skipped = _skipped(columns, {**given, **known})
    if told and not is_words:
        known = {as_word(word): float(word) for column in rest for word in column.words}
    meaning = LabelMeaning({**known, **given} if told else None, rules.scale)
    labels = [meaning.of(column) for column in columns]
    if rules.scale is not None:
        scores = "scores from {:g} to {:g}, made 0 to 1".format(*rules.scale)
        return meaning, LabelsRead(f"{told}, {scores}" if told else scores, skipped)
    for column, own in zip(columns, labels, strict=True):
        column.refuse((own < 0) | (own > SCORE_MAX), _OUTSIDE)
    binary = all(((own == 0) | (own == 1)).all() for own in labels)
    parts = [told] if told else []
    numbers = [column.numbers for column in rest if len(column.values)]
    if not is_words and (numbers or not told):
        parts.append(_in_words(numbers or labels, plain=binary))
    return meaning, LabelsRead(", ".join(parts), skipped, binary and not told)


def _without(column: LabelColumn, given: Mapping[str, Meaning]) -> LabelColumn:
    """The labels whose meaning was not given."""
    if not given:
        return column
    kept = column.words.is_in([word for word in column.words.unique() if _name(column, word, given) is None])
    return column.filter(kept)


def _check_beside_numbers(
    columns: Sequence[LabelColumn], rest: Sequence[LabelColumn], given: Mapping[str, Meaning]
) -> None:
    """Refuse numbers without a meaning if others were given one: 0 and 1 are classes then, too."""
    used = {_name(column, word, given) for column in columns for word in column.words.unique()}
    if any(name is not None and name.isdecimal() for name in used):
        for column in rest:
            column.refuse(column.numbers.is_not_null(), _lacks(given))


_OUTSIDE = (
    f"label {{label}}; expected 0 or 1, or a score from 0 to {SCORE_MAX:g}: say the scale of scores, such as"
    " --label-range 0,100 (label_range=), or what labels count as, such as --labels 1=0,2=1 (labels=)"
)


def _certain_words(
    columns: Sequence[LabelColumn], rest: Sequence[LabelColumn], given: Mapping[str, Meaning]
) -> Mapping[str, Meaning]:
    """What the words without a given meaning count as, if they are all of one line of `_CERTAIN`."""
    found = [*dict.fromkeys(as_word(word) for column in rest for word in column.words.unique())]
    names = {word: _plain_name(word) for word in found}
    declared = {_plain_name(name) for column in columns for name in (*column.classes, *given)}
    line = next((line for line in _CERTAIN if _fits(line, {*names.values()}, declared)), None)
    if line is None:
        raise _unknown_words(rest, found)
    known = {**line, **_NO_GOLD}
    return {word: known[names[word]] for word in sorted(found, key=lambda word: [*known].index(names[word]))}


def _fits(line: Mapping[str, Meaning], names: set[str], declared: set[str]) -> bool:
    """Whether these are classes of that line; `declared` are those that the dataset names, seen or not."""
    classes = names - _NO_GOLD.keys()
    without_gold_allowed = line is _NLI or declared
    told_apart = "neutral" not in classes or "contradiction" in classes | declared
    return (
        bool(classes)
        and classes <= line.keys()
        and (classes == names or bool(without_gold_allowed))
        and told_apart
    )


def _plain_name(word: str) -> str:
    """A class by one of its spellings: `Non-duplicate` is `not_duplicate`."""
    plain = as_word(word)
    if plain in _NO_GOLD:
        return plain
    plain = plain.replace("-", "_").replace(" ", "_")
    return f"not_{plain[4:]}" if plain.startswith("non_") else plain


_EXAMPLE = "entailment=1,contradiction=0,neutral=skip"


def _unknown_words(columns: Sequence[LabelColumn], found: Sequence[str]) -> DataError:
    told = ", ".join(one_line(word, 40) for word in sorted(found)[:_NAMED])
    told += ", …" if len(found) > _NAMED else ""
    known = max(_CERTAIN, key=lambda line: len({*map(_plain_name, found)} & line.keys()))
    odd = [word for word in sorted(found) if _plain_name(word) not in known]
    usual = {word: _format_meaning(value) for line in _CERTAIN for word, value in line.items()}
    usual |= {"0": "0", "1": "1"}
    example = ",".join(f"{one_line(word, 40)}={usual.get(_plain_name(word), SKIP)}" for word in odd[:_NAMED])
    column = next(column for column in columns if column.numbers.is_null().any())
    unknown = column.numbers.is_null() & column.words.is_in(
        [word for word in column.words.unique() if as_word(word) in odd]
    )
    return column.error(
        unknown if unknown.any() else column.numbers.is_null(),
        f"label {{label}}; expected 0 or 1, or a score from 0 to {SCORE_MAX:g}. Found {told}: map words to"
        f" numbers or skip, such as --labels {example or _EXAMPLE} (labels=)",
    )


def _by_word(column: LabelColumn, meanings: Mapping[str, Meaning]) -> pl.Series:
    """Each label as what its word counts as."""
    numbers: dict[str, float | None] = {}
    for word in column.words.unique(maintain_order=True):
        name = _name(column, word, meanings)
        if name is None:
            raise column.error(column.words == word, _lacks(meanings))
        value = meanings[name]
        numbers[word] = None if isinstance(value, str) else value
    return column.words.replace_strict(numbers, default=None, return_dtype=pl.Float64)


def _name(column: LabelColumn, word: str, meanings: Mapping[str, Meaning]) -> str | None:
    """By which of its names a word has a meaning."""
    return next((name for name in column.names(word) if name in meanings), None)


def _in_use(columns: Sequence[LabelColumn], meanings: Mapping[str, Meaning]) -> str:
    """The meanings that some label has, in words."""
    used = {_name(column, word, meanings) for column in columns for word in column.words.unique()}
    return ", ".join(f"{word}={_format_meaning(value)}" for word, value in meanings.items() if word in used)


def _skipped(columns: Sequence[LabelColumn], meanings: Mapping[str, Meaning]) -> dict[str, int]:
    """How many rows are left out, by word."""
    skipped = Counter[str]()
    for column in columns:
        for word, count in column.counts():
            name = _name(column, word, meanings)
            if name is not None and isinstance(meanings[name], str):
                skipped[as_word(word)] += count
    return dict(skipped)


def _lacks(meanings: Mapping[str, Meaning]) -> str:
    known = one_line(", ".join(meanings), 200)
    return (
        f"label {{label}} is none of those whose meaning was given ({known}); add to --labels (labels=) what"
        " it counts as: a number, or skip to leave such rows out"
    )


def _format_meaning(value: Meaning) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _scaled(column: LabelColumn, labels: pl.Series, low: float, high: float) -> pl.Series:
    outside = (labels < low) | (labels > high)
    says = f"label {{label}} is outside of the label range {low:g},{high:g}; widen it, or drop the row"
    column.refuse(outside, says)
    return (labels - low) / (high - low)


def _check_numbers(columns: Sequence[LabelColumn], labels: Sequence[pl.Series]) -> None:
    """Refuse whole numbers that may be classes."""
    if any((own != own.round()).any() for own in labels) or any(map(_is_score, columns)):
        return
    found = set[float]().union(*(own.unique() for own in labels))
    if found <= {0.0, 1.0}:
        for column in columns:
            _refuse_beside_nli(column)
    elif found <= _OF_NLI | {3.0, 4.0}:
        says = _may_be_classes(sorted(found))
        for column, own in zip(columns, labels, strict=True):
            column.refuse((own < 0) | (own > 1), says)


def _refuse_beside_nli(column: LabelColumn) -> None:
    one, other = column.texts
    if (one.lower(), other.lower()) in _NLI_TEXTS:
        every = column.numbers.is_not_null()
        column.refuse(
            every,
            f"label {{label}} beside {one} and {other}: in NLI 0 often is entailment; say what it is here:"
            " --labels 0=1,1=0 or --labels 0=0,1=1 (labels=)",
        )


def _may_be_classes(found: Sequence[float]) -> str:
    as_nli = {0.0: "1", 1.0: SKIP, 2.0: "0"} if {0.0, 2.0} <= {*found} <= _OF_NLI else {}
    counts = as_nli or {found[0]: "0", found[-1]: "1"}
    ways = ",".join(f"{number:g}={counts.get(number, SKIP)}" for number in found)
    range_ = "" if {-1.0, 2.0} <= {*found} else f" or --label-range {found[0]:g},{found[-1]:g} (label_range=)"
    return (
        f"label {{label}}: {', '.join(f'{number:g}' for number in found)} may be classes (in NLI 0 often is"
        f" entailment, 1 neutral, 2 contradiction) or scores; say which: --labels {ways} (labels=){range_}"
    )


def _is_score(column: LabelColumn) -> bool:
    """Whether name or type say that these are scores; a pair dataset's are 32-bit floats."""
    return column.values.name.lower() in _DEGREES or column.values.dtype == pl.Float32


def _in_words(labels: Sequence[pl.Series], *, plain: bool) -> str:
    every = pl.concat([*labels]).to_numpy()
    if plain or not len(every):
        return "0 and 1"
    low, high = score_scale(float(every.min()), float(every.max()))
    certain = (low, high) in ((0.0, 1.0), (0.0, SCORE_MAX))
    return f"scores from {low:g} to {high:g}" + ("" if certain else ", as found")
