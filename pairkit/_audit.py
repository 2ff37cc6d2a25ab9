"""Look for what makes a pair dataset untrustworthy, first of all for leaks between its splits.

Works on any dataset that `pairkit.reader` reads. Issues are told apart by their pages where a row has
them, else by their exact texts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from pairkit.conflicts import PAIR, unordered
from pairkit.errors import LeakError
from pairkit.labels import LabelsRead, worth_telling
from pairkit.length import share_long
from pairkit.provenance import with_provenance
from pairkit.records import MEAN_LABEL, LabelKind, PairDataset, in_split_order, mean_label
from pairkit.result_table import ResultTable
from pairkit.similar import DEFAULT_THRESHOLD, near_identical

_EXAMPLES = 5
_EXAMPLE_CHARS = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """How often something was found, with a few examples."""

    count: int = 0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SplitReport:
    """One split by itself; shares are in [0, 1], `positive_share` is the mean label if labels are graded."""

    pairs: int
    positive_share: float
    long_share: float
    empty_texts: int
    same_text: int  # pairs of a text with itself


@dataclass(frozen=True, slots=True, repr=False)
class AuditReport:
    """What was found; `leaks` decides whether the splits can be trusted."""

    source: str
    splits: Mapping[str, SplitReport]
    shared_issues: Finding = field(default_factory=Finding)  # in two splits
    shared_clusters: Finding = field(default_factory=Finding)
    near_identical: Finding = field(default_factory=Finding)  # groups of texts that reach over two splits
    repeated_pairs: Finding = field(default_factory=Finding)
    contradictory_pairs: Finding = field(default_factory=Finding)  # the same two texts with different labels
    issues_by: str = "text"
    label_kind: LabelKind = "binary"
    labels: LabelsRead | None = None  # what was made of the source's labels, and what was left out by them

    @property
    def leaks(self) -> list[str]:
        """What two splits share, in words; empty if nothing."""
        found = {
            "shared issues" if self.issues_by == "page" else "shared texts": self.shared_issues,
            "shared clusters": self.shared_clusters,
            "near-identical texts": self.near_identical,
        }
        return [f"{finding.count} {name}" for name, finding in found.items() if finding.count]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return asdict(self) | {"leaks": self.leaks}

    def check(self) -> None:
        """Do nothing if the splits can be trusted.

        Raises:
            LeakError: Two splits share something.
        """
        if self.leaks:
            raise LeakError("leaks between splits: " + ", ".join(self.leaks), path=self.source)

    def tables(self) -> tuple[ResultTable, ResultTable]:
        """Each split by itself, and what was found."""
        label, form = MEAN_LABEL[self.label_kind]
        splits = ResultTable("split", "pairs", label, "> 512 tokens", "empty", "same text", title=self.source)
        splits.caption = worth_telling(self.labels)
        for name, split in self.splits.items():
            mean, long = f"{split.positive_share:{form}}", f"{split.long_share:.1%}"
            splits.add_row(name, split.pairs, mean, long, split.empty_texts, split.same_text)
        findings = {
            f"issues in two splits (by {self.issues_by})": self.shared_issues,
            "clusters in two splits": self.shared_clusters,
            "near-identical texts in two splits": self.near_identical,
            "pairs that are repeated": self.repeated_pairs,
            "pairs with two labels": self.contradictory_pairs,
        }
        verdict = "LEAKS: " + ", ".join(self.leaks) if self.leaks else "no leaks"
        examples = any(finding.examples for finding in findings.values())
        found = ResultTable(
            "found", "number", *(["such as"] if examples else []), left=["such as"], caption=verdict
        )
        for name, finding in findings.items():
            first, *more = finding.examples or ("",)
            found.add_row(name, finding.count, *([first] if examples else []))
            for example in more:
                found.add_row("", "", example)
        return splits, found

    def __repr__(self) -> str:
        return "\n\n".join(str(part) for part in self.tables())

    def _repr_html_(self) -> str:
        return "".join(part._repr_html_() for part in self.tables())


def audit_pairs(dataset: PairDataset, threshold: float = DEFAULT_THRESHOLD) -> AuditReport:
    """Check a dataset; read it with `check=False` to have empty texts counted rather than refused.

    Args:
        dataset: Any pairs.
        threshold: Jaccard similarity of word triples from which texts are near-identical.
    """
    dataset = with_provenance(dataset)
    by_page = dataset.has("url1", "url2")
    known = [_page(side) if by_page else pl.lit(None, pl.String) for side in (1, 2)]
    everything = pl.concat(
        [
            frame.select(
                pl.lit(split).alias("split"),
                pl.col("text1").fill_null(""),
                pl.col("text2").fill_null(""),
                pl.col("label").cast(pl.Float64),
                *(
                    pl.coalesce(page, pl.col(f"text{side}").fill_null("")).alias(f"key{side}")
                    for side, page in enumerate(known, 1)
                ),
                (pl.col("cluster") if dataset.has("cluster") else pl.lit(None, pl.String)).alias("cluster"),
            )
            for split, frame in dataset.splits.items()
        ]
    )
    repeated, contradictory = _pairs_seen_again(everything)
    return AuditReport(
        source=dataset.source,
        splits={
            split: _split_report(everything.filter(pl.col("split") == split)) for split in dataset.splits
        },
        shared_issues=_shared(_stacked(everything, "key1", "key2")),
        shared_clusters=_shared(everything.select("split", pl.col("cluster").alias("key"))),
        near_identical=_near_identical(_stacked(everything, "text1", "text2"), threshold, equal_too=by_page),
        repeated_pairs=repeated,
        contradictory_pairs=contradictory,
        issues_by="page" if by_page else "text",
        label_kind=dataset.label_kind,
        labels=dataset.labels,
    )


def _page(side: int) -> pl.Expr:
    """The page of an issue, null where a row tells none: in a merged dataset only some rows may."""
    page = pl.col(f"url{side}")
    return pl.when(page.str.strip_chars() != "").then(page)


def _split_report(frame: pl.DataFrame) -> SplitReport:
    empty = frame.select(
        (pl.col(name).str.strip_chars() == "").sum().alias(name) for name in ("text1", "text2")
    ).sum_horizontal()
    return SplitReport(
        pairs=frame.height,
        positive_share=round(mean_label(frame), 4),
        long_share=round(share_long(frame, "text1", "text2"), 4),
        empty_texts=int(empty.item()) if frame.height else 0,
        same_text=int((frame["text1"] == frame["text2"]).sum()),
    )


def _stacked(frame: pl.DataFrame, one: str, other: str) -> pl.DataFrame:
    """Both columns as one, each value once a split."""
    return pl.concat([frame.select("split", pl.col(name).alias("key")) for name in (one, other)]).unique(
        maintain_order=True
    )


def _shared(values: pl.DataFrame) -> Finding:
    """Values that stand in more than one split."""
    shared = (
        values.filter(pl.col("key").is_not_null() & (pl.col("key").str.strip_chars() != ""))
        .group_by("key", maintain_order=True)
        .agg(pl.col("split").unique())
        .filter(pl.col("split").list.len() > 1)
        .sort("key")
    )
    return _finding(
        shared.height,
        (f"{_short(key)}  in {_listed(splits)}" for key, splits in shared.head(_EXAMPLES).iter_rows()),
    )


def _near_identical(texts: pl.DataFrame, threshold: float, *, equal_too: bool) -> Finding:
    """Groups of near-identical texts that reach over splits; `equal_too` counts one text in two splits."""
    splits_of: defaultdict[str, list[str]] = defaultdict(list)
    for split, text in texts.iter_rows():
        if text.strip():
            splits_of[text].append(split)
    distinct = sorted(splits_of)
    groups = near_identical(distinct, threshold)
    if equal_too:
        grouped = {place for members in groups for place in members}
        groups += [[place] for place in range(len(distinct)) if place not in grouped]
    reaching = []
    for members in groups:
        splits = {split for place in members for split in splits_of[distinct[place]]}
        if len(splits) > 1:
            words = " ~ ".join(_short(distinct[place]) for place in members[:2])
            reaching.append(f"{words}  in {_listed(splits)}")
    return _finding(len(reaching), reaching)


def _pairs_seen_again(frame: pl.DataFrame) -> tuple[Finding, Finding]:
    seen = (
        frame.select(*unordered("key1", "key2"), "label")
        .group_by(PAIR)
        .agg(pl.len().alias("times"), pl.col("label").n_unique().alias("labels"))
        .filter(pl.col("times") > 1)
        .sort(PAIR)
    )
    findings = [
        _finding(
            part.height,
            (f"{_short(low)} | {_short(high)}" for low, high, *_ in part.head(_EXAMPLES).iter_rows()),
        )
        for part in (seen.filter(pl.col("labels") == 1), seen.filter(pl.col("labels") > 1))
    ]
    return findings[0], findings[1]


def _listed(splits: Iterable[str]) -> str:
    return ", ".join(in_split_order(splits))


def _finding(count: int, examples: Iterable[str]) -> Finding:
    return Finding(count, tuple(example for _, example in zip(range(_EXAMPLES), examples, strict=False)))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _EXAMPLE_CHARS else line[: _EXAMPLE_CHARS - 1] + "…"
