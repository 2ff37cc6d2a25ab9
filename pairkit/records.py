"""The pair dataset on disk: what the packages hand to one another.

A folder that `datasets.load_dataset(folder)` loads as it is:

```
README.md          the dataset card
data/              {train,validation,test}-00000-of-00001.parquet: text1, text2, label, where each row comes
from positive/          the same splits: anchor, positive            (where asked for)
triplet/           the same splits: anchor, positive, negative  (where known)
statistics.json    counts, every dropped record's reason included
run.json           what made it
```

`label` is a whole number 0 or 1 (binary), or a float (graded, in [0, 5], whatever scale the source has).
Equal input gives equal bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl
from polars.datatypes import DataType, DataTypeClass

from pairkit.errors import ConfigError, DataError
from pairkit.files import whole_folder, write_json, write_text
from pairkit.parquet import write_parquet
from pairkit.printable import one_line

SPLITS = ("train", "validation", "test")
CONFIG_FOLDERS = {"default": "data", "positive": "positive", "triplet": "triplet"}
COLUMNS = {
    "default": ("text1", "text2", "label"),
    "positive": ("anchor", "positive"),
    "triplet": ("anchor", "positive", "negative"),
}

LabelKind = Literal["binary", "graded"]


@dataclass(frozen=True, slots=True)
class PairDataset:
    """Pairs by split; each frame begins with text1, text2 and label, further columns follow.

    `label_kind` is `binary` (whole numbers 0 and 1) or `graded` (floats in [0, 5]) for all splits alike.
    """

    splits: Mapping[str, pl.DataFrame]
    source: str
    label_kind: LabelKind = "binary"

    def __len__(self) -> int:
        return sum(frame.height for frame in self.splits.values())

    def has(self, *columns: str) -> bool:
        """Whether every split has all these columns."""
        return all(set(columns) <= set(frame.columns) for frame in self.splits.values())


def shard(config: str, split: str) -> str:
    """Where a split of a configuration lies in the folder."""
    return f"{CONFIG_FOLDERS[config]}/{split}-00000-of-00001.parquet"


def card_files(configs: Mapping[str, Mapping[str, pl.DataFrame]]) -> dict[str, dict[str, str]]:
    """The card's file patterns; a split without rows has no file, as readers can't tell its columns' use."""
    return {
        config: {
            split: f"{CONFIG_FOLDERS[config]}/{split}-*.parquet"
            for split, rows in splits.items()
            if rows.height
        }
        for config, splits in configs.items()
    }


def write_dataset(
    out: Path,
    configs: Mapping[str, Mapping[str, pl.DataFrame]],
    *,
    card: str,
    statistics: Mapping[str, Any],
    run: Mapping[str, Any],
) -> None:
    """Write the folder in one step; it is whole or absent.

    Args:
        out: The folder; one that stands there is replaced.
        configs: Configuration (`default`, `positive`, `triplet`) to split to rows, in the order to be
        written.
        card: The README, see `pairkit.card`.
        statistics: Goes to statistics.json.
        run: Goes to run.json; keep times out of it for equal bytes.

    Raises:
        ConfigError: The folder can't be written, or a frame lacks a column of its configuration.
    """
    for config, splits in configs.items():
        for split, rows in splits.items():
            missing = [name for name in COLUMNS[config] if name not in rows.columns]
            if missing:
                raise ConfigError(
                    f"{out}: {config}/{split} has no column {missing[0]}; it has {rows.columns}"
                )
    with whole_folder(out) as folder:
        for config, splits in configs.items():
            for split, rows in splits.items():
                if rows.height:
                    write_parquet(folder / shard(config, split), rows)
        write_json(folder / "statistics.json", statistics)
        write_json(folder / "run.json", run)
        write_text(folder / "README.md", card)


# What a spreadsheet takes for the beginning of a formula, the wide forms of East Asian ones included.
_FORMULA = r"^([=+\-@\t\r\n＝＋－＠])"


def export_pairs(
    dataset: PairDataset, out: Path, file_format: Literal["jsonl", "csv"], *, raw: bool = False
) -> list[Path]:
    """Write each split as `out/<split>.jsonl` or `.csv`; nested columns become JSON text in CSV.

    A spreadsheet takes a cell that begins with `=`, `+`, `-`, `@`, a tab or a line end for a formula and runs
    it, whoever wrote that text. So an apostrophe is put before it.

    Args:
        dataset: What to write.
        out: The folder.
        file_format: By which the files are called, too.
        raw: Leave out those apostrophes: for programs, not for a spreadsheet.

    Returns:
        The files written, in order of the splits.

    Raises:
        ConfigError: A file of that name stands there and is not the one that would be written.
        DataError: A column holds bytes, which neither format has.
    """
    for rows in dataset.splits.values():
        for name, dtype in rows.schema.items():
            if _holds_bytes(dtype):
                raise DataError(
                    f"the column {one_line(name)} holds bytes, which {file_format} can't; drop or decode it",
                    path=dataset.source,
                )
    texts = {
        out / f"{split}.{file_format}": rows.write_ndjson()
        if file_format == "jsonl"
        else (_flat(rows) if raw else _inert(_flat(rows))).write_csv()
        for split, rows in dataset.splits.items()
    }
    for path, text in texts.items():
        if path.exists() and not (path.is_file() and path.read_bytes() == text.encode()):
            raise ConfigError(f"{path}: is there already; choose another --out, or move it away")
    for path, text in texts.items():
        write_text(path, text)
    return list(texts)


def _holds_bytes(dtype: DataType | DataTypeClass) -> bool:
    if isinstance(dtype, pl.Struct):
        return any(_holds_bytes(field.dtype) for field in dtype.fields)
    if isinstance(dtype, (pl.List, pl.Array)):
        return _holds_bytes(dtype.inner)
    return dtype == pl.Binary


def _inert(rows: pl.DataFrame) -> pl.DataFrame:
    """Cells and names that no spreadsheet takes for formulas."""
    names = {name: f"'{name}" for name in rows.columns if re.match(_FORMULA, name)}
    return rows.with_columns(pl.col(pl.String).str.replace(_FORMULA, "'${1}")).rename(names)


def _flat(rows: pl.DataFrame) -> pl.DataFrame:
    nested = [name for name, dtype in rows.schema.items() if dtype.is_nested()]
    return rows.with_columns(
        pl.Series(
            name,
            [
                None if v is None else json.dumps(v, ensure_ascii=False, default=str)
                for v in rows[name].to_list()
            ],
        )
        for name in nested
    )
