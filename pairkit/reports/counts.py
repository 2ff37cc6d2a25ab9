"""Counts for a report: pairs, lengths and word overlap by split, source and kind; drop reasons; samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import DataError
from pairkit.base.system.folders import read_json_object
from pairkit.base.system.seeded import in_turns, random_order
from pairkit.dataset.records import (
    PairDataset,
    all_texts,
    by_reason,
    join_bad_rows,
    with_provenance,
)
from pairkit.similarity.measures import LONG_TOKENS, estimated_tokens, gap_auc
from pairkit.similarity.terms import terms

ORDERS = (1, 2, 3)
SIDE = "side"  # 0: negative, or a low score; 1: positive, or a high score

NOT_RECORDED = "not recorded"
# Columns with the source of a row, the most specific first, and what the page calls them.
_NAMED_BY = {
    "repo": "repository",
    "llms": "LLM",
    "project": "project",
    "system": "system",
    "source": "source",
    "genre": "genre",
}

# Headings of sections of statistics.json, first those of `gis`, then of `label`.
_TITLES = {
    "rejected_issues": "Issues left out",
    "dropped_positives": "Positives dropped",
    "dropped_negatives": "Negatives dropped",
    "missing_negatives": "Negatives that could not be drawn, by split",
    "uncertain": "Threads with uncertain verdicts",
    "not": "Threads judged not to be duplicates",
    "removed_from_texts": "Removed from texts",
    "dropped": "Proposals and texts dropped",
    "dropped_pairs": "Pairs dropped",
}
_PROGRESS_STEP = 200  # pairs
_SAMPLES_PER_SIDE = 10


@dataclass(frozen=True, slots=True)
class Side:
    """The negatives or the positives; of scores, the low or the high ones."""

    number: int  # in the column `SIDE`
    key: str  # in the counts
    name: str  # on the page


@dataclass(frozen=True, slots=True)
class ReportRows:
    """All rows in one frame, with side, token counts and overlaps."""

    frame: pl.DataFrame
    low: Side
    high: Side
    cut: float | None
    named_by: str | None

    @property
    def splits(self) -> dict[str, pl.DataFrame]:
        """The rows of each split that has rows, in the dataset's order."""
        parts = self.frame.partition_by("split", as_dict=True)
        return {split: rows for (split,), rows in parts.items()}

    def of(self, side: Side) -> pl.DataFrame:
        """The rows of one side."""
        return self.frame.filter(pl.col(SIDE) == side.number)


def collect_rows(dataset: PairDataset, show: Listener) -> ReportRows:
    """Join the splits and measure every row; scores are divided at the middle of their range."""
    if not len(dataset):
        raise DataError("has no rows; give a dataset with pairs", path=dataset.source)
    frame = with_provenance(dataset).rows
    cut = None
    low = Side(0, "negative", "negative")
    high = Side(1, "positive", "positive")
    if dataset.label_kind == "graded":
        scores = frame["label"].to_numpy()
        cut = (float(scores.min()) + float(scores.max())) / 2
        low = Side(0, "low", f"score below {cut:g}")
        high = Side(1, "high", f"score {cut:g} or more")
    is_high = pl.col("label") >= (1 if cut is None else cut)
    named_by, source = _source(frame)
    frame = frame.with_columns(
        is_high.cast(pl.Int8).alias(SIDE),
        _kind(frame).alias("kind"),
        source.alias("source"),
        tokens1=estimated_tokens(pl.col("text1")).cast(pl.Int64),
        tokens2=estimated_tokens(pl.col("text2")).cast(pl.Int64),
    )
    return ReportRows(_with_overlaps(frame, show), low, high, cut, named_by)


def _source(frame: pl.DataFrame) -> tuple[str | None, pl.Expr]:
    """What names the source of a row, and its name; a list such as `llms` becomes one name."""
    for column, called in _NAMED_BY.items():
        dtype = frame.schema.get(column)
        if dtype == pl.List(pl.String):
            names = pl.col(column).list.sort().list.join(" + ")
            return called, pl.when(names != "").then(names)
        if dtype is not None and not dtype.is_nested():
            return called, pl.col(column).cast(pl.String)
    return None, pl.lit(None, dtype=pl.String)


def _kind(frame: pl.DataFrame) -> pl.Expr:
    """How a negative was drawn, or the relation and evidence of a positive."""
    known = []
    if "negative_kind" in frame.columns:
        known.append(pl.col("negative_kind"))
    if "evidence" in frame.columns:
        evidence = pl.col("evidence").struct.field("kind")
        if "relation" in frame.columns:
            known.append(pl.concat_str("relation", evidence, separator=": "))
        known.append(evidence)
    return pl.coalesce(*known, pl.lit(NOT_RECORDED))


def _with_overlaps(frame: pl.DataFrame, show: Listener) -> pl.DataFrame:
    """`frame` with overlap1, overlap2 and overlap3, in per cent; null if neither text has n-grams."""
    rows: list[list[float | None]] = []
    for text1, text2 in frame.select("text1", "text2").iter_rows():
        if len(rows) % _PROGRESS_STEP == 0:
            show(Progress("comparing words", len(rows), frame.height))
        terms1 = terms(text1)
        terms2 = terms(text2)
        rows.append([overlap(terms1, terms2, order) for order in ORDERS])
    schema = {f"overlap{order}": pl.Float64 for order in ORDERS}
    overlaps = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(overlaps.iter_columns())


def overlap(terms1: Sequence[str], terms2: Sequence[str], order: int) -> float | None:
    """The Jaccard similarity of the n-grams of two word sequences, in per cent; None without n-grams."""
    ngrams1 = _ngrams(terms1, order)
    ngrams2 = _ngrams(terms2, order)
    either = len(ngrams1 | ngrams2)
    if not either:
        return None
    return 100 * len(ngrams1 & ngrams2) / either


def _ngrams(words: Sequence[str], order: int) -> set[tuple[str, ...]]:
    shifted = [words[start:] for start in range(order)]
    return set(zip(*shifted, strict=False))


def count(rows: ReportRows, dataset: PairDataset, seed: int) -> dict[str, Any]:
    """All counts of the report, as plain data."""
    parts = rows.splits | {"all": rows.frame}
    sides = {side.key: rows.of(side) for side in (rows.low, rows.high)}
    return {
        "dataset": dataset.source,
        "label_kind": dataset.label_kind,
        "cut": rows.cut,
        "seed": seed,
        "splits": {split: _split_counts(part, rows) for split, part in parts.items()},
        "sources": _sources(rows),
        "kinds": {key: _kinds(part) for key, part in sides.items()},
        "overlap": {key: mean_overlaps(part) for key, part in sides.items()},
        "dropped": _drop_reasons(dataset),
    }


def _split_counts(part: pl.DataFrame, rows: ReportRows) -> dict[str, Any]:
    high = int(part[SIDE].sum())
    tokens = pl.concat([part["tokens1"], part["tokens2"]])
    is_long = tokens > LONG_TOKENS
    return {
        rows.high.key: high,
        rows.low.key: part.height - high,
        "total": part.height,
        "texts": all_texts(part).n_unique(),
        "median_tokens": round(float(tokens.median())),  # type: ignore[arg-type]
        "long_share": round(float(is_long.mean()), 4),  # type: ignore[arg-type]
        "gap_auc": gap_auc(part, SIDE),
    }


def _sources(rows: ReportRows) -> dict[str, dict[str, int]]:
    """Pairs of each side by source, the largest first; empty if the dataset has no sources."""
    if rows.named_by is None:
        return {}
    by_source = rows.frame.group_by(pl.col("source").fill_null("unknown"))
    pairs = by_source.agg(pl.len(), pl.col(SIDE).cast(pl.Int64).sum())
    return {
        source: {rows.high.key: high, rows.low.key: number - high}
        for source, number, high in _largest_first(pairs, "source").iter_rows()
    }


def sizes(rows: pl.DataFrame, column: str) -> dict[str, int]:
    """The number of rows with each value, the most frequent first."""
    counts = rows.group_by(column).len()
    return dict(_largest_first(counts, column).iter_rows())


def _largest_first(counts: pl.DataFrame, column: str) -> pl.DataFrame:
    return counts.sort("len", column, descending=[True, False])


def _kinds(part: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Pairs of one side by kind, the most frequent first, with each kind's mean overlaps."""
    kinds = {}
    for kind, pairs in sizes(part, "kind").items():
        overlaps = mean_overlaps(part.filter(pl.col("kind") == kind))
        kinds[kind] = {"pairs": pairs, "overlap": overlaps}
    return kinds


def mean_overlaps(part: pl.DataFrame) -> list[float | None]:
    """The mean overlap for each order; None if no pair has one."""
    means = (part[f"overlap{order}"].mean() for order in ORDERS)
    return [round(mean, 2) if isinstance(mean, float) else None for mean in means]


def _drop_reasons(dataset: PairDataset) -> dict[str, dict[str, int]]:
    """Counts by title and reason: of statistics.json, of rows skipped by label, and of bad rows."""
    path = Path(dataset.source) / "statistics.json"
    statistics = read_json_object(path) if path.is_file() else {}
    verdicts = statistics.get("verdicts")
    if isinstance(verdicts, dict):
        statistics |= verdicts
    counts = {title: _reasons(statistics.get(key)) for key, title in _TITLES.items()}
    counts["Rows skipped by their label"] = _reasons(
        dataset.labels and dataset.labels.skipped
    )
    counts["Rows without a text or label"] = {
        reason: rows for reason, rows, _ in by_reason(join_bad_rows([dataset.bad_rows]))
    }
    return {title: reasons for title, reasons in counts.items() if reasons}


def _reasons(section: object) -> dict[str, int]:
    """The positive counts of a section, the highest first."""
    if not isinstance(section, Mapping):
        return {}
    counts = {}
    for reason in sorted(section, key=str):
        count = section[reason]
        if isinstance(count, int) and count > 0:
            counts[str(reason)] = count
    return dict(Counter(counts).most_common())


@dataclass(frozen=True, slots=True)
class SampledPairs:
    """Pairs of one side and kind."""

    side: Side
    kind: str
    pairs: list[dict[str, Any]]


def choose_samples(rows: ReportRows, seed: int) -> list[SampledPairs]:
    """About ten positives and ten negatives, of every kind; positives first."""
    samples = []
    for side in (rows.high, rows.low):
        part = rows.of(side)
        pairs_by_kind = sizes(part, "kind")
        quotas = in_turns(pairs_by_kind, max(_SAMPLES_PER_SIDE, len(pairs_by_kind)))
        for kind, quota in quotas.items():
            pairs_of_kind = part.filter(pl.col("kind") == kind)
            texts = pairs_of_kind.select("text1", "text2").iter_rows()
            chosen = random_order(seed, "sample", texts)[:quota]
            pairs = pairs_of_kind[chosen].to_dicts()
            samples.append(SampledPairs(side, kind, pairs))
    return samples
