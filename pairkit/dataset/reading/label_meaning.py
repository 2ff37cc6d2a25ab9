"""Labels of tables, and what they mean: 0 and 1, scores, or classes. Uncertain ones are refused with a remedy.

| labels | read as |
|---|---|
| 0 and 1 | 1 is similar; refused with NLI columns, where 0 is often entailment |
| true, false; yes, no; ja, nein; same, different; duplicate, not_duplicate and similar | 1 and 0 |
| entailment, contradiction, neutral (words, initials or class names) | 1, 0, left out (as the papers do) |
| percentages | scores from 0 to 1 |
| numbers in [0, 5] with fractions, in a column such as `score`, or float32 | scores |
| whole numbers from 0 to 5, if 5 occurs | scores |
| other whole numbers, such as 0, 1 and 2 | refused: they may be classes |
| anything else | refused with the first row |

Users override this with `labels` (other labels keep their meaning) and `label_range`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from shlex import quote

import polars as pl

from pairkit.base.errors import DataError
from pairkit.base.printable import INVISIBLE, one_line
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
_INITIALS: Mapping[str, Meaning] = {"e": 1.0, "c": 0.0, "n": SKIP}  # of NLI
# Similar, then not similar.
_OPPOSITES = """
    true false, yes no, t f, y n, same different, similar dissimilar, similar different,
    equal unequal, match mismatch, match no_match, ja nein, ja nee, oui non, sí no, sì no, si no, sim não,
    sim nao, да нет, tak nie, evet hayır, はい いいえ, 是 否, 是 不是, 예 아니오, 예 아니요, 네 아니요,
    gleich verschieden, gleich ungleich, identique différent, igual diferente, uguale diverso,
    gelijk verschillend, 相同 不同
"""
_NEGATED = ("duplicate", "equivalent", "paraphrase", "entailment", "similar")
_WORD_PAIRS = (
    *(pair.split() for pair in _OPPOSITES.split(",")),
    *((word, f"not_{word}") for word in _NEGATED),
)
# The words of a line have a certain meaning if no others occur.
_CERTAIN: tuple[Mapping[str, Meaning], ...] = (
    *({similar: 1.0, other: 0.0} for similar, other in _WORD_PAIRS),
    {"accept": 1.0, "reject": 0.0, "ignore": SKIP},
    _NLI,
    _INITIALS,
)
_NO_GOLD = {"-": SKIP, "-1": SKIP}  # no gold label, in datasets with classes
_SCORE_NAMES = (
    "score",
    "similarity",
    "similarity_score",
    "relatedness_score",
    "relevance",
)
_NLI_TEXTS = (("premise", "hypothesis"), ("question", "sentence"))
_UNIT = (0.0, 1.0)  # not similar, similar
_OF_NLI = {-1.0, 0.0, 1.0, 2.0}
_NLI_NUMBERS = {"0": "1", "2": "0"}  # entailment, contradiction
_MAX_LABELS = 6  # in a message
_DECIMAL_COMMA = r"^([+-]?\d+),(\d+)(\s*%)?$"


@dataclass(frozen=True)
class LabelColumn:
    """The labels of one table with the numbers of their rows; or each distinct one with its first row."""

    table: pl.DataFrame  # each value, its row, and how often it occurs
    name: str
    where: str  # the table, in messages
    texts: tuple[str, str]  # names of the columns of the texts
    classes: Sequence[str] = ()  # names of the classes that numbers stand for

    @property
    def values(self) -> pl.Series:
        """The labels as in the source."""
        return self.table["value"]

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
        if not meanings:  # saves a loop over scores, which may all differ
            return known
        for word in self.words.unique(maintain_order=True):
            numbers = [
                str(number) for number, name in enumerate(self.classes) if name == word
            ]
            for name in (as_word(word), *numbers):
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
        return replace(self, table=self.table.filter(kept))

    def distinct(self) -> LabelColumn:
        """Each distinct label once, which is enough to decide their meaning."""
        table = self.table
        if isinstance(self.values.dtype, pl.Categorical | pl.Enum):
            table = table.cast({"value": pl.String})
        by_value = table.group_by("value", maintain_order=True)
        distinct = by_value.agg(pl.first("row"), pl.sum("times"))
        return replace(self, table=distinct)

    def refuse(self, rows: pl.Series, message: str) -> None:
        """Raise `error` if any row is selected."""
        if rows.any():
            raise self.error(rows, message)

    def error(self, rows: pl.Series, message: str) -> DataError:
        """An error for the first selected row, whose label replaces `{label}` in the message."""
        place = rows.fill_null(value=False).arg_max() or 0
        label = one_line(repr(self.values[place]), 60)
        message = message.replace("{label}", label)
        return DataError(message, path=self.where, row=int(self.table["row"][place]))


@dataclass(frozen=True)
class LabelMeaning:
    """The meaning of labels, decided over all tables of a source; and whether all are 0 or 1."""

    words: Mapping[str, Meaning]
    scale: tuple[float, float] | None = None
    read: LabelsRead | None = None
    binary: bool = True
    absent: Sequence[str] = ()  # labels with a meaning by users that don't occur

    def of(self, column: LabelColumn) -> pl.Series:
        """Labels as float64; null for rows to leave out."""
        numbers: dict[str, float | None] = {}
        for word, name in column.known(self.words).items():
            meaning = self.words[name]
            numbers[word] = None if meaning == SKIP else meaning
        labels = column.numbers
        if numbers:
            labels = column.words.replace_strict(
                numbers, default=labels, return_dtype=pl.Float64
            )
        if self.scale is None:
            return labels
        low, high = self.scale
        if high > 1 and (column.classes or not column.values.dtype.is_numeric()):
            column.refuse(
                column.words.str.ends_with("%"),
                f"label {{label}} is a score from 0 to 1; leave out --label-range {low:g},{high:g}",
            )
        column.refuse(
            (labels < low) | (labels > high),
            f"label {{label}} is outside the label range {low:g},{high:g}; widen the range or drop the row",
        )
        return (labels - low) / (high - low)


def decide_labels(columns: Sequence[LabelColumn], rules: LabelRules) -> LabelMeaning:
    """The common meaning of the labels of several tables; distinct labels are sufficient."""
    user_values = dict(rules.values or {})
    if not columns:
        return LabelMeaning({}, absent=[*user_values])
    used = {name for column in columns for name in column.known(user_values).values()}
    absent = [label for label in user_values if label not in used]
    if user_values and any(column.classes for column in columns):
        user_values = {**_NO_GOLD, **user_values}
    # Labels to which the user gave no meaning.
    others = [column.filter(~column.is_known(user_values)) for column in columns]
    for column in others:
        column.refuse(
            column.missing(),
            f"label {{label}} is missing; fill it, drop the row, {LEAVE_OUT}",
        )

    known: dict[str, Meaning] = {}
    are_words = any(column.numbers.is_null().any() for column in others)
    if are_words:
        scale = rules.scale or _UNIT
        known = _certain_words(columns, others, user_values, scale)
    elif rules.scale is None:
        if any(map(str.isdecimal, used)):
            _refuse_numbers(others, one_line(", ".join(user_values), 200))
        _check_numbers(others)

    words = {**user_values, **known}
    meanings, skipped = _in_use(columns, words)
    meaning = LabelMeaning(words, rules.scale, absent=absent)
    labels = [meaning.of(column) for column in columns]
    binary = all(numbers.is_in([0.0, 1.0]).all() for numbers in labels)

    scores = ""
    other_numbers = [column.numbers for column in others if len(column.values)]
    if rules.scale is not None:
        low, high = rules.scale
        scores = f"scores from {low:g} to {high:g}, made 0 to 1"
    else:
        _check_scores(columns, labels)
        if not are_words and (other_numbers or not meanings):
            scores = _format_numbers(other_numbers or labels, plain=binary)
    text = ", ".join(filter(None, [meanings, scores]))
    plain = binary and not meanings and rules.scale is None
    return replace(meaning, read=LabelsRead(text, skipped, plain), binary=binary)


def _refuse_numbers(columns: Sequence[LabelColumn], given: str) -> None:
    """Refuse numbers, even 0 and 1, beside those to which users gave a meaning."""
    for column in columns:
        column.refuse(
            column.numbers.is_not_null(),
            f"label {{label}} has no meaning among the given ones ({given}); add it to --labels"
            " with a number, or with skip to leave its rows out",
        )


def _check_scores(columns: Sequence[LabelColumn], labels: Sequence[pl.Series]) -> None:
    """Refuse numbers below 0 or above the highest score."""
    for column, numbers in zip(columns, labels, strict=True):
        is_outside = (numbers < 0) | (numbers > SCORE_MAX)
        if is_outside.any():
            found = pl.concat(labels).drop_nulls().to_numpy()
            raise column.error(
                is_outside,
                f"label {{label}}; expected 0 or 1, or a score from 0 to {SCORE_MAX:g}. Found"
                f" {found.min():g} to {found.max():g}: correct it, or give the lowest and the highest possible"
                " score as --label-range LOW,HIGH",
            )


def _certain_words(
    columns: Sequence[LabelColumn],
    others: Sequence[LabelColumn],
    user_values: Mapping[str, Meaning],
    scale: tuple[float, float],
) -> dict[str, Meaning]:
    """The meaning of words without a user-defined one, on this scale, if all are in one line of `_CERTAIN`."""
    names: dict[str, str] = {}
    for column in others:
        for word in map(as_word, column.words.unique()):
            names[word] = _plain_name(word)
    classes = [name for column in columns for name in column.classes]
    declared = {_plain_name(name) for name in (*classes, *user_values)}
    for line in _CERTAIN:
        if _fits(line, {*names.values()}, declared):
            on_scale: dict[Meaning, Meaning] = dict(zip(_UNIT, scale, strict=True))
            meanings: dict[str, Meaning] = {}
            for name, meaning in {**line, **_NO_GOLD}.items():
                spellings = [word for word in names if names[word] == name]
                meanings |= dict.fromkeys(spellings, on_scale.get(meaning, meaning))
            return meanings
    raise _unknown_words(others, sorted(names), scale)


def _fits(line: Mapping[str, Meaning], names: set[str], declared: set[str]) -> bool:
    """Whether these are classes of the line; `declared` are all class names of the dataset."""
    classes = names - _NO_GOLD.keys()
    if not classes or not classes <= line.keys():
        return False
    may_lack_gold = line is _NLI or declared
    if classes != names and not may_lack_gold:
        return False
    if line is _INITIALS and not {"e", "c"} <= classes | declared:
        return False
    return "neutral" not in classes or "contradiction" in classes | declared


def _plain_name(word: str) -> str:
    """The canonical spelling of a class: `not_duplicate` for `Non-duplicate`."""
    plain = as_word(word)
    if plain in _NO_GOLD:
        return plain
    plain = plain.replace("-", "_").replace(" ", "_")
    return f"not_{plain[4:]}" if plain.startswith("non_") else plain


def _unknown_words(
    columns: Sequence[LabelColumn], words: Sequence[str], scale: tuple[float, float]
) -> DataError:
    listed = ", ".join(one_line(word, 40) for word in words[:_MAX_LABELS])
    if len(words) > _MAX_LABELS:
        listed += ", …"
    odd = set[str]()
    for column in columns:
        odd.update(map(as_word, column.words.filter(column.numbers.is_null())))
    first = next(column for column in columns if column.numbers.is_null().any())
    is_word = first.numbers.is_null()
    known = [word for word in first.words.unique() if _possible_meanings(word)]
    is_unknown = is_word & ~first.words.is_in(known)
    return first.error(
        is_unknown if is_unknown.any() else is_word,
        f"label {{label}}; expected 0 or 1, or a score from 0 to {SCORE_MAX:g}. Found {listed}:"
        f" {_choice(sorted(odd)[:_MAX_LABELS], scale)}",
    )


def _possible_meanings(word: str) -> set[Meaning]:
    name = _plain_name(word)
    return {line[name] for line in _CERTAIN if name in line}


def _choice(words: Sequence[str], scale: tuple[float, float] = _UNIT) -> str:
    """What users may give as `--labels`; only they know which unknown words mean similar."""
    low, high = (f"{end:g}" for end in scale)
    known = {}
    for word in words:
        meanings = _possible_meanings(word)
        if meanings in ({0.0}, {1.0}):
            known[word] = high if 1.0 in meanings else low
    others = SKIP if {*known.values()} == {low, high} else "X"
    values = {word: known.get(word, others) for word in words}
    meaning = f"{high} is similar"
    if "X" in values.values():
        meaning = f"X is {high} (similar), {low} or skip"
    listed = ",".join(f"{word}={value}" for word, value in values.items())
    return f"set --labels {quote(listed)}, where {meaning}"


def _in_use(
    columns: Sequence[LabelColumn], meanings: Mapping[str, Meaning]
) -> tuple[str, dict[str, int]]:
    """The meanings in use, in words, and the number of skipped rows by label."""
    used = set[str]()
    skipped = Counter[str]()
    for column in columns:
        known = column.known(meanings)
        used.update(known.values())
        skips = [word for word, name in known.items() if meanings[name] == SKIP]
        left_out = column.filter(column.words.is_in(skips, nulls_equal=True))
        for word, times in zip(left_out.words, left_out.table["times"], strict=True):
            skipped[as_word(word)] += times
    listed = []
    for name, meaning in meanings.items():
        if name in used:
            number = meaning if meaning == SKIP else f"{meaning:g}"
            listed.append(f"{name}={number}")
    return ", ".join(listed), dict(skipped)


def _check_numbers(columns: Sequence[LabelColumn]) -> None:
    """Refuse whole numbers that may be classes."""
    for column in columns:
        # Scores of pair datasets are float32.
        is_float32 = column.values.dtype == pl.Float32
        if column.name.lower() in _SCORE_NAMES or is_float32:
            return
    numbers = pl.concat([column.numbers for column in columns])
    if (numbers != numbers.round()).any():
        return
    distinct = {*numbers.unique()}
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
        message = _classes_message(sorted(distinct))
        for column in columns:
            column.refuse((column.numbers < 0) | (column.numbers > 1), message)


def _classes_message(distinct: Sequence[float]) -> str:
    names = [f"{number:g}" for number in distinct]
    choice = _choice(names)
    if {0.0, 2.0} <= {*distinct} <= _OF_NLI:
        as_nli = ",".join(f"{name}={_NLI_NUMBERS.get(name, SKIP)}" for name in names)
        choice = f"in NLI, 0 is often entailment, so --labels {as_nli}"
    return (
        f"label {{label}}: {', '.join(names)} may be classes or scores. For classes {choice};"
        " for scores give the lowest and the highest possible one as --label-range LOW,HIGH"
    )


def _format_numbers(labels: Sequence[pl.Series], *, plain: bool) -> str:
    numbers = pl.concat([*labels]).to_numpy()
    if plain or not len(numbers):
        return "0 and 1"
    low, high = score_scale(float(numbers.min()), float(numbers.max()))
    scores = f"scores from {low:g} to {high:g}"
    if (low, high) in ((0.0, 1.0), (0.0, SCORE_MAX)):
        return scores
    return f"{scores}, as found"
