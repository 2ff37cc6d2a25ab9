"""The training data of a recipe: made by `gis` or `label`, sampled, or split into single texts."""

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
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.files import sha256, write_bytes, write_text
from pairkit.dataset.labels import LabelRules
from pairkit.dataset.reading.reader import read_rows, split_names
from papers.reproduce.recipe import NO_DEV

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pairkit.dataset.labels import Meaning
    from papers.reproduce.plan import Folders
    from papers.reproduce.recipe import Source, Texts

_MODULES = {"gis": "gis_builder", "label": "llm_labeler"}
_COMMANDS = "gis import", "gis detect", "gis pair", "label generate"
_SEED = 0  # every run draws the same rows


@dataclass(frozen=True)
class TrainingData:
    """Files for `aoe train`."""

    train: str
    dev: str | None
    labels: Mapping[str, Meaning] | None = None


def prepare(source: Source, folders: Folders, say: Callable[[str], None]) -> None:
    """Run the commands that make the data, each once."""
    for words in source.prepare:
        command = [folders.fill(word) for word in words]
        shown = " ".join(command)
        if " ".join(command[:2]) not in _COMMANDS:
            raise ConfigError(
                f"prepare: `{shown}` is not one of {', '.join(_COMMANDS)}; run it yourself first"
            )
        done = folders.work / f"{_key(command)}.done"
        if done.exists():
            continue
        say(f"$ {shown}")
        name, *arguments = command
        process = subprocess.run(  # noqa: S603 - only commands of this project, confirmed for untrusted recipes
            [sys.executable, "-P", "-m", _MODULES[name], *arguments],
            check=False,
            stdout=sys.stderr,
        )
        code = process.returncode
        if code:
            raise DataError(
                f"`{shown}` failed with exit code {code}; see its messages above"
            )
        write_text(done, f"{shown}\n")


def _key(command: Sequence[str]) -> str:
    """Hash of a command and of its input files, so that a changed input is noticed."""
    parts = [__version__, *command]
    for word in command:
        path = Path(word.partition("=")[2] or word)
        if path.is_file():
            parts.append(sha256(path))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def training_data(
    source: Source, folders: Folders, texts: Texts | None
) -> TrainingData:
    """The source unchanged, or files with a sample of its rows or with single texts."""
    train = [folders.fill(path) for path in source.train]
    dev = None
    if source.dev not in (None, NO_DEV):
        dev = folders.fill(str(source.dev))
    is_derived = texts or source.rows or source.dev == NO_DEV or len(train) > 1
    if not is_derived:
        return TrainingData(train[0], dev, source.labels)

    held_out = [dev] if dev else []
    if source.dev is None and all(map(_has_validation, train)):
        held_out = train
    if len(held_out) == 1 and source.labels is None:
        dev = held_out[0]
    elif held_out:  # derived files have numbers as labels
        dev = _save(_read(held_out, source.labels, split="validation"), folders)
    if texts is not None:
        return TrainingData(_save_texts(source, texts, folders), dev)
    rows = _sample(_read(train, source.labels), source)
    return TrainingData(_save(rows, folders), dev)


def _has_validation(path: str) -> bool:
    splits = split_names(path)
    return "validation" in splits and len(splits) > 1


def _sample(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    if source.rows is None or source.rows >= frame.height:
        return frame
    return frame.sample(source.rows, seed=_SEED, shuffle=True)


def _save_texts(source: Source, texts: Texts, folders: Folders) -> str:
    """The distinct texts of all columns; lists of negatives are flattened."""
    if texts.of is None:
        frame = _read([folders.fill(path) for path in source.train], source.labels)
    else:
        frame = _read([folders.fill(texts.of)], None, columns=texts.columns)
        frame = frame.head(texts.first or frame.height)
    columns = []
    for column in _sample(frame, source).drop("label", strict=False):
        if column.dtype == pl.List:
            column = column.explode()
        columns.append(column.alias("text"))
    distinct = pl.concat(columns).unique(maintain_order=True)
    return _save(pl.DataFrame({"text": distinct}), folders)


def _read(
    paths: Sequence[str],
    labels: Mapping[str, Meaning] | None,
    *,
    split: str = "train",
    columns: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """This split of the datasets, or the first one of each."""
    frames: list[pl.DataFrame] = []
    for path in paths:
        splits = split_names(path)
        name = split if split in splits else splits[0]
        read = read_rows(path, split=name, columns=columns, rules=LabelRules(labels))
        frames += read.splits.values()
    return pl.concat(frames, how="diagonal_relaxed")


def _save(frame: pl.DataFrame, folders: Folders) -> str:
    """Write the rows to a file that is named by their hash."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    data = buffer.getvalue()
    path = folders.work / f"{hashlib.sha256(data).hexdigest()[:16]}.parquet"
    if not path.exists():
        write_bytes(path, data)
    return str(path)


def missing_files(source: Source, folders: Folders) -> list[Path]:
    """Absent files of --data-dir; Hub ids and files of `prepare` are not checked."""
    named = [name for name in (*source.train, source.dev) if name and "{data}" in name]
    paths = [Path(folders.fill(name)) for name in named]
    return [path for path in paths if not path.exists()]
