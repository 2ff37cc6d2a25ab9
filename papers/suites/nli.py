"""Natural language inference from one vector of premise and hypothesis, as in Table 5 of the AoE paper.

Both are one input with the model's separator between them. Logistic regression on its vector classifies it as
entailment, neutral or contradiction. The paper uses the vector of [CLS]; here the model's own pooling is
used.

```
DATA_DIR/nli/snli-{train,dev,test}.tsv.gz            label, premise, hypothesis
        /nli/mnli-{train,validation-matched,validation-mismatched}.tsv.gz
        /nli/taxinli-mnli.tsv.gz
```

Files may also be without `.gz`.

* **SNLI**: the paper's data; dev chooses the penalty.
* **MultiNLI**: the paper's data. The two validation parts are the tests, and each chooses the penalty for the
  other one. Our score covers the examples of both; the paper reports the mean of the two accuracies, which
  differs by less than 0.01 points because the parts have nearly the same size.
* **SNLI-from-dev**, **TaxiNLI**: for use without the training parts; not comparable with the paper. The first
  is trained on the 9,842 rows of dev and tested on test. The second has 10,071 pairs of MultiNLI, of which a
  quarter of the premises is the test. In both, folds of the training rows choose the penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
import polars as pl

from pairkit.base.errors import DataError
from pairkit.dataset.reading.tables import first_row
from papers.suites.probe import ClassTask, Examples, JoinedTask
from papers.suites.published import check_size, read_columns, table_path

_CLASSES = ("entailment", "neutral", "contradiction")
_TEST_SHARE = 4  # one of four premises is in the test
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
TASKS = tuple(_FILES)


def files(task: str, data_dir: Path, split: str) -> tuple[Path, ...]:
    """The files of a task's parts; only the split `test` exists."""
    if split != "test":
        return ()
    folder = data_dir / "nli"
    return tuple(table_path(folder / f"{name}.tsv") for name in _FILES[task])


def read(task: str, found: Sequence[Path]) -> ClassTask | JoinedTask:
    """Read a task and check that each part has its published number of rows."""
    frames = tuple(
        _read(path, _ROWS[name]) for path, name in zip(found, _FILES[task], strict=True)
    )
    if task == "TaxiNLI":
        frames = _divide(*frames)
    parts = tuple(map(_examples, frames))
    if task != "MultiNLI":
        return ClassTask(task, parts)
    train, matched, mismatched = parts
    tests = {
        "matched": ClassTask(f"{task} matched", (train, mismatched, matched)),
        "mismatched": ClassTask(f"{task} mismatched", (train, matched, mismatched)),
    }
    return JoinedTask(task, tests)


def _divide(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split into train and test by a hash of the premise, so that they share no premise."""
    hashes = [crc32(premise.encode()) for premise in frame["premise"].to_list()]
    is_test = pl.Series(hashes) % _TEST_SHARE == 0
    return frame.filter(~is_test), frame.filter(is_test)


def _read(path: Path, published: int) -> pl.DataFrame:
    frame = read_columns(path, "label", "premise", "hypothesis").fill_null("")
    check_size(path, len(frame), published)
    for row, label in enumerate(frame["label"].to_list(), start=first_row(path)):
        if label not in _CLASSES:
            raise DataError(
                f"label {label!r}; expected {', '.join(_CLASSES)}", path=path, row=row
            )
    return frame


def _examples(frame: pl.DataFrame) -> Examples:
    classes = np.array(
        [_CLASSES.index(label) for label in frame["label"].to_list()], np.int64
    )
    pairs = list(
        zip(frame["premise"].to_list(), frame["hypothesis"].to_list(), strict=True)
    )
    return Examples((pairs,), classes)
