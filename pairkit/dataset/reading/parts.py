"""Find the tables of each split of a source, without reading them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from glob import glob, has_magic
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

from pairkit.base.errors import ConfigError, DataError, RemoteError
from pairkit.base.extras import needed_for
from pairkit.base.printable import one_line
from pairkit.base.system.folders import read_json_object
from pairkit.base.system.text_lines import note_once
from pairkit.dataset.judgements import ENDING, judged_pairs
from pairkit.dataset.reading.beir import beir_pairs, is_beir
from pairkit.dataset.reading.in_memory import (
    InMemory,
    Source,
    contents_of,
    source_name,
    tables_in_memory,
)
from pairkit.dataset.reading.tables import (
    ClassNames,
    class_names_of_features,
    first_row,
    has_header,
    is_lines,
    is_sheet,
    is_table,
    read_table,
)
from pairkit.dataset.records import CONFIG_FOLDERS, ROW, in_split_order

_SPLIT_NAME = re.compile(
    r"(?:^|[-_.])(train(?:ing)?|validation|valid|val|dev|test(?:ing)?)(?=[-_.]|$)",
    re.IGNORECASE,
)
_SHARD = re.compile(r"(.+)-\d{5}-of-\d{5}\.parquet")
_SAME_SPLIT = {"training": "train", "testing": "test"} | dict.fromkeys(
    ("valid", "val", "dev"), "validation"
)
# Files of macOS, of Excel, and our records.
_NO_DATA = re.compile(r"\..*|~\$.*|(?:statistics|run)\.json")
_STATE_FILE = "state.json"  # of each split that `Dataset.save_to_disk` wrote
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+(?::[\w.-]+)?")


class TablePart(NamedTuple):
    """A table of a split: a file, or a frame in memory."""

    where: str
    table: Path | pl.DataFrame
    classes: ClassNames = MappingProxyType({})
    lines: bool = False

    def read(
        self, columns: Mapping[str, str] | None = None
    ) -> tuple[pl.DataFrame, int]:
        """The rows, and the number of the first one."""
        if isinstance(self.table, pl.DataFrame):
            return self.table, 1
        header = has_header(self.table, columns)
        rows = read_table(self.table, lines=self.lines, header=header)
        return rows, first_row(self.table, header=header)

    def numbered(self, columns: Mapping[str, str] | None = None) -> pl.DataFrame:
        """The rows with their numbers as `ROW`, without blank rows of CSV files and spreadsheets."""
        frame, first = self.read(columns)
        rows = frame.drop(ROW, strict=False).with_row_index(ROW, offset=first)
        may_have_blank = isinstance(self.table, Path) and is_sheet(self.table)
        if not frame.width or not may_have_blank:
            return rows
        return rows.filter(pl.any_horizontal(pl.exclude(ROW).is_not_null()))


def parts_of(source: Source, *, lines: bool = False) -> dict[str, list[TablePart]]:
    """The tables of each split, in the usual order of splits."""
    source = contents_of(source)
    if not isinstance(source, str | Path):
        return _in_memory(source, source_name(source))
    path = valid_path(source)
    if is_hub_name(source) and not path.exists() and not is_table(path):
        return _in_memory(fetch_dataset(str(source)), str(source))
    if "://" in str(source):
        raise ConfigError(f"{source}: is on the web; download it, and give the file")
    if path.name.endswith(ENDING) and path.is_file():
        # Reviewed pairs are for evaluation.
        return {"test": [TablePart(str(path), judged_pairs(path))]}
    if is_beir(path):
        return _by_split(
            {file.stem: [TablePart(str(file), rows)] for file, rows in beir_pairs(path)}
        )
    parts = {}
    for split, files in _files(path, lines=lines).items():
        parts[split] = [
            TablePart(str(file), file, lines=lines and is_lines(file)) for file in files
        ]
    return _by_split(parts)


def _files(path: Path, *, lines: bool) -> dict[str, list[Path]]:
    """The files of each split; with `lines`, text files are tables, too."""
    if path.is_dir():
        return _saved_files(path) or _in_folder(path)
    if not path.exists() and has_magic(str(path)):
        return _files_of_pattern(str(path), lines=lines)
    if path.exists() or is_table(path):
        return {split_of(path): [path]}
    raise ConfigError(
        f"{path}: no such file or folder, and no Hub id such as owner/dataset"
    )


def is_hub_name(source: str | Path) -> bool:
    """Whether a source looks like a Hub id, such as owner/dataset."""
    return isinstance(source, str) and bool(_HUB_NAME.fullmatch(source))


def fetch_dataset(name: str) -> Mapping[str, Any]:
    """A dataset from the Hub; each split is a `datasets.Dataset`."""
    with needed_for(f"{name}: reading from the Hub"):
        from datasets import load_dataset  # slow to import
    dataset, _, config = name.partition(":")
    try:
        splits: Mapping[str, Any] = load_dataset(dataset, config or None)
    except (OSError, ValueError) as error:
        raise RemoteError(
            f"{name}: no such file or folder; loading from the Hub failed ({one_line(str(error), 200)});"
            " check name and network"
        ) from error
    return splits


def files_of(source: Source) -> list[Path]:
    """All files of tables of a source, of all splits and configurations."""
    source = contents_of(source)
    if not isinstance(source, str | Path):
        return []
    path = valid_path(source)
    if path.is_dir():
        return [file for file in sorted(path.rglob("*")) if is_table(file)]
    return [path] if path.exists() else _glob(str(source))


def split_of(path: Path) -> str:
    """The split in a file's name; train if there is none."""
    match = _SPLIT_NAME.search(path.name)
    return split_name(match[1]) if match else "train"


def split_name(name: str) -> str:
    """The usual name of a split: `validation` for dev, val and valid."""
    return _SAME_SPLIT.get(name.lower(), name.lower())


def valid_path(source: str | Path) -> Path:
    """The source as a path; texts that are too long for a path are refused."""
    path = Path(source)
    try:
        path.exists()
    except OSError as error:
        raise ConfigError(
            f"{one_line(str(source), 100)}: not a valid path ({error.strerror}); give a file, a folder or a"
            " Hub id such as owner/dataset"
        ) from error
    return path


def _in_memory(source: InMemory, where: str) -> dict[str, list[TablePart]]:
    tables = tables_in_memory(source)
    lines = isinstance(source, Sequence) and isinstance(source[0], str)
    parts = {}
    for split, table in tables.items():
        place = f"{where}, {split}" if len(tables) > 1 else where
        given = source.get(split, source) if isinstance(source, Mapping) else source
        classes = class_names_of_features(getattr(given, "features", None))
        parts[split] = [TablePart(place, table, classes, lines)]
    return _by_split(parts)


def _by_split(tables: Mapping[str, Sequence[TablePart]]) -> dict[str, list[TablePart]]:
    """Tables by the usual names of splits, in the usual order."""
    by_split: dict[str, list[TablePart]] = {}
    for name, parts in tables.items():
        by_split.setdefault(split_name(name), []).extend(parts)
    return {name: by_split[name] for name in in_split_order(by_split)}


def _in_folder(folder: Path) -> dict[str, list[Path]]:
    tables = [
        path
        for path in sorted(_data_folder(folder).iterdir())
        if path.is_file() and is_table(path) and not _NO_DATA.fullmatch(path.name)
    ]
    if (folder / "run.json").is_file() and (ours := _shards_by_split(tables)):
        return ours
    named, unnamed = _files_by_split(tables)
    if named:
        if others := [path.name for path in unnamed if path.suffix.lower() != ".json"]:
            note_once(
                "%s: not read: %s, not named after a split",
                folder,
                one_line(", ".join(others)),
            )
        return named
    # Shards differ only in digits.
    names = {re.sub(r"\d+", "0", path.name) for path in unnamed}
    if len(names) == 1:
        return {"train": unnamed}
    raise DataError(
        "no data files named after a split, such as train.jsonl or data/train-00000-of-00001.parquet; give"
        " a file, or several as a pattern such as 'FOLDER/*.csv'; documents are read by `pairs extract` and"
        " `aoe index`",
        path=folder,
    )


def _shards_by_split(files: Iterable[Path]) -> dict[str, list[Path]]:
    """The files by the names of their splits, as our datasets have them; empty if a name differs."""
    shards: dict[str, list[Path]] = {}
    for path in files:
        match = _SHARD.fullmatch(path.name)
        if match is None:
            return {}
        shards.setdefault(match[1], []).append(path)
    return shards


def _files_of_pattern(pattern: str, *, lines: bool) -> dict[str, list[Path]]:
    """The tables that match a glob pattern."""
    files = [
        path for path in _glob(pattern) if is_table(path) or (lines and is_lines(path))
    ]
    if not files:
        raise DataError(
            "no table matches this pattern; give a file, a folder or another pattern",
            path=pattern,
        )
    named, unnamed = _files_by_split(
        files, by_folder=has_magic(str(Path(pattern).parent))
    )
    if named and unnamed:
        raise DataError(
            f"matches {one_line(next(iter(named.values()))[0].name, 60)}, which is named after a split, and"
            f" {one_line(unnamed[0].name, 60)}, which isn't; give a pattern for one kind",
            path=pattern,
        )
    return named or {"train": unnamed}


def _glob(pattern: str) -> list[Path]:
    paths = map(Path, sorted(glob(pattern, recursive=True)))  # noqa: PTH207 - any folder
    return [path for path in paths if path.is_file()]


def _files_by_split(
    files: Iterable[Path], *, by_folder: bool = False
) -> tuple[dict[str, list[Path]], list[Path]]:
    """Files with the name of a split or, with `by_folder`, in a folder of this name; and other files."""
    named: dict[str, list[Path]] = {}
    unnamed = []
    for path in files:
        match = _SPLIT_NAME.search(path.name)
        if match is None and by_folder:
            match = _SPLIT_NAME.fullmatch(path.parent.name)
        if match:
            named.setdefault(split_name(match[1]), []).append(path)
        else:
            unnamed.append(path)
    return named, unnamed


def _data_folder(folder: Path) -> Path:
    """The folder with the tables: `data`, the first configuration of our datasets, or the folder itself."""
    for config, name in CONFIG_FOLDERS.items():
        is_ours = config == "default" or (folder / "run.json").is_file()
        if is_ours and (folder / name).is_dir():
            return folder / name
    return folder


def _saved_files(folder: Path) -> dict[str, list[Path]] | None:
    """The Arrow files of each split of a saved `datasets.Dataset`; None for other folders."""
    listed = folder / "dataset_dict.json"
    if listed.is_file():
        return {
            name: _arrow_files(folder / name)
            for name in _listed_files(listed, "splits")
        }
    if not (folder / _STATE_FILE).is_file():
        return None
    split = read_json_object(folder / _STATE_FILE).get("_split")
    return {str(split or "train"): _arrow_files(folder)}


def _arrow_files(folder: Path) -> list[Path]:
    where = folder / _STATE_FILE
    if read_json_object(where).get("_indices_data_files"):
        raise DataError(
            "selects rows by indices, as old versions of datasets did; load and save it again",
            path=where,
        )
    return [folder / name for name in _listed_files(where, "_data_files")]


def _listed_files(file: Path, key: str) -> list[str]:
    """The names of files or folders that a JSON file lists, without dots or a path that lead elsewhere."""
    value = read_json_object(file).get(key)
    if not isinstance(value, list) or not value:
        raise DataError("lists no data; load and save the dataset again", path=file)
    names = (
        entry.get("filename") if isinstance(entry, dict) else entry for entry in value
    )
    return [Path(str(name)).name.lstrip(".") for name in names]
