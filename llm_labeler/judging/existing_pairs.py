"""Existing pairs to judge, grouped by first text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from heapq import nsmallest
from pathlib import Path

import polars as pl

from llm_labeler.dataset.texts import tidy, why_unusable
from llm_labeler.records import Candidate, Text, format_counts
from llm_labeler.settings import InputSettings
from pairkit.base.errors import DataError
from pairkit.base.system.seeded import keyed_hash
from pairkit.dataset.labels import LabelRules
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.reading.reader import read_pairs

PAIR = "pair_id"
GIVEN = "given_label"
# columns that judging adds
_ADDED = ("votes", "aggregation", "reason", "contradicts", PAIR, GIVEN, "judged", "confidence", "probability")


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
        digest = sha256()
        for split, rows in self.splits.items():
            for row in rows.select("text1", "text2", GIVEN).iter_rows():
                data = "\x1f".join((split, *map(str, row))).encode("utf-8", "surrogatepass")
                digest.update(b"%d:%s" % (len(data), data))
        return digest.hexdigest()


def read_existing_pairs(
    source: Source, columns: Mapping[str, str] | None, rules: LabelRules, settings: InputSettings, seed: int
) -> ExistingPairs:
    """Read the usable pairs of a dataset."""
    dataset = read_pairs(source, columns=columns, rules=rules)
    highest = max((float(rows["label"].max() or 0.0) for rows in dataset.splits.values()), default=0.0)  # type: ignore[arg-type]  # a number
    dropped: Counter[str] = Counter()
    splits: dict[str, pl.DataFrame] = {}
    left = settings.limit
    for split, rows in dataset.splits.items():
        renamed = _with_ids(rows)
        reasons = _reasons(renamed, settings, left)
        dropped.update(filter(None, reasons))
        splits[split] = renamed.head(len(reasons)).filter(
            pl.Series([why is None for why in reasons], dtype=pl.Boolean)
        )
        left = None if left is None else left - splits[split].height
    if not any(rows.height for rows in splits.values()):
        why = f" ({format_counts(dropped)}; see the [input] settings)" if dropped else ""
        raise DataError(f"holds no pairs to judge{why}", path=source_name(source))
    splits = _sample(splits, settings.draw, seed)
    name = source_name(source)
    name = Path(name).name if isinstance(source, str | Path) and Path(source).exists() else name
    return ExistingPairs(name, splits, _by_text(splits), max(highest, 1.0) / 2, +dropped)


def _reasons(rows: pl.DataFrame, settings: InputSettings, limit: int | None) -> list[str | None]:
    """Why each row is unusable (None: usable), up to the row where `limit` usable ones are reached."""
    reasons, seen = list[str | None](), set[str]()
    for first, second, pair in rows.select("text1", "text2", PAIR).iter_rows():
        if len(seen) == limit:
            break
        of_texts = (why_unusable(text, tidy(text), settings) for text in (first, second))
        reasons.append(next(filter(None, of_texts), "repeated" if pair in seen else None))
        if reasons[-1] is None:
            seen.add(pair)
    return reasons


def _sample(splits: dict[str, pl.DataFrame], count: int | None, seed: int) -> dict[str, pl.DataFrame]:
    """A random sample of the pairs of all splits, in their order."""
    if count is None:
        return splits
    pairs = ((split, pair) for split, rows in splits.items() for pair in rows[PAIR])
    chosen = set(nsmallest(count, pairs, key=lambda pair: keyed_hash(seed, "draw", *pair)))
    return {
        split: rows.filter(pl.Series([(split, pair) in chosen for pair in rows[PAIR]], dtype=pl.Boolean))
        for split, rows in splits.items()
    }


def _with_ids(rows: pl.DataFrame) -> pl.DataFrame:
    """Add ids of the pairs, and rename the source's columns whose names judging needs."""
    clash = {name: f"source_{name}" for name in _ADDED if name in rows.columns}
    rows = rows.drop([new for new in clash.values() if new in rows.columns]).rename(clash)
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
