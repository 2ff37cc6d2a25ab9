"""Datasets made by `pairs`: their dropped rows, statistics and folder; and export as JSON lines or CSV."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.extras import __version__
from pairkit.base.printable import listed
from pairkit.base.system.files import write_bytes
from pairkit.base.system.folders import check_file, check_same_run, existing_run
from pairkit.dataset.labels import SKIPPED, LabelsRead, describe_labels
from pairkit.dataset.making.dataset_folder import (
    card_files,
    dataset_card,
    write_dataset,
)
from pairkit.dataset.making.dataset_folder import table as markdown_table
from pairkit.dataset.reading.in_memory import Source, contents_of, tables_by_split
from pairkit.dataset.records import (
    FILE,
    ROW,
    LabelKind,
    PairDataset,
    by_reason,
    in_split_order,
    join_bad_rows,
    mean_label,
    write_bad_rows,
)
from pairkit.dataset.table_files import table_bytes
from pairkit.similarity.measures import share_long, train_command

_LOG = logging.getLogger(__name__)
FEW_ROWS = 50  # too few to train on
# A column, null for kept rows; its name is unlikely to exist in a dataset.
DROPPED = "why it is left out"
# Columns of dropped rows.
_RENAMED = {
    DROPPED: "left_out",
    FILE: "source_file",
    ROW: "source_row",
}
# A column: whether a row's pair has several labels and is kept.
CONFLICTING = "whether it is a kept conflict"
_CONFLICTS = "conflicting_rows"  # their number in the statistics
_LIMITS = """
* The limitations of the source datasets apply: see their cards.
* The share of texts over 512 tokens is estimated without a tokenizer.
"""
_LICENCE = """
The source datasets have their own licences; check these before you share this dataset.
"""

FileFormat = Literal["jsonl", "csv"]


# Without `eq`, as frames can't be compared by ==.
@dataclass(frozen=True, repr=False, eq=False)
class MadeDataset(Printed):
    """A dataset made from other datasets or documents.

    Attributes:
        pairs: Its pairs.
        dropped: The rows that were left out, with the reason in `left_out`; after a merge or split,
            `source_file` and `source_row` have the file and its row, as in messages. Rows skipped by label,
            or for missing values, are not included.
        statistics: Counts by split, source and reason.
        out: Its folder; None if it was not written.
    """

    pairs: PairDataset
    dropped: pl.DataFrame
    statistics: dict[str, Any]
    out: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        """The folder and the statistics."""
        return {"out": str(self.out), **self.statistics}

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to train on it, unless it has only a few rows."""
        if self.out is None or len(self.pairs) < FEW_ROWS:
            return []
        return [("train on it", train_command(self.out))]

    def table(self) -> ResultTable:
        """The rows of each split, and the numbers of dropped rows."""
        counts = self.pairs.table()
        reasons = self.statistics["dropped_pairs"]
        if reasons:
            counts.caption = f"left out: {listed(reasons)}"
        if conflicting := self.statistics.get(_CONFLICTS):
            kept = f"kept: {conflicting:,} rows with conflicting labels"
            counts.caption = "; ".join(filter(None, [counts.caption, kept]))
        return counts


def build_result(
    rows: pl.DataFrame,
    kind: LabelKind,
    name: str,
    read: Sequence[PairDataset] = (),
) -> MadeDataset:
    """A dataset from rows with the columns `split` and `DROPPED` (the drop reason)."""
    is_kept = rows[DROPPED].is_null()
    if not is_kept.any():
        raise DataError(
            f"no pair is left of {rows.height:,}; nothing was written", path=name
        )
    kept = rows.filter(is_kept)
    splits = _by_split(kept.drop(CONFLICTING, *_RENAMED, strict=False))
    others = rows.drop(CONFLICTING, *_RENAMED.values(), strict=False)
    dropped = others.filter(~is_kept).rename(_RENAMED, strict=False)
    bad = join_bad_rows(pairs.bad_rows for pairs in read)

    statistics = {
        "splits": {
            split: _split_counts(frame, kind) for split, frame in splits.items()
        },
        "dropped_pairs": _drop_counts(dropped, read, bad),
    }
    if CONFLICTING in kept.columns and kept[CONFLICTING].any():
        statistics[_CONFLICTS] = int(kept[CONFLICTING].sum())
    if "source" in kept.columns:
        sources = kept["source"].value_counts().sort("source")
        statistics["sources"] = dict(sources.iter_rows())
    labels = None
    if any(pairs.labels is not None for pairs in read):
        labels = LabelsRead("as in the sources", plain=True)
    pairs = PairDataset(splits, name, kind, labels, bad)
    return MadeDataset(pairs, dropped, statistics)


def _by_split(rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
    first = ("text1", "text2", "label")
    columns = rows.select("split", *first, pl.exclude("split", *first))
    by_split = columns.partition_by("split", as_dict=True, include_key=False)
    splits = {str(name): frame for (name,), frame in by_split.items()}
    return {name: splits[name] for name in in_split_order(splits)}


def _drop_counts(
    dropped: pl.DataFrame,
    read: Sequence[PairDataset],
    bad: pl.DataFrame,
) -> dict[str, int]:
    """Rows by drop reason, then those that readers skipped by label and for missing values."""
    reasons = dropped[_RENAMED[DROPPED]].value_counts().rows()
    counts = dict(sorted(reasons, key=lambda row: (-row[1], row[0])))
    skipped = 0
    for pairs in read:
        if pairs.labels is not None:
            skipped += sum(pairs.labels.skipped.values())
    if skipped:
        counts[SKIPPED] = skipped
    return counts | {missing: rows for missing, rows, _ in by_reason(bad)}


def _split_counts(frame: pl.DataFrame, kind: LabelKind) -> dict[str, int | float]:
    counts: dict[str, int | float] = {"total": frame.height}
    if kind == "binary":
        positive = int(frame["label"].sum())
        counts |= {"positive": positive, "negative": frame.height - positive}
    else:
        counts["mean_label"] = round(mean_label(frame), 4)
    return counts | {"long_share": round(share_long(frame, "text1", "text2"), 4)}


def run_record(
    command: str,
    inputs: Mapping[str, PairDataset | Mapping[str, Any]],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """The content of run.json, which is equal for equal runs."""
    return {
        "made_by": f"pairs (aoe-toolkit {__version__})",
        "command": command,
        "settings": dict(settings),
        # A list, because of conflicting labels the first input's may be kept.
        "inputs": [
            {"name": name, **_digest(content)} for name, content in inputs.items()
        ],
    }


def _digest(content: PairDataset | Mapping[str, Any]) -> Mapping[str, Any]:
    """The size and hash of pairs; those of other inputs are there already."""
    if not isinstance(content, PairDataset):
        return content
    digest = hashlib.sha256()
    for split, frame in content.splits.items():
        pairs = frame.select("text1", "text2", "label")
        digest.update(f"{split}\n{pairs.write_ndjson()}".encode())
    return {"rows": len(content), "sha256": digest.hexdigest()}


def check_out(
    out: Path | None,
    run: Mapping[str, Any],
    sources: Iterable[Source],
    *,
    fresh: bool,
) -> None:
    """Refuse an output folder with a source, other files, or, unless `fresh`, another dataset of `pairs`."""
    if out is None:
        return
    for source in map(contents_of, sources):
        if isinstance(source, str | Path):
            home = Path(source).resolve()
            if out.resolve() in (home, *home.parents):
                raise ConfigError(
                    f"{out}: would replace its source {source}; choose another folder"
                )
    existing = existing_run(out, "pairs", "inputs")
    if existing and not fresh:
        check_same_run(out, existing, run, ("command", "settings", "inputs"))


def write_result(
    dataset: MadeDataset,
    out: Path | None,
    run: Mapping[str, Any],
    introduction: str,
    further: Iterable[tuple[str, str]] = (),
    *,
    limits: str = _LIMITS,
) -> MadeDataset:
    """Write the dataset with a card, unless `out` is None; call `check_out` before."""
    if out is None:
        return dataset
    splits = tables_by_split(dataset.pairs)
    is_labelled = any("label" in frame.columns for frame in splits.values())
    configs = {"default" if is_labelled else "positive": splits}
    sections = [("", introduction), *_count_sections(dataset.statistics), *further]
    sections += [("Limitations", limits), ("Licence", _LICENCE)]
    card = dataset_card(
        re.sub(r"[^\w.-]", " ", out.name).strip() or "Text pairs",
        configs=card_files(configs),
        rows=len(dataset.pairs),
        sections=sections,
    )
    write_dataset(
        out,
        configs,
        card=card,
        statistics=dataset.statistics,
        run=run,
    )
    write_bad_rows(out, dataset.pairs.bad_rows)
    return replace(dataset, out=out)


def _count_sections(statistics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The sections of a card with the statistics of its dataset."""
    splits = statistics["splits"]
    lines = []
    for key in next(iter(splits.values())):
        values = [counts[key] for counts in splits.values()]
        if key == "mean_label":
            values = [f"{mean:.2f}" for mean in values]
        lines.append((key.replace("_", " "), *values))
    yield "Counts", markdown_table(["", *splits], lines)
    if "sources" in statistics:
        table = markdown_table(["source", "rows"], statistics["sources"].items())
        yield "Sources", f"The column `source` has the source of each row.\n\n{table}"
    if dropped := statistics["dropped_pairs"]:
        rows = {reason.replace("_", " "): count for reason, count in dropped.items()}
        yield "Left out", markdown_table(["reason", "rows"], rows.items())
    if conflicting := statistics.get(_CONFLICTS):
        yield (
            "Conflicting labels",
            f"{conflicting:,} rows are of pairs with different labels.",
        )


def make_written(
    pairs: PairDataset,
    source: Source,
    out: Path,
    *,
    fresh: bool,
) -> MadeDataset:
    """See `pairkit.write`."""
    rows = pairs.rows.with_columns(pl.lit(None, pl.String).alias(DROPPED))
    dataset = build_result(rows, pairs.label_kind, str(out), [pairs])
    run = run_record("write", {"pairs": pairs}, {})
    check_out(out, run, [source], fresh=fresh)
    return write_result(dataset, out, run, "Pairs written by `pairkit.write`.")


def export_pairs(
    dataset: PairDataset,
    out: Path,
    file_format: FileFormat,
    *,
    raw: bool,
    fresh: bool,
) -> list[Path]:
    """Write each split as `out/<split>.jsonl` or `.csv`; nested columns become JSON text in CSV."""
    if note := describe_labels(dataset.labels):
        _LOG.warning("%s", note)
    files = {}
    for split, rows in dataset.splits.items():
        path = out / f"{split}.{file_format}"
        files[path] = table_bytes(path, rows, raw=raw)
    for path, data in files.items():
        check_file(path, data, fresh=fresh)
    for path, data in files.items():
        write_bytes(path, data)
    write_bad_rows(out, dataset.bad_rows)
    return list(files)
