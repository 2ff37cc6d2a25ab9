"""Read pairs from a folder of ours, a file, a folder of files, a dataset on the Hub, or from memory."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from pairkit.columns import Roles, find_roles, to_pairs, to_rows
from pairkit.config import argument
from pairkit.errors import ConfigError, DataError
from pairkit.hub import load
from pairkit.in_memory import Source, source_name, tables_in_memory
from pairkit.lines import read_text_lines
from pairkit.printable import one_line
from pairkit.records import LabelKind, PairDataset, in_split_order
from pairkit.saved_dataset import saved_files
from pairkit.tables import first_row, is_table, read_table

_LOG = logging.getLogger(__name__)

_SPLIT_NAME = re.compile(
    r"(?:^|[-_.])(train(?:ing)?|validation|valid|val|dev|test)(?=[-_.]|$)", re.IGNORECASE
)
_SAME_SPLIT = {"training": "train", "valid": "validation", "val": "validation", "dev": "validation"}
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?(?::[\w.-]+)?")
_Part: TypeAlias = tuple[str, Path | pl.DataFrame]  # a table of a split, and what messages call it


def read_pairs(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    split: str | None = None,
    label_values: Mapping[str, float] | None = None,
    check: bool = True,
) -> PairDataset:
    """Read pairs as text1, text2, label and whatever else the source has.

    Args:
        source: A dataset folder, be it ours or one of `Dataset.save_to_disk`; a file (`.parquet .jsonl .json
            .csv .tsv .arrow`, also `.gz`); a folder of files named after their splits; a Hub id
            (`owner/name`, `owner/name:config`); or what is in memory: see `pairkit.in_memory.Source`.
        columns: `text1`, `text2`, `label` or `anchor`, `positive` and `negative` or `negative_1`,
            `negative_2`, … to the source's names; by default recognised. Triplets become a positive row and
            one for each negative, bare positives get label 1.
        split: Only this split; `dev` and `val` stand for `validation`.
        label_values: Words to numbers, for labels that are words; a word that it lacks is an error.
        check: Whether an empty text is an error; an audit counts them instead.

    Raises:
        ConfigError: No such source, or a bad mapping.
        DataError: Not readable, a missing column, an empty text or a label out of range, with file and row.
        RemoteError: The Hub could not be asked.
    """

    def pairs(frame: pl.DataFrame, where: str, first: int) -> pl.DataFrame:
        roles = _roles(frame, where, columns)
        return to_pairs(frame, roles, where, label_values=label_values, check=check, first_row=first)

    columns, split, label_values = _checked(columns, split, label_values)
    return _same_labels(_splits(source, _tables(source), split, pairs), source_name(source))


def read_rows(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    split: str | None = None,
    label_values: Mapping[str, float] | None = None,
) -> dict[str, pl.DataFrame]:
    """Read rows as they are meant: pairs with labels, bare positives, triplets or single texts.

    Args:
        source: As for `read_pairs`; also a text file (`.txt`, `.txt.gz`) with a text a line.
        columns: As for `read_pairs`; also `text` alone, for single texts. An only column is one by default.
        split: As for `read_pairs`.
        label_values: As for `read_pairs`.

    Returns:
        By split: text1, text2 and label; or anchor, positive and perhaps `negatives`, a list of one or more;
        or text.

    Raises:
        ConfigError: As `read_pairs`.
        DataError: As `read_pairs`; also if a split's files hold different kinds of rows.
        RemoteError: The Hub could not be asked.
    """

    def rows(frame: pl.DataFrame, where: str, first: int) -> pl.DataFrame:
        roles = _roles(frame, where, columns, single=True)
        return to_rows(frame, roles, where, label_values=label_values, first_row=first)

    columns, split, label_values = _checked(columns, split, label_values)
    if (path := _text_file(source)) is not None:
        return _splits(source, {_split_of(path): [(str(path), _lines(path))]}, split, rows)
    splits = _splits(source, _tables(source), split, rows)
    for name, frame in splits.items():
        if any(frame.select(pl.all().has_nulls()).row(0)):  # no file has any: some lack a column
            raise DataError(
                f"the files of {name} differ in what their rows are; together they have"
                f" {one_line(', '.join(frame.columns))}: read them one by one",
                path=source_name(source),
            )
    return splits


def _roles(
    frame: pl.DataFrame, where: str, columns: Mapping[str, str] | None, *, single: bool = False
) -> Roles:
    roles = find_roles(frame.columns, where, columns, single=single)
    read_as = (
        f"{role} from {one_line(name if isinstance(name, str) else ', '.join(name), 60)}"
        for role, name in asdict(roles).items()
        if name
    )
    _LOG.info("%s: %d rows, %s", where, frame.height, ", ".join(read_as))
    return roles


def _checked(columns: Any, split: Any, label_values: Any) -> tuple[Any, Any, Any]:
    return (
        argument("columns", columns, dict[str, str] | None),
        argument("split", split, str | None),
        argument("labels", label_values, dict[str, float] | None),
    )


def split_names(source: Source) -> list[str]:
    """The splits that a source for `read_rows` has, in the usual order.

    Raises:
        ConfigError: No such source.
        DataError: A folder without data.
        RemoteError: The Hub could not be asked.
    """
    path = _text_file(source)
    return list(_tables(source)) if path is None else [_split_of(path)]


def _splits(
    source: Source,
    tables: Mapping[str, Sequence[_Part]],
    split: str | None,
    convert: Callable[[pl.DataFrame, str, int], pl.DataFrame],
) -> dict[str, pl.DataFrame]:
    """Each wanted split's tables, read, converted (frame, where, number of the first row) and joined."""
    wanted = _split_name(split) if split else None
    if wanted is not None and wanted not in tables:
        raise DataError(f"no split {wanted!r}; there are {', '.join(tables)}", path=source_name(source))
    splits: dict[str, pl.DataFrame] = {}
    for name, parts in tables.items():
        if wanted in (None, name):
            frames = []
            for where, table in parts:
                frame = read_table(table) if isinstance(table, Path) else table
                first = first_row(table) if isinstance(table, Path) else 1
                frames.append(convert(frame, where, first))
            splits[name] = _joined(frames)
    return splits


def _place(source: str | Path) -> Path:
    """The source as a path, of which it can be said whether anything is there."""
    path = Path(source)
    try:
        path.exists()
    except OSError as error:
        raise ConfigError(
            f"{one_line(str(source), 100)}: can't be looked up ({error.strerror}); give a file, a folder or a"
            " Hub id such as owner/dataset"
        ) from error
    return path


def _text_file(source: Source) -> Path | None:
    """The source as a path if it is a file of a text a line."""
    path = _place(source) if isinstance(source, str | Path) else None
    if path is None or not path.name.lower().endswith((".txt", ".txt.gz")):
        return None
    return path if path.is_file() else None


def _lines(path: Path) -> pl.DataFrame:
    """A text file's lines; only a line feed ends one, as other marks may stand inside a text."""
    lines = [line.removesuffix("\n").removesuffix("\r") for _, line in read_text_lines(path)]
    return pl.DataFrame({"text": lines}, schema={"text": pl.String})


def _tables(source: Source) -> dict[str, list[_Part]]:
    """Each split's tables with their names; splits in the usual order."""
    if not isinstance(source, str | Path):
        where, held = source_name(source), tables_in_memory(source)
        return _by_split({name: [(where, frame)] for name, frame in held.items()})
    path = _place(source)
    if path.is_dir():
        saved = saved_files(path)
        files = _data_files(path) if saved is None else saved
    elif path.exists() or is_table(path):
        files = {_split_of(path): [path]}
    elif isinstance(source, str) and _HUB_NAME.fullmatch(source) and "/" in source:
        return _by_split({name: [(f"{source}/{name}", frame)] for name, frame in load(source).items()})
    else:
        raise ConfigError(f"{source}: no such file or folder, and no Hub id such as owner/dataset")
    return _by_split({name: [(str(file), file) for file in listed] for name, listed in files.items()})


def _by_split(tables: Mapping[str, Sequence[_Part]]) -> dict[str, list[_Part]]:
    """Tables under the usual names of splits, in the usual order: those of `dev` and `val` together."""
    found: dict[str, list[_Part]] = {}
    for name, parts in tables.items():
        found.setdefault(_split_name(name), []).extend(parts)
    return {name: found[name] for name in in_split_order(found)}


def _data_files(folder: Path) -> dict[str, list[Path]]:
    home = folder / "data" if (folder / "data").is_dir() else folder
    files: dict[str, list[Path]] = {}
    unnamed = []
    for path in sorted(home.iterdir()):
        if path.is_file() and is_table(path) and path.name not in ("statistics.json", "run.json"):
            if _SPLIT_NAME.search(path.name):
                files.setdefault(_split_of(path), []).append(path)
            else:
                unnamed.append(path)
    if not files and len(unnamed) == 1:
        return {"train": unnamed}
    if not files:
        raise DataError(
            "no data files named after a split, such as train.jsonl or data/train-00000-of-00001.parquet",
            path=folder,
        )
    return files


def _split_of(path: Path) -> str:
    found = _SPLIT_NAME.search(path.name)
    return _split_name(found[1]) if found else "train"


def _split_name(name: str) -> str:
    return _SAME_SPLIT.get(name.lower(), name.lower())


def _joined(frames: list[pl.DataFrame]) -> pl.DataFrame:
    return frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal_relaxed")


def _same_labels(splits: Mapping[str, pl.DataFrame], source: str) -> PairDataset:
    binary = all(frame["label"].dtype == pl.Int64 for frame in splits.values())
    kind: LabelKind = "binary" if binary else "graded"
    if not binary:
        splits = {
            name: frame.with_columns(pl.col("label").cast(pl.Float32)) for name, frame in splits.items()
        }
    return PairDataset(dict(splits), source, kind)
