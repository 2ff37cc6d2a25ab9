"""Decide what labels mean: 0 and 1, scores, or classes. Uncertain labels are refused with a remedy.

| labels | read as |
|---|---|
| 0 and 1 | 1 is similar; refused with NLI columns, where 0 is often entailment |
| true, false; yes, no; t, f; y, n; accept, reject; duplicate, not_duplicate and similar | 1 and 0 |
| entailment, contradiction, neutral (words or class names) | 1, 0, left out (as the papers do) |
| numbers in [0, 5] with fractions, in a column such as `score`, or float32 | scores |
| whole numbers from 0 to 5, if 5 occurs | scores |
| other whole numbers, such as 0, 1 and 2 | refused: they may be classes |
| anything else | refused with the first row |

Users override this with `labels` (a number or skip for each label; others keep their meaning) and
`label_range` (the scale of scores, which becomes 0 to 1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, floor
from shlex import quote

import polars as pl

from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.dataset.labels import (
    LEAVE_OUT,
    MISSING,
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
    {"t": 1.0, "f": 0.0},
    {"y": 1.0, "n": 0.0},
    {"accept": 1.0, "reject": 0.0, "ignore": SKIP},
    {"duplicate": 1.0, "not_duplicate": 0.0},
    {"equivalent": 1.0, "not_equivalent": 0.0},
    {"paraphrase": 1.0, "not_paraphrase": 0.0},
    {"entailment": 1.0, "not_entailment": 0.0},
    _NLI,
)
_NO_GOLD: Mapping[str, Meaning] = {"-": SKIP, "-1": SKIP}  # no gold label, in datasets with classes
_SCORE_NAMES = ("score", "similarity", "similarity_score", "relatedness_score", "relevance")
_NLI_TEXTS = (("premise", "hypothesis"), ("question", "sentence"))
_OF_NLI = {-1.0, 0.0, 1.0, 2.0}
_MAX_LABELS = 6  # in a message
_SHOWN_CHARS = 60  # of a label in a message


@dataclass(frozen=True)
class LabelColumn:
    """The labels of one table with the numbers of their rows; or each distinct one with its first row."""

    values: pl.Series
    rows: pl.Series
    times: pl.Series  # how often each occurs
    where: str
    texts: tuple[str, str]
    classes: Sequence[str] = ()

    @cached_property
    def words(self) -> pl.Series:
        """The labels as texts, numbers of classes as class names, with decimal points for commas."""
        words = self.values.cast(pl.String).str.strip_chars().str.replace(r"^([+-]?\d+),(\d+)$", "$1.$2")
        if not self.values.dtype.is_integer() or not self.classes:
            return words
        names = {str(number): name for number, name in enumerate(self.classes)}
        return words.replace(names)

    @cached_property
    def numbers(self) -> pl.Series:
        """The labels as float64; null for words."""
        if self.values.dtype == pl.Boolean:
            return pl.Series(self.values.name, [None] * len(self.values), pl.Float64)
        plain = self.values.dtype.is_numeric() and not self.classes
        return (self.values if plain else self.words).cast(pl.Float64, strict=False)

    def known(self, meanings: Mapping[str, Meaning]) -> dict[str, str]:
        """The labels with a meaning, each with its name there: its word, or the number of its class."""
        known = {}
        for word in self.words.unique(maintain_order=True) if meanings else ():
            numbers = (str(number) for number, name in enumerate(self.classes) if name == word)
            name = next((name for name in (as_word(word), *numbers) if name in meanings), None)
            if name is not None:
                known[word] = name
        return known

    def missing(self) -> pl.Series:
        """A mask of rows without a label."""
        missing = self.values.is_null()
        if not self.values.dtype.is_numeric():
            missing |= self.words.str.contains(f"(?i){MISSING}").fill_null(value=True)
        return missing | ~self.numbers.is_finite().fill_null(value=True)

    def filter(self, kept: pl.Series) -> LabelColumn:
        """The labels of these rows."""
        values, rows, times = (series.filter(kept) for series in (self.values, self.rows, self.times))
        return replace(self, values=values, rows=rows, times=times)

    def distinct(self) -> LabelColumn:
        """Each distinct label once, which is enough to decide their meaning."""
        kind = self.values.dtype
        values = self.values.cast(pl.String) if isinstance(kind, pl.Categorical | pl.Enum) else self.values
        table = pl.DataFrame({"value": values, "row": self.rows, "times": self.times})
        each = table.group_by("value", maintain_order=True).agg(pl.col("row").first(), pl.col("times").sum())
        labels = each["value"].alias(self.values.name)
        return replace(self, values=labels, rows=each["row"], times=each["times"])

    def refuse(self, rows: pl.Series, message: str) -> None:
        """Raise `error` if any row is selected."""
        if rows.any():
            raise self.error(rows, message)

    def error(self, rows: pl.Series, message: str) -> DataError:
        """An error for the first selected row, whose label replaces `{label}` in the message."""
        place = rows.fill_null(value=False).arg_max() or 0
        label = one_line(repr(self.values[place]), _SHOWN_CHARS)
        return DataError(message.replace("{label}", label), path=self.where, row=int(self.rows[place]))


@dataclass(frozen=True)
class LabelMeaning:
    """The meaning of labels, decided over all tables of a source; and whether all are 0 or 1."""

    words: Mapping[str, Meaning] | None = None
    scale: tuple[float, float] | None = None
    read: LabelsRead | None = None
    binary: bool = True

    def of(self, column: LabelColumn) -> pl.Series:
        """Labels as float64; null for rows to leave out."""
        labels = column.numbers if self.words is None else _by_word(column, self.words)
        return labels if self.scale is None else _scaled(column, labels, *self.scale)


def decide_labels(columns: Sequence[LabelColumn], rules: LabelRules) -> LabelMeaning:
    """The common meaning of the labels of several tables; distinct labels are sufficient."""
    if not columns:
        return LabelMeaning()
    no_gold = _NO_GOLD if any(column.classes for column in columns) else {}
    user_values = {**no_gold, **rules.values} if rules.values else {}
    # The labels without a user-defined meaning.
    rest = [
        column.filter(~column.words.is_in([*column.known(user_values)], nulls_equal=True))
        for column in columns
    ]
    for column in rest:
        column.refuse(column.missing(), f"label {{label}} is missing; fill it, drop the row, {LEAVE_OUT}")
    is_words = any(column.numbers.is_null().any() for column in rest)
    known = _certain_words(columns, rest, user_values) if is_words else {}
    if not is_words and rules.scale is None:
        # If users gave a meaning to some numbers, others are refused, even 0 and 1.
        if any(name.isdecimal() for column in columns for name in column.known(user_values).values()):
            for column in rest:
                column.refuse(column.numbers.is_not_null(), _lacks(user_values))
        _check_numbers(rest, [column.numbers for column in rest])
    listed, skipped = _in_use(columns, {**user_values, **known})
    if listed and not is_words:
        known = {as_word(word): float(word) for column in rest for word in column.words}
    meaning = LabelMeaning({**known, **user_values} if listed else None, rules.scale)
    labels = [meaning.of(column) for column in columns]
    binary = all(((numbers == 0) | (numbers == 1)).all() for numbers in labels)
    parts = [listed] if listed else []
    if rules.scale is not None:
        parts.append("scores from {:g} to {:g}, made 0 to 1".format(*rules.scale))
        return replace(meaning, read=LabelsRead(", ".join(parts), skipped), binary=binary)
    for column, numbers in zip(columns, labels, strict=True):
        if ((numbers < 0) | (numbers > SCORE_MAX)).any():
            raise column.error((numbers < 0) | (numbers > SCORE_MAX), _outside(labels))
    of_rest = [column.numbers for column in rest if len(column.values)]
    if not is_words and (of_rest or not listed):
        parts.append(_format_numbers(of_rest or labels, plain=binary))
    read = LabelsRead(", ".join(parts), skipped, binary and not listed)
    return replace(meaning, read=read, binary=binary)


def _outside(labels: Sequence[pl.Series]) -> str:
    numbers = pl.concat(labels).drop_nulls().to_numpy()
    low, high = floor(numbers.min()), ceil(numbers.max())
    return (
        f"label {{label}}; expected 0 or 1, or a score from 0 to {SCORE_MAX:g}: give the lowest and"
        f" the highest possible score, such as --label-range {low},{high}"
    )


def _certain_words(
    columns: Sequence[LabelColumn], rest: Sequence[LabelColumn], user_values: Mapping[str, Meaning]
) -> Mapping[str, Meaning]:
    """The meaning of words without a user-defined one, if all are in one line of `_CERTAIN`."""
    words = [*dict.fromkeys(as_word(word) for column in rest for word in column.words.unique())]
    names = {word: _plain_name(word) for word in words}
    declared = {_plain_name(name) for column in columns for name in (*column.classes, *user_values)}
    line = next((line for line in _CERTAIN if _fits(line, {*names.values()}, declared)), None)
    if line is None:
        raise _unknown_words(rest, words)
    known = {**line, **_NO_GOLD}
    return {word: known[names[word]] for word in sorted(words, key=lambda word: [*known].index(names[word]))}


def _fits(line: Mapping[str, Meaning], names: set[str], declared: set[str]) -> bool:
    """Whether these are classes of the line; `declared` are all class names of the dataset."""
    classes = names - _NO_GOLD.keys()
    may_lack_gold = line is _NLI or bool(declared)
    told_apart = "neutral" not in classes or "contradiction" in classes | declared
    return set() < classes <= line.keys() and (classes == names or may_lack_gold) and told_apart


def _plain_name(word: str) -> str:
    """The canonical spelling of a class: `not_duplicate` for `Non-duplicate`."""
    plain = as_word(word)
    if plain in _NO_GOLD:
        return plain
    plain = plain.replace("-", "_").replace(" ", "_")
    return f"not_{plain[4:]}" if plain.startswith("non_") else plain


def _unknown_words(columns: Sequence[LabelColumn], words: Sequence[str]) -> DataError:
    listed = ", ".join(one_line(word, 40) for word in sorted(words)[:_MAX_LABELS])
    listed += ", …" if len(words) > _MAX_LABELS else ""
    usual = {word: _format_meaning(value) for line in _CERTAIN for word, value in line.items()}
    odd = sorted({as_word(word) for each in columns for word in each.words.filter(each.numbers.is_null())})
    mapped = [f"{word}={usual.get(_plain_name(word), SKIP)}" for word in odd[:_MAX_LABELS]]
    column = next(column for column in columns if column.numbers.is_null().any())
    known = [word for word in column.words.unique() if _plain_name(word) in usual]
    unknown = column.numbers.is_null() & ~column.words.is_in(known)
    return column.error(
        unknown if unknown.any() else column.numbers.is_null(),
        f"label {{label}}; expected 0 or 1, or a score from 0 to {SCORE_MAX:g}. Found {listed}: map words to"
        f" numbers or skip, such as --labels {quote(','.join(mapped))}",
    )


def _by_word(column: LabelColumn, meanings: Mapping[str, Meaning]) -> pl.Series:
    """The number of each label; null for skip."""
    known = column.known(meanings)
    numbers = {word: None if meanings[name] == SKIP else meanings[name] for word, name in known.items()}
    return column.words.replace_strict(numbers, default=None, return_dtype=pl.Float64)


def _in_use(columns: Sequence[LabelColumn], meanings: Mapping[str, Meaning]) -> tuple[str, dict[str, int]]:
    """The meanings in use, in words, and the number of skipped rows by label."""
    used, skipped = set[str](), Counter[str]()
    for column in columns:
        known = column.known(meanings)
        used |= {*known.values()}
        for word, times in zip(column.words, column.times, strict=True) if known else ():
            if word in known and meanings[known[word]] == SKIP:
                skipped[as_word(word)] += times
    listed = (f"{word}={_format_meaning(value)}" for word, value in meanings.items() if word in used)
    return ", ".join(listed), dict(skipped)


def _lacks(meanings: Mapping[str, Meaning]) -> str:
    known = one_line(", ".join(meanings), 200)
    return (
        f"label {{label}} has no meaning among the given ones ({known}); add it to --labels"
        " with a number, or with skip to leave its rows out"
    )


def _format_meaning(value: Meaning) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _scaled(column: LabelColumn, labels: pl.Series, low: float, high: float) -> pl.Series:
    outside = (labels < low) | (labels > high)
    message = f"label {{label}} is outside the label range {low:g},{high:g}; widen the range or drop the row"
    column.refuse(outside, message)
    return (labels - low) / (high - low)


def _check_numbers(columns: Sequence[LabelColumn], labels: Sequence[pl.Series]) -> None:
    """Refuse whole numbers that may be classes."""
    series = [column.values for column in columns]  # float32 for the scores of pair datasets
    is_score = any(numbers.name.lower() in _SCORE_NAMES or numbers.dtype == pl.Float32 for numbers in series)
    if is_score or any((numbers != numbers.round()).any() for numbers in labels):
        return
    distinct = set[float]().union(*(numbers.unique() for numbers in labels))
    if distinct <= {0.0, 1.0}:
        for column in columns:
            text1, text2 = column.texts
            if (text1.lower(), text2.lower()) in _NLI_TEXTS:
                column.refuse(
                    column.numbers.is_not_null(),
                    f"label {{label}} with {text1} and {text2}: in NLI, 0 is often entailment; set its"
                    " meaning with --labels 0=1,1=0 or --labels 0=0,1=1",
                )
    elif distinct <= _OF_NLI | {3.0, 4.0}:
        message = _may_be_classes(sorted(distinct))
        for column, numbers in zip(columns, labels, strict=True):
            column.refuse((numbers < 0) | (numbers > 1), message)


def _may_be_classes(distinct: Sequence[float]) -> str:
    as_nli = {0.0: "1", 1.0: SKIP, 2.0: "0"} if {0.0, 2.0} <= {*distinct} <= _OF_NLI else {}
    counts = as_nli or {distinct[0]: "0", distinct[-1]: "1"}
    example = ",".join(f"{number:g}={counts.get(number, SKIP)}" for number in distinct)
    range_ = "" if {-1.0, 2.0} <= {*distinct} else f" or --label-range {distinct[0]:g},{distinct[-1]:g}"
    return (
        f"label {{label}}: {', '.join(f'{number:g}' for number in distinct)} may be classes (in NLI, 0 is"
        f" often entailment, 1 neutral, 2 contradiction) or scores; set --labels {example}{range_}"
    )


def _format_numbers(labels: Sequence[pl.Series], *, plain: bool) -> str:
    every = pl.concat([*labels]).to_numpy()
    if plain or not len(every):
        return "0 and 1"
    low, high = score_scale(float(every.min()), float(every.max()))
    certain = (low, high) in ((0.0, 1.0), (0.0, SCORE_MAX))
    return f"scores from {low:g} to {high:g}" + ("" if certain else ", as found")
