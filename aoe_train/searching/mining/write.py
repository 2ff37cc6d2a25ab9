"""Mined rows as a dataset's folder, or as a file; and what was made there before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pairkit.app.errors import ConfigError
from pairkit.dataset.card import dataset_card
from pairkit.dataset.card import table as markdown_table
from pairkit.dataset.parquet import write_parquet
from pairkit.dataset.records import card_files, shard, write_dataset
from pairkit.system.files import write_bytes, write_json
from pairkit.system.folders import made_there, read_own

FILES = (".jsonl", ".parquet")
_CONFIG = "triplet"
_KEYS = ("settings", "inputs")
_INTRODUCTION = """
Anchors with a positive and hard negatives, mined by `aoe mine`. A negative is a text that is near to the
anchor by its words or to a model, and no positive of it by what the dataset says; nobody looked at it.
"""
_LIMITS = """
* Whatever is true of the dataset that this one is made of is true of it: see its card, for its licence, too.
* Some negatives may be positives that nobody marked; `statistics.json` estimates how many.
"""


def is_file(out: Path) -> bool:
    """Whether mined rows go to one file."""
    return out.suffix.lower() in FILES


def finished(out: Path, run: Mapping[str, Any], *, fresh: bool) -> dict[str, Any] | None:
    """The statistics of a run that made the same there; None where nothing is in the way."""
    there = _made_file(out) if is_file(out) else made_there(out, "aoe", *_KEYS)
    if there is None or fresh:
        return None
    statistics = there.get("statistics") if is_file(out) else read_own(out / "statistics.json")
    if isinstance(statistics, dict) and all(there.get(key) == run[key] for key in _KEYS):
        return statistics
    raise ConfigError(
        f"{out}: was mined from other data, or with other settings; give --fresh to replace it, or choose"
        " another --out"
    )


def _made_file(out: Path) -> dict[str, Any] | None:
    if out.is_dir():
        raise ConfigError(f"{out}: is a folder; choose another --out")
    if not out.exists():
        return None
    record = read_own(_record(out)) or {}
    if not str(record.get("made_by", "")).startswith("aoe mine"):
        raise ConfigError(f"{out}: already exists, and is no file of `aoe mine`; choose another --out")
    return record


def write_mined(
    out: Path, splits: Mapping[str, pl.DataFrame], run: Mapping[str, Any], statistics: Mapping[str, Any]
) -> None:
    """Write the folder, or the file and its record beside it, whole or not at all."""
    if not is_file(out):
        configs = {_CONFIG: splits}
        rows = sum(frame.height for frame in splits.values())
        card = dataset_card(
            out.name,
            configs=card_files(configs),
            rows=rows,
            sections=[("", _INTRODUCTION), ("Counts", _counts(statistics)), ("Limitations", _LIMITS)],
            tags=("hard-negatives",),
        )
        write_dataset(out, configs, card=card, statistics=statistics, run=run)
        return
    (frame,) = splits.values()
    if out.suffix.lower() == ".parquet":
        write_parquet(out, frame)
    else:
        write_bytes(out, frame.write_ndjson().encode())
    write_json(_record(out), {**run, "statistics": statistics})


def read_mined(out: Path, splits: Iterable[str], schema: pl.Schema) -> dict[str, pl.DataFrame]:
    """The rows of a finished run, by split."""
    if is_file(out):
        (split,) = splits
        is_parquet = out.suffix.lower() == ".parquet"
        return {split: pl.read_parquet(out) if is_parquet else pl.read_ndjson(out, schema=schema)}
    paths = {split: out / shard(_CONFIG, split) for split in splits}
    return {split: pl.read_parquet(path) for split, path in paths.items() if path.exists()}


def _record(out: Path) -> Path:
    return out.with_name(out.name + ".run.json")


def _counts(statistics: Mapping[str, Any]) -> str:
    splits = statistics["splits"]
    names = ("rows", "negatives", "rows_with_fewer")
    return markdown_table(
        ["", *splits],
        [(name.replace("_", " "), *(counts[name] for counts in splits.values())) for name in names],
    )
