"""Write pairs and texts as a dataset folder: rows, counts, and the list of dropped pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from gis_builder.pairing.gis_card import gis_card
from gis_builder.pairing.positives import UNLIKELY_SAME
from gis_builder.store import (
    GITHUB,
    DroppedPair,
    IssuePair,
    IssueRef,
    IssueText,
    Relation,
)
from pairkit.base.errors import DataError
from pairkit.base.system.seeded import keyed_hash
from pairkit.dataset.making.dataset_folder import card_files, write_dataset
from pairkit.dataset.table_files import read_parquet, write_parquet
from pairkit.similarity.measures import count_long, gap_auc, opening_times

_EVIDENCE = pl.Struct(dict.fromkeys(("kind", "url", "who", "when"), pl.String))
_ROWS = """
    text1 text2 label repo number1 number2 url1 url2 created_at1 created_at2 cluster relation reason
    confidence same_probability evidence negative_kind
"""
_NUMBERS: dict[str, Any] = {
    **dict.fromkeys(("label", "number1", "number2"), pl.Int64),
    **dict.fromkeys(("confidence", "same_probability"), pl.Float64),
}
ROWS: dict[str, Any] = (
    dict.fromkeys(_ROWS.split(), pl.String) | _NUMBERS | {"evidence": _EVIDENCE}
)
POSITIVE_ROWS = {"anchor": pl.String, "positive": pl.String}
# `label` and `issue2` are null for an issue.
DROPPED_SCHEMA = {
    "reason": pl.String,
    "label": pl.Int64,
    "issue1": pl.String,
    "issue2": pl.String,
}
_MORE_ISSUES = "crawl or import more issues"
# What makes uncertain verdicts with these reasons duplicates.
_REMEDIES = {
    "below_min_confidence": "lower detect.min_confidence",
    "cross_repository": "set detect.allow_cross_repository=true",
}
# Number of rejected pairs by label and reason; for issues the label is None.
Reasons = Counter[tuple[int | None, str]]


def row_order(seed: int) -> Callable[[IssuePair], tuple[int, IssueRef, IssueRef]]:
    """The sort key of rows: a hash of the pair."""

    def key(pair: IssuePair) -> tuple[int, IssueRef, IssueRef]:
        low, high = sorted((pair.first, pair.second))
        return keyed_hash(seed, "row", low, high), pair.first, pair.second

    return key


def make_rows(
    pairs: Iterable[IssuePair],
    texts: Mapping[IssueRef, IssueText],
    seed: int,
    site: str = GITHUB,
    *,
    with_repo2: bool = False,
) -> pl.DataFrame:
    """The rows of one split; the seed decides their order and the first text, whatever the label."""
    ordered = sorted(pairs, key=row_order(seed))
    rows = [_row(pair, texts, seed, site) for pair in ordered]
    frame = pl.DataFrame(rows, schema=ROWS | {"repo2": pl.String}, orient="row")
    return frame if with_repo2 else frame.drop("repo2")


def make_positive_rows(
    positives: Sequence[IssuePair], texts: Mapping[IssueRef, IssueText], seed: int
) -> pl.DataFrame:
    """The positives with the duplicate as anchor and its original as positive."""
    pairs = sorted(positives, key=row_order(seed))
    return pl.DataFrame(
        {
            "anchor": [texts[pair.first].text for pair in pairs],
            "positive": [texts[pair.second].text for pair in pairs],
        },
        schema=POSITIVE_ROWS,
    )


def _row(
    pair: IssuePair,
    texts: Mapping[IssueRef, IssueText],
    seed: int,
    site: str,
) -> tuple[Any, ...]:
    first, second = sorted((pair.first, pair.second))
    if keyed_hash(seed, "first", first, second) % 2 == 0:
        first, second = second, first
    grounds = pair.grounds
    stated: tuple[Any, ...] = (None, None, None)
    evidence = None
    if grounds:
        stated = (str(grounds.relation), grounds.reason, grounds.confidence)
        if grounds.evidence:
            names = ("kind", "url", "who", "when")
            evidence = {name: getattr(grounds.evidence, name) for name in names}
    return (
        texts[first].text,
        texts[second].text,
        pair.label,
        first.repo,
        first.number,
        second.number,
        first.page(site),
        second.page(site),
        texts[first].created_at,
        texts[second].created_at,
        pair.cluster or None,
        *stated,
        pair.same_probability,
        evidence,
        pair.negative_kind or None,
        second.repo,
    )


def write_gis(
    out: Path,
    positives: Mapping[str, Sequence[IssuePair]],
    negatives: Mapping[str, Sequence[IssuePair]],
    texts: Mapping[IssueRef, IssueText],
    *,
    seed: int,
    statistics: Mapping[str, Any],
    run: Mapping[str, Any],
    site: str,
) -> dict[str, Any]:
    """Write the dataset folder with the configurations `default` and `positive`; returns its statistics.

    Raises DataError with a remedy if there are no positives.
    """
    if not any(positives.values()):
        raise DataError(
            _why_empty(statistics, run["settings"]["pair"]["relations"]), path=out
        )
    all_positives = chain(*positives.values())
    crosses = any(pair.first.repo != pair.second.repo for pair in all_positives)
    rows = {}
    positive_rows = {}
    for split, pairs in positives.items():
        all_pairs = [*pairs, *negatives.get(split, ())]
        rows[split] = make_rows(all_pairs, texts, seed, site, with_repo2=crosses)
        positive_rows[split] = make_positive_rows(pairs, texts, seed)
    configs = {"default": rows, "positive": positive_rows}
    columns = {split: counted_columns(frame) for split, frame in rows.items()}
    counts = row_counts(columns) | dict(statistics)
    card = gis_card(counts, card_files(configs))
    write_dataset(out, configs, card=card, statistics=counts, run=run)
    return counts


def _why_empty(statistics: Mapping[str, Any], chosen: Collection[str]) -> str:
    """Why there is no positive, and what to do."""
    dropped = statistics["dropped_positives"]
    if not dropped:
        return _why_no_duplicate(statistics["verdicts"].get("uncertain", {}))
    reasons = _named_counts(dropped)
    remedies = []
    found = [relation for relation in Relation if f"relation_{relation}" in dropped]
    if found:
        wanted = [each for each in Relation if each in chosen or each in found]
        remedies.append(f"give --relations={','.join(wanted)}")
    if UNLIKELY_SAME in dropped:
        remedies.append("lower --min-same-probability")
    if "text_too_short" in dropped:
        remedies.append("lower text.min_words and text.min_chars")
    remedy = " or ".join(remedies) or _MORE_ISSUES
    return f"every duplicate was rejected ({reasons}; see dropped.parquet); {remedy}"


def _why_no_duplicate(uncertain: Mapping[str, int]) -> str:
    if not uncertain:
        return f"no duplicates found; {_MORE_ISSUES}"
    remedies = [remedy for reason, remedy in _REMEDIES.items() if reason in uncertain]
    remedy = " or ".join(remedies) or _MORE_ISSUES
    return f"no duplicates found, only uncertain ones ({_named_counts(uncertain)}); {remedy}"


def _named_counts(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())


def counted_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """The columns that `row_counts` needs, without texts; `long` counts the long texts of a row."""
    return rows.select(
        pl.col("repo").cast(pl.Categorical),
        "label",
        pl.col("relation").cast(pl.Categorical),
        pl.col("evidence").struct.field("kind").cast(pl.Categorical).alias("evidence"),
        pl.col("negative_kind").cast(pl.Categorical),
        *opening_times(),
        count_long("text1", "text2").alias("long"),
    )


def row_counts(
    rows: Mapping[str, pl.DataFrame],
    max_repositories: int | None = None,
) -> dict[str, Any]:
    """Counts by split, repository, relation, evidence and kind of negative; shares of long texts."""
    all_rows = pl.concat(rows.values())
    return {
        "splits": {split: _split_counts(frame) for split, frame in rows.items()},
        "gap_auc": gap_auc(all_rows),
        "repositories": {
            split: _by_name(repository_counts(frame), max_repositories)
            for split, frame in rows.items()
        },
        "repository_count": all_rows["repo"].n_unique(),
        "relations": _value_counts(all_rows["relation"]),
        "evidence": _value_counts(all_rows["evidence"]),
        "negative_kinds": _value_counts(all_rows["negative_kind"]),
    }


def _split_counts(frame: pl.DataFrame) -> dict[str, int | float | None]:
    positive = int(frame["label"].sum())
    long_texts = int(frame["long"].sum())
    texts = 2 * frame.height
    return {
        "positive": positive,
        "negative": frame.height - positive,
        "total": frame.height,
        "long_share": round(long_texts / max(1, texts), 4),
        "gap_auc": gap_auc(frame),
    }


def repository_counts(frame: pl.DataFrame) -> pl.DataFrame:
    """Positives and negatives of each repository, sorted by name."""
    positive = pl.col("label").sum()
    negative = pl.len().cast(pl.Int64) - positive
    by_repo = frame.group_by(pl.col("repo").cast(pl.String))
    return by_repo.agg(positive=positive, negative=negative).sort("repo")


def _by_name(
    counts: pl.DataFrame, max_repositories: int | None
) -> dict[str, dict[str, int]]:
    if max_repositories is not None:
        largest = counts.sort(
            "positive", "negative", "repo", descending=[True, True, False]
        )
        counts = largest.head(max_repositories).sort("repo")
    return {
        repo: {"positive": positive, "negative": negative}
        for repo, positive, negative in counts.iter_rows()
    }


def _value_counts(values: pl.Series) -> dict[str, int]:
    counts = {}
    for value, count in values.drop_nulls().value_counts().iter_rows():
        counts[str(value)] = int(count)
    return dict(sorted(counts.items()))


def reasons_of(
    rejected: Mapping[IssueRef, str], dropped: Iterable[DroppedPair]
) -> Reasons:
    """Number of rejected issues and dropped pairs, by label and reason."""
    reasons: Reasons = Counter((None, reason) for reason in rejected.values())
    reasons.update((drop.label, drop.reason) for drop in dropped)
    return reasons


def drop_counts(reasons: Reasons, removed: Mapping[str, int]) -> dict[str, Any]:
    """The counts of rejected data in statistics.json, by stage."""
    by_label: dict[int | None, dict[str, int]] = {None: {}, 1: {}, 0: {}}
    for (label, reason), count in sorted(reasons.items(), key=str):
        by_label[label][reason] = count
    return {
        "rejected_issues": by_label[None],
        "dropped_positives": by_label[1],
        "dropped_negatives": by_label[0],
        "removed_from_texts": dict(sorted(removed.items())),
    }


def dropped_frame(
    rejected: Mapping[IssueRef, str], dropped: Iterable[DroppedPair]
) -> pl.DataFrame:
    """Every rejected issue and dropped pair with its reason, see `DROPPED_SCHEMA`."""
    rows: list[tuple[str, int | None, str, str | None]] = []
    for ref, reason in sorted(rejected.items()):
        rows.append((reason, None, str(ref), None))
    rows += (
        (drop.reason, drop.label, str(drop.first), str(drop.second))
        for drop in sorted(dropped)
    )
    return pl.DataFrame(rows, schema=DROPPED_SCHEMA, orient="row")


def dropped_lines(path: Path, issue: IssueRef) -> list[str]:
    """The reasons in a file of `write_dropped` why an issue, or pairs with it, are not in the dataset."""
    if not path.exists():
        return []
    name = str(issue)
    is_of_issue = (pl.col("issue1") == name) | (pl.col("issue2") == name)
    kinds = {None: "issue rejected", 1: "positive dropped", 0: "negative dropped"}
    lines = []
    for reason, label, *issues in read_parquet(path).filter(is_of_issue).iter_rows():
        named = " and ".join(filter(None, issues))
        lines.append(f"{kinds[label]} [{reason}]: {named}")
    return lines


def write_dropped(
    path: Path,
    rejected: Mapping[IssueRef, str],
    dropped: Iterable[DroppedPair],
) -> None:
    """Write `dropped_frame`, readable only by its owner."""
    write_parquet(path, dropped_frame(rejected, dropped), private=True)
