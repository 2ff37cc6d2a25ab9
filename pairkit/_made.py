"""A dataset that `pairs` made: what is in it, what was left out, and its folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pairkit._divide import DROPPED
from pairkit._merge import ROW
from pairkit.card import dataset_card
from pairkit.card import table as markdown_table
from pairkit.errors import ConfigError, DataError
from pairkit.folders import made_there
from pairkit.labels import SKIPPED, LabelsRead
from pairkit.length import share_long
from pairkit.parquet import write_parquet
from pairkit.records import (
    COLUMNS,
    LabelKind,
    PairDataset,
    card_files,
    in_split_order,
    mean_label,
    write_dataset,
)
from pairkit.result_table import ResultTable
from pairkit.version import __version__

_TOLD = {DROPPED: "left_out", ROW: "source_row"}  # what columns of dropped rows are called
_LIMITS = """
* Whatever is true of the datasets that this one is made of is true of it: see their cards.
* A share over 512 tokens is estimated without a tokenizer.
"""
_LICENCE = """
The datasets that this one is made of have licences of their own; check what they allow before you share it.
"""


@dataclass(frozen=True, slots=True, repr=False, eq=False)  # as PairDataset
class MadeDataset:
    """A dataset made of others.

    Attributes:
        pairs: Its pairs.
        dropped: The rows that were left out, each with `left_out`, the reason; of a merge `source_row`, too:
            which row of its dataset's split it was, from 1. Rows that were skipped for their label are not
            among them.
        statistics: Counts by split, source and reason.
        out: Its folder; None where it was not written.
    """

    pairs: PairDataset
    dropped: pl.DataFrame
    statistics: dict[str, Any]
    out: Path | None = None

    def save_dropped(self, path: str | Path) -> None:
        """Write the rows that were left out as Parquet.

        Raises:
            ConfigError: The file can't be written.
        """
        write_parquet(Path(path), self.dropped)

    def table(self) -> ResultTable:
        """How many rows each split has, and below what was left out."""
        counts = self.pairs.table()
        reasons = self.statistics["dropped_pairs"]
        if reasons:
            told = ", ".join(f"{reason.replace('_', ' ')} {count:,}" for reason, count in reasons.items())
            counts.caption = f"left out: {told}"
        return counts

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def made_of(
    rows: pl.DataFrame, kind: LabelKind, name: str, read: Iterable[LabelsRead | None] = ()
) -> MadeDataset:
    """The dataset of rows that have a `split`, and a reason in `DROPPED` where they are left out.

    Args:
        rows: The rows.
        kind: What their labels are.
        name: What messages call it.
        read: What was made of the labels of the datasets that they are from: what they left out is counted.

    Raises:
        DataError: No row is left.
    """
    kept = rows.filter(pl.col(DROPPED).is_null()).drop(DROPPED, ROW, strict=False)
    dropped = rows.filter(pl.col(DROPPED).is_not_null()).rename(_TOLD, strict=False)
    if not kept.height:
        raise DataError(f"no pair is left of {rows.height:,}; nothing was written", path=name)
    kept = kept.select("split", *COLUMNS["default"], pl.exclude("split", *COLUMNS["default"]))
    splits = {
        split: kept.filter(pl.col("split") == split).drop("split")
        for split in in_split_order(kept["split"].unique())
    }
    reasons = dropped[_TOLD[DROPPED]].value_counts().sort("count", _TOLD[DROPPED], descending=[True, False])
    skipped = sum(sum(labels.skipped.values()) for labels in read if labels is not None)
    statistics: dict[str, Any] = {
        "splits": {split: _counts(frame, kind) for split, frame in splits.items()},
        "dropped_pairs": dict(reasons.iter_rows()) | ({SKIPPED: skipped} if skipped else {}),
    }
    if "source" in kept.columns:
        statistics["sources"] = dict(kept["source"].value_counts().sort("source").iter_rows())
    return MadeDataset(PairDataset(splits, name, kind), dropped, statistics)


def _counts(frame: pl.DataFrame, kind: LabelKind) -> dict[str, int | float]:
    counts: dict[str, int | float] = {"total": frame.height}
    if kind == "binary":
        positive = int(frame["label"].sum())
        counts |= {"positive": positive, "negative": frame.height - positive}
    else:
        counts["mean_label"] = round(mean_label(frame), 4)
    return counts | {"long_share": round(share_long(frame, "text1", "text2"), 4)}


def run_record(
    command: str, inputs: Mapping[str, PairDataset], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What made a dataset, for run.json: nothing that differs from one run to the next.

    Args:
        command: `merge`, `split` or `write`.
        inputs: The datasets by name.
        settings: What was asked for.
    """
    return {
        "made_by": f"pairs (aoe-toolkit {__version__})",
        "command": command,
        "settings": dict(settings),
        "inputs": {name: {"rows": len(pairs), "sha256": _digest(pairs)} for name, pairs in inputs.items()},
    }


def _digest(pairs: PairDataset) -> str:
    digest = hashlib.sha256()
    for split, frame in pairs.splits.items():
        digest.update(f"{split}\n".encode())
        digest.update(frame.select("text1", "text2", "label").write_ndjson().encode())
    return digest.hexdigest()


def check_out(out: Path, run: Mapping[str, Any], sources: Mapping[str, object], *, fresh: bool) -> None:
    """Refuse a folder that holds anything but a dataset of `pairs`, or that a source is read from.

    A dataset made of the same datasets and settings is not refused: what replaces it is the same.

    Raises:
        ConfigError: Says what is there and what to do.
    """
    for source in sources.values():
        if isinstance(source, str | Path) and out.resolve() in (
            home := Path(source).resolve(),
            *home.parents,
        ):
            raise ConfigError(f"{out}: would replace {source}, which it is made of; choose another folder")
    there = made_there(out, "pairs", "inputs")
    same = there is not None and all(there.get(key) == run[key] for key in ("command", "settings", "inputs"))
    if there is not None and not same and not fresh:
        raise ConfigError(
            f"{out}: holds a dataset made of other datasets, or with other settings; give --fresh"
            " to replace it (fresh=True), or another folder"
        )


def write_made(
    made: MadeDataset,
    out: Path,
    run: Mapping[str, Any],
    title: str,
    introduction: str,
    further: Iterable[tuple[str, str]] = (),
) -> None:
    """Write the folder with its card; see `check_out`.

    Raises:
        ConfigError: It can't be written.
    """
    configs = {"default": made.pairs.splits}
    counts = made.statistics["splits"]
    lines = [
        (key.replace("_", " "), *(_told(key, split[key]) for split in counts.values()))
        for key in next(iter(counts.values()))
    ]
    sections = [
        ("", introduction),
        ("Counts", markdown_table(["", *counts], lines)),
        *([("Sources", _sources(made.statistics["sources"]))] if "sources" in made.statistics else []),
        *(
            [("Left out", _dropped(made.statistics["dropped_pairs"]))]
            if made.statistics["dropped_pairs"]
            else []
        ),
        *further,
        ("Limitations", _LIMITS),
        ("Licence", _LICENCE),
    ]
    card = dataset_card(title, configs=card_files(configs), rows=len(made.pairs), sections=sections)
    write_dataset(out, configs, card=card, statistics=made.statistics, run=run)


def _told(key: str, count: float) -> str | float:
    return f"{count:.2f}" if key == "mean_label" else count


def _sources(sources: Mapping[str, int]) -> str:
    return "The column `source` says where a row is from.\n\n" + markdown_table(
        ["source", "rows"], sources.items()
    )


def _dropped(reasons: Mapping[str, int]) -> str:
    rows = [(reason.replace("_", " "), count) for reason, count in reasons.items()]
    return markdown_table(["reason", "rows"], rows)
