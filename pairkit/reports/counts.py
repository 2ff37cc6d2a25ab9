"""Counts for a report: pairs, lengths and word overlap by split, source and kind; drop reasons; samples."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import DataError
from pairkit.base.system.folders import read_object
from pairkit.base.system.seeded import in_turns, keyed_hash
from pairkit.dataset.labels import LabelsRead
from pairkit.dataset.records import PairDataset, all_texts, by_reason, joined, with_provenance
from pairkit.similarity.measures import LONG_TOKENS, estimated_tokens, gap_auc
from pairkit.similarity.terms import terms

ORDERS = (1, 2, 3)
SIDE = "side"  # 0: negative, or a low score; 1: positive, or a high score
EVERYTHING = "all"
NOT_RECORDED = "not recorded"
_KNOWN = (
    "text1", "text2", "label", "repo", "repo2", "number1", "number2", "url1", "url2", "created_at1",
    "created_at2", "relation", "evidence", "negative_kind", "llms", "project", "system", "source", "genre",
)  # fmt: skip
_NAMED_BY = {  # columns with the source of a row, the most specific first
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
class ReportRows:
    """All rows in one frame, with side, token counts and overlaps."""

    frame: pl.DataFrame
    keys: tuple[str, str]
    names: tuple[str, str]
    cut: float | None
    named_by: str | None

    @property
    def splits(self) -> list[str]:
        """The splits that have rows, in the dataset's order."""
        return self.frame["split"].unique(maintain_order=True).to_list()

    def side(self, side: int) -> pl.DataFrame:
        """The rows of one side."""
        return self.frame.filter(pl.col(SIDE) == side)


def collect_rows(dataset: PairDataset, show: Listener) -> ReportRows:
    """Join the splits and measure every row; scores are divided at the middle of their range."""
    if not len(dataset):
        raise DataError("has no rows; give a dataset with pairs", path=dataset.source)
    frame = with_provenance(dataset).rows.select("split", cs.by_name(*_KNOWN, require_all=False))
    cut = None
    keys = names = ("negative", "positive")
    if dataset.label_kind == "graded":
        low, high = (
            float(bound) for bound in frame.select(low=pl.min("label"), high=pl.max("label")).row(0)
        )
        cut = (low + high) / 2
        keys, names = ("low", "high"), (f"score below {cut:g}", f"score {cut:g} or more")
    source = next((name for name in _NAMED_BY if name in frame.columns), None)
    frame = frame.with_columns(
        (pl.col("label") >= (1 if cut is None else cut)).cast(pl.Int8).alias(SIDE),
        _kind(frame).alias("kind"),
        _source(frame, source).alias("source"),
        *(
            estimated_tokens(pl.col(f"text{index}")).cast(pl.Int64).alias(f"tokens{index}")
            for index in (1, 2)
        ),
    )
    return ReportRows(
        _with_overlaps(frame, show), keys, names, cut, _NAMED_BY[source] if source else None
    )


def _source(frame: pl.DataFrame, column: str | None) -> pl.Expr:
    """The source as text; a list such as `llms` becomes one name, so that each row is counted once."""
    if column is not None and frame.schema[column] == pl.List(pl.String):
        return pl.col(column).list.sort().list.join(" + ")
    if column is None or frame.schema[column].is_nested():
        return pl.lit(None, dtype=pl.String)
    return pl.col(column).cast(pl.String)


def _kind(frame: pl.DataFrame) -> pl.Expr:
    """How a negative was drawn, or the relation and evidence of a positive."""
    known = [pl.col("negative_kind")] if "negative_kind" in frame.columns else []
    if "evidence" in frame.columns:
        kind = pl.col("evidence").struct.field("kind")
        if "relation" in frame.columns:
            known.append(pl.concat_str("relation", kind, separator=": "))
        known.append(kind)
    return pl.coalesce(*known, pl.lit(NOT_RECORDED))


def _with_overlaps(frame: pl.DataFrame, show: Listener) -> pl.DataFrame:
    """`frame` with overlap1, overlap2 and overlap3, in per cent; null if neither text has n-grams."""
    rows: list[list[float | None]] = []
    for text1, text2 in frame.select("text1", "text2").iter_rows():
        if len(rows) % _PROGRESS_STEP == 0:
            show(Progress("comparing words", len(rows), frame.height))
        both = terms(text1), terms(text2)
        rows.append([overlap(*both, order) for order in ORDERS])
    schema = {f"overlap{order}": pl.Float64 for order in ORDERS}
    return frame.hstack(pl.DataFrame(rows, schema=schema, orient="row"))


def overlap(terms1: Sequence[str], terms2: Sequence[str], order: int) -> float | None:
    """The Jaccard similarity of the n-grams of two word sequences, in per cent; None without n-grams."""
    sets = [
        set(zip(*(of[start:] for start in range(order)), strict=False)) for of in (terms1, terms2)
    ]
    either = len(sets[0] | sets[1])
    return 100 * len(sets[0] & sets[1]) / either if either else None


def count(rows: ReportRows, dataset: PairDataset, seed: int) -> dict[str, Any]:
    """All counts of the report, as plain data."""
    parts = {split: rows.frame.filter(pl.col("split") == split) for split in rows.splits}
    return {
        "dataset": dataset.source,
        "label_kind": dataset.label_kind,
        "cut": rows.cut,
        "seed": seed,
        "splits": {
            split: _of_split(part, rows)
            for split, part in (parts | {EVERYTHING: rows.frame}).items()
        },
        "sources": _sources(rows),
        "kinds": {key: _kinds(rows.side(side)) for side, key in enumerate(rows.keys)},
        "overlap": {key: mean_overlaps(rows.side(side)) for side, key in enumerate(rows.keys)},
        "dropped": drop_reasons(dataset.source, dataset.labels, dataset.bad_rows),
    }


def _of_split(part: pl.DataFrame, rows: ReportRows) -> dict[str, Any]:
    high = int(part[SIDE].sum())
    tokens = pl.concat([part["tokens1"], part["tokens2"].alias("tokens1")])
    return {
        **_sides(rows, part.height - high, high),
        "total": part.height,
        "texts": all_texts(part).n_unique(),
        "median_tokens": round(float(tokens.median())),  # type: ignore[arg-type]
        "long_share": round(float((tokens > LONG_TOKENS).mean()), 4),  # type: ignore[arg-type]
        "gap_auc": gap_auc(part, SIDE),
    }


def _sides(rows: ReportRows, low: int, high: int) -> dict[str, int]:
    return {rows.keys[1]: high, rows.keys[0]: low}


def _sources(rows: ReportRows) -> dict[str, dict[str, int]]:
    """Pairs of each side by source, the largest first; empty if the dataset has no sources."""
    if rows.named_by is None:
        return {}
    grouped = rows.frame.group_by(pl.col("source").fill_null("unknown")).agg(
        (pl.col(SIDE) == 0).sum().alias("low"), (pl.col(SIDE) == 1).sum().alias("high"), pl.len()
    )
    ordered = grouped.sort("len", "source", descending=[True, False])
    return {name: _sides(rows, low, high) for name, low, high, _ in ordered.iter_rows()}


def _kinds(part: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Pairs of one side by kind, the most frequent first, with each kind's mean overlaps."""
    grouped = part.group_by("kind").agg(pl.len()).sort("len", "kind", descending=[True, False])
    return {
        kind: {"pairs": pairs, "overlap": mean_overlaps(part.filter(pl.col("kind") == kind))}
        for kind, pairs in grouped.iter_rows()
    }


def mean_overlaps(part: pl.DataFrame) -> list[float | None]:
    """The mean overlap for each order; None if no pair has one."""
    means = (part[f"overlap{order}"].mean() for order in ORDERS)
    return [round(mean, 2) if isinstance(mean, float) else None for mean in means]


def drop_reasons(
    source: str, labels: LabelsRead | None, bad: pl.DataFrame | None
) -> dict[str, dict[str, int]]:
    """Counts by title and reason: of statistics.json, of rows skipped by label, and of bad rows."""
    path = Path(source) / "statistics.json"
    statistics = read_object(path) if path.is_file() else {}
    verdicts = statistics.get("verdicts")
    sections = {**statistics, **(verdicts if isinstance(verdicts, dict) else {})}
    counts = {title: _reasons(sections.get(key)) for key, title in _TITLES.items()}
    counts["Rows skipped by their label"] = _reasons(labels.skipped if labels else None)
    counts["Rows without a text or label"] = {
        reason: n for reason, n, _ in by_reason(joined([bad]))
    }
    return {title: reasons for title, reasons in counts.items() if reasons}


def _reasons(section: Any) -> dict[str, int]:
    if not isinstance(section, Mapping):
        return {}
    counts = {str(reason): n for reason, n in section.items() if isinstance(n, int) and n > 0}
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def choose_samples(rows: ReportRows, seed: int) -> list[tuple[int, str, list[dict[str, Any]]]]:
    """Side, kind and pairs of about ten positives and ten negatives, of every kind; positives first."""
    samples = []
    for side in (1, 0):
        part = rows.side(side)
        sizes = part.group_by("kind").len().sort("len", "kind", descending=[True, False])
        quotas = in_turns(dict(sizes.iter_rows()), max(_SAMPLES_PER_SIDE, sizes.height))
        for kind, quota in quotas.items():
            of_kind = part.filter(pl.col("kind") == kind)
            texts = of_kind.select("text1", "text2").iter_rows()
            keys = ((keyed_hash(seed, "sample", *pair), row) for row, pair in enumerate(texts))
            chosen = [of_kind.row(row, named=True) for _, row in heapq.nsmallest(quota, keys)]
            samples.append((side, kind, chosen))
    return samples
