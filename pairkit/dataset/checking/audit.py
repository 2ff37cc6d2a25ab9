"""Leaks between splits, repeated pairs and contradictory labels; issues are identified by URL or text."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import polars as pl

from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import DataError, LeakError
from pairkit.base.printable import one_line
from pairkit.base.system.records_on_disk import RecordsOnDisk, Scratch, scratch_file
from pairkit.dataset.conflicts import PAIR, label_scale, labels_differ, unordered
from pairkit.dataset.labels import LEAVE_OUT, LabelsRead, describe_labels
from pairkit.dataset.negative_columns import FILE, ROW
from pairkit.dataset.reading.reader import PairFrames
from pairkit.dataset.records import (
    MEAN_LABEL,
    LabelKind,
    by_reason,
    in_split_order,
    join_bad_rows,
)
from pairkit.similarity.groups import Indices
from pairkit.similarity.measures import count_long
from pairkit.similarity.near_duplicates import TextSequence, near_identical_to
from pairkit.similarity.same_text import same_text

_EXAMPLES = 5
_EXAMPLE_CHARS = 60
# Kinds of pairs that occur several times.
_CONTRADICTION = "contradiction"
_REPEAT = "repeat"
# Columns of the file that lists these.
_LISTED = ("kind", "group", "split", "file", "row", "text1", "text2", "label")
_SEED = secrets.randbits(63)  # random, so that no one can construct collisions
_BATCH = 1 << 13  # rows
_KEYS = ("key1", "key2")
_TEXTS = ("text1", "text2")
_SAME = ("same1", "same2")


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A count with a few examples."""

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SplitReport:
    """Counts of one split; shares are in [0, 1]; `positive_share` is the mean of graded labels."""

    pairs: int
    positive_share: float
    long_share: float
    same_text: int  # pairs of two equal texts


@dataclass(frozen=True, slots=True, repr=False)
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
        leaks = {
            "shared issues"
            if self.issues_by == "page"
            else "shared texts": self.shared_issues,
            "shared clusters": self.shared_clusters,
            "near-identical texts": self.near_identical,
        }
        return [
            f"{finding.count} {name}"
            for name, finding in leaks.items()
            if finding.count
        ]

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """The command that describes the dataset."""
        skip = (
            ["--bad-rows", "skip"] if self.bad_rows and not self.skips_bad_rows else []
        )
        return [("describe the dataset", ["pairs", "report", self.source, *skip])]

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
            raise LeakError(
                "leaks between splits: " + ", ".join(self.leaks), path=self.source
            )
        if self.bad_rows and not self.skips_bad_rows:
            reasons = [
                f"{reason.replace('_', ' ')} in {finding.count:,} (first: {finding.examples[0]})"
                for reason, finding in self.bad_rows.items()
            ]
            message = f"unusable rows: {', '.join(reasons)}; fill them, drop them, {LEAVE_OUT}"
            raise DataError(message, path=self.source)

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
        verdict = "LEAKS: " + ", ".join(self.leaks) if self.leaks else "no leaks"
        columns = ["found", "number"]
        if any(finding.examples for finding in findings.values()):
            columns.append("such as")
        results = ResultTable(*columns, left=["such as"], caption=verdict)
        for name, finding in findings.items():
            first, *others = finding.examples or ("",)
            cells = [name, finding.count, first]
            results.add_row(*cells[: len(columns)])
            for example in others:
                results.add_row("", "", example)
        return results


def audit_pairs(pairs: PairFrames, *, skips_bad_rows: bool = False) -> AuditReport:
    """Check pairs in two passes: first hashes, then only the rows whose hashes show a problem."""
    first = FirstPass(pairs)
    with scratch_file(Path(gettempdir())) as scratch:
        texts, suspects = second_pass(pairs, first, scratch)
        near_identical = _near_identical(
            texts, first.splits_of_texts(), list(pairs.splits), equal_too=pairs.by_page
        )
    number = pl.Int64 if pairs.label_kind == "binary" else pl.Float32
    again = _pairs_seen_again(suspects, first.scale)
    again = again.with_columns(pl.col("label").cast(number))
    urls = ("url1", "url2") if pairs.by_page else ()
    reports = {}
    for split, rows, labels, long, same in first.counts.iter_rows():
        positive_share = round(labels / max(1, rows), 4)
        long_share = round(long / max(1, 2 * rows), 4)
        reports[split] = SplitReport(rows, positive_share, long_share, same)
    return AuditReport(
        source=pairs.source,
        splits=reports,
        shared_issues=_shared(suspects, {"key1": "issue1", "key2": "issue2"}),
        shared_clusters=_shared(suspects, {"cluster_key": "cluster"}),
        near_identical=near_identical,
        repeated_pairs=_finding(again, _REPEAT),
        contradictory_pairs=_finding(again, _CONTRADICTION),
        again=again.select(*_LISTED, *urls),
        issues_by="page" if pairs.by_page else "text",
        label_kind=pairs.label_kind,
        labels=pairs.labels,
        bad_rows={
            reason: AuditFinding(count, (one_line(place, 300),))
            for reason, count, place in by_reason(join_bad_rows(pairs.bad.values()))
        },
        skips_bad_rows=skips_bad_rows,
    )


def _shared(rows: pl.DataFrame, columns: Mapping[str, str]) -> AuditFinding:
    """Values that are in more than one split, from columns of keys and of values."""
    values = [
        rows.select("split", key=key, value=value) for key, value in columns.items()
    ]
    shared = (
        pl.concat(values)
        .filter(pl.col("key") != 0)
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


def _near_identical(
    texts: TextSequence,
    splits_of: tuple[Indices, Indices],
    splits: Sequence[str],
    *,
    equal_too: bool,
) -> AuditFinding:
    """Groups of near-identical texts in several splits; with `equal_too` also equal texts."""
    group = near_identical_to(texts)
    sizes = np.bincount(group, minlength=len(group))
    text, split = splits_of
    group_of_text = group[text].astype(np.int64)
    in_split = np.unique(group_of_text * len(splits) + split)
    names, split_counts = np.unique(in_split // len(splits), return_counts=True)
    crossing = names[split_counts > 1]
    if not equal_too:
        crossing = crossing[sizes[crossing] > 1]

    several_texts_first = crossing[np.argsort(sizes[crossing] == 1, kind="stable")]
    examples = []
    for name in several_texts_first[:_EXAMPLES]:
        members = np.flatnonzero(group == name)
        first_texts = [texts[place] for place in members[:2].tolist()]
        shown = " ~ ".join(map(_short, first_texts))
        codes = np.unique(split[np.isin(text, members)])
        examples.append(_crossing(shown, [splits[code] for code in codes]))
    return AuditFinding(len(crossing), tuple(examples))


def _pairs_seen_again(rows: pl.DataFrame, scale: float) -> pl.DataFrame:
    """All rows of pairs that occur several times, contradictions before repeats."""
    several = rows.filter(rows["pair"].is_duplicated()).with_row_index("place")
    is_contradiction = pl.when(labels_differ(scale, ["pair"]))
    kind = is_contradiction.then(pl.lit(_CONTRADICTION)).otherwise(pl.lit(_REPEAT))
    first_place = pl.col("place").min().over("pair")
    by_pair = several.sort(kind, first_place, maintain_order=True)
    number = pl.col("pair").rle_id().cast(pl.Int64) + 1
    return by_pair.with_columns(kind.alias("kind"), number.alias("group"))


def _finding(again: pl.DataFrame, kind: str) -> AuditFinding:
    """The number of pairs of a kind, with the first ones."""
    pairs = again.filter(pl.col("kind") == kind).unique("group", maintain_order=True)
    first = pairs.select("issue1", "issue2").head(_EXAMPLES).iter_rows()
    examples = tuple(f"{_short(issue1)} | {_short(issue2)}" for issue1, issue2 in first)
    return AuditFinding(pairs.height, examples)


def _short(text: str) -> str:
    return one_line(text, _EXAMPLE_CHARS)


# The two passes: first over hashes of all rows, then over rows with colliding hashes.


class FirstPass:
    """Hashes of everything that must not be in two splits or occur twice."""

    def __init__(self, pairs: PairFrames) -> None:
        counts = []
        hashes = []
        self.scale = 1.0
        for code, split, rows in key_rows(pairs):
            keys_of_rows = hashes_of(rows)
            self.scale = max(self.scale, label_scale(rows["label"]))
            counts.append(_split_counts(rows.hstack(keys_of_rows), split))
            hashes.append(keys_of_rows.with_columns(split=pl.lit(code, pl.Int16)))
        self.counts = pl.concat(counts).group_by("split", maintain_order=True).sum()
        hashed = pl.concat(hashes)
        keys = pl.concat([hashed.select("split", key=key) for key in _KEYS])
        shared_keys = _keys_in_two_splits(keys, "key")
        shared_clusters = _keys_in_two_splits(hashed, "cluster_key")
        self.is_suspect = (
            hashed["key1"].is_in(shared_keys)
            | hashed["key2"].is_in(shared_keys)
            | hashed["cluster_key"].is_in(shared_clusters)
            | hashed["pair"].is_duplicated()
        )
        self.keys_of_suspects = hashed.drop("split").filter(self.is_suspect)
        texts = hashed.select("split", text=pl.concat_list(_SAME)).explode("text")
        is_text = texts["text"] != 0
        self.is_new = is_text & texts["text"].is_first_distinct()
        self._texts = texts.filter(is_text)

    def splits_of_texts(self) -> tuple[Indices, Indices]:
        """Numbers of texts (in order of first occurrence), and the number of the split of each."""
        distinct = self._texts.select("text").unique(maintain_order=True)
        known = distinct.with_row_index("number")
        numbered = self._texts.join(
            known,
            on="text",
            how="left",
            maintain_order="left",
        )
        numbers = numbered.select(pl.col("number", "split").cast(pl.Int64))
        return numbers["number"].to_numpy(), numbers["split"].to_numpy()


def second_pass(
    pairs: PairFrames, first: FirstPass, scratch: Scratch
) -> tuple[RecordsOnDisk[str], pl.DataFrame]:
    """The first of all texts that are the same, and the rows with suspect hashes."""
    texts = RecordsOnDisk(scratch, str)
    kept = []
    start = 0
    for _, _, rows in key_rows(pairs):
        end = start + rows.height
        both = rows.select(text=pl.concat_list(_TEXTS)).explode("text")
        texts.extend(both["text"].filter(first.is_new[2 * start : 2 * end]))
        batch = rows.filter(first.is_suspect[start:end])
        # A copy, because a view would keep all texts in memory.
        kept.append(pl.DataFrame(batch.rows(), schema=rows.schema, orient="row"))
        start = end
    suspects = pl.concat(kept).hstack(first.keys_of_suspects)
    issues = {
        f"issue{side}": pl.coalesce(f"url{side}", f"text{side}") for side in (1, 2)
    }
    return texts, suspects.with_columns(**issues)


def key_rows(pairs: PairFrames) -> Iterator[tuple[int, str, pl.DataFrame]]:
    """Batches of rows with split, texts, label, pages and cluster; with number and name of their split."""
    for code, (split, readers) in enumerate(pairs.splits.items()):
        for read in readers:
            rows = read()
            for start in range(0, max(1, rows.height), _BATCH):  # also without rows
                batch = rows[start : start + _BATCH]
                yield code, split, _audited_columns(batch, split, by_page=pairs.by_page)


def _split_counts(rows: pl.DataFrame, split: str) -> pl.DataFrame:
    is_same = pl.col("same1") == pl.col("same2")
    return rows.select(
        split=pl.lit(split),
        pairs=pl.len().cast(pl.Int64),
        labels=pl.col("label").sum(),
        long=count_long(*_TEXTS).sum(),
        same=is_same.sum().cast(pl.Int64),
    )


def _audited_columns(rows: pl.DataFrame, split: str, *, by_page: bool) -> pl.DataFrame:
    pages = {}
    for name in ("url1", "url2"):
        url = _column_or_null(rows, name) if by_page else pl.lit(None, pl.String)
        # In a merged dataset, only some rows may have a page.
        pages[name] = pl.when(url.str.strip_chars() != "").then(url)
    return rows.select(
        pl.col(_TEXTS).fill_null(""),
        pl.col("label").cast(pl.Float64),
        **pages,
        split=pl.lit(split),
        file=FILE,
        row=ROW,
        cluster=_column_or_null(rows, "cluster"),
    )


def _column_or_null(rows: pl.DataFrame, name: str) -> pl.Expr:
    return pl.col(name) if name in rows.columns else pl.lit(None, pl.String)


def hashes_of(rows: pl.DataFrame) -> pl.DataFrame:
    """A hash of each text, issue (its page or text), pair and cluster; 0 for blank values."""
    keyed = rows.with_columns(
        same1=same_text("text1"),
        same2=same_text("text2"),
        cluster_key="cluster",
    )
    keyed = keyed.with_columns(
        key1=pl.coalesce("url1", "same1"),
        key2=pl.coalesce("url2", "same2"),
    )
    keyed = keyed.with_columns(unordered(*_KEYS))
    values = pl.col(*_KEYS, "cluster_key", *_SAME)
    is_blank = values.str.strip_chars().fill_null("") == ""
    hashes = pl.when(is_blank).then(0).otherwise(values.hash(_SEED))
    pair = pl.struct(PAIR).hash(_SEED)
    return keyed.select(hashes.name.keep(), pair=pair)


def _keys_in_two_splits(hashed: pl.DataFrame, name: str) -> pl.Series:
    """Hashes that occur in two splits, as one list."""
    present = hashed.filter(hashed[name] != 0)
    once_a_split = present.select("split", name).unique()[name]
    several = once_a_split.filter(once_a_split.is_duplicated())
    return several.unique().implode()
