"""A run: embed, mine each split, write a dataset or a file. The same call continues one that was stopped."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aoe_train.model.run_folder import working_folder
from aoe_train.searching.mining.dataset import MineSettings, MiningDataset
from aoe_train.searching.mining.mine import FalseNegatives, MinedSplit, mine_split
from aoe_train.searching.mining.rank import MiningVectors, embed
from pairkit import __version__
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.progress import Listener
from pairkit.dataset.card import dataset_card
from pairkit.dataset.card import table as markdown_table
from pairkit.dataset.records import card_files, shard, write_dataset
from pairkit.system.folders import made_there, read_own, work_beside

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder


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


def finished(out: Path, run: Mapping[str, Any], *, fresh: bool) -> dict[str, Any] | None:
    """The statistics of a run that made the same there; None where nothing is in the way."""
    there = made_there(out, "aoe", *_KEYS)
    if there is None or fresh:
        return None
    statistics = read_own(out / "statistics.json")
    if isinstance(statistics, dict) and all(there.get(key) == run[key] for key in _KEYS):
        return statistics
    raise ConfigError(
        f"{out}: was mined from other data, or with other settings; give --fresh to replace it, or choose"
        " another --out"
    )


def _write(
    out: Path, splits: Mapping[str, pl.DataFrame], run: Mapping[str, Any], statistics: Mapping[str, Any]
) -> None:
    configs = {_CONFIG: splits}
    card = dataset_card(
        out.name,
        configs=card_files(configs),
        rows=sum(frame.height for frame in splits.values()),
        sections=[("", _INTRODUCTION), ("Counts", _counts(statistics)), ("Limitations", _LIMITS)],
        tags=("hard-negatives",),
    )
    write_dataset(out, configs, card=card, statistics=statistics, run=run)


def _counts(statistics: Mapping[str, Any]) -> str:
    splits = statistics["splits"]
    names = ("rows", "negatives", "rows_with_fewer")
    return markdown_table(
        ["", *splits],
        [(name.replace("_", " "), *(counts[name] for counts in splits.values())) for name in names],
    )


@dataclass(frozen=True)
class RunPaths:
    """Where a run's results go, and where it works."""

    out: Path | None = None
    work: Path | None = None
    fresh: bool = False


def run_mining(
    material: MiningDataset,
    settings: MineSettings,
    encoder: Encoder | None,
    places: RunPaths,
    show: Listener,
    source: str,
) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """Mine, and write what was found."""
    out = places.out
    identity = {} if encoder is None else encoder.identity()
    run = _run_record(material, settings, identity)
    if out is not None and (before := finished(out, run, fresh=places.fresh)) is not None:
        paths = {split: out / shard(_CONFIG, split) for split in material.parts}
        return {split: pl.read_parquet(path) for split, path in paths.items() if path.exists()}, before
    with _working(places) as work:
        vectors = None if encoder is None else _vectors(material, encoder, identity, work, show)
        mined = {
            name: mine_split(material, part, settings, vectors, show, f"mine {name}")
            for name, part in material.parts.items()
            if len(part.anchors)
        }
        statistics = _statistics(mined)
        splits = {name: found.rows for name, found in mined.items() if found.rows.height}
        if not splits:
            reasons = ", ".join(
                f"{reason} {count:,}" for reason, count in statistics["turned_down_candidates"].items()
            )
            raise DataError(
                f"no row got a negative (candidates turned down: {reasons or 'none'}); widen the range, or"
                " loosen the rules on scores",
                path=source,
            )
        if out is not None:
            _write(out, splits, run, statistics)
    return splits, statistics


def _vectors(
    material: MiningDataset, encoder: Encoder, identity: Mapping[str, Any], work: Path, show: Listener
) -> MiningVectors:
    parts = material.parts.values()
    return embed(
        encoder,
        identity,
        material.texts,
        queries=np.unique(np.concatenate([part.anchors for part in parts])),
        documents=np.unique(
            np.concatenate([each for part in parts for each in (part.candidates, part.positives)])
        ),
        work=work,
        show=show,
    )


@contextmanager
def _working(places: RunPaths) -> Iterator[Path]:
    """The working folder; one that nobody named goes when the run is over."""
    if places.work is not None:
        work = places.work
    elif places.out is not None:
        work = work_beside(places.out)
    else:
        with TemporaryDirectory(prefix="aoe-mine-") as name:
            yield Path(name)
        return
    with working_folder(work):
        yield work
        if places.work is None:
            shutil.rmtree(work)


def _run_record(
    material: MiningDataset, settings: MineSettings, identity: Mapping[str, Any]
) -> dict[str, Any]:
    """What made a result, for run.json: nothing that differs from one run to the next."""
    return {
        "made_by": f"aoe mine (aoe-toolkit {__version__})",
        "settings": settings.model_dump(mode="json"),
        "inputs": {"data": material.digest(), "model": digest_of(identity) if identity else None},
    }


def digest_of(identity: Mapping[str, Any]) -> str:
    """A digest that tells a model from another one."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _statistics(mined: Mapping[str, MinedSplit]) -> dict[str, Any]:
    found = list(mined.values())
    return {
        "splits": {
            name: {
                "rows": split.rows.height,
                "negatives": split.negatives,
                "rows_with_fewer": split.fewer,
                "labelled_negatives": split.labelled,
            }
            for name, split in mined.items()
        },
        "dropped_rows": _summed(split.dropped for split in found),
        "turned_down_candidates": _summed(split.turned_down for split in found),
        "false_negatives": _as_json(sum((split.false_negatives for split in found), FalseNegatives())),
    }


def _summed(counts: Iterable[Counter[str]]) -> dict[str, int]:
    total = sum(counts, Counter[str]())
    return dict(sorted(total.items()))


def _as_json(found: FalseNegatives) -> dict[str, Any]:
    def rounded(share: float | None) -> float | None:
        return None if share is None else round(share, 4)

    return {
        **asdict(found),
        "share": rounded(found.share),
        "share_where_known": rounded(found.share_where_known),
    }
