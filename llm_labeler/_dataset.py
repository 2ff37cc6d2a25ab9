"""From labelled pairs to the dataset folder: counts, card, files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from llm_labeler._card import label_card
from llm_labeler._folders import check_out, run_record
from llm_labeler._records import POLARITIES
from llm_labeler._rows import DatasetRows, Frames
from pairkit.errors import DataError
from pairkit.records import card_files, write_dataset

__all__ = ["DatasetRows", "check_out", "row_counts", "run_record", "write"]


def row_counts(frames: Frames) -> dict[str, Any]:
    """Counts by split and polarity, and by LLM; a pair that several proposed counts for each."""
    default = frames.get("default", {})
    splits = {
        split: {
            "texts": rows["text_id"].n_unique(),
            **_polarity_counts(rows["polarity"]),
            "total": rows.height,
            "triplets": frames["triplet"][split].height if "triplet" in frames else 0,
        }
        for split, rows in default.items()
    }
    by_llm = pl.concat(rows.select("llms", "polarity") for rows in default.values()).explode("llms")
    names = sorted(by_llm["llms"].drop_nulls().unique())
    return {
        "splits": splits,
        "llms": {name: _polarity_counts(by_llm.filter(llms=name)["polarity"]) for name in names},
    }


def _polarity_counts(polarities: pl.Series) -> dict[str, int]:
    return {name: int((polarities == name).sum()) for name in POLARITIES}


def _kind_counts(splits: Mapping[str, pl.DataFrame]) -> dict[str, int]:
    """Triplets by what their negative changes; `unknown` where its writer did not say."""
    kinds = pl.concat(rows["negative_kind"] for rows in splits.values()).fill_null("unknown")
    return dict(sorted(kinds.value_counts().iter_rows()))


def write(
    out: Path,
    rows: DatasetRows,
    split_of: Mapping[str, str],
    *,
    graded: bool,
    statistics: Mapping[str, Any],
    run: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the dataset folder.

    Args:
        out: The folder; see `check_out` for whether it may be replaced.
        rows: The pairs.
        split_of: text_id to split.
        graded: See `DatasetRows.frames`.
        statistics: Counts of the stages before (`texts`, `candidates`, `dropped` by reason, …), added to
            those of the rows.
        run: What made the dataset, see `run_record`.

    Returns:
        The statistics as written.

    Raises:
        DataError: There are no pairs.
        ConfigError: The folder can't be written.
    """
    if not len(rows):
        raise DataError(_why_empty(rows.dropped, statistics), path=out)
    frames = rows.frames(split_of, graded=graded)
    counts = row_counts(frames) | {"dropped_pairs": dict(sorted(rows.dropped.items()))} | dict(statistics)
    floats = any(frame["label"].dtype == pl.Float32 for frame in frames["default"].values())
    if rows.triplets:  # alone, so that whoever opens the folder reads triplets
        frames = {"triplet": frames["triplet"]}
        counts |= {"negative_kinds": _kind_counts(frames["triplet"])}
    card = label_card(counts, run, card_files(frames), graded=floats)
    write_dataset(out, frames, card=card, statistics=counts, run=run)
    return counts


def _why_empty(dropped: Mapping[str, int], statistics: Mapping[str, Any]) -> str:
    reasons = {**statistics.get("dropped", {}), **dropped}
    told = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
    what = f"no pair is left to write ({told or 'no LLM proposed any'})"
    if reasons.get("not_answered") and not statistics.get("proposals"):
        return (
            f"{what}: no question was answered; run `label generate` again, with a higher max_cost "
            "(--max-cost), max_tokens (--max-tokens) or max_requests (--max-requests) if that ended it"
        )
    doubts = statistics.get("warnings") or ("look at some with `label show`",)
    return f"{what}; {'; '.join(doubts)}, and see the [filters] and [ensemble] settings"
