"""The folder of a dataset, which is written in one step."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from pairkit.base.system.files import whole_folder, write_json, write_text
from pairkit.dataset.parquet import stream_parquet, write_parquet
from pairkit.dataset.records import CONFIG_FOLDERS

_LOG = logging.getLogger(__name__)


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


class DatasetFolder:
    """Writes the folder of a dataset shard by shard, to bound the rows in memory."""

    def __init__(self, out: Path, folder: Path) -> None:
        self._out = out
        self._folder = folder

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
            write_parquet(self._folder / name, rows)
            _LOG.info("%s: %s, %d rows", self._out, name, rows.height)

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
        stream_parquet(self._folder / name, frames, dict(schema))
        _LOG.info("%s: %s", self._out, name)

    def finish(
        self, *, card: str, statistics: Mapping[str, Any], run: Mapping[str, Any]
    ) -> None:
        """Write card, statistics and run.json."""
        write_json(self._folder / "statistics.json", statistics)
        write_json(self._folder / "run.json", run)
        write_text(self._folder / "README.md", card)


@contextmanager
def dataset_folder(out: Path) -> Iterator[DatasetFolder]:
    """Yield a folder to fill, which replaces `out` if the block ends without error."""
    with whole_folder(out) as folder:
        yield DatasetFolder(out, folder)
