"""The data that a recipe trains on: made by other commands if need be, cut down, or turned into texts."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from aoe_train.preparation import Say
from pairkit.errors import ConfigError, DataError
from pairkit.files import write_bytes, write_text
from pairkit.reader import read_rows, split_names

if TYPE_CHECKING:
    from aoe_train.reproduce.plan import Places
    from aoe_train.reproduce.recipe import Source

_PACKAGES = {"gis": "gis_builder", "label": "llm_labeler", "aoe": "aoe_train"}
_SEED = 0  # of the choice among the rows, which is the same for every run


def prepare(source: Source, places: Places, say: Say) -> None:
    """Run the commands that make the data, each once; packages meet only through their command lines.

    Raises:
        ConfigError: A command of none of our packages.
        DataError: A command failed; what it printed stands above.
    """
    for command in source.prepare:
        filled = [places.fill(word) for word in command]
        if filled[0] not in _PACKAGES:
            raise ConfigError(f"prepare: {filled[0]} is none of {', '.join(_PACKAGES)}")
        done = places.work / f"{_digest(*filled)}.done"
        if done.exists():
            continue
        say(f"$ {' '.join(filled)}")
        code = subprocess.run(  # noqa: S603 - a recipe's own words, and only our packages
            [sys.executable, "-m", _PACKAGES[filled[0]], *filled[1:]], check=False, stdout=sys.stderr
        ).returncode
        if code:
            raise DataError(f"`{' '.join(filled)}` ended with exit code {code}; what it printed stands above")
        write_text(done, " ".join(filled) + "\n")


def training_file(source: Source, places: Places, *, texts: bool) -> str:
    """What `aoe train --data` takes: the source as it is, or a file of some of its rows or of its texts.

    Args:
        source: The recipe's.
        places: Where things lie.
        texts: Distinct texts alone, without what is known about them.

    Raises:
        ConfigError, DataError, RemoteError: see `pairkit.reader.read_rows`.
    """
    train = places.fill(source.train)
    if source.rows is None and not texts:
        return train
    splits = split_names(train)
    chosen = "train" if "train" in splits else splits[0]
    (frame,) = read_rows(train, split=chosen, label_values=source.labels).values()
    if source.rows is not None and source.rows < frame.height:
        frame = frame.sample(source.rows, seed=_SEED, shuffle=True)
    if texts:
        frame = _texts(frame)
    path = places.work / f"{'texts' if texts else 'rows'}-{_digest(train, str(source.rows))}.parquet"
    write_bytes(path, _parquet(frame))
    return str(path)


def _texts(frame: pl.DataFrame) -> pl.DataFrame:
    columns = [name for name in frame.columns if name != "label"]
    every = pl.concat([frame[name].alias("text") for name in columns])
    return pl.DataFrame({"text": every.unique(maintain_order=True)})


def _parquet(frame: pl.DataFrame) -> bytes:
    held = io.BytesIO()
    frame.write_parquet(held)
    return held.getvalue()


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def dev_data(source: Source, places: Places) -> str | None:
    """What `aoe train --dev-data` takes."""
    return None if source.dev is None else places.fill(source.dev)


def absent(source: Source, places: Places) -> list[Path]:
    """Files below the data folder that are not there; hub names and what is still to be made may be."""
    named = [places.fill(text) for text in (source.train, source.dev) if text and "{data}" in text]
    return [Path(name) for name in named if not Path(name).exists()]
