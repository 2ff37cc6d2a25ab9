"""Pairs of label 0 and 1, such as duplicate issues: as a ranking, as a classification, and by length of text.

Any dataset that `pairkit.reader.read_pairs` reads will do; as a suite, the data folder is the dataset.
Source: Spearman as ACL 2024, Table 2 reports it; their Figure 9 is why figures stand by length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from aoe_train._conflicts import Say, silent
from aoe_train._evaluate.binary import Binary, Thresholds, binary
from aoe_train._evaluate.pairs import (
    PairTask,
    is_whole,
    pair_task,
    read_one_split,
    shown_name,
    told_pairs,
)
from aoe_train._evaluate.tasks import Split, Verdict
from aoe_train._evaluate.vectors import Vectors
from pairkit.errors import ConfigError, DataError
from pairkit.in_memory import Source, source_name
from pairkit.labels import AS_FOUND, LabelRules
from pairkit.length import estimated_tokens
from pairkit.reader import read_pairs, split_names
from pairkit.tables import is_table

_SPLITS: dict[Split, tuple[str, ...]] = {"test": ("test", "validation"), "dev": ("validation",)}
"""What is read to judge a split: the pairs themselves, and those that thresholds are chosen on."""

_BEGINS = {"<128": 0, "128-255": 128, "256-511": 256, ">=512": 512}


@dataclass(frozen=True)
class GisTask:
    """Pairs to be told apart.

    Attributes:
        pairs: The judged ones; their parts are buckets of length.
        dev: Pairs to choose thresholds on, if there are any.
    """

    pairs: PairTask
    dev: PairTask | None = None

    @property
    def name(self) -> str:
        """The dataset's."""
        return self.pairs.name

    @property
    def texts(self) -> Sequence[str]:
        """Both sides of all pairs."""
        return [*self.pairs.texts, *(self.dev.texts if self.dev else ())]

    @property
    def rows(self) -> Sequence[tuple[str, str]]:
        """The two texts of each judged pair."""
        return self.pairs.rows

    def judge(self, vectors: Vectors) -> Verdict:
        """All metrics of `Binary`, over all pairs and by length; a bucket has the thresholds of all pairs.

        Raises:
            DataError: Labels other than 0 and 1, fewer than two pairs, only one label or cosine, or NaN.
        """
        thresholds = None
        if self.dev is not None:
            known = binary(self.dev.similarities(vectors), self.dev.labels, self.dev.name)
            thresholds = known.best_thresholds()
        cosines = self.pairs.similarities(vectors)
        whole = binary(cosines, self.pairs.labels, self.name, thresholds, self.pairs.likely)
        parts = {
            name: (self._part(cosines, rows, thresholds), len(rows))
            for name, rows in self.pairs.parts.items()
        }
        return Verdict(whole, parts)

    def _part(self, cosines: np.ndarray, rows: np.ndarray, thresholds: Thresholds | None) -> Binary | None:
        try:
            return binary(cosines[rows], self.pairs.labels[rows], self.name, thresholds)
        except DataError:  # few pairs may well be all of one label
            return None


class Gis:
    """One task, the dataset in the data folder; see `aoe_train._evaluate.tasks.Suite`."""

    tasks = ("gis",)
    extra = ()

    def files(self, task: str, data_dir: Path, split: Split) -> tuple[Path, ...]:  # noqa: ARG002 - there is one
        """The dataset's files of the split and of what its thresholds are chosen on.

        Raises:
            ConfigError: No such folder.
        """
        home = data_dir / "data" if (data_dir / "data").is_dir() else data_dir
        if not home.is_dir():
            raise ConfigError(f"{data_dir}: no such folder; give --data-dir the folder of a pair dataset")
        files = {
            path: split_names(path)[0] for path in sorted(home.iterdir()) if path.is_file() and is_table(path)
        }
        if _SPLITS[split][0] not in files.values():
            return ()
        return tuple(path for path, name in files.items() if name in _SPLITS[split])

    def read(self, task: str, files: Sequence[Path]) -> GisTask:  # noqa: ARG002
        """The task that these files hold.

        Raises:
            DataError: Not readable as pairs.
        """
        home = files[0].parent
        folder = home.parent if home.name == "data" else home
        frames: dict[str, list[pl.DataFrame]] = {}
        for path in files:
            for split, frame in read_pairs(path).splits.items():
                frames.setdefault(split, []).append(frame.select("text1", "text2", "label"))
        splits = {split: pl.concat(parts, how="vertical_relaxed") for split, parts in frames.items()}
        return _task(folder.resolve().name, splits)


def read_gis_task(
    source: Source,
    split: Split | None = None,
    rules: LabelRules = AS_FOUND,
    say: Say = silent,
    columns: Mapping[str, str] | None = None,
) -> GisTask:
    """Any pairs that `pairkit.reader.read_pairs` reads as a task named after them; see `read_one_split`."""
    name = shown_name(source)
    if is_whole(source) or (split is None and len(split_names(source)) == 1):
        return _task(name, {"test": read_one_split(source, split, rules, say, columns)})
    pairs = read_pairs(source, rules=rules, columns=columns)
    splits = told_pairs(pairs, source, columns, say).splits
    wanted = _SPLITS[split or "test"]
    if wanted[0] not in splits:
        raise DataError(f"no split {wanted[0]!r}; there are {', '.join(splits)}", path=source_name(source))
    used = {name: splits[name] for name in wanted if name in splits}
    if len(used) > 1 and used["validation"]["label"].n_unique() < 2:
        say(f"{source_name(source)}: all labels of validation are alike, so it chooses no thresholds")
        used.pop("validation")
    return _task(name, used)


def _task(name: str, splits: dict[str, pl.DataFrame]) -> GisTask:
    """Judge `test` with `validation` for the thresholds; or `validation` alone, without."""
    judged = pair_task(name, splits["test" if "test" in splits else "validation"])
    judged = replace(judged, parts=length_buckets(judged.text1, judged.text2))
    if "test" not in splits or "validation" not in splits:
        return GisTask(judged)
    return GisTask(judged, pair_task(f"{name}, validation", splits["validation"]))


def length_buckets(text1: Sequence[str], text2: Sequence[str]) -> dict[str, np.ndarray]:
    """The rows whose longer text has so many tokens; a bucket without rows is left out.

    Tokens are those of `pairkit.length.estimated_tokens`, a fixed rule that follows WordPiece, so that every
    model is judged on the same buckets.
    """
    frame = pl.DataFrame({"text1": list(text1), "text2": list(text2)})
    counts = frame.select(pl.max_horizontal(estimated_tokens(pl.col(name)) for name in frame.columns))
    bucket = np.searchsorted(list(_BEGINS.values()), counts.to_series().to_numpy(), side="right") - 1
    found = {name: np.flatnonzero(bucket == number) for number, name in enumerate(_BEGINS)}
    return {name: rows for name, rows in found.items() if len(rows)}
