"""Why records did not become pairs, as the dataset's own statistics.json tells it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pairkit.folders import read_object
from pairkit.labels import LabelsRead

FILE = "statistics.json"

# Key of statistics.json to what its reasons are about; of `gis` first, then of `label`.
_TITLES = {
    "rejected_issues": "Issues left out",
    "dropped_positives": "Positives dropped",
    "dropped_negatives": "Negatives dropped",
    "missing_negatives": "Negatives that could not be drawn, by split",
    "uncertain": "Threads whose verdict was left open",
    "not": "Threads judged not to be duplicates",
    "removed_from_texts": "Taken out of texts",
    "dropped": "Proposals and texts dropped",
    "dropped_pairs": "Pairs dropped",
}


def drop_reasons(source: str) -> dict[str, dict[str, int]]:
    """What was dropped: what it is about, to reason, to number, the most frequent first.

    Args:
        source: The dataset; anything but a folder with a statistics.json tells nothing.

    Raises:
        DataError: The statistics can't be read.
    """
    path = Path(source) / FILE
    if not path.is_file():
        return {}
    statistics = read_object(path)
    verdicts = statistics.get("verdicts")
    sections = {**statistics, **(verdicts if isinstance(verdicts, dict) else {})}
    return {title: found for key, title in _TITLES.items() if (found := _reasons(sections.get(key)))}


def skipped_labels(labels: LabelsRead | None) -> dict[str, dict[str, int]]:
    """Rows that were left out while the dataset was read, by their label."""
    return {"Rows skipped by their label": _reasons(labels.skipped)} if labels and labels.skipped else {}


def _reasons(section: Any) -> dict[str, int]:
    if not isinstance(section, Mapping):
        return {}
    counts = {str(reason): n for reason, n in section.items() if isinstance(n, int) and n > 0}
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
