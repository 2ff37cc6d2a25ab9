"""A run: read, embed, mine each split, write. The same call continues one that was stopped."""

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
from aoe_train.searching.mining.dataset import MiningDataset
from aoe_train.searching.mining.embed import MiningVectors, embed
from aoe_train.searching.mining.mine import FalseNegatives, MinedSplit, mine_split, row_schema
from aoe_train.searching.mining.settings import MineSettings
from aoe_train.searching.mining.write import finished, is_file, read_mined, write_mined
from pairkit import __version__
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.progress import Listener
from pairkit.system.folders import work_beside

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder


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
    if out is not None and is_file(out) and len(material.parts) > 1:
        raise ConfigError(
            f"{out}: the splits {', '.join(material.parts)} can't be in one file; give a folder, or one"
            " --split"
        )
    identity = {} if encoder is None else encoder.identity()
    run = _record(material, settings, identity)
    if out is not None and (before := finished(out, run, fresh=places.fresh)) is not None:
        return read_mined(out, material.parts, row_schema(settings)), before
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
            write_mined(out, splits, run, statistics)
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
        work = _beside(places.out)
    else:
        with TemporaryDirectory(prefix="aoe-mine-") as name:
            yield Path(name)
        return
    with working_folder(work):
        yield work
        if places.work is None:
            shutil.rmtree(work)


def _beside(out: Path) -> Path:
    """`OUT.work`, also of a file."""
    return out.with_name(out.name + ".work") if is_file(out) else work_beside(out)


def _record(material: MiningDataset, settings: MineSettings, identity: Mapping[str, Any]) -> dict[str, Any]:
    """What made a result, for run.json: nothing that differs from one run to the next."""
    return {
        "made_by": f"aoe mine (aoe-toolkit {__version__})",
        "settings": settings.model_dump(mode="json"),
        "inputs": {"data": material.digest(), "model": _digest(identity) if identity else None},
    }


def _digest(identity: Mapping[str, Any]) -> str:
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
        "false_negatives": _told(sum((split.false_negatives for split in found), FalseNegatives())),
    }


def _summed(counts: Iterable[Counter[str]]) -> dict[str, int]:
    total = sum(counts, Counter[str]())
    return dict(sorted(total.items()))


def _told(found: FalseNegatives) -> dict[str, Any]:
    def rounded(share: float | None) -> float | None:
        return None if share is None else round(share, 4)

    return {
        **asdict(found),
        "share": rounded(found.share),
        "share_where_known": rounded(found.share_where_known),
    }
