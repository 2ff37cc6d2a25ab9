"""The data that a recipe trains on: made by other commands if need be, cut down, or turned into texts."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pairkit import __version__
from pairkit.app.errors import ConfigError, DataError
from pairkit.dataset.labels import LabelRules
from pairkit.dataset.reader import read_rows, split_names
from pairkit.system.files import sha256, write_bytes, write_text
from papers.reproduce.recipe import NO_DEV

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pairkit.dataset.labels import Meaning
    from papers.reproduce.plan import Places
    from papers.reproduce.recipe import Source, Texts

_COMMANDS = {
    ("gis", "import"): "gis_builder",
    ("gis", "detect"): "gis_builder",
    ("gis", "pair"): "gis_builder",
    ("label", "generate"): "llm_labeler",
}
_SEED = 0  # of the choice among the rows, which is the same for every run


@dataclass(frozen=True)
class Material:
    """What `aoe train` takes."""

    train: str
    dev: str | None
    labels: Mapping[str, Meaning] | None = None


def prepare(source: Source, places: Places, say: Callable[[str], None]) -> None:
    """Run the commands that make the data, each once; packages meet only through their command lines."""
    for words in source.prepare:
        command = [places.fill(word) for word in words]
        name, shown = tuple(command[:2]), " ".join(command)
        if name not in _COMMANDS:
            allowed = ", ".join(" ".join(each) for each in _COMMANDS)
            raise ConfigError(f"prepare: `{shown}` is not one of {allowed}; run it yourself first")
        files = [Path(word.partition("=")[2] or word) for word in command]
        stamps = [sha256(path) for path in files if path.is_file()]  # other input makes another mark
        done = places.work / f"{_digest(__version__, *command, *stamps)}.done"
        if done.exists():
            continue
        say(f"$ {shown}")
        code = subprocess.run(  # noqa: S603 - only our packages, and of others' recipes only with consent
            [sys.executable, "-P", "-m", _COMMANDS[name], *command[1:]], check=False, stdout=sys.stderr
        ).returncode
        if code:
            raise DataError(f"`{shown}` ended with exit code {code}; its messages are above")
        write_text(done, f"{shown}\n")


def material(source: Source, places: Places, texts: Texts | None = None) -> Material:
    """The source as it is, or files of some of its rows, or of texts alone."""
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
