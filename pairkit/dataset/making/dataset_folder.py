"""The folder of a dataset, which is written in one step, and its card: README.md for dataset hubs."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pairkit.base.system.files import whole_folder, write_json, write_text
from pairkit.dataset.records import CONFIG_FOLDERS
from pairkit.dataset.table_files import stream_parquet, write_parquet

_LOG = logging.getLogger(__name__)
# Of the Hub, for numbers of up to 3, 4, … digits.
_SIZE_CATEGORIES = (
    "n<1K",
    "1K<n<10K",
    "10K<n<100K",
    "100K<n<1M",
    "1M<n<10M",
    "10M<n<100M",
    "100M<n<1B",
    "1B<n<10B",
    "10B<n<100B",
    "100B<n<1T",
    "n>1T",
)


def shard_path(
    config: str,
    split: str,
    index: int = 0,
    count: int = 1,
) -> str:
    """The path of a split's shard in the folder."""
    return f"{CONFIG_FOLDERS[config]}/{split}-{index:05d}-of-{count:05d}.parquet"


def card_files(
    configs: Mapping[str, Mapping[str, pl.DataFrame | int]],
) -> dict[str, dict[str, str]]:
    """The card's file patterns from rows or their numbers; none for empty splits."""
    files: dict[str, dict[str, str]] = {}
    for config, splits in configs.items():
        files[config] = {}
        for split, rows in splits.items():
            if (rows if isinstance(rows, int) else rows.height) > 0:
                files[config][split] = f"{CONFIG_FOLDERS[config]}/{split}-*.parquet"
    return files


def write_dataset(
    out: Path,
    configs: Mapping[str, Mapping[str, pl.DataFrame]],
    *,
    card: str,
    statistics: Mapping[str, Any],
    run: Mapping[str, Any],
) -> None:
    """Write the folder in one step: it is complete or absent."""
    with dataset_folder(out) as folder:
        for config, splits in configs.items():
            for split, rows in splits.items():
                folder.add(config, split, rows)
        folder.finish(card=card, statistics=statistics, run=run)


class DatasetFolder(NamedTuple):
    """Writes the folder of a dataset shard by shard, to bound the rows in memory."""

    out: Path
    folder: Path  # the files until they are complete

    def add(
        self,
        config: str,
        split: str,
        rows: pl.DataFrame,
        index: int = 0,
        count: int = 1,
    ) -> None:
        """Write shard `index` of `count`, unless it has no rows."""
        if rows.height:
            name = shard_path(config, split, index, count)
            write_parquet(self.folder / name, rows)
            _LOG.info("%s: %s, %d rows", self.out, name, rows.height)

    def add_frames(
        self,
        config: str,
        split: str,
        frames: Iterable[pl.DataFrame],
        schema: Mapping[str, Any],
        index: int,
        count: int,
    ) -> None:
        """Write a shard frame by frame."""
        name = shard_path(config, split, index, count)
        stream_parquet(self.folder / name, frames, dict(schema))
        _LOG.info("%s: %s", self.out, name)

    def finish(
        self, *, card: str, statistics: Mapping[str, Any], run: Mapping[str, Any]
    ) -> None:
        """Write card, statistics and run.json."""
        write_json(self.folder / "statistics.json", statistics)
        write_json(self.folder / "run.json", run)
        write_text(self.folder / "README.md", card)


@contextmanager
def dataset_folder(out: Path) -> Iterator[DatasetFolder]:
    """Yield a folder to fill, which replaces `out` if the block ends without error."""
    with whole_folder(out) as folder:
        yield DatasetFolder(out, folder)


def dataset_card(
    title: str,
    *,
    configs: Mapping[str, Mapping[str, str]],
    rows: int,
    sections: Iterable[tuple[str, str]],
    tags: Sequence[str] = (),
) -> str:
    """A card in Markdown with a YAML head that lists the files of each configuration."""
    name = json.dumps(title, ensure_ascii=False)  # JSON is YAML
    size = _SIZE_CATEGORIES[max(0, len(str(rows)) - 3)]
    further_tags = "".join(f"- {tag}\n" for tag in tags)
    card = f"""---
pretty_name: {name}
task_categories:
- sentence-similarity
tags:
- sentence-pairs
{further_tags}size_categories:
- {size}
configs:
"""
    default = "  default: true\n"
    for config, files in configs.items():
        card += f"- config_name: {config}\n{default}  data_files:\n"
        default = ""
        for split, pattern in files.items():
            card += f"  - split: {split}\n    path: {pattern}\n"
    card += f"---\n\n# {title}\n"
    for heading, text in sections:
        if heading:
            card += f"\n## {heading}\n"
        card += f"\n{text.strip()}\n"
    return card


def with_section(card: str, heading: str, text: str) -> str:
    """The card with this section, which replaces an earlier one or goes before `Limitations` or last."""
    card = f"{card.rstrip()}\n\n"
    section = f"## {heading}\n\n{text.strip()}\n\n"
    place = rf"(?ms)^## {re.escape(heading)}$.*?(?=^## |\Z)"
    if not re.search(place, card):
        place = r"(?m)^(?=## Limitations)|\Z"
    card = re.sub(place, lambda _: section, card, count=1)
    return card.rstrip("\n") + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table with thousands separators; all columns but the first are right-aligned."""
    marks = ["---"] + ["---:"] * (len(header) - 1)
    cells = [[_cell(value) for value in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, marks, *cells))


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.1%}"
    return str(value).replace("|", "\\|").replace("\n", "\\n")
