"""What the numbers of classes stand for, where a dataset of Hugging Face's `datasets` says so (`ClassLabel`).

Its Parquet files say it in their metadata, folders of `save_to_disk` in `dataset_info.json`, and a `Dataset`
in its features.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from pairkit.folders import read_object
from pairkit.lines import is_gzipped

ClassNames: TypeAlias = Mapping[str, tuple[str, ...]]
"""By column, the name of each class; its number is its place."""

_INFO_FILE = "dataset_info.json"  # of `save_to_disk`
_PARQUET_KEY = "huggingface"
_MAX_CLASSES = 1000


def class_names_of_file(path: Path) -> ClassNames:
    """The names of the classes of a table's columns; none where the file is not one of `datasets`.

    Args:
        path: A table that could be read.

    Raises:
        DataError: `dataset_info.json` beside an Arrow file is damaged.
    """
    if path.suffix.lower() == ".parquet" and not is_gzipped(path):
        return _of_parquet(path)
    info = path.parent / _INFO_FILE
    if path.suffix.lower() == ".arrow" and info.is_file():
        return class_names_of_features(read_object(info).get("features"))
    return {}


def class_names_of_features(features: Any) -> ClassNames:
    """The names of classes that `Dataset.features`, or their form in JSON, tell; whatever else is no name."""
    if not isinstance(features, Mapping):
        return {}
    found = {}
    for column, feature in features.items():
        kind = feature.get("_type") if isinstance(feature, Mapping) else type(feature).__name__
        names = feature.get("names") if isinstance(feature, Mapping) else getattr(feature, "names", None)
        if kind == "ClassLabel" and isinstance(names, list) and len(names) <= _MAX_CLASSES:
            found[column] = tuple(map(str, names))
    return found


def _of_parquet(path: Path) -> ClassNames:
    with suppress(pl.exceptions.PolarsError, ValueError, RecursionError, AttributeError):
        told = json.loads(pl.read_parquet_metadata(path).get(_PARQUET_KEY, "{}"))
        return class_names_of_features(told.get("info", {}).get("features"))
    return {}
