"""Natural language inference from one vector of premise and hypothesis, as in Table 5 of the AoE paper.

Both are one input with the model's separator between them, and logistic regression on its vector tells
entailment, neutral and contradiction apart. The paper takes the vector of [CLS]; here it is the model's own
pooling, so that a model is judged by what it gives to everybody.

```
DATA_DIR/nli/snli-{train,dev,test}.tsv.gz            label, premise, hypothesis
        /nli/mnli-{train,validation-matched,validation-mismatched}.tsv.gz
        /nli/taxinli-mnli.tsv.gz
```

Each also without `.gz`.

* **SNLI**: the paper's data; the dev part chooses the penalty.
* **MultiNLI**: the paper's data. Its tests are the two validation parts, so each is judged with the penalty
  that the other chose. Our figure is over the examples of both; the paper gives the mean of the two
  accuracies, which differs by less than 0.01 points, as the parts are of nearly the same size.
* **SNLI-from-dev**, **TaxiNLI**: for where the training parts are not at hand, and not to be set beside
  the paper's figures. The first learns from the 9,842 rows of dev and is judged on test. The second has
  10,071 pairs of MultiNLI: a quarter of their premises is judged, and the others are learnt from. In both,
  folds of what is learnt from choose the penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
import polars as pl

from aoe_train._evaluate.suites.classification import ClassTask, Examples, JoinedTask
from aoe_train._evaluate.suites.probe import require_classifier
from aoe_train._evaluate.tasks import Split, check_rows
from pairkit.errors import DataError
from pairkit.tables import first_row, read_table

_CLASSES = ("entailment", "neutral", "contradiction")
_COLUMNS = ("label", "premise", "hypothesis")
_TEST_SHARE = 4  # one premise in so many is judged
_ROWS = {
    "snli-train": 549367,
    "snli-dev": 9842,
    "snli-test": 9824,
    "mnli-train": 392702,
    "mnli-validation-matched": 9815,
    "mnli-validation-mismatched": 9832,
    "taxinli-mnli": 10071,
}
_FILES = {
    "MultiNLI": ("mnli-train", "mnli-validation-matched", "mnli-validation-mismatched"),
    "SNLI": ("snli-train", "snli-dev", "snli-test"),
    "SNLI-from-dev": ("snli-dev", "snli-test"),
    "TaxiNLI": ("taxinli-mnli",),
}


class Nli:
    """The paper's two tasks and two small ones; see `aoe_train._evaluate.tasks.Suite`.

    Raises:
        ConfigError: scikit-learn is missing.
    """

    tasks = tuple(_FILES)
    extra: tuple[str, ...] = ()

    def __init__(self) -> None:
        require_classifier()

    def files(self, task: str, data_dir: Path, split: Split) -> tuple[Path, ...]:
        """Where a task's parts lie; tests only."""
        return tuple(_locate(data_dir / "nli", name) for name in _FILES[task]) if split == "test" else ()

    def read(self, task: str, files: Sequence[Path]) -> ClassTask | JoinedTask:
        """A task's parts, each with as many rows as published.

        Raises:
            DataError: A column or class that is not expected, with file and row; another number of rows.
        """
        frames = tuple(_read(path, _ROWS[name]) for path, name in zip(files, _FILES[task], strict=True))
        parts = tuple(map(_examples, _divide(*frames) if task == "TaxiNLI" else frames))
        if task != "MultiNLI":
            return ClassTask(task, parts)
        train, matched, mismatched = parts
        return JoinedTask(
            task,
            {
                "matched": ClassTask("MultiNLI matched", (train, mismatched, matched)),
                "mismatched": ClassTask("MultiNLI mismatched", (train, matched, mismatched)),
            },
        )


def _divide(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Train and test without a common premise; which is which hangs on the premise alone."""
    judged = pl.Series([crc32(premise.encode()) % _TEST_SHARE == 0 for premise in frame["premise"].to_list()])
    return frame.filter(~judged), frame.filter(judged)


def _locate(folder: Path, name: str) -> Path:
    plain = folder / f"{name}.tsv"
    return plain if plain.is_file() else folder / f"{name}.tsv.gz"


def _read(path: Path, published: int) -> pl.DataFrame:
    frame = read_table(path)
    absent = [name for name in _COLUMNS if name not in frame.columns]
    if absent:
        raise DataError(
            f"no column {', '.join(absent)}; there are {', '.join(frame.columns)}", path=path, row=1
        )
    check_rows(len(frame), published, path)
    frame = frame.select(pl.col(_COLUMNS).fill_null(""))
    for row, label in enumerate(frame["label"].to_list(), start=first_row(path)):
        if label not in _CLASSES:
            raise DataError(f"label {label!r}; expected {', '.join(_CLASSES)}", path=path, row=row)
    return frame


def _examples(frame: pl.DataFrame) -> Examples:
    classes = np.array([_CLASSES.index(label) for label in frame["label"].to_list()], np.int64)
    pairs = list(zip(frame["premise"].to_list(), frame["hypothesis"].to_list(), strict=True))
    return Examples((pairs,), classes)
