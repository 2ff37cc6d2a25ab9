"""The data that a recipe trains on: made by other commands if need be, cut down, or turned into texts."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from aoe_train._conflicts import Say
from aoe_train._reproduce.command import Command, parse_command
from aoe_train._reproduce.recipe import NO_DEV
from pairkit import __version__
from pairkit.errors import DataError
from pairkit.files import sha256, write_bytes, write_text
from pairkit.labels import LabelRules
from pairkit.reader import read_rows, split_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aoe_train._reproduce.plan import Places
    from aoe_train._reproduce.recipe import Source, Texts
    from pairkit.labels import Meaning

_PACKAGES = {"gis": "gis_builder", "label": "llm_labeler"}
_SEED = 0  # of the choice among the rows, which is the same for every run


@dataclass(frozen=True)
class Material:
    """What `aoe train` takes.

    Attributes:
        train: For --data.
        dev: For --dev-data.
        labels: What labels count as that still have to be replaced, in both.
    """

    train: str
    dev: str | None
    labels: Mapping[str, Meaning] | None = None


def prepare(source: Source, places: Places, say: Say) -> None:
    """Run the commands that make the data, each once; packages meet only through their command lines.

    Raises:
        ConfigError: A command that a recipe may not run.
        DataError: A command failed; its messages are above.
    """
    for words in source.prepare:
        command = parse_command(words).filled(places)
        done = places.work / f"{_digest(__version__, *command.words, *_stamps(command))}.done"
        if done.exists() and _made(command):
            continue
        say(f"$ {command}")
        package, *rest = command.words
        code = subprocess.run(  # noqa: S603 - checked above, and only our packages
            [sys.executable, "-P", "-m", _PACKAGES[package], *rest],
            check=False,
            stdout=sys.stderr,
            env={**os.environ, "PYTHONPATH": _search_path()},
        ).returncode
        if code:
            raise DataError(f"`{command}` ended with exit code {code}; its messages are above")
        write_text(done, f"{command}\n")


def _search_path() -> str:
    """Ours first, and never the folder that one is in: a stranger's may hold a package of our name."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    home = str(Path(__file__).parents[2])
    return os.pathsep.join([home, *(path for path in given if Path(path).is_absolute())])


def _stamps(command: Command) -> list[str]:
    """What the files that a command names hold: other input makes another mark."""
    named = [Path(value) for value in command.values.values() if value]
    return [sha256(path) for path in named if path.is_file()]


def _made(command: Command) -> bool:
    out = command.values.get("--out")
    return out is None or Path(out).exists()


def material(source: Source, places: Places, texts: Texts | None = None) -> Material:
    """The source as it is, or files of some of its rows, or of texts alone.

    Args:
        source: The recipe's.
        places: Where things lie.
        texts: Single texts instead, without what is known about them.

    Raises:
        ConfigError, DataError, RemoteError: see `pairkit.reader.read_rows`.
    """
    train, dev = places.fill(source.train), _dev(source, places)
    own_validation = source.dev is None and "validation" in (splits := split_names(train)) and len(splits) > 1
    if texts is not None:
        chosen = _texts(source, texts, places)
        return Material(chosen, _mapped(train if own_validation else dev, source, places))
    if source.rows is None and source.dev != NO_DEV:
        return Material(train, dev, source.labels)
    return Material(
        _kept(_some(_read(train, source.labels), source), places),
        _mapped(train if own_validation else dev, source, places),
    )


def _some(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    """So many rows as the source allows, the same for every run."""
    if source.rows is None or source.rows >= frame.height:
        return frame
    return frame.sample(source.rows, seed=_SEED, shuffle=True)


def _dev(source: Source, places: Places) -> str | None:
    return None if source.dev in (None, NO_DEV) else places.fill(str(source.dev))


def _mapped(dev: str | None, source: Source, places: Places) -> str | None:
    """Held-out rows with the labels' words replaced, as those of a derived training file are."""
    if dev is None or source.labels is None:
        return dev
    return _kept(_read(dev, source.labels, first="validation"), places)


def _texts(source: Source, texts: Texts, places: Places) -> str:
    if texts.of is None:
        frame = _some(_read(places.fill(source.train), source.labels), source)
    else:
        frame = _read(places.fill(texts.of), None, columns=texts.columns)
        frame = _some(frame.head(texts.first or frame.height), source)
    columns = [name for name in frame.columns if name != "label"]
    every = pl.concat([_flat(frame[name]).alias("text") for name in columns])
    return _kept(pl.DataFrame({"text": every.unique(maintain_order=True)}), places)


def _flat(column: pl.Series) -> pl.Series:
    """Lists of negatives as the texts in them."""
    return column.explode() if column.dtype == pl.List else column


def _read(
    path: str,
    labels: Mapping[str, Meaning] | None,
    *,
    first: str = "train",
    columns: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    splits = split_names(path)
    chosen = first if first in splits else splits[0]
    (frame,) = read_rows(path, split=chosen, columns=columns, rules=LabelRules(labels)).splits.values()
    return frame


def _kept(frame: pl.DataFrame, places: Places) -> str:
    """The rows as a file named after what it holds."""
    held = io.BytesIO()
    frame.write_parquet(held)
    path = places.work / f"{hashlib.sha256(held.getvalue()).hexdigest()[:16]}.parquet"
    if not path.exists():
        write_bytes(path, held.getvalue())
    return str(path)


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def absent(source: Source, places: Places) -> list[Path]:
    """Files below the data folder that are not there; Hub ids and what is still to be made may be."""
    named = [places.fill(text) for text in (source.train, source.dev) if text and "{data}" in text]
    return [Path(name) for name in named if not Path(name).exists()]
