"""Leaks between splits, repeated pairs and contradictory labels; issues are identified by URL or text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import DataError, LeakError
from pairkit.base.printable import one_line
from pairkit.dataset.labels import LEAVE_OUT, LabelsRead, describe_labels
from pairkit.dataset.records import (
    FILE,
    MEAN_LABEL,
    PAIR,
    ROW,
    LabelKind,
    PairDataset,
    by_reason,
    in_split_order,
    join_bad_rows,
    label_scale,
    labels_differ,
    mean_label,
    unordered,
    with_provenance,
)
from pairkit.similarity.measures import share_long
from pairkit.similarity.near_duplicates import near_identical_to
from pairkit.similarity.terms import same_text

_EXAMPLES = 5
_EXAMPLE_CHARS = 60
# Kinds of pairs that occur several times.
_CONTRADICTION = "contradiction"
_REPEAT = "repeat"
_TEXTS = ("text1", "text2")
_URLS = ("url1", "url2")
# Columns of the file that lists pairs of both kinds.
_LISTED = ("kind", "group", "split", "file", "row", *_TEXTS, "label")


@dataclass(frozen=True)
class AuditFinding:
    """A count with a few examples."""

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class SplitReport:
    """Counts of one split; shares are in [0, 1]; `positive_share` is the mean of graded labels."""

    pairs: int
    positive_share: float
    long_share: float
    same_text: int  # pairs of two equal texts


@dataclass(frozen=True, repr=False)
class AuditReport(Printed):
    """The findings of an audit. If `leaks` is not empty, results on the splits are not valid."""

    source: str
    splits: Mapping[str, SplitReport]
    shared_issues: AuditFinding  # in two splits
    shared_clusters: AuditFinding
    near_identical: AuditFinding  # groups in several splits
    repeated_pairs: AuditFinding
    contradictory_pairs: AuditFinding  # one pair with different labels
    issues_by: str  # page or text
    label_kind: LabelKind
    # The meaning of the labels, and the rows skipped by label.
    labels: LabelsRead | None
    # Rows without a text or label, by reason, with the first as `file:row`; other commands refuse them.
    bad_rows: Mapping[str, AuditFinding]
    skips_bad_rows: bool
    again: pl.DataFrame  # rows of repeated and contradictory pairs

    @property
    def leaks(self) -> list[str]:
        """Descriptions of the leaks between splits."""
        shared = "shared issues" if self.issues_by == "page" else "shared texts"
        counts = {
            shared: self.shared_issues.count,
            "shared clusters": self.shared_clusters.count,
            "near-identical texts": self.near_identical.count,
        }
        return [f"{count} {name}" for name, count in counts.items() if count]

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """The command that describes the dataset."""
        command = ["pairs", "report", self.source]
        if self.bad_rows and not self.skips_bad_rows:
            command += ["--bad-rows", "skip"]
        return [("describe the dataset", command)]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        plain = asdict(self)
        del plain["again"]
        return plain | {"leaks": self.leaks}

    def check(self) -> None:
        """Raise an error if splits leak or rows are unusable.

        Raises:
            LeakError: Two splits share something.
            DataError: Rows lack a text or label and are not skipped.
        """
        if self.leaks:
            leaks = ", ".join(self.leaks)
            raise LeakError(f"leaks between splits: {leaks}", path=self.source)
        if self.bad_rows and not self.skips_bad_rows:
            reasons = []
            for reason, finding in self.bad_rows.items():
                (first,) = finding.examples
                words = reason.replace("_", " ")
                reasons.append(f"{words} in {finding.count:,} (first: {first})")
            raise DataError(
                f"unusable rows: {', '.join(reasons)}; fill them, drop them, {LEAVE_OUT}",
                path=self.source,
            )

    def tables(self) -> tuple[ResultTable, ResultTable]:
        """The counts of each split, and the findings."""
        return self._split_table(), self._finding_table()

    def _split_table(self) -> ResultTable:
        label, form = MEAN_LABEL[self.label_kind]
        splits = ResultTable(
            "split",
            "pairs",
            label,
            "> 512 tokens",
            "same text",
            title=self.source,
            caption=describe_labels(self.labels),
        )
        for name, split in self.splits.items():
            mean = f"{split.positive_share:{form}}"
            long = f"{split.long_share:.1%}"
            splits.add_row(name, split.pairs, mean, long, split.same_text)
        return splits

    def _finding_table(self) -> ResultTable:
        findings = {
            f"issues in two splits (by {self.issues_by})": self.shared_issues,
            "clusters in two splits": self.shared_clusters,
            "near-identical texts in two splits": self.near_identical,
            "repeated pairs": self.repeated_pairs,
            "pairs with two labels": self.contradictory_pairs,
        }
        for reason, rows in self.bad_rows.items():
            findings[f"rows left out: {reason.replace('_', ' ')}"] = rows
        columns = ["found", "number"]
        if any(finding.examples for finding in findings.values()):
            columns.append("such as")
        verdict = f"LEAKS: {', '.join(self.leaks)}" if self.leaks else "no leaks"
        results = ResultTable(*columns, left=["such as"], caption=verdict)
        for name, finding in findings.items():
            first, *others = finding.examples or ("",)
            cells: list[str | int] = [name, finding.count, first]
            results.add_row(*cells[: len(columns)])
            for example in others:
                results.add_row("", "", example)
        return results


def audit_pairs(dataset: PairDataset, *, skips_bad_rows: bool = False) -> AuditReport:
    """Check pairs, which have the columns `FILE` and `ROW`."""
    typed = with_provenance(dataset).splits
    by_page = all({*_URLS} <= {*rows.columns} for rows in typed.values())
    splits = {}
    for split, rows in typed.items():
        comparable = rows if by_page else rows.drop(_URLS, strict=False)
        splits[split] = _audited_columns(comparable, split)
    rows = pl.concat(splits.values())
    again = _pairs_seen_again(rows)
    listed = (*_LISTED, *_URLS) if by_page else _LISTED
    label_type = pl.Int64 if dataset.label_kind == "binary" else pl.Float32
    bad_rows = {
        reason: AuditFinding(count, (one_line(place, 300),))
        for reason, count, place in by_reason(join_bad_rows([dataset.bad_rows]))
    }
    return AuditReport(
        source=dataset.source,
        splits={split: _split_report(rows) for split, rows in splits.items()},
        shared_issues=_shared(rows, {"key1": "issue1", "key2": "issue2"}),
        shared_clusters=_shared(rows, {"cluster": "cluster"}),
        near_identical=_near_identical(rows),
        repeated_pairs=_finding(again, _REPEAT),
        contradictory_pairs=_finding(again, _CONTRADICTION),
        issues_by="page" if by_page else "text",
        label_kind=dataset.label_kind,
        labels=dataset.labels,
        bad_rows=bad_rows,
        skips_bad_rows=skips_bad_rows,
        again=again.select(listed).cast({"label": label_type}),
    )


def _audited_columns(rows: pl.DataFrame, split: str) -> pl.DataFrame:
    """Texts, label and origin of rows; and keys of texts, issues (page or text), pairs and clusters."""
    origin = {}
    for name in (*_URLS, "cluster"):
        values = pl.col(name) if name in rows.columns else pl.lit(None, pl.String)
        # In a merged dataset, only some rows may have a page.
        origin[name] = _unless_blank(values)
    columns = rows.select(
        pl.col(_TEXTS).fill_null(""),
        pl.col("label").cast(pl.Float64),
        **origin,
        split=pl.lit(split),
        file=FILE,
        row=ROW,
    )
    columns = columns.with_columns(same1=same_text("text1"), same2=same_text("text2"))
    columns = columns.with_columns(
        key1=pl.coalesce("url1", "same1"),
        key2=pl.coalesce("url2", "same2"),
        issue1=pl.coalesce("url1", "text1"),
        issue2=pl.coalesce("url2", "text2"),
    )
    return columns.with_columns(unordered("key1", "key2"))


def _unless_blank(values: pl.Expr) -> pl.Expr:
    return pl.when(values.str.strip_chars() != "").then(values)


def _split_report(rows: pl.DataFrame) -> SplitReport:
    return SplitReport(
        pairs=rows.height,
        positive_share=round(mean_label(rows), 4),
        long_share=round(share_long(rows, *_TEXTS), 4),
        same_text=int((rows["same1"] == rows["same2"]).sum()),
    )


def _shared(rows: pl.DataFrame, columns: Mapping[str, str]) -> AuditFinding:
    """Values that are in more than one split, from columns of keys and of values."""
    values = [
        rows.select("split", key=_unless_blank(pl.col(key)), value=value)
        for key, value in columns.items()
    ]
    shared = (
        pl.concat(values)
        .drop_nulls("key")
        .group_by("key")
        .agg(pl.col("split").unique(), pl.col("value").min())
        .filter(pl.col("split").list.len() > 1)
        .sort("value")
    )
    first = shared.select("value", "split").head(_EXAMPLES).iter_rows()
    examples = tuple(_crossing(_short(value), splits) for value, splits in first)
    return AuditFinding(shared.height, examples)


def _crossing(what: str, splits: Iterable[str]) -> str:
    return f"{what}  in {', '.join(in_split_order(splits))}"


def _near_identical(rows: pl.DataFrame) -> AuditFinding:
    """Groups of near-identical texts in several splits; those of a single issue are among the shared issues."""
    in_splits = pl.col("split").list.len() > 1
    crossing = _text_groups(rows).filter(in_splits, pl.col("issues") > 1)
    is_single = pl.col("text").list.len() == 1
    several_texts_first = crossing.sort(is_single, maintain_order=True)
    first = several_texts_first.select("text", "split").head(_EXAMPLES).iter_rows()
    examples = tuple(
        _crossing(" ~ ".join(map(_short, texts[:2])), splits) for texts, splits in first
    )
    return AuditFinding(crossing.height, examples)


def _text_groups(rows: pl.DataFrame) -> pl.DataFrame:
    """The near-identical texts of each group (of equal ones the first), its splits, and its number of issues."""
    sides = rows.select(
        "split",
        text=pl.concat_list(_TEXTS),
        same=pl.concat_list("same1", "same2"),
        key=pl.concat_list("key1", "key2"),
    )
    sides = sides.explode("text", "same", "key")
    sides = sides.filter(pl.col("same").str.strip_chars() != "")
    distinct = sides.unique("same", keep="first", maintain_order=True)
    groups = near_identical_to(distinct["text"].to_list())
    numbered = distinct.select("same", pl.Series("group", groups))

    sides = sides.join(numbered, on="same", maintain_order="left")
    return sides.group_by("group", maintain_order=True).agg(
        pl.col("text").filter(pl.col("same").is_first_distinct()),
        pl.col("split").unique(),
        issues=pl.col("key").n_unique(),
    )


def _pairs_seen_again(rows: pl.DataFrame) -> pl.DataFrame:
    """All rows of pairs that occur several times, contradictions before repeats."""
    several = rows.filter(pl.len().over(PAIR) > 1).with_row_index("place")
    differ = labels_differ(label_scale(rows["label"]))
    kind = pl.when(differ).then(pl.lit(_CONTRADICTION)).otherwise(pl.lit(_REPEAT))
    first_place = pl.col("place").min().over(PAIR)
    by_pair = several.sort(kind, first_place, maintain_order=True)
    number = pl.struct(PAIR).rle_id().cast(pl.Int64) + 1
    return by_pair.with_columns(kind.alias("kind"), number.alias("group"))


def _finding(again: pl.DataFrame, kind: str) -> AuditFinding:
    """The number of pairs of a kind, with the first ones."""
    pairs = again.filter(pl.col("kind") == kind).unique("group", maintain_order=True)
    first = pairs.select("issue1", "issue2").head(_EXAMPLES).iter_rows()
    examples = tuple(f"{_short(issue1)} | {_short(issue2)}" for issue1, issue2 in first)
    return AuditFinding(pairs.height, examples)


def _short(text: str) -> str:
    return one_line(text, _EXAMPLE_CHARS)
