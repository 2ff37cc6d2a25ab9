"""Where the rows of a `save_to_disk` folder of Hugging Face's `datasets` are, split by split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pairkit.errors import DataError
from pairkit.folders import read_object
from pairkit.printable import one_line

_SPLITS_FILE = "dataset_dict.json"  # of a DatasetDict
_STATE_FILE = "state.json"  # of each Dataset


def saved_files(folder: Path) -> dict[str, list[Path]] | None:
    """Each split's Arrow files, in their order; None where the folder is no such dataset.

    Raises:
        DataError: Its JSON files are damaged, or name something outside of the folder.
    """
    if (folder / _SPLITS_FILE).is_file():
        names = _names(read_object(folder / _SPLITS_FILE).get("splits"), folder / _SPLITS_FILE)
        return {name: _files(folder / name, read_object(folder / name / _STATE_FILE)) for name in names}
    if not (folder / _STATE_FILE).is_file():
        return None
    state = read_object(folder / _STATE_FILE)
    split = state.get("_split")
    return {split if isinstance(split, str) else "train": _files(folder, state)}


def _files(folder: Path, state: dict[str, Any]) -> list[Path]:
    where = folder / _STATE_FILE
    if state.get("_indices_data_files"):
        raise DataError(
            "its rows are picked by indices, as old versions did; load it and save it again", path=where
        )
    listed = state.get("_data_files")
    files = [one.get("filename") if isinstance(one, dict) else None for one in _list(listed, where)]
    return [folder / name for name in _names(files, where)]


def _names(found: Any, where: Path) -> list[str]:
    """Names of files or folders right there."""
    names = _list(found, where)
    for name in names:
        if not isinstance(name, str) or name in ("", ".", "..") or Path(name).name != name:
            raise DataError(f"names {one_line(repr(name))}; expected a file or folder beside it", path=where)
    return names


def _list(found: Any, where: Path) -> list[Any]:
    if not isinstance(found, list) or not found:
        raise DataError("lists no data; load the dataset and save it again", path=where)
    return found
