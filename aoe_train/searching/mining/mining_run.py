"""A run of mining: encode, mine each split, write a dataset. The same call continues a stopped run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import polars as pl

from aoe_train.model.run_folder import digest_of, working_folder
from aoe_train.searching.mining.mined_dataset import MineSettings, MiningDataset
from aoe_train.searching.mining.negative_mining import MinedSplit, embed, mine_split
from pairkit import __version__
from pairkit.base.cli.progress import Listener
from pairkit.base.errors import DataError
from pairkit.base.printable import listed
from pairkit.base.system.files import remove
from pairkit.base.system.folders import (
    check_apart,
    check_same_run,
    existing_run,
    try_read_json_object,
    work_beside,
)
from pairkit.dataset.making.dataset_folder import (
    card_files,
    dataset_card,
    shard_path,
    table,
    write_dataset,
)
from pairkit.dataset.records import in_split_order
from pairkit.dataset.table_files import read_parquet

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder


_CONFIG = "triplet"
_TAG = "hard-negatives"
_KEYS = ("settings", "inputs")
_INTRODUCTION = """
Anchors with a positive and hard negatives, mined by `aoe mine`. A negative is similar to the anchor by its
words or by a model, and not a known positive. No person checked it.
"""
_LIMITS = """
* For origin and licence of the texts see the card of the dataset that this one was made from.
* Some negatives may be unmarked positives; `statistics.json` has an estimate.
"""


def finished(
    out: Path | None, run: Mapping[str, object], *, fresh: bool
) -> dict[str, object] | None:
    """The statistics of a finished run with the same inputs; None if `out` may be written.

    Raises ConfigError if `out` has the result of another run, and `fresh` is false.
    """
    if out is None:
        return None
    existing = existing_run(out, "aoe", *_KEYS)
    if existing is None or fresh:
        return None
    check_same_run(out, existing, run, _KEYS)
    return try_read_json_object(out / "statistics.json")


def write_with_card(
    out: Path,
    config: str,
    splits: Mapping[str, pl.DataFrame],
    sections: Mapping[str, str],
    statistics: Mapping[str, object],
    run: Mapping[str, object],
    *tags: str,
) -> None:
    """Write a dataset with one configuration and a card of these sections."""
    configs = {config: splits}
    card = dataset_card(
        out.name,
        configs=card_files(configs),
        rows=sum(frame.height for frame in splits.values()),
        sections=sections.items(),
        tags=tags,
    )
    write_dataset(out, configs, card=card, statistics=statistics, run=run)


def _counts_table(statistics: Mapping[str, Any]) -> str:
    splits = statistics["splits"]
    rows = []
    for name in ("rows", "negatives", "rows_with_fewer"):
        counts = [of_split[name] for of_split in splits.values()]
        rows.append((name.replace("_", " "), *counts))
    return table(["", *splits], rows)


def run_mining(
    dataset: MiningDataset,
    settings: MineSettings,
    encoder: Encoder | None,
    *,
    out: Path | None,
    work: Path | None,
    fresh: bool,
    show: Listener,
    source: str,
) -> tuple[dict[str, pl.DataFrame], dict[str, object]]:
    """Mine all splits and write the dataset, or read that of a finished run.

    Raises DataError if no row gets a negative.
    """
    identity = {} if encoder is None else encoder.identity()
    run = {
        "made_by": f"aoe mine (aoe-toolkit {__version__})",
        "settings": settings.model_dump(mode="json"),
        "inputs": {
            "data": dataset.digest(),
            "model": digest_of(identity) if identity else None,
        },
    }
    earlier = finished(out, run, fresh=fresh)
    if out is not None and earlier is not None:
        return _read_splits(out, earlier), earlier
    with _working(out, work) as folder:
        vectors = None
        if encoder is not None:
            vectors = embed(encoder, identity, dataset, folder, show)
        mined = {}
        for name, part in dataset.parts.items():
            if len(part.anchors):
                stage = f"mine {name}"
                mined[name] = mine_split(dataset, part, settings, vectors, show, stage)
        splits = {
            name: split.rows for name, split in mined.items() if split.rows.height
        }
        statistics = _statistics(mined)
        if not splits:
            reasons = listed(statistics["turned_down_candidates"])
            raise DataError(
                f"no row got a negative (turned down candidates: {reasons or 'none'}); widen the range or loosen"
                " the rules on scores",
                path=source,
            )
        if out is not None:
            sections = {
                "": _INTRODUCTION,
                "Counts": _counts_table(statistics),
                "Limitations": _LIMITS,
            }
            write_with_card(out, _CONFIG, splits, sections, statistics, run, _TAG)
    return splits, statistics


def _read_splits(out: Path, statistics: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """The rows of a finished run; a split without rows has no file."""
    counts = statistics["splits"]
    splits = {}
    for name in in_split_order(counts):
        if counts[name]["rows"]:
            splits[name] = read_parquet(out / shard_path(_CONFIG, name))
    return splits


@contextmanager
def _working(out: Path | None, work: Path | None) -> Iterator[Path]:
    """The locked working folder; deleted after the run unless the user named it."""
    if work is not None:
        if out is not None:
            check_apart(out, work)
        with working_folder(work):
            yield work
    elif out is not None:
        folder = work_beside(out)
        with working_folder(folder):
            yield folder
            remove(folder)
    else:
        with TemporaryDirectory(prefix="aoe-mine-") as name:
            yield Path(name)


def _statistics(mined: Mapping[str, MinedSplit]) -> dict[str, Any]:
    counts = {}
    dropped = Counter[str]()
    turned_down = Counter[str]()
    estimate = Counter[str](mined=0, telling=0, positives=0)
    for name, split in mined.items():
        dropped += split.dropped
        turned_down += split.turned_down
        estimate.update(split.estimate)
        counts[name] = {
            "rows": split.rows.height,
            "negatives": split.negatives,
            "rows_with_fewer": split.fewer,
            "labelled_negatives": split.labelled,
        }
    # The share of false negatives: of all, and of anchors with further positives.
    shares = {}
    for name, base in {"share": "mined", "share_where_known": "telling"}.items():
        total = estimate[base]
        shares[name] = round(estimate["positives"] / total, 4) if total else None
    return {
        "splits": counts,
        "dropped_rows": dict(sorted(dropped.items())),
        "turned_down_candidates": dict(sorted(turned_down.items())),
        "false_negatives": {**estimate, **shares},
    }
