"""From labelled pairs to the dataset folder: counts, card, files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_labeler._card import label_card
from llm_labeler._dealt import DealtRows
from llm_labeler._folders import check_out, run_record
from llm_labeler._rows import DatasetRows
from pairkit.errors import DataError
from pairkit.records import dataset_folder, file_patterns

__all__ = ["DatasetRows", "check_out", "run_record", "write"]


def write(
    out: Path,
    rows: DatasetRows,
    split_of: Mapping[str, str],
    *,
    graded: bool,
    statistics: Mapping[str, Any],
    run: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the dataset folder, a shard in memory at a time.

    Args:
        out: The folder; see `check_out` for whether it may be replaced.
        rows: The pairs.
        split_of: text_id to split.
        graded: See `DealtRows`.
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
    dealt = DealtRows(rows, split_of, graded=graded)
    counts = dealt.counts() | {"dropped_pairs": dict(sorted(rows.dropped.items()))} | dict(statistics)
    card = label_card(counts, run, file_patterns(dealt.sizes), graded=dealt.graded)
    with dataset_folder(out) as folder:
        for config in dealt.sizes:
            for split, place, count, shard in dealt.shards(config):
                folder.add(config, split, shard, place, count)
        folder.finish(card=card, statistics=counts, run=run)
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
