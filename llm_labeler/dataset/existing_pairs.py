"""Read the pairs to judge, without repeats; unusable ones are counted by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path

import polars as pl

from llm_labeler.dataset.texts import digest, tidy, why_unusable
from llm_labeler.records import Candidate, Text, format_counts
from llm_labeler.settings import InputSettings
from pairkit.base.errors import DataError
from pairkit.base.system.seeded import keyed_hash
from pairkit.dataset.labels import LabelRules
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.reading.reader import read_pairs

PAIR = "pair_id"
GIVEN = "given_label"
# Columns that judging adds.
_ADDED = (
    "votes",
    "aggregation",
    "reason",
    "contradicts",
    PAIR,
    GIVEN,
    "judged",
    "confidence",
    "probability",
)


@dataclass(frozen=True, slots=True)
class ExistingPairs:
    """The pairs of a dataset, without repeats within a split."""

    name: str
    splits: Mapping[str, pl.DataFrame]
    by_text: Mapping[Text, tuple[Candidate, ...]]
    half: float  # labels from here on mean the same
    dropped: Mapping[str, int]

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of the pairs and their labels in order."""
        return digest(
            "\x1f".join((split, *map(str, row))).encode("utf-8", "surrogatepass")
            for split, rows in self.splits.items()
            for row in rows.select("text1", "text2", GIVEN).iter_rows()
        )


def read_existing_pairs(
    source: Source,
    columns: Mapping[str, str] | None,
    rules: LabelRules,
    settings: InputSettings,
    seed: int,
) -> ExistingPairs:
    """Read the usable pairs of a dataset."""
    dataset = read_pairs(source, columns, rules)
    highest = max(dataset.rows["label"], default=0.0)
    dropped: Counter[str] = Counter()
    splits = {}
    left = settings.limit
    for split, rows in dataset.splits.items():
        renamed = _with_ids(rows)
        reasons = _reasons(renamed, settings, left)
        dropped.update(reason for reason in reasons if reason)
        is_usable = [reason is None for reason in reasons]
        splits[split] = _filtered(renamed.head(len(reasons)), is_usable)
        if left is not None:
            left -= splits[split].height
    if not any(rows.height for rows in splits.values()):
        message = "holds no pairs to judge"
        if dropped:
            message += f" ({format_counts(dropped)}; see the [input] settings)"
        raise DataError(message, path=source_name(source))
    splits = _sample_pairs(splits, settings.draw, seed)
    name = source_name(source)
    if isinstance(source, str | Path) and Path(source).exists():
        name = Path(name).name
    return ExistingPairs(name, splits, _by_text(splits), max(highest, 1.0) / 2, dropped)


def _filtered(rows: pl.DataFrame, is_kept: list[bool]) -> pl.DataFrame:
    return rows.filter(pl.Series(is_kept, dtype=pl.Boolean))


def _reasons(
    rows: pl.DataFrame, settings: InputSettings, limit: int | None
) -> list[str | None]:
    """Why each row is unusable (None: usable), up to the row where `limit` usable ones are reached."""
    reasons = []
    seen = set[str]()
    for first, second, pair in rows.select("text1", "text2", PAIR).iter_rows():
        if len(seen) == limit:
            break
        reason = why_unusable(first, tidy(first), settings)
        reason = reason or why_unusable(second, tidy(second), settings)
        if reason is None and pair in seen:
            reason = "repeated"
        if reason is None:
            seen.add(pair)
        reasons.append(reason)
    return reasons


def _sample_pairs(
    splits: dict[str, pl.DataFrame], count: int | None, seed: int
) -> dict[str, pl.DataFrame]:
    """A random sample of the pairs of all splits, in their order."""
    if count is None:
        return splits
    pairs = ((split, pair) for split, rows in splits.items() for pair in rows[PAIR])
    chosen = {
        *nsmallest(count, pairs, key=lambda pair: keyed_hash(seed, "draw", *pair))
    }
    sample = {}
    for split, rows in splits.items():
        is_chosen = [(split, pair) in chosen for pair in rows[PAIR]]
        sample[split] = _filtered(rows, is_chosen)
    return sample


def _with_ids(rows: pl.DataFrame) -> pl.DataFrame:
    """Add ids of the pairs, and rename the source's columns whose names judging needs."""
    clash = {name: f"source_{name}" for name in _ADDED if name in rows.columns}
    rows = rows.drop(clash.values(), strict=False).rename(clash)
    ids = [
        Candidate(Text.of(first, 0).text_id, second, "positive", ()).candidate_id
        for first, second in rows.select("text1", "text2").iter_rows()
    ]
    return rows.rename({"label": GIVEN}).with_columns(pl.Series(PAIR, ids, pl.String))


def _by_text(splits: Mapping[str, pl.DataFrame]) -> dict[Text, tuple[Candidate, ...]]:
    """The second texts by first text, as candidates without a proposer; judges don't see the polarity."""
    by_text: dict[Text, dict[str, Candidate]] = {}
    for rows in splits.values():
        for first, second in rows.select("text1", "text2").iter_rows():
            text = Text.of(first, 0)
            seconds = by_text.setdefault(text, {})
            seconds.setdefault(second, Candidate(text.text_id, second, "positive", ()))
    return {text: tuple(seconds.values()) for text, seconds in by_text.items()}
