"""Datasets made by `pairs`: written, merged or split, with dropped rows, statistics and folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

import polars as pl

from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.folders import is_same, made_there
from pairkit.base.version import __version__
from pairkit.dataset.labels import CONFLICT, SKIPPED, LabelsRead
from pairkit.dataset.making.dataset_card import dataset_card
from pairkit.dataset.making.dataset_card import table as markdown_table
from pairkit.dataset.making.divide import DROPPED, OTHER_RANK, RANKS, divide, keep_apart
from pairkit.dataset.reading.columns import as_json
from pairkit.dataset.reading.in_memory import Source, contents_of, with_kind
from pairkit.dataset.records import (
    AGAINST_FIRST,
    COLUMNS,
    DIFFER,
    PAIR,
    LabelKind,
    PairDataset,
    by_reason,
    card_files,
    in_split_order,
    joined,
    mean_label,
    named_split,
    unordered,
    write_bad_rows,
    write_dataset,
)
from pairkit.similarity.measures import share_long

Conflicts = Literal["error", "drop", "first"]

REPEATED = "repeated"
FEW_ROWS = 50  # too few to train on
_MAX_CONFLICTS = 3  # in a message
ROW = "row of its split"  # a column: the row's number in its source's split, from 1
_PLACE, _RANK = "place", "rank of the split"
_FIRST = ("split", "source", ROW, "text1", "text2", "label")


def join_datasets(datasets: Mapping[str, PairDataset]) -> pl.DataFrame:
    """The rows of all datasets with their `source`; columns of different types become texts."""
    kinds = {name: pairs.label_kind for name, pairs in datasets.items()}
    if len({*kinds.values()}) > 1:
        listed = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
        raise DataError(
            f"labels of 0 and 1 can't be merged with scores ({one_line(listed)}); convert one of them"
        )
    _check_scales(datasets)
    frames = [
        _named(frame, name, split)
        for name, pairs in datasets.items()
        for split, frame in pairs.splits.items()
    ]
    try:
        together = pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError:
        odd = _odd_columns(frames)
        together = pl.concat([_as_texts(frame, odd) for frame in frames], how="diagonal_relaxed")
    return together.select(*_FIRST, pl.exclude(_FIRST))


def _check_scales(datasets: Mapping[str, PairDataset]) -> None:
    if next(iter(datasets.values())).label_kind == "binary":
        return
    highest = {name: pairs.rows["label"].to_numpy().max() for name, pairs in datasets.items() if len(pairs)}
    small, large = [[name for name in highest if (highest[name] > 1) == beyond] for beyond in (False, True)]
    if small and large:
        raise DataError(
            f"scores from 0 to 1 ({one_line(', '.join(small))}) can't be merged with scores above 1"
            f" ({one_line(', '.join(large))}): convert the latter to the scale from 0 to 1, such as with"
            " pairkit.write(DATASET, OUT, label_range=(0, 5))"
        )


def mark_repeated(rows: pl.DataFrame, conflicts: Conflicts) -> pl.DataFrame:
    """Mark rows that repeat a pair: the first in the split of lowest rank stays."""
    if conflicts not in get_args(Conflicts):
        raise ConfigError(f"conflicts = {conflicts}: expected error, drop or first")
    rank = pl.col("split").replace_strict(RANKS, default=OTHER_RANK)
    keyed = rows.with_row_index(_PLACE).with_columns(*unordered("text1", "text2"), rank.alias(_RANK))
    if conflicts == "error":
        _refuse(keyed.filter(DIFFER))
    is_lost = DIFFER if conflicts == "drop" else AGAINST_FIRST
    marked = keyed.with_columns(pl.when(is_lost).then(pl.lit(CONFLICT)).alias(DROPPED))
    alive = pl.col(DROPPED).is_null()
    kept_place = pl.col(_PLACE).sort_by(_RANK, _PLACE).first().over(*PAIR, alive)
    is_repeated = alive & (kept_place != pl.col(_PLACE))
    reason = pl.when(is_repeated).then(pl.lit(REPEATED)).otherwise(DROPPED)
    return marked.with_columns(reason.alias(DROPPED)).select(*rows.columns, DROPPED)


def _refuse(differing: pl.DataFrame) -> None:
    if not differing.height:
        return
    groups = differing.partition_by(PAIR, maintain_order=True)
    conflicts = []
    for group in groups[:_MAX_CONFLICTS]:
        places = [
            f"{row['source']}, {row['split']}, row {row[ROW]:,}: label {row['label']:g}"
            for row in group.iter_rows(named=True)
        ]
        conflicts.append(f"{one_line(group['text1'][0], 60)!r} ({'; '.join(places)})")
    more = f" and {len(groups) - _MAX_CONFLICTS:,} more" if len(groups) > _MAX_CONFLICTS else ""
    raise DataError(
        f"pairs with different labels ({len(groups):,}): {', '.join(conflicts)}{more}; set conflicts to drop"
        " to leave them out, or to first to take the label of the dataset that comes first"
    )


def _named(frame: pl.DataFrame, name: str, split: str) -> pl.DataFrame:
    """A split's rows with their source; the source from an earlier merge is appended."""
    source = pl.lit(name)
    dtype = frame.schema.get("source")
    if dtype is not None and not dtype.is_nested() and dtype != pl.Binary:
        inner = pl.col("source").cast(pl.String)
        source = pl.when(inner.is_null()).then(source).otherwise(pl.concat_str(pl.lit(f"{name}/"), inner))
    return named_split(frame, split).with_row_index(ROW, offset=1).with_columns(source.alias("source"))


def _odd_columns(frames: list[pl.DataFrame]) -> set[str]:
    """Columns that have different types, other than types of numbers."""
    dtypes_of: dict[str, set[Any]] = {}
    for frame in frames:
        for name, dtype in frame.schema.items():
            if dtype != pl.Null:
                dtypes_of.setdefault(name, set()).add("number" if dtype.is_numeric() else dtype)
    return {name for name, dtypes in dtypes_of.items() if len(dtypes) > 1}


def _as_texts(frame: pl.DataFrame, names: set[str]) -> pl.DataFrame:
    here = [name for name in frame.columns if name in names]
    nested = [name for name in here if frame.schema[name].is_nested()]
    plain = [pl.col(name).cast(pl.String, strict=False) for name in here if name not in nested]
    return frame.with_columns(*plain, *(as_json(frame[name]) for name in nested))


_RENAMED = {DROPPED: "left_out", ROW: "source_row"}  # columns of dropped rows
_LIMITS = """
* The limitations of the source datasets apply: see their cards.
* The share of texts over 512 tokens is estimated without a tokenizer.
"""
_LICENCE = """
The source datasets have their own licences; check these before you share this dataset.
"""


@dataclass(frozen=True, slots=True, repr=False, eq=False)  # frames can't be compared by ==
class MadeDataset(Printed):
    """A dataset made from other datasets or documents.

    Attributes:
        pairs: Its pairs.
        dropped: The rows that were left out, with the reason in `left_out`; after a merge, `source_row` is
            the number of the row in its dataset's split, from 1. Rows skipped by label, or for missing
            values, are not included.
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
        train = ["aoe", "train", "--data", str(self.out), "--backbone", "minilm", "--out", "model"]
        return [("train on it", train)] if self.out and len(self.pairs) >= FEW_ROWS else []

    def table(self) -> ResultTable:
        """The rows of each split, and the numbers of dropped rows."""
        counts = self.pairs.table()
        reasons = self.statistics["dropped_pairs"]
        if reasons:
            listed = ", ".join(f"{reason.replace('_', ' ')} {count:,}" for reason, count in reasons.items())
            counts.caption = f"left out: {listed}"
        return counts


def build_result(
    rows: pl.DataFrame, kind: LabelKind, name: str, read: Sequence[PairDataset] = ()
) -> MadeDataset:
    """A dataset from rows with the columns `split` and `DROPPED` (the drop reason)."""
    bad = joined(pairs.bad_rows for pairs in read)
    kept = rows.filter(pl.col(DROPPED).is_null()).drop(DROPPED, ROW, strict=False)
    dropped = rows.filter(pl.col(DROPPED).is_not_null()).rename(_RENAMED, strict=False)
    if not kept.height:
        raise DataError(f"no pair is left of {rows.height:,}; nothing was written", path=name)
    kept = kept.select("split", *COLUMNS["default"], pl.exclude("split", *COLUMNS["default"]))
    splits = {
        split: kept.filter(pl.col("split") == split).drop("split")
        for split in in_split_order(kept["split"].unique())
    }
    reasons = (
        dropped[_RENAMED[DROPPED]].value_counts().sort("count", _RENAMED[DROPPED], descending=[True, False])
    )
    skipped = sum(sum(pairs.labels.skipped.values()) for pairs in read if pairs.labels is not None)
    counts = {reason: count for reason, count, _ in by_reason(bad)}
    statistics: dict[str, Any] = {
        "splits": {split: _counts(frame, kind) for split, frame in splits.items()},
        "dropped_pairs": dict(reasons.iter_rows()) | ({SKIPPED: skipped} if skipped else {}) | counts,
    }
    if "source" in kept.columns:
        statistics["sources"] = dict(kept["source"].value_counts().sort("source").iter_rows())
    labelled = any(pairs.labels is not None for pairs in read)
    labels = LabelsRead("as in the sources", plain=True) if labelled else None
    return MadeDataset(PairDataset(splits, name, kind, labels, bad), dropped, statistics)


def _counts(frame: pl.DataFrame, kind: LabelKind) -> dict[str, int | float]:
    counts: dict[str, int | float] = {"total": frame.height}
    if kind == "binary":
        positive = int(frame["label"].sum())
        counts |= {"positive": positive, "negative": frame.height - positive}
    else:
        counts["mean_label"] = round(mean_label(frame), 4)
    return counts | {"long_share": round(share_long(frame, "text1", "text2"), 4)}


def run_record(
    command: str, inputs: Mapping[str, PairDataset | Mapping[str, Any]], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of run.json, which is equal for equal runs."""
    return {
        "made_by": f"pairs (aoe-toolkit {__version__})",
        "command": command,
        "settings": dict(settings),
        "inputs": {
            name: {"rows": len(pairs), "sha256": _hash(pairs)} if isinstance(pairs, PairDataset) else pairs
            for name, pairs in inputs.items()
        },
    }


def _hash(pairs: PairDataset) -> str:
    digest = hashlib.sha256()
    for split, frame in pairs.splits.items():
        digest.update(f"{split}\n".encode())
        digest.update(frame.select("text1", "text2", "label").write_ndjson().encode())
    return digest.hexdigest()


def check_out(out: Path | None, run: Mapping[str, Any], sources: Iterable[Source], *, fresh: bool) -> None:
    """Refuse an output folder with other files than a dataset of `pairs`, or with a source."""
    if out is None:
        return
    for source in sources:
        if not isinstance(place := contents_of(source), str | Path):
            continue
        home = Path(place).resolve()
        if out.resolve() in (home, *home.parents):
            raise ConfigError(f"{out}: would replace its source {place}; choose another folder")
    is_same(out, made_there(out, "pairs", "inputs"), run, ("command", "settings", "inputs"), fresh=fresh)


def write_result(
    made: MadeDataset,
    out: Path | None,
    run: Mapping[str, Any],
    introduction: str,
    further: Iterable[tuple[str, str]] = (),
    *,
    limits: str = _LIMITS,
) -> MadeDataset:
    """Write the dataset with a card, unless `out` is None; call `check_out` before.

    Positives without labels get the columns anchor and positive.
    """
    if out is None:
        return made
    title = "".join(letter if letter.isalnum() or letter in "-_." else " " for letter in out.name).strip()
    splits = with_kind(made.pairs)
    configs = {"default" if "label" in next(iter(splits.values())).columns else "positive": splits}
    statistics = made.statistics
    counts = statistics["splits"]
    lines = [
        (
            key.replace("_", " "),
            *(f"{of[key]:.2f}" if key == "mean_label" else of[key] for of in counts.values()),
        )
        for key in next(iter(counts.values()))
    ]
    sections = [("", introduction), ("Counts", markdown_table(["", *counts], lines))]
    if "sources" in statistics:
        table = markdown_table(["source", "rows"], statistics["sources"].items())
        sections.append(("Sources", f"The column `source` has the source of each row.\n\n{table}"))
    if statistics["dropped_pairs"]:
        rows = [(reason.replace("_", " "), count) for reason, count in statistics["dropped_pairs"].items()]
        sections.append(("Left out", markdown_table(["reason", "rows"], rows)))
    sections += [*further, ("Limitations", limits), ("Licence", _LICENCE)]
    card = dataset_card(
        title or "Text pairs", configs=card_files(configs), rows=len(made.pairs), sections=sections
    )
    write_dataset(out, configs, card=card, statistics=statistics, run=run)
    write_bad_rows(out, made.pairs.bad_rows)
    return replace(made, out=out)


_WRITTEN = "Pairs written by `pairkit.write`."
_MERGED = """
Datasets merged by `pairs merge`. Each pair occurs once, in either order. No text, issue or
cluster is in two splits, and neither are near-identical texts (Jaccard similarity of word triples).
"""
_SPLIT = """
A dataset divided by `pairs split`. Rows that share a text, directly or through other rows, are in
one split; so are near-identical texts (Jaccard similarity of word triples), issues and clusters.
"""
_NO_REASON = pl.lit(None, pl.String).alias(DROPPED)


def named(sources: Sequence[Source] | Mapping[str, Source]) -> dict[str, Source]:
    """The sources by name: the keys of a mapping, the last parts of paths, or numbers."""
    is_one = isinstance(contents_of(cast("Source", sources)), str | Path | PairDataset) or hasattr(
        sources, "columns"
    )
    if is_one or not sources:
        raise ConfigError("nothing to merge; give a list of datasets")
    if isinstance(sources, Mapping):
        return dict(sources)
    by_name: dict[str, Source] = {}
    for place, source in enumerate(sources, 1):
        contents = contents_of(source)
        name = contents.source if isinstance(contents, PairDataset) else contents
        plain = Path(name).name if isinstance(name, str | Path) else str(place)
        by_name[plain if plain and plain not in by_name else f"{plain}-{place}"] = source
    return by_name


def make_written(pairs: PairDataset, source: Source, out: Path, *, fresh: bool) -> MadeDataset:
    """See `pairkit.write`."""
    rows = pairs.rows.with_columns(_NO_REASON)
    made = build_result(rows, pairs.label_kind, str(out), [pairs])
    run = run_record("write", {"pairs": pairs}, {})
    check_out(out, run, [source], fresh=fresh)
    return write_result(made, out, run, _WRITTEN)


def make_merged(
    datasets: Mapping[str, PairDataset],
    sources: Mapping[str, Source],
    out: Path | None,
    *,
    settings: Mapping[str, Any],
    fresh: bool,
) -> MadeDataset:
    """See `pairkit.merge`; `settings` are its arguments by name."""
    run = run_record("merge", datasets, settings)
    check_out(out, run, sources.values(), fresh=fresh)
    marked = mark_repeated(join_datasets(datasets), cast("Conflicts", settings["conflicts"]))
    alive = marked.filter(pl.col(DROPPED).is_null()).drop(DROPPED)
    divided = keep_apart(alive) if settings["split"] is None else _divided(alive, settings)
    rows = pl.concat([divided, marked.filter(pl.col(DROPPED).is_not_null())], how="diagonal")
    kind = next(iter(datasets.values())).label_kind
    made = build_result(rows, kind, str(out or "the merged datasets"), [*datasets.values()])
    return write_result(made, out, run, _MERGED)


def make_split(
    pairs: PairDataset, source: Source, out: Path | None, *, settings: Mapping[str, Any], fresh: bool
) -> MadeDataset:
    """See `pairkit.split`; `settings` are its arguments by name."""
    run = run_record("split", {"pairs": pairs}, settings)
    check_out(out, run, [source], fresh=fresh)
    made = build_result(_divided(pairs.rows, settings), pairs.label_kind, str(out or pairs.source), [pairs])
    return write_result(made, out, run, _SPLIT)


def _divided(rows: pl.DataFrame, settings: Mapping[str, Any]) -> pl.DataFrame:
    return divide(rows, settings["split"], settings["seed"], cut_negatives=settings["cut_negatives"])
