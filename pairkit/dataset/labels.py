"""Label rules that users give, and how labels were read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator

from pairkit.base.printable import BLANK, comparable, normalize, one_line
from pairkit.base.settings import argument, between_commas

SCORE_MAX = 5.0  # highest score (STS); scores keep their scale
SKIP: Literal["skip"] = "skip"
# Reasons for dropped rows.
SKIPPED = "skipped_label"
CONFLICT = "conflicting_labels"

Meaning: TypeAlias = float | Literal["skip"]
OnBadRows = Literal["error", "skip"]
# Empty, or what spreadsheets, Python and databases write for a missing value.
_MISSING_WORDS = (
    r"nan|NaN|None|NULL|null|\\N|n/a|N/A|<NA>|NaT|#N/A|#REF!|#VALUE!|#NAME\?|#DIV/0!"
)
# Blanks are repeated once if there is no word, so that time is linear.
MISSING = f"^{BLANK}*(?:(?:{_MISSING_WORDS}){BLANK}*)?$"
LEAVE_OUT = "or leave such rows out: `pairs`, `aoe train` and `aoe evaluate` have --bad-rows=skip"


# The word may have commas.
_LABEL_VALUE = re.compile(r"[\s,]*(\S.*?)\s*=\s*([^,=\s][^,=]*?)\s*(?:,|$)")


def as_word(value: object) -> str:
    """A label for comparison: NFKC in lower case without blanks, numbers in their shortest form."""
    text = normalize("NFKC", comparable(str(value))).strip().lower()
    try:
        number = float(text) if text.isascii() and "_" not in text else float("nan")
    except ValueError:
        return text
    return f"{number + 0.0:.15g}" if isfinite(number) else text  # + 0.0 makes -0 a 0


def _read_values(mapping: object) -> dict[str, Meaning]:
    if isinstance(mapping, str):
        pairs = [*_LABEL_VALUE.findall(mapping)]
        if not pairs or _LABEL_VALUE.sub("", mapping).strip(" ,"):
            raise ValueError(
                "expected word=number or word=skip, such as entailment=1,neutral=skip"
            )
    elif isinstance(mapping, Mapping):
        pairs = list(mapping.items())
    else:
        raise ValueError("expected a number, or skip, for each word")  # noqa: TRY004 - as pydantic wants it
    meanings: dict[str, Meaning] = {}
    for word, value in pairs:
        meaning = _read_value(word, value)
        if meanings.setdefault(as_word(word), meaning) != meaning:
            raise ValueError(f"two meanings of {word!r}; case and blanks are ignored")
    return meanings


def _read_value(word: object, value: Any) -> Meaning:
    if isinstance(value, str) and value.strip().lower() == SKIP:
        return SKIP
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not isfinite(number):
        raise ValueError(
            f"{value!r} for {word!r}; expected a number or skip, such as entailment=1"
        )
    return number


def _read_range(value: Any) -> tuple[float, float]:
    try:
        low, high = map(float, between_commas(value))
    except (TypeError, ValueError):
        low = high = 0.0
    if not (isfinite(low) and isfinite(high) and low < high):
        raise ValueError("expected the lowest and the highest score, such as 0,100")
    return low, high


LabelValues = Annotated[dict[str, Meaning], BeforeValidator(_read_values)]
"""Labels to numbers or skip: `{"entailment": 1, "neutral": "skip"}` or `0=1,1=skip,2=0`."""
LabelRange = Annotated[tuple[float, float], BeforeValidator(_read_range)]
"""The lowest and highest score of a scale: `(-1, 1)` or `-1,1`."""


@dataclass(frozen=True)
class LabelRules:
    """User rules for labels (see `LabelValues` and `LabelRange`) and for rows without a label or text."""

    values: Mapping[str, Meaning] | None = None
    scale: tuple[float, float] | None = None
    bad_rows: OnBadRows = "error"


AS_FOUND = LabelRules()


def label_rules(
    labels: Mapping[Any, Meaning] | str | None,
    label_range: tuple[float, float] | str | None,
    bad_rows: str = "error",
) -> LabelRules:
    """The rules from the arguments `labels`, `label_range` and `bad_rows`."""
    return LabelRules(
        argument("labels", labels, LabelValues | None),
        argument("label_range", label_range, LabelRange | None),
        argument("bad_rows", bad_rows, OnBadRows),
    )


@dataclass(frozen=True)
class LabelsRead:
    """How labels were read: their meaning, and the rows skipped by label."""

    meaning: str
    skipped: Mapping[str, int] = field(default_factory=dict)
    plain: bool = False

    def __str__(self) -> str:
        if not self.skipped:
            return f"labels: {self.meaning}"
        skipped = [
            f"{count:,} {one_line(word, 40)}" for word, count in self.skipped.items()
        ]
        return f"labels: {self.meaning}; rows left out: {', '.join(skipped)}"


def describe_labels(labels: LabelsRead | None) -> str:
    """How labels were read, in words; empty if there are none or all were 0 and 1."""
    return "" if labels is None or labels.plain else str(labels)


def score_scale(lowest: float, highest: float) -> tuple[float, float]:
    """The scale of scores in this range: 0 to 1, 0 to 5, or the range itself if uncertain."""
    if lowest >= 0 and highest <= 1:
        return 0.0, 1.0
    is_sts = 0 <= lowest < 1 and SCORE_MAX - 1 < highest <= SCORE_MAX
    return (0.0, SCORE_MAX) if is_sts else (lowest, highest)
